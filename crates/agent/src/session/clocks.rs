//! The monotonic clock and the time of day, read at one moment.

use otlpprof_signal::clock::monotonic_ns;

/// The monotonic clock and the time of day, read together.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionClocks {
    /// CLOCK_MONOTONIC.
    pub(super) monotonic_ns: u64,
    /// The difference to add to CLOCK_MONOTONIC for Unix time.
    pub(super) unix_offset_ns: i64,
}

impl SessionClocks {
    /// Reads both clocks. The offset of two readings differs: by the time between the two clocks' reads, and
    /// by what has adjusted the time of day.
    pub(super) fn now() -> Self {
        let monotonic_ns = monotonic_ns();
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is a valid timespec.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut now) };
        let unix_ns = now.tv_sec * 1_000_000_000 + now.tv_nsec;
        Self { monotonic_ns, unix_offset_ns: unix_ns - monotonic_ns as i64 }
    }

    /// The Unix time of this moment.
    pub(super) const fn unix_ns(self) -> u64 {
        self.monotonic_ns.saturating_add_signed(self.unix_offset_ns)
    }
}
