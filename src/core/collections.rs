//! Collections that stop the world, as the VM announces them. A thread in native code runs on meanwhile, and what it reads
//! of the heap may be half moved.
//!
//! One collection may be announced within another (gc/shared/gcVMOperations.hpp, `SvcGCMarker`, of G1's full collections).

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// How many run, in the low bits, and how many have begun, above. One thread at a time writes: the VM's, which makes them.
#[derive(Debug, Default)]
pub struct Collections(AtomicU64);

const RUNNING: u64 = 0xffff;
const BEGUN: u64 = RUNNING + 1;
/// Nothing is announced: one may run at any time.
const NOT_TOLD: u64 = u64::MAX;

/// Those of this process.
pub static COLLECTIONS: Collections = Collections(AtomicU64::new(NOT_TOLD));

impl Collections {
    /// From now on all are announced; by a thread that lets none end before it calls the VM again.
    pub fn are_announced(&self) {
        let _ = self.0.compare_exchange(NOT_TOLD, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// A collection begins: nothing has been moved yet.
    pub fn begin(&self) {
        self.change(|state| state.wrapping_add(BEGUN).wrapping_add(1));
        // What the collection writes is not seen before this is.
        fence(Ordering::Release);
    }

    /// The collection has ended: nothing is moved any more. One whose beginning nobody saw says nothing.
    pub fn end(&self) {
        self.change(|state| if state & RUNNING == 0 { state } else { state.wrapping_sub(1) });
    }

    fn change(&self, change: impl Fn(u64) -> u64) {
        let state = self.0.load(Ordering::Relaxed);
        if state != NOT_TOLD {
            self.0.store(change(state), Ordering::Release);
        }
    }

    /// What tells the collections that have begun so far; `None` while one runs or might.
    pub fn so_far(&self) -> Option<u64> {
        let state = self.0.load(Ordering::Acquire);
        (state & RUNNING == 0).then_some(state)
    }

    /// Whether none has begun since there were `so_far`: what was read of the heap in between was whole.
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
    fn what_is_read_while_a_collection_begins_or_runs_is_not_whole() {
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
    fn an_end_that_nobody_saw_the_beginning_of_says_nothing() {
        let collections = Collections::default();
        let before = collections.so_far();
        collections.end();
        assert_eq!(collections.so_far(), before);
    }

    #[test]
    fn where_nothing_is_announced_one_may_always_run() {
        let collections = Collections(AtomicU64::new(NOT_TOLD));
        collections.begin();
        collections.end();
        assert_eq!(collections.so_far(), None);
        collections.are_announced();
        collections.are_announced();
        assert!(collections.so_far().is_some());
    }
}
