//! The table of events: the profiles that each event is converted to, and its value in each.

use otlpprof_model::{ProfileType, types};

/// The conversion of an event to one profile.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    /// The event's name.
    pub event: &'static str,
    /// The profile's type.
    pub profile_type: &'static ProfileType,
    /// The value that the event adds to the profile.
    pub value: Measure,
    /// The source of the profile's events. Only events of one source share a profile: samples of different
    /// clocks do not add up, nor do two estimates of the same allocations. Empty: all events of this type
    /// share one profile.
    pub source: &'static str,
    /// The period between samples; `None` if every event is recorded.
    pub period: Option<Period>,
    /// The subset of the events that is converted.
    pub only: Subset,
}

/// The value that an event adds to its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// 1.
    One,
    /// The value of a field. Times are converted to nanoseconds.
    Field(&'static str),
    /// The value of a field with the number of things that the event stands for. It need not be an integer.
    Weight(&'static str),
    /// The first field's value for each thing that the event stands for: times the second field's value, the
    /// weight.
    Weighted(&'static str, &'static str),
}

/// The sources of the samples' period, in the unit of the profile's period.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    /// The event's own field with its period.
    pub field: Option<&'static str>,
    /// Recorded settings, by event and name; the first one that is present counts. The value 0 requests the
    /// writer's default.
    pub settings: &'static [(&'static str, &'static str)],
    /// The default of the event's usual writer.
    pub default: i64,
    /// async-profiler's default, if it also writes the event.
    pub async_profiler_default: i64,
}

/// The subset of an event type whose events can have two meanings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subset {
    /// All events: the type has one meaning.
    All,
    /// Samples by CPU time, or by another event that async-profiler counts instead. In the latter case the
    /// profile describes that event.
    CpuClock,
    /// Samples by wall-clock time.
    WallClock,
}

/// The field of an event that says that the JVM could not walk its stack (`jdk.CPUTimeSample`).
pub(super) const FAILED: &str = "failed";

const MILLISECOND: i64 = 1_000_000;

/// HotSpot's default settings (JDK 17 `default.jfc`).
const HOTSPOT_PERIOD_NS: i64 = 20 * MILLISECOND;
/// async-profiler 4.6: `DEFAULT_INTERVAL` in its `arguments.h`; on the wall clock five times that
/// (`WallClock::start`).
const ASYNC_PROFILER_CPU_NS: i64 = 10 * MILLISECOND;
const ASYNC_PROFILER_WALL_NS: i64 = 50 * MILLISECOND;
/// Datadog's profiler 1.49: `DEFAULT_CPU_INTERVAL` and `DEFAULT_WALL_INTERVAL` in its `arguments.h`.
const DATADOG_CPU_NS: i64 = 10 * MILLISECOND;
const DATADOG_WALL_NS: i64 = 50 * MILLISECOND;

/// The default periods of async-profiler's perf events (4.6, `PerfEventType::AVAILABLE_EVENTS` in
/// `perfEvents_linux.cpp`). For tracepoints, probes, breakpoints and methods the period is 1.
const ASYNC_PROFILER_EVENTS: &[(&str, i64)] = &[
    ("context-switches", 2),
    ("cycles", 1_000_000),
    ("instructions", 1_000_000),
    ("cache-references", 1_000_000),
    ("cache-misses", 1_000),
    ("branch-instructions", 1_000_000),
    ("branch-misses", 1_000),
    ("bus-cycles", 1_000_000),
    ("ref-cycles", 1_000_000),
    ("L1-dcache-load-misses", 1_000_000),
    ("LLC-load-misses", 1_000),
    ("dTLB-load-misses", 1_000),
];
/// The default period of perf events that are given by a processor's own code (`rNNN`,
/// `pmu/event-descriptor/`).
const ASYNC_PROFILER_RAW_EVENTS: i64 = 1_000;

/// The period of async-profiler's samples by a perf event that is not a clock.
pub(super) fn period_of_counted(event: &str) -> Period {
    let is_raw = event.ends_with('/')
        || event.strip_prefix('r').is_some_and(|code| {
            code.starts_with(|first: char| first.is_ascii_digit()) && u64::from_str_radix(code, 16).is_ok()
        });
    let known = ASYNC_PROFILER_EVENTS.iter().find(|(name, _)| *name == event).map(|(_, period)| *period);
    let default = known.unwrap_or(if is_raw { ASYNC_PROFILER_RAW_EVENTS } else { 1 });
    Period {
        field: None,
        settings: &[("jdk.ExecutionSample", "interval")],
        default,
        async_profiler_default: default,
    }
}

const fn counted(event: &'static str, profile_type: &'static ProfileType) -> Conversion {
    Conversion { event, profile_type, value: Measure::One, source: "", period: None, only: Subset::All }
}

const fn summed(event: &'static str, profile_type: &'static ProfileType, field: &'static str) -> Conversion {
    Conversion { value: Measure::Field(field), ..counted(event, profile_type) }
}

