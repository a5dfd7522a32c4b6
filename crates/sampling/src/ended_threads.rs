//! The CPU time of threads that have ended.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The total CPU time that ended threads reported.
pub(super) struct EndedThreads {
    pub(super) begun: AtomicU64,
    pub(super) finished: AtomicU64,
    pub(super) used_ns: AtomicI64,
}

pub(super) static ENDS: EndedThreads =
    EndedThreads { begun: AtomicU64::new(0), finished: AtomicU64::new(0), used_ns: AtomicI64::new(0) };

impl EndedThreads {
    /// Calls `end`, which removes a thread from the tables and returns the CPU time, in ns, that is known of
    /// it.
    pub(super) fn note(&self, end: impl FnOnce() -> i64) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.used_ns.fetch_add(end(), Ordering::SeqCst);
        self.finished.fetch_add(1, Ordering::SeqCst);
    }
}
