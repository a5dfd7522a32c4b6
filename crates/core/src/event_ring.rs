//! The ring buffer into which the kernel writes the samples of a thread's perf event.
//!
//! `sampling` maps a ring, publishes its address here, and unmaps it when no handler of the thread can use it
//! any more. `signal::kernel_stack` reads the ring.

use std::sync::atomic::{AtomicU64, Ordering};

/// A mapped ring: a page with the positions of writer and reader, followed by the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPlace {
    /// The run-time address of the first page.
    pub address: u64,
    /// The size of that page, in bytes. The area of the records has the same size.
    pub page_bytes: u64,
}

/// The ring of an event, if it has one.
#[derive(Debug, Default)]
pub struct EventRing {
    address: AtomicU64,
    page_bytes: AtomicU64,
}

impl EventRing {
    /// The place of the ring.
    #[inline]
    pub fn place(&self) -> Option<RingPlace> {
        match self.address.load(Ordering::Acquire) {
            0 => None,
            address => Some(RingPlace { address, page_bytes: self.page_bytes.load(Ordering::Relaxed) }),
        }
    }

    /// Publishes the place of the ring. The size is stored first, so that a thread that sees the address sees
    /// the size.
    #[inline]
    pub fn set(&self, place: RingPlace) {
        self.page_bytes.store(place.page_bytes, Ordering::Relaxed);
        self.address.store(place.address, Ordering::Release);
    }

    /// Withdraws the ring, and returns its place.
    #[inline]
    pub fn take(&self) -> Option<RingPlace> {
        let place = self.place();
        self.address.store(0, Ordering::Release);
        place
    }
}
