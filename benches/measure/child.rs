//! Measures a process from its start to its end: its duration, and its memory.

use std::process::Child;
use std::time::Duration;

/// Waits for a child that was started at `started`. Returns the time until its end, and its peak resident
/// memory in KiB.
///
/// # Panics
/// If the child failed.
pub(crate) fn wait(child: &Child, started: std::time::Instant) -> (Duration, i64) {
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the child is ours and no other code waits for it; the kernel writes an int and an rusage, for
    // which all zeroes is valid too.
    let (waited, usage) = unsafe {
        let waited = libc::wait4(child.id() as libc::pid_t, &raw mut status, 0, usage.as_mut_ptr());
        (waited, usage.assume_init())
    };
    let time = started.elapsed();
    assert!(waited == child.id() as libc::pid_t && status == 0, "{child:?}: status {status:#x}");
    (time, usage.ru_maxrss)
}
