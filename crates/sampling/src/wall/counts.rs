//! The counts of the wall-clock sampler.

use std::sync::atomic::{AtomicU64, Ordering};

use otlpprof_core::counts::counts;

counts! {
    /// Counts of the sampler since the process began.
    WallCounts {
        /// Threads visited.
        visits,
        /// Signals sent.
        signals,
        /// Visits at which the thread was still at the same place.
        idle,
        /// Visits at which a thread was to be signalled but was not, because there are too many threads:
        /// other samples stand for it.
        unasked,
        /// Signals that the system refused to send, for lack of room for queued signals.
        signals_refused,
        /// Signals that were not handled in time, and were sent again.
        signals_lost,
        /// Rounds that took longer than the interval, because there are too many threads.
        long_rounds,
        /// Times that a foreign handler was found in place of ours.
        handler_replaced,
    }
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
