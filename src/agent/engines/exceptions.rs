//! Exceptions, by JVMTI's Exception: where they are thrown, caught or not.

use std::sync::atomic::{AtomicU64, Ordering};

use jni::sys::{JNIEnv, jlong, jmethodID, jobject};

use super::gate::Gate;
use super::own_sample;
use crate::agent::callbacks::guarded;
use crate::agent::vm::Vm;
use crate::core::byte_sampling::mix;
use crate::core::record::Engine;
use crate::jvm::jvmti_events::Event;
use crate::jvm::jvmti_table::RawEnv;
use crate::signal::sample::monotonic_ns;

static GATE: Gate = Gate::new();
const EVENTS: &[Event] = &[Event::Exception];
static SAMPLING: OneInEach = OneInEach::new();

/// Of each so many exceptions in turn one is sampled, at random which: a program that throws in a period must not be sampled
/// in step with it.
struct OneInEach {
    period: AtomicU64,
    thrown: AtomicU64,
    seed: AtomicU64,
}

impl OneInEach {
    const fn new() -> Self {
        Self { period: AtomicU64::new(1), thrown: AtomicU64::new(0), seed: AtomicU64::new(0) }
    }

    fn begin(&self, period: u64, seed: u64) {
        self.period.store(period.max(1), Ordering::Relaxed);
        self.thrown.store(0, Ordering::Relaxed);
        self.seed.store(seed, Ordering::Relaxed);
    }

    /// One more has been thrown: for how many it stands, if it is sampled.
    fn next(&self) -> Option<u64> {
        let period = self.period.load(Ordering::Relaxed);
        let number = self.thrown.fetch_add(1, Ordering::Relaxed);
        let (turn, place) = (number / period, number % period);
        // Which one it is follows from the turn's number: threads that throw in the same turn agree, without a lock.
        let chosen = mix(self.seed.load(Ordering::Relaxed).wrapping_add(turn)) % period;
        (place == chosen).then_some(period)
    }
}

/// Samples one of each `period` exceptions; none for `None`.
pub(super) fn start(vm: &Vm, period: Option<u64>) {
    let Some(period) = period else { return };
    SAMPLING.begin(period, monotonic_ns());
    if let Err(error) = GATE.open_to(vm.jvmti, EVENTS) {
        log::warn!("exceptions: the VM does not tell of them ({error})");
    }
}

pub(super) fn stop(vm: &Vm) {
    GATE.close_to(vm.jvmti, EVENTS);
}

pub(super) unsafe extern "system" fn exception(
    _: *mut RawEnv,
    env: *mut JNIEnv,
    _thread: jobject,
    _method: jmethodID,
    _bci: jlong,
    exception: jobject,
    _catching_method: jmethodID,
    _catching_bci: jlong,
) {
    let Some(_inside) = GATE.enter() else { return };
    let Some(period) = SAMPLING.next() else { return };
    guarded("Exception", |agent| {
        // SAFETY: the VM passes the current thread's environment and a live reference.
        unsafe {
            let subject = || own_sample::class_of(agent, env, exception);
            own_sample::take(agent, env, Engine::Exceptions, [period as f64, 0.0], subject);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_thrown_in_a_period_is_sampled_at_each_of_its_places() {
        for period in [1, 2, 4, 7, 100] {
            let sampling = OneInEach::new();
            sampling.begin(period, 0x5eed);
            let turns = 40_000;
            let mut sampled_at = [0_u64; 4];
            for number in 0..turns * period {
                if sampling.next().is_some() {
                    sampled_at[number as usize % 4] += 1;
                }
            }
            // One in each turn, and no place of the program's period is preferred: within five deviations.
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
