//! Allocations, by JVMTI's SampledObjectAlloc: the VM samples points in the stream of a thread's allocated bytes, at
//! distances that are random with the interval as their mean (runtime/threadHeapSampler.cpp, 11-25). What a sample stands
//! for is `core::byte_sampling`'s.
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
use crate::core::byte_sampling::estimate;
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
