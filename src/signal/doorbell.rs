//! Waking a thread of the agent from a handler.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What handlers ring and one thread of the agent waits for.
#[derive(Debug, Default)]
pub struct Doorbell {
    /// A futex word: 1 from a ring until the waiting thread has taken notice.
    rung: AtomicU32,
}

impl Doorbell {
    /// One that nobody has rung.
    pub const fn new() -> Self {
        Self { rung: AtomicU32::new(0) }
    }

    /// Wakes the thread that waits, or makes its next wait return at once. Async-signal-safe: one system call, and
    /// none until the thread has taken notice of an earlier ring.
    pub fn ring(&self) {
        if self.rung.swap(1, Ordering::Release) == 0 {
            let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            // SAFETY: FUTEX_WAKE only uses the address.
            unsafe { libc::syscall(libc::SYS_futex, self.rung.as_ptr(), operation, 1) };
        }
    }

    /// Waits for a ring, one before this call included, or until `timeout` has passed. Ordinary zone, one waiter.
    pub fn wait(&self, timeout: Duration) {
        let timeout = libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
        };
        let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the futex word and the timeout live for the call.
        unsafe { libc::syscall(libc::SYS_futex, self.rung.as_ptr(), operation, 0, &raw const timeout) };
        self.rung.swap(0, Ordering::Acquire);
    }

    /// Whether it was rung and nobody has taken notice yet.
    pub fn is_rung(&self) -> bool {
        self.rung.load(Ordering::Acquire) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than any test may take.
    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_ring_before_the_wait_counts_once() {
        let bell = Doorbell::new();
        bell.ring();
        bell.ring();
        assert!(bell.is_rung());
        bell.wait(HOUR);
        assert!(!bell.is_rung());
        bell.wait(Duration::ZERO);
    }

    #[test]
    fn a_ring_ends_the_wait() {
        let bell = Doorbell::new();
        let done = Doorbell::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                bell.wait(HOUR);
                done.ring();
            });
            bell.ring();
            done.wait(HOUR);
        });
    }
}
