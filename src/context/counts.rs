//! What of the context was dropped, and what reclaiming did. Every number only grows.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::core::counts::counts;

counts! {
    /// The counts.
    Counts {
        /// Values that were not set because the dictionary was full.
        values_dropped_full,
        /// Values that were not set because they are longer than a value may be.
        values_dropped_long,
        /// Calls of the program whose trace or span id was none.
        ids_refused,
        /// Threads that have no context because there are as many blocks as there may be.
        threads_without_block,
        /// Labels that are missing because their value had been reclaimed: one for each set of labels that lacks it and each
        /// time the sets are resolved anew, of however many samples.
        labels_stale,
        /// Values that nothing referred to any longer.
        values_reclaimed,
        /// Passes that looked for such.
        reclaim_passes,
    }
}

/// One more.
pub fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}
