//! Stop-the-world garbage collections, as the VM announces them. A thread in native code continues to run
//! during a collection, and the heap that it reads may be half moved.
//!
//! One collection may be announced within another (`SvcGCMarker`, gc/shared/gcVMOperations.hpp, in 11
//! gc/shared/vmGCOperations.hpp; at G1's full collections).

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The number of running collections in the low bits, and the number of collections that have begun in the
/// upper bits. Only one thread at a time writes: the VM thread, which performs the collections.
#[derive(Debug, Default)]
pub struct Collections(AtomicU64);

const RUNNING: u64 = 0xffff;
const BEGUN: u64 = RUNNING + 1;
/// Collections are not announced: one may be running at any time.
const UNANNOUNCED: u64 = u64::MAX;

/// The collections of this process.
pub static COLLECTIONS: Collections = Collections(AtomicU64::new(UNANNOUNCED));

impl Collections {
    /// Declares that all collections are announced from now on. The caller must be a thread during whose call
    /// no collection can end, until the thread calls the VM again.
    pub fn announce(&self) {
        let _ = self.0.compare_exchange(UNANNOUNCED, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// A collection begins. No object has been moved yet.
    pub fn begin(&self) {
        self.change(|state| state.wrapping_add(BEGUN).wrapping_add(1));
        // Makes the new state visible before any write of the collection.
        fence(Ordering::Release);
    }

    /// A collection has ended, and moves no more objects. The end of a collection whose beginning was missed
    /// is ignored.
    pub fn end(&self) {
        self.change(|state| if state & RUNNING == 0 { state } else { state.wrapping_sub(1) });
    }

    fn change(&self, change: impl Fn(u64) -> u64) {
        let state = self.0.load(Ordering::Relaxed);
        if state != UNANNOUNCED {
            self.0.store(change(state), Ordering::Release);
        }
    }

    /// Returns a token for the collections that have begun so far; `None` while one is running or may be
    /// running.
    #[inline]
    pub fn so_far(&self) -> Option<u64> {
        let state = self.0.load(Ordering::Acquire);
        (state & RUNNING == 0).then_some(state)
    }

    /// Whether no collection has begun since `so_far` was returned. If so, the heap was consistent in
    /// between.
    #[inline]
    pub fn are_still(&self, so_far: u64) -> bool {
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == so_far
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_read_while_a_collection_begins_or_runs_is_invalid() {
        let collections = Collections::default();
        let before = collections.so_far().unwrap();
        assert!(collections.are_still(before));
        collections.begin();
        assert!(!collections.are_still(before));
        assert_eq!(collections.so_far(), None);
        collections.begin();
        collections.end();
        assert_eq!(collections.so_far(), None, "one within the other");
        collections.end();
        let after = collections.so_far().unwrap();
        assert!(!collections.are_still(before) && collections.are_still(after));
    }

    #[test]
    fn the_end_of_a_collection_whose_beginning_was_missed_is_ignored() {
        let collections = Collections::default();
        let before = collections.so_far();
        collections.end();
        assert_eq!(collections.so_far(), before);
    }

    #[test]
    fn unannounced_collections_may_run_at_any_time() {
        let collections = Collections(AtomicU64::new(UNANNOUNCED));
        collections.begin();
        collections.end();
        assert_eq!(collections.so_far(), None);
        collections.announce();
        collections.announce();
        assert!(collections.so_far().is_some());
    }
}
