//! The one table of events: which profiles each becomes, and what its value is there.

use crate::model::{ProfileType, types};

/// What an event becomes in one profile.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    /// The event's name.
    pub event: &'static str,
    /// The profile's type.
    pub profile_type: &'static ProfileType,
    /// The field that says the value, by its unit: times in nanoseconds, else as it stands. Without one each event is 1.
    pub value: Option<&'static str>,
    /// The period for types that have one, which the recording's settings may say otherwise.
    pub period: i64,
}

/// HotSpot's period of samples in the default settings, in nanoseconds (JDK 17 `default.jfc`).
const DEFAULT_PERIOD_NS: i64 = 20_000_000;

const fn sampled(event: &'static str, profile_type: &'static ProfileType) -> Conversion {
    Conversion { event, profile_type, value: None, period: DEFAULT_PERIOD_NS }
}

const fn counted(event: &'static str, profile_type: &'static ProfileType) -> Conversion {
    Conversion { event, profile_type, value: None, period: 1 }
}

const fn summed(event: &'static str, profile_type: &'static ProfileType, field: &'static str) -> Conversion {
    Conversion { event, profile_type, value: Some(field), period: 1 }
}

/// All conversions. An event may have several.
pub static CONVERSIONS: &[Conversion] = &[
    sampled("jdk.ExecutionSample", &types::CPU),
    sampled("jdk.CPUTimeSample", &types::CPU),
    // Threads in native code, whether they run or wait there.
    sampled("jdk.NativeMethodSample", &types::WALL),
    counted("jdk.ObjectAllocationSample", &types::ALLOC_SAMPLES),
    summed("jdk.ObjectAllocationSample", &types::ALLOC_SPACE, "weight"),
    counted("jdk.ObjectAllocationInNewTLAB", &types::ALLOC_SAMPLES),
    summed("jdk.ObjectAllocationInNewTLAB", &types::ALLOC_SPACE, "tlabSize"),
    counted("jdk.ObjectAllocationOutsideTLAB", &types::ALLOC_SAMPLES),
    summed("jdk.ObjectAllocationOutsideTLAB", &types::ALLOC_SPACE, "allocationSize"),
    counted("jdk.JavaMonitorEnter", &types::LOCK_COUNT),
    summed("jdk.JavaMonitorEnter", &types::LOCK_TIME, "duration"),
    counted("jdk.ThreadPark", &types::LOCK_COUNT),
    summed("jdk.ThreadPark", &types::LOCK_TIME, "duration"),
    counted("jdk.JavaMonitorWait", &types::WAIT_COUNT),
    summed("jdk.JavaMonitorWait", &types::WAIT_TIME, "duration"),
    counted("jdk.JavaExceptionThrow", &types::EXCEPTIONS),
    summed("jdk.ThreadSleep", &types::SLEEP_TIME, "duration"),
    summed("jdk.VirtualThreadPinned", &types::PINNED_TIME, "duration"),
    summed("jdk.SocketRead", &types::SOCKET_TIME, "duration"),
    summed("jdk.SocketRead", &types::SOCKET_BYTES, "bytesRead"),
    summed("jdk.SocketWrite", &types::SOCKET_TIME, "duration"),
    summed("jdk.SocketWrite", &types::SOCKET_BYTES, "bytesWritten"),
    summed("jdk.FileRead", &types::FILE_TIME, "duration"),
    summed("jdk.FileRead", &types::FILE_BYTES, "bytesRead"),
    summed("jdk.FileWrite", &types::FILE_TIME, "duration"),
    summed("jdk.FileWrite", &types::FILE_BYTES, "bytesWritten"),
    summed("jdk.ClassLoad", &types::CLASS_LOAD_TIME, "duration"),
];
