//! The clocks of an interval's start and end.

/// Returns CLOCK_MONOTONIC, in ns.
pub(super) fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Returns CLOCK_MONOTONIC, in ns, and the difference to add to it for Unix time.
pub(super) fn clocks() -> (u64, i64) {
    let monotonic = monotonic_ns();
    (monotonic, clock_ns(libc::CLOCK_REALTIME) as i64 - monotonic as i64)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
