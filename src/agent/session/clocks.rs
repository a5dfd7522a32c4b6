//! The clocks at an interval's end.

use crate::signal::sample::monotonic_ns;

/// Returns CLOCK_MONOTONIC, in ns, and the difference to add to it for Unix time.
pub(super) fn clocks() -> (u64, i64) {
    let monotonic = monotonic_ns();
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut now) };
    let realtime = now.tv_sec * 1_000_000_000 + now.tv_nsec;
    (monotonic, realtime - monotonic as i64)
}
