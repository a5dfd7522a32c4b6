//! How much memory a test's work has at once: an allocator that keeps the peak. Every byte of a binary that has this module
//! goes through it, and all its tests share one count: those that measure hold [`SERIAL`].

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn note(more: usize, less: usize) {
    let now = IN_USE.fetch_add(more, Ordering::Relaxed).wrapping_add(more);
    PEAK.fetch_max(now, Ordering::Relaxed);
    IN_USE.fetch_sub(less, Ordering::Relaxed);
}

// SAFETY: the system's allocator, but for the count.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note(0, layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size, layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// Held while something is measured.
pub(crate) static SERIAL: Mutex<()> = Mutex::new(());

/// Bytes of a mebibyte.
pub(crate) const MIB: usize = 1 << 20;

/// The most bytes that `work` had at once, besides those that were there before.
pub(crate) fn peak_of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = IN_USE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let done = work();
    (PEAK.load(Ordering::Relaxed).saturating_sub(before), done)
}
