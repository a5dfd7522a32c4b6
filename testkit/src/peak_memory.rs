//! Measures the peak of a test's memory. The test program has [`Counting`] as its allocator, and all its
//! tests share one count. So tests that measure hold [`SERIAL`].

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The allocator that counts. A test program makes it its global allocator.
#[derive(Debug)]
pub struct Counting;

fn note(more: usize, less: usize) {
    let now = IN_USE.fetch_add(more, Ordering::Relaxed).wrapping_add(more);
    PEAK.fetch_max(now, Ordering::Relaxed);
    IN_USE.fetch_sub(less, Ordering::Relaxed);
}

// SAFETY: every method passes its arguments to the system's allocator unchanged. Counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0);
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::alloc`, which is also `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note(0, layout.size());
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::dealloc`, and `memory` comes from
        // `System`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size, layout.size());
        // SAFETY: the caller fulfils the contract of `GlobalAlloc::realloc`, and `memory` comes from
        // `System`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// The lock to hold while measuring.
pub static SERIAL: Mutex<()> = Mutex::new(());

/// One MiB in bytes.
pub const MIB: usize = 1 << 20;

/// The most bytes that were allocated at once during `work`, beyond the bytes allocated before.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = IN_USE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let done = work();
    (PEAK.load(Ordering::Relaxed).saturating_sub(before), done)
}
