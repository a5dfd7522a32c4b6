//! Which exceptions are sampled: one of each period, wherever they are sampled.

use std::sync::atomic::{AtomicU64, Ordering};

use jni::sys::JNIEnv;
use otlpprof_core::byte_sampling::mix;
use otlpprof_core::engine::Engine;
use otlpprof_core::record::Subject;
use otlpprof_signal::clock::monotonic_ns;

use super::own_sample;
use crate::vm::Vm;

static SAMPLING: OneInEach = OneInEach::new();

/// Samples one exception of each `period` in turn, at a random place in the turn: a program that throws
/// periodically must not be sampled in step with its own period.
struct OneInEach {
    period: AtomicU64,
    count: AtomicU64,
    seed: AtomicU64,
}

impl OneInEach {
    const fn new() -> Self {
        Self { period: AtomicU64::new(1), count: AtomicU64::new(0), seed: AtomicU64::new(0) }
    }

    fn begin(&self, period: u64, seed: u64) {
        self.period.store(period.max(1), Ordering::Relaxed);
        self.count.store(0, Ordering::Relaxed);
        self.seed.store(seed, Ordering::Relaxed);
    }

    /// Counts one more exception. Returns whether it is the sampled one of its turn, which stands for
    /// `period`.
    fn is_next_due(&self) -> bool {
        let period = self.period.load(Ordering::Relaxed);
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let (turn, place) = (number / period, number % period);
        // The sampled place follows from the turn's number, so threads that throw in the same turn agree on
        // it without a lock.
        let chosen = mix(self.seed.load(Ordering::Relaxed).wrapping_add(turn)) % period;
        place == chosen
    }
}

/// Begins to count: from now on one exception in each `period` is sampled.
pub(super) fn begin(period: u64) {
    SAMPLING.begin(period, monotonic_ns());
}

/// Counts one more exception. Returns whether it is sampled.
pub(super) fn is_due() -> bool {
    SAMPLING.is_next_due()
}

/// Takes a sample of an exception that is due. `subject` returns the exception's class.
///
/// # Safety
/// Called in an event of the VM's or a native method, with the current thread's `env`.
pub(super) unsafe fn sample(vm: &Vm, env: *mut JNIEnv, subject: impl FnOnce() -> Subject) {
    let period = SAMPLING.period.load(Ordering::Relaxed);
    // SAFETY: the contract requires an event or a native method, with the current thread's `env`.
    unsafe { own_sample::take(vm, env, Engine::Exceptions, [period as f64, 0.0], subject) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_exception_of_a_period_is_sampled_equally_often() {
        for period in [1, 2, 4, 7, 100] {
            let sampling = OneInEach::new();
            sampling.begin(period, 0x5eed);
            let turns = 40_000;
            let mut sampled_at = [0_u64; 4];
            for number in 0..turns * period {
                if sampling.is_next_due() {
                    sampled_at[number as usize % 4] += 1;
                }
            }
            // One is sampled in each turn, and the places in the program's period are equally frequent,
            // within five standard deviations.
            assert_eq!(sampled_at.iter().sum::<u64>(), turns, "{period}");
            let deviation = (turns as f64 * 0.25 * 0.75).sqrt();
            for count in sampled_at {
                assert!(
                    (count as f64 - turns as f64 / 4.0).abs() <= 5.0 * deviation,
                    "{period}: {sampled_at:?}"
                );
            }
        }
    }
}
