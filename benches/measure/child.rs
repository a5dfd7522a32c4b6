//! A process from its start to its end: how long it ran, and how much memory it had.

use std::process::Child;
use std::time::Duration;

/// Waits for a child that was started at `started`: the time until its end, and its most resident memory in KiB.
///
/// # Panics
/// If it failed.
pub(crate) fn wait(child: &Child, started: std::time::Instant) -> (Duration, i64) {
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the child is ours and nobody else waits for it; the kernel writes an int and an rusage, which is
    // valid as zeroes too.
    let (waited, usage) = unsafe {
        let waited = libc::wait4(child.id() as libc::pid_t, &raw mut status, 0, usage.as_mut_ptr());
        (waited, usage.assume_init())
    };
    let time = started.elapsed();
    assert!(waited == child.id() as libc::pid_t && status == 0, "{child:?}: status {status:#x}");
    (time, usage.ru_maxrss)
}
