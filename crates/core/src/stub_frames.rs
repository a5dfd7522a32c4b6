//! The VM's stubs that have a frame of their own, that is, begin by saving the frame pointer and setting it.
//!
//! `jvm` adds stubs when the VM reports them, some of them long after the start; handlers look them up at any
//! time.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::address::CodeRange;

/// The capacity of the list. HotSpot 25 has 120 stubs with frames; further stubs are not stored.
const CAPACITY: usize = 1024;

/// A list that only grows. Callers serialise additions by their own lock; lookups take no lock.
#[derive(Debug)]
pub struct StubFrames {
    len: AtomicUsize,
    ranges: [(AtomicU64, AtomicU64); CAPACITY],
}

impl Default for StubFrames {
    fn default() -> Self {
        Self::new()
    }
}

impl StubFrames {
    /// Returns an empty list, also for a `static`.
    pub const fn new() -> Self {
        Self {
            len: AtomicUsize::new(0),
            ranges: [const { (AtomicU64::new(0), AtomicU64::new(0)) }; CAPACITY],
        }
    }

    /// Adds a stub, unless it is in the list already or the list is full. Only one thread at a time may call
    /// this function.
    pub fn add(&self, range: CodeRange) {
        let len = self.len.load(Ordering::Relaxed);
        let known = self.at(range.start).is_some_and(|known| known == range);
        if let Some((start, end)) = self.ranges.get(len).filter(|_| !known) {
            start.store(range.start, Ordering::Relaxed);
            end.store(range.end, Ordering::Relaxed);
            self.len.store(len.wrapping_add(1), Ordering::Release);
        }
    }

    /// Returns the stub that contains `pc`; the last one added, if there are several. Allocates nothing,
    /// never panics.
    #[inline]
    pub fn at(&self, pc: u64) -> Option<CodeRange> {
        let ranges = self.ranges.get(..self.len.load(Ordering::Acquire))?;
        let ranges = ranges.iter().rev().map(|(start, end)| CodeRange {
            start: start.load(Ordering::Relaxed),
            end: end.load(Ordering::Relaxed),
        });
        ranges.into_iter().find(|range| range.contains(pc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_are_found_once_they_were_added() {
        let frames = StubFrames::new();
        let range = |start, end| CodeRange { start, end };
        assert_eq!(frames.at(0), None);
        frames.add(range(0x100, 0x200));
        frames.add(range(0x300, 0x400));
        frames.add(range(0x300, 0x400));
        assert_eq!(frames.at(0x1ff), Some(range(0x100, 0x200)));
        assert_eq!(frames.at(0x200), None);
        assert_eq!(frames.len.load(Ordering::Relaxed), 2);
        frames.add(range(0x180, 0x280));
        assert_eq!(frames.at(0x190), Some(range(0x180, 0x280)));
    }

    #[test]
    fn stub_frames_beyond_the_capacity_are_discarded() {
        let frames = StubFrames::new();
        (0..2 * CAPACITY as u64).for_each(|i| frames.add(CodeRange { start: i * 16, end: i * 16 + 8 }));
        assert!(frames.at((CAPACITY as u64 - 1) * 16).is_some());
        assert_eq!(frames.at(CAPACITY as u64 * 16), None);
    }
}
