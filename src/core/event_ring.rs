//! Where the kernel writes what a thread's perf event has met.
//!
//! `sampling` maps a ring, says here where it is, and unmaps it when no handler of the thread can be at work any more;
//! `signal::kernel_stack` reads it.

use std::sync::atomic::{AtomicU64, Ordering};

/// A mapped ring: a page in which both sides say how far they are, and behind it the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPlace {
    /// The run-time address of the first page.
    pub address: u64,
    /// That page's size. The records' is the same.
    pub page_bytes: u64,
}

/// The ring of an event, if it has one.
#[derive(Debug, Default)]
pub struct EventRing {
    address: AtomicU64,
    page_bytes: AtomicU64,
}

impl EventRing {
    /// Where it is.
    pub fn place(&self) -> Option<RingPlace> {
        match self.address.load(Ordering::Acquire) {
            0 => None,
            address => Some(RingPlace { address, page_bytes: self.page_bytes.load(Ordering::Relaxed) }),
        }
    }

    /// Says where it is. The size is stored first: whoever sees the address sees it.
    pub fn set(&self, place: RingPlace) {
        self.page_bytes.store(place.page_bytes, Ordering::Relaxed);
        self.address.store(place.address, Ordering::Release);
    }

    /// Says that there is none any more, and where it was.
    pub fn take(&self) -> Option<RingPlace> {
        let place = self.place();
        self.address.store(0, Ordering::Release);
        place
    }
}
