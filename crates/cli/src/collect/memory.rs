//! Bounds on the memory that all requests together may occupy, however many there are.
//!
//! Received bodies occupy at most [`BODIES`] bytes. A request for which nothing is left is asked to retry. At
//! most [`AT_WORK`] requests at a time are decompressed, checked and stored. Each occupies about three times
//! the largest body.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

/// Bytes of bodies that were received and are not stored yet.
const BODIES: usize = 64 << 20;
/// The most requests that are processed at a time.
const AT_WORK: usize = 2;

/// Memory that all requests share.
#[derive(Debug)]
pub(super) struct Memory {
    available: Mutex<Available>,
    released: Condvar,
}

#[derive(Debug)]
struct Available {
    bytes: usize,
    permits: usize,
}

impl Memory {
    pub(super) fn new() -> Arc<Self> {
        let available = Available { bytes: BODIES, permits: AT_WORK };
        Arc::new(Self { available: Mutex::new(available), released: Condvar::new() })
    }

    /// A share that has no bytes yet.
    pub(super) fn share(self: &Arc<Self>) -> Share {
        Share { memory: self.clone(), bytes: 0 }
    }

    /// Waits for permission to process a request.
    pub(super) fn permit(self: &Arc<Self>) -> Permit {
        let mut available = self.available.lock();
        while available.permits == 0 {
            self.released.wait(&mut available);
        }
        available.permits -= 1;
        Permit { memory: self.clone() }
    }
}

/// Bytes of one request. Dropping the share releases them.
#[derive(Debug)]
pub(super) struct Share {
    memory: Arc<Memory>,
    bytes: usize,
}

impl Share {
    /// Reserves more bytes. Returns false, and reserves none, if not enough are left.
    pub(super) fn grow(&mut self, more: usize) -> bool {
        let mut available = self.memory.available.lock();
        let Some(rest) = available.bytes.checked_sub(more) else { return false };
        available.bytes = rest;
        self.bytes += more;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.memory.available.lock().bytes += self.bytes;
    }
}

/// Permission to process a request. Dropping it releases the permission.
#[derive(Debug)]
pub(super) struct Permit {
    memory: Arc<Memory>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.memory.available.lock().permits += 1;
        self.memory.released.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_draw_on_one_limit_and_return_their_bytes() {
        let memory = Memory::new();
        let (mut one, mut other) = (memory.share(), memory.share());
        assert!(one.grow(BODIES - 1) && other.grow(1));
        assert!(!one.grow(1) && !other.grow(1));
        drop(one);
        assert!(other.grow(BODIES - 1) && !other.grow(1));
        let permits: Vec<_> = (0..AT_WORK).map(|_| memory.permit()).collect();
        assert_eq!(memory.available.lock().permits, 0);
        drop(permits);
        assert_eq!(memory.available.lock().permits, AT_WORK);
    }
}
