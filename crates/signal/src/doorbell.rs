//! Wakes a thread of the agent from a handler.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A bell that handlers ring and that one thread of the agent waits for.
#[derive(Debug, Default)]
pub struct Doorbell {
    /// A futex word: 1 from a ring until the waiting thread has acknowledged it.
    rung: AtomicU32,
}

impl Doorbell {
    /// Returns a bell that has not been rung.
    pub const fn new() -> Self {
        Self { rung: AtomicU32::new(0) }
    }

    /// Wakes the waiting thread, or makes its next wait return at once. Async-signal-safe: one system call,
    /// and none while an earlier ring has not been acknowledged.
    pub fn ring(&self) {
        if self.rung.swap(1, Ordering::Release) == 0 {
            let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            // SAFETY: FUTEX_WAKE only uses the address.
            unsafe { libc::syscall(libc::SYS_futex, self.rung.as_ptr(), operation, 1) };
        }
    }

    /// Waits until the bell is rung or `timeout` has passed. A ring before this call counts. Ordinary zone,
    /// one waiter.
    pub fn wait(&self, timeout: Duration) {
        let timeout = libc::timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
        };
        let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the futex word and the timeout outlive the call.
        unsafe { libc::syscall(libc::SYS_futex, self.rung.as_ptr(), operation, 0, &raw const timeout) };
        self.rung.swap(0, Ordering::Acquire);
    }

    /// Whether the bell was rung and the ring has not been acknowledged.
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
