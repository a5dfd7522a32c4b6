//! Allocations, by JVMTI's SampledObjectAlloc: the VM samples points in the stream of a thread's allocated bytes, at
//! distances that are random with the interval as their mean (runtime/threadHeapSampler.cpp, 11-25).
//!
//! An object of `s` bytes is met by a point with the probability `p = 1 - exp(-s / interval)`, so each that is met stands
//! for `1 / p` of its size: then sums are right whatever sizes there are, those of small objects and of large arrays.
//!
//! JDK 11 begins the next distance too early where an object reaches beyond its point (`pick_next_sample`, whose correction
//! is left out if the distance is shorter than that). Objects of about the interval's size come out a quarter too often
//! there, those of a tenth of it some percent; small ones and large ones are right. 17 and later are right throughout.

use std::sync::atomic::{AtomicU64, Ordering};

use jni::sys::{JNIEnv, jint, jlong, jobject};

use super::gate::Gate;
use super::own_sample;
use crate::agent::callbacks::guarded;
use crate::agent::vm::Vm;
use crate::core::record::Engine;
use crate::jvm::jvmti_events::Event;
use crate::jvm::jvmti_table::RawEnv;

static GATE: Gate = Gate::new();
const EVENTS: &[Event] = &[Event::SampledObjectAlloc];
static INTERVAL_BYTES: AtomicU64 = AtomicU64::new(0);

/// Samples one in about `interval` allocated bytes; not at all for `None`.
pub(super) fn start(vm: &Vm, interval: Option<u64>) {
    let Some(interval) = interval else { return };
    INTERVAL_BYTES.store(interval, Ordering::Relaxed);
    // 0 is every allocation ("SetHeapSamplingInterval" in the specification).
    let asked = if interval <= 1 { 0 } else { jint::try_from(interval).unwrap_or(jint::MAX) };
    let started = vm.jvmti.set_heap_sampling_interval(asked).and_then(|()| GATE.open_to(vm.jvmti, EVENTS));
    if let Err(error) = started {
        log::warn!("alloc: the VM does not sample allocations ({error})");
    }
}

pub(super) fn stop(vm: &Vm) {
    GATE.close_to(vm.jvmti, EVENTS);
}

/// The number of bytes and of objects that a sampled object stands for.
fn estimate(size: u64, interval: u64) -> [f64; 2] {
    let size = size as f64;
    if interval <= 1 || size <= 0.0 {
        return [size, 1.0];
    }
    let objects = 1.0 / -(-size / interval as f64).exp_m1();
    [size * objects, objects]
}

pub(super) unsafe extern "system" fn sampled_object_alloc(
    _: *mut RawEnv,
    env: *mut JNIEnv,
    _thread: jobject,
    _object: jobject,
    class: jobject,
    size: jlong,
) {
    let Some(_inside) = GATE.enter() else { return };
    guarded("SampledObjectAlloc", |agent| {
        let values = estimate(size.cast_unsigned(), INTERVAL_BYTES.load(Ordering::Relaxed));
        // SAFETY: the VM passes the current thread's environment and a live reference.
        unsafe {
            let subject = own_sample::subject_of(agent, class);
            own_sample::take(agent, env, Engine::Alloc, values, subject);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_make_up_for_what_is_not_met() {
        let interval = 512 * 1024;
        for size in [16_u64, 1024, 512 * 1024, 64 << 20] {
            let [bytes, objects] = estimate(size, interval);
            let met = 1.0 - (-(size as f64) / interval as f64).exp();
            assert!((objects * met - 1.0).abs() < 1e-6, "{size}: {objects}");
            assert!((bytes / objects - size as f64).abs() < 1e-3, "{size}: {bytes}");
        }
        assert_eq!(estimate(24, 1), [24.0, 1.0]);
    }
}
