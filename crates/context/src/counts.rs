//! Counts of what was dropped of contexts, and of reclaimed values. All counts only grow.

use std::sync::atomic::{AtomicU64, Ordering};

use otlpprof_core::counts::counts;

counts! {
    /// The counts.
    Counts {
        /// Values that were not set because the dictionary was full.
        values_dropped_full,
        /// Values that were not set because they exceed the longest value.
        values_dropped_long,
        /// Calls of the program with an invalid trace or span id.
        ids_refused,
        /// Threads without a context, because the limit of blocks was reached.
        threads_without_block,
        /// Labels that are missing because their value had been reclaimed. Counted once for each set of
        /// labels that lacks one, each time the set is resolved, for any number of samples.
        labels_stale,
        /// Values that were reclaimed because nothing referred to them.
        values_reclaimed,
        /// Passes that searched for such values.
        reclaim_passes,
    }
}

/// Adds `more` to a count.
pub fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}