const fn weighted(
    event: &'static str,
    profile_type: &'static ProfileType,
    field: &'static str,
) -> Conversion {
    Conversion { value: Measure::Weighted(field, "weight"), ..counted(event, profile_type) }
}

const fn weight(event: &'static str, profile_type: &'static ProfileType) -> Conversion {
    Conversion { value: Measure::Weight("weight"), ..counted(event, profile_type) }
}

const fn sampled(
    event: &'static str,
    profile_type: &'static ProfileType,
    settings: &'static [(&'static str, &'static str)],
    default: i64,
) -> Conversion {
    let period = Some(Period { field: None, settings, default, async_profiler_default: default });
    Conversion { period, source: event, ..counted(event, profile_type) }
}

impl Conversion {
    const fn of(self, source: &'static str) -> Self {
        Self { source, ..self }
    }
}

/// The source of HotSpot's two allocation events that are not estimates; the two belong together.
const TLAB: &str = "jdk.ObjectAllocationInNewTLAB";

/// All conversions. An event may have several. If several profiles in one output have the same type, the
/// first one in this table keeps the type.
pub static CONVERSIONS: &[Conversion] = &[
    // CPU time.
    Conversion {
        value: Measure::Weight("weight"),
        ..sampled(
            "datadog.ExecutionSample",
            &types::CPU,
            &[("datadog.ExecutionSample", "interval")],
            DATADOG_CPU_NS,
        )
    },
    Conversion {
        period: Some(Period {
            field: Some("samplingPeriod"),
            settings: &[("jdk.CPUTimeSample", "throttle")],
            default: HOTSPOT_PERIOD_NS,
            async_profiler_default: HOTSPOT_PERIOD_NS,
        }),
        ..sampled("jdk.CPUTimeSample", &types::CPU, &[], 0)
    },
    Conversion {
        only: Subset::CpuClock,
        period: Some(Period {
            field: None,
            settings: &[("jdk.ExecutionSample", "period"), ("jdk.ExecutionSample", "interval")],
            default: HOTSPOT_PERIOD_NS,
            async_profiler_default: ASYNC_PROFILER_CPU_NS,
        }),
        ..sampled("jdk.ExecutionSample", &types::CPU, &[], 0)
    },
    // Wall-clock time.
    Conversion {
        value: Measure::Weight("weight"),
        ..sampled(
            "datadog.MethodSample",
            &types::WALL,
            &[("datadog.MethodSample", "interval")],
            DATADOG_WALL_NS,
        )
    },
    Conversion {
        value: Measure::Field("samples"),
        ..sampled(
            "profiler.WallClockSample",
            &types::WALL,
            &[("jdk.ExecutionSample", "wall"), ("jdk.ExecutionSample", "interval")],
            ASYNC_PROFILER_WALL_NS,
        )
    },
    Conversion {
        only: Subset::WallClock,
        ..sampled(
            "jdk.ExecutionSample",
            &types::WALL,
            &[("jdk.ExecutionSample", "wall"), ("jdk.ExecutionSample", "interval")],
            ASYNC_PROFILER_WALL_NS,
        )
    },
    // Samples of threads in native code, running or waiting. So the time between two samples is not CPU time.
    sampled(
        "jdk.NativeMethodSample",
        &types::WALL,
        &[("jdk.NativeMethodSample", "period")],
        HOTSPOT_PERIOD_NS,
    ),
    // Allocations.
    counted("datadog.ObjectSample", &types::ALLOC_SAMPLES).of("datadog.ObjectSample"),
    weight("datadog.ObjectSample", &types::ALLOC_OBJECTS).of("datadog.ObjectSample"),
    weighted("datadog.ObjectSample", &types::ALLOC_SPACE, "size").of("datadog.ObjectSample"),
    counted("jdk.ObjectAllocationSample", &types::ALLOC_SAMPLES).of("jdk.ObjectAllocationSample"),
    summed("jdk.ObjectAllocationSample", &types::ALLOC_SPACE, "weight").of("jdk.ObjectAllocationSample"),
    counted(TLAB, &types::ALLOC_SAMPLES).of(TLAB),
    summed(TLAB, &types::ALLOC_SPACE, "tlabSize").of(TLAB),
    counted("jdk.ObjectAllocationOutsideTLAB", &types::ALLOC_SAMPLES).of(TLAB),
    summed("jdk.ObjectAllocationOutsideTLAB", &types::ALLOC_SPACE, "allocationSize").of(TLAB),
    // Live objects.
    weight("datadog.HeapLiveObject", &types::LIVE_OBJECTS).of("datadog.HeapLiveObject"),
    weighted("datadog.HeapLiveObject", &types::LIVE_SPACE, "size").of("datadog.HeapLiveObject"),
    counted("profiler.LiveObject", &types::LIVE_OBJECTS).of("profiler.LiveObject"),
    summed("profiler.LiveObject", &types::LIVE_SPACE, "allocationSize").of("profiler.LiveObject"),
    counted("jdk.OldObjectSample", &types::LIVE_OBJECTS).of("jdk.OldObjectSample"),
    summed("jdk.OldObjectSample", &types::LIVE_SPACE, "objectSize").of("jdk.OldObjectSample"),
    // Native memory.
    weight("datadog.NativeMemoryAllocation", &types::NATIVEMEM_OBJECTS).of("datadog.NativeMemoryAllocation"),
    weighted("datadog.NativeMemoryAllocation", &types::NATIVEMEM_SPACE, "size")
        .of("datadog.NativeMemoryAllocation"),
    counted("profiler.Malloc", &types::NATIVEMEM_OBJECTS).of("profiler.Malloc"),
    summed("profiler.Malloc", &types::NATIVEMEM_SPACE, "size").of("profiler.Malloc"),
    // Locks and waits; [`lock_kind`] distinguishes them.
    counted("jdk.JavaMonitorEnter", &types::LOCK_COUNT),
    summed("jdk.JavaMonitorEnter", &types::LOCK_TIME, "duration"),
    counted("jdk.JavaMonitorWait", &types::LOCK_COUNT),
    summed("jdk.JavaMonitorWait", &types::LOCK_TIME, "duration"),
    counted("jdk.ThreadPark", &types::LOCK_COUNT),
    summed("jdk.ThreadPark", &types::LOCK_TIME, "duration"),
    counted("profiler.NativeLock", &types::LOCK_COUNT),
    summed("profiler.NativeLock", &types::LOCK_TIME, "duration"),
    // Everything else.
    counted("jdk.JavaExceptionThrow", &types::EXCEPTIONS),
    counted("jdk.MethodTrace", &types::TRACE_COUNT),
    summed("jdk.MethodTrace", &types::TRACE_TIME, "duration"),
    summed("jdk.ThreadSleep", &types::SLEEP_TIME, "duration"),
    summed("jdk.VirtualThreadPinned", &types::PINNED_TIME, "duration"),
    summed("jdk.SocketRead", &types::SOCKET_TIME, "duration"),
    summed("jdk.SocketRead", &types::SOCKET_BYTES, "bytesRead"),
    summed("jdk.SocketWrite", &types::SOCKET_TIME, "duration"),
    summed("jdk.SocketWrite", &types::SOCKET_BYTES, "bytesWritten"),
    weighted("datadog.NativeSocketEvent", &types::SOCKET_TIME, "duration").of("datadog.NativeSocketEvent"),
    weighted("datadog.NativeSocketEvent", &types::SOCKET_BYTES, "bytesTransferred")
        .of("datadog.NativeSocketEvent"),
    summed("jdk.FileRead", &types::FILE_TIME, "duration"),
    summed("jdk.FileRead", &types::FILE_BYTES, "bytesRead"),
    summed("jdk.FileWrite", &types::FILE_TIME, "duration"),
    summed("jdk.FileWrite", &types::FILE_BYTES, "bytesWritten"),
    summed("jdk.ClassLoad", &types::CLASS_LOAD_TIME, "duration"),
];

