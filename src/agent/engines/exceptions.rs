//! Exceptions, sampled where they are created (`new_throwables`) or, if requested, where they are thrown, by
//! JVMTI's Exception event, caught or not.
//!
//! The VM makes each throw slow as soon as any agent has the capability for that event, in compiled code
//! above all: at each frame that the exception leaves, execution continues in the interpreter
//! (`exception_handler_for_pc_helper` in c1/c1_Runtime1.cpp, `OptoRuntime::handle_exception_C_helper` in
//! opto/runtime.cpp; `JvmtiExport::can_post_on_exceptions`, 11-25). The capability alone has this effect, and
//! is never given back. So it is acquired only where throws are requested.

use std::sync::atomic::{AtomicU64, Ordering};

use jni::sys::{JNIEnv, jlong, jmethodID, jobject};

use super::gate::Gate;
use super::{new_throwables, own_sample};
use crate::agent::guarded::guarded;
use crate::agent::options::Options;
use crate::agent::vm::Vm;
use crate::core::byte_sampling::mix;
use crate::core::engine::Engine;
use crate::core::record::Subject;
use crate::jvm::jvmti_events::Event;
use crate::jvm::jvmti_table::RawEnv;
use crate::signal::sample::monotonic_ns;

static GATE: Gate = Gate::new();
const EVENTS: &[Event] = &[Event::Exception];
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

/// Starts sampling exceptions, one in each `options.exceptions`, if requested.
pub(super) fn start(vm: &Vm, options: &Options) {
    let Some(period) = options.exceptions else { return };
    SAMPLING.begin(period, monotonic_ns());
    if options.exceptions_thrown {
        if let Err(error) = GATE.open_to(vm.jvmti, EVENTS) {
            log::warn!("exceptions is off: the VM does not report exceptions ({error})");
        }
    } else if let Err(error) = new_throwables::start(vm) {
        log::warn!("exceptions is off: {error}");
    }
}

pub(super) fn stop(vm: &Vm) {
    GATE.close_to(vm.jvmti, EVENTS);
    new_throwables::stop(vm);
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
    if !is_due() {
        return;
    }
    guarded("Exception", |vm| {
        // SAFETY: the VM passes the current thread's environment and a live reference.
        unsafe { sample(vm, env, || own_sample::class_of(vm, env, exception)) };
    });
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
