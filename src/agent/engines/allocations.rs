//! Allocations, for two engines (`alloc`, `live`), by JVMTI's SampledObjectAlloc: the VM samples points in the stream of a
//! thread's allocated bytes, at distances that are random with the interval as their mean (runtime/threadHeapSampler.cpp,
//! 11-25). What a sample stands for is `core::byte_sampling`'s.
//!
//! JDK 11 begins the next distance too early where an object reaches beyond its point (`pick_next_sample`, whose correction
//! is left out if the distance is shorter than that). Objects of about half the interval's size come out a third too often
//! there, smaller ones by about their share of the interval; large ones are right. 17 and later are right throughout.

use std::sync::atomic::{AtomicU64, Ordering};

use jni::sys::{JNIEnv, jint, jlong, jobject};

use super::gate::Gate;
use super::{live_objects, own_sample};
use crate::agent::callbacks::guarded;
use crate::agent::vm::Vm;
use crate::core::byte_sampling::{Random, estimate, is_met_too};
use crate::core::record::Engine;
use crate::jvm::jvmti_events::Event;
use crate::jvm::jvmti_table::RawEnv;
use crate::signal::sample::monotonic_ns;

static GATE: Gate = Gate::new();
const EVENTS: &[Event] = &[Event::SampledObjectAlloc];

/// The intervals of the engines that share the event, 0 for one that is off. The VM has the shorter one, and of what that
/// meets each engine takes what its own would have met.
struct Intervals {
    alloc: AtomicU64,
    live: AtomicU64,
    random: Random,
}

static INTERVALS: Intervals =
    Intervals { alloc: AtomicU64::new(0), live: AtomicU64::new(0), random: Random::new(0) };

impl Intervals {
    fn shorter(&self) -> Option<u64> {
        let intervals = [&self.alloc, &self.live].map(|interval| interval.load(Ordering::Relaxed));
        intervals.into_iter().filter(|interval| *interval > 0).min()
    }

    /// What an object of this size that the VM has sampled stands for in an engine's profile; `None` if it is not sampled
    /// for that.
    fn estimate(&self, engine: &AtomicU64, size: u64) -> Option<[f64; 2]> {
        let interval = engine.load(Ordering::Relaxed);
        let shorter = self.shorter().filter(|_| interval > 0)?;
        is_met_too(size, shorter, interval, self.random.number()).then(|| estimate(size, interval))
    }
}

/// Samples one in about so many allocated bytes for each engine; not at all for `None`.
pub(super) fn start(vm: &Vm, alloc: Option<u64>, live: Option<u64>) {
    INTERVALS.alloc.store(alloc.unwrap_or(0), Ordering::Relaxed);
    INTERVALS.live.store(live.unwrap_or(0), Ordering::Relaxed);
    INTERVALS.random.seed(monotonic_ns());
    let Some(interval) = INTERVALS.shorter() else { return };
    // 0 is every allocation ("SetHeapSamplingInterval" in the specification).
    let asked = if interval <= 1 { 0 } else { jint::try_from(interval).unwrap_or(jint::MAX) };
    let started = vm.jvmti.set_heap_sampling_interval(asked).and_then(|()| GATE.open_to(vm.jvmti, EVENTS));
    if let Err(error) = started {
        let engines = if alloc.is_some() { "alloc" } else { "live" };
        log::warn!("{engines}: the VM does not sample allocations ({error})");
    }
}

pub(super) fn stop(vm: &Vm) {
    GATE.close_to(vm.jvmti, EVENTS);
}

pub(super) unsafe extern "system" fn sampled_object_alloc(
    _: *mut RawEnv,
    env: *mut JNIEnv,
    _thread: jobject,
    object: jobject,
    class: jobject,
    size: jlong,
) {
    let Some(_inside) = GATE.enter() else { return };
    guarded("SampledObjectAlloc", |agent| {
        let size = size.cast_unsigned();
        let (alloc, live) =
            (INTERVALS.estimate(&INTERVALS.alloc, size), INTERVALS.estimate(&INTERVALS.live, size));
        if alloc.is_none() && live.is_none() {
            return;
        }
        // SAFETY: the VM passes the current thread's environment and live references.
        unsafe {
            let subject = || own_sample::subject_of(agent, class);
            if let Some(values) = alloc {
                own_sample::take(agent, env, Engine::Alloc, values, subject);
            }
            if let Some(values) = live {
                live_objects::allocated(agent, env, object, values, subject);
            }
        }
    });
}
