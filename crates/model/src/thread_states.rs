//! The values of the attribute [`THREAD_STATE`](super::attribute_keys::THREAD_STATE).

/// Running on a processor.
pub const RUNNING: &str = "running";

/// Waiting to enter a monitor, or stopped by the VM.
pub const BLOCKED: &str = "blocked";

/// In Object.wait.
pub const WAITING: &str = "waiting";

/// In LockSupport.park.
pub const PARKED: &str = "parked";

/// In Thread.sleep.
pub const SLEEPING: &str = "sleeping";

/// In a system call of native code that waits.
pub const IN_NATIVE: &str = "native";

/// Ready to run, and waiting for a processor.
pub const RUNNABLE: &str = "runnable";