/// The name of an event in JDK 11 and later. JDK 9 and 10 have a prefix: `com.oracle.jdk.SocketRead` (JMC 9
/// `OracleJdkTypeIDsPre11`).
pub(super) fn known_name(name: &str) -> &str {
    name.strip_prefix("com.oracle.").filter(|rest| rest.starts_with("jdk.")).unwrap_or(name)
}

/// The kind of lock or wait that an event is about, if any: the value of `otlpprof.lock.kind`.
pub(super) fn lock_kind(event: &str) -> Option<&'static str> {
    Some(match event {
        "jdk.JavaMonitorEnter" => "monitor",
        // The thread waited for a notification, not for a lock that another thread held.
        "jdk.JavaMonitorWait" => "wait",
        "jdk.ThreadPark" => "park",
        "profiler.NativeLock" => "native",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_events_have_their_writers_periods() {
        for (event, period) in [
            ("page-faults", 1),
            ("context-switches", 2),
            ("cycles", 1_000_000),
            ("LLC-load-misses", 1_000),
            ("r1a8", 1_000),
            ("cpu/mem-loads/", 1_000),
            ("sched:sched_switch", 1),
            ("java.lang.Object.wait", 1),
            ("read", 1),
            ("recvfrom", 1),
        ] {
            assert_eq!(period_of_counted(event).default, period, "{event}");
        }
    }

    #[test]
    fn events_of_jdk_9_and_10_are_known_by_their_later_names() {
        for (name, known) in [
            ("com.oracle.jdk.SocketRead", "jdk.SocketRead"),
            ("jdk.SocketRead", "jdk.SocketRead"),
            ("com.oracle.shop.Order", "com.oracle.shop.Order"),
            ("com.example.Order", "com.example.Order"),
        ] {
            assert_eq!(known_name(name), known);
        }
    }

    #[test]
    fn no_event_counts_twice_in_one_profile() {
        for (at, one) in CONVERSIONS.iter().enumerate() {
            let same = |other: &&Conversion| {
                (other.event, other.profile_type.name, other.only)
                    == (one.event, one.profile_type.name, one.only)
            };
            assert!(!CONVERSIONS[..at].iter().any(|other| same(&other)), "{one:?}");
        }
    }
}
