//! Collections that stop the world, as the VM announces them. A thread in native code runs on meanwhile, and what it reads
//! of the heap may be half moved.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// How many collections have begun, and how many of them have ended. One thread at a time writes: the VM's, which makes
/// them.
#[derive(Debug, Default)]
pub struct Collections {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// Those of this process.
pub static COLLECTIONS: Collections = Collections { begun: AtomicU64::new(0), ended: AtomicU64::new(0) };

impl Collections {
    /// A collection begins: nothing has been moved yet.
    pub fn begin(&self) {
        self.begun.store(self.begun.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        // What the collection writes is not seen before this is.
        fence(Ordering::Release);
    }

    /// The collection has ended: nothing is moved any more.
    pub fn end(&self) {
        self.ended.store(self.begun.load(Ordering::Relaxed), Ordering::Release);
    }

    /// How many have begun; `None` while one runs.
    pub fn so_far(&self) -> Option<u64> {
        let begun = self.begun.load(Ordering::Relaxed);
        (self.ended.load(Ordering::Acquire) == begun).then_some(begun)
    }

    /// Whether none has begun since there were `so_far`: what was read of the heap in between was whole.
    pub fn are_still(&self, so_far: u64) -> bool {
        fence(Ordering::Acquire);
        self.begun.load(Ordering::Relaxed) == so_far
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_while_a_collection_begins_or_runs_is_not_whole() {
        let collections = Collections::default();
        let before = collections.so_far();
        assert_eq!(before, Some(0));
        assert!(collections.are_still(0));
        collections.begin();
        assert!(!collections.are_still(0));
        assert_eq!(collections.so_far(), None);
        collections.end();
        assert_eq!(collections.so_far(), Some(1));
        assert!(!collections.are_still(0));
        assert!(collections.are_still(1));
    }

    #[test]
    fn an_end_that_nobody_saw_the_beginning_of_says_nothing() {
        let collections = Collections::default();
        collections.end();
        assert_eq!(collections.so_far(), Some(0));
        collections.begin();
        // Nobody was told of its end; the next session begins.
        collections.end();
        assert_eq!(collections.so_far(), Some(1));
    }
}
