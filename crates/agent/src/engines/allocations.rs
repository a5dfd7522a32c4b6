//! Allocations, for the engines `alloc` and `live`, by JVMTI's SampledObjectAlloc. The VM samples points in
//! the stream of a thread's allocated bytes, at random distances whose mean is the interval
//! (runtime/threadHeapSampler.cpp, 11-25). `core::byte_sampling` computes the weight of a sample.
//!
//! JDK 11 begins the next distance too early where an object reaches beyond its point (`pick_next_sample`
//! leaves its correction out if the distance is shorter than the correction). Objects of about half the
//! interval's size are over-represented by a third there, smaller ones by about their size's share of the
//! interval; large ones are right. 17 and later are right for all sizes.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use jni::sys::{JNIEnv, jint, jlong, jobject};
use otlpprof_core::byte_sampling::{Random, estimate, is_sampled_at_longer_interval};
use otlpprof_core::engine::Engine;
use otlpprof_jvm::jvmti_env::RawEnv;
use otlpprof_jvm::jvmti_error::JvmtiError;
use otlpprof_jvm::jvmti_events::{EventCallbacks, JvmtiEvent};
use otlpprof_signal::clock::monotonic_ns;
use otlpprof_signal::stretch::STRETCHES;

use super::gate::Gate;
use super::{live_objects, own_sample};
use crate::guarded::guarded;
use crate::guards::Guard;
use crate::vm::Vm;

static GATE: Gate = Gate::new();
const EVENTS: &[JvmtiEvent] = &[JvmtiEvent::SampledObjectAlloc];

/// The intervals of the engines that share the event: 0 for an engine that is off, otherwise the requested
/// one, which the budget may stretch. The VM uses the shortest of the stretched intervals. From the objects
/// that the VM samples with that interval, each engine selects those that its own interval would have
/// sampled.
struct Intervals {
    alloc: Interval,
    live: Interval,
    /// The VM's current interval.
    of_vm: AtomicU64,
    random: Random,
}

struct Interval {
    engine: Engine,
    asked: AtomicU64,
}

static INTERVALS: Intervals = Intervals {
    alloc: Interval { engine: Engine::Alloc, asked: AtomicU64::new(0) },
    live: Interval { engine: Engine::Live, asked: AtomicU64::new(0) },
    of_vm: AtomicU64::new(0),
    random: Random::new(0),
};

thread_local! {
    /// The VM's interval when it chose the thread's next point. 0 before the thread's first event: then the
    /// current interval is assumed.
    static CHOSEN_WITH: Cell<u64> = const { Cell::new(0) };
}

impl Interval {
    fn is_on(&self) -> bool {
        self.asked.load(Ordering::Relaxed) > 0
    }

    fn stretched(&self) -> u64 {
        self.asked.load(Ordering::Relaxed).saturating_mul(STRETCHES.of(self.engine).into())
    }
}

impl Intervals {
    fn shortest(&self) -> Option<u64> {
        let intervals = [&self.alloc, &self.live].map(Interval::stretched);
        intervals.into_iter().filter(|interval| *interval > 0).min()
    }

    /// Returns the weight in `engine`'s profile of an object of `size` bytes that the VM sampled at a point
    /// chosen with the interval `of_vm`; `None` if the engine does not sample the object.
    fn estimate(&self, engine: &Interval, of_vm: u64, size: u64) -> Option<[f64; 2]> {
        if !engine.is_on() {
            return None;
        }
        // Points that the VM chose with a longer interval cannot be made more frequent afterwards.
        let interval = engine.stretched().max(of_vm);
        is_sampled_at_longer_interval(size, of_vm, interval, self.random.number())
            .then(|| estimate(size, interval))
    }
}

/// Starts sampling one in about `interval` allocated bytes for the engine `alloc`; `None`: the engine is off.
pub(super) fn start_alloc(vm: &'static Vm, interval: Option<u64>) -> Option<Guard> {
    start(vm, &INTERVALS.alloc, interval?)
}

/// Starts sampling one in about `interval` allocated bytes for the engine `live`; `None`: the engine is off.
pub(super) fn start_live(vm: &'static Vm, interval: Option<u64>) -> Option<Guard> {
    start(vm, &INTERVALS.live, interval?)
}

fn start(vm: &'static Vm, engine: &'static Interval, interval: u64) -> Option<Guard> {
    if !GATE.is_open() {
        INTERVALS.random.seed(monotonic_ns());
    }
    engine.asked.store(interval, Ordering::Relaxed);
    let shortest = INTERVALS.shortest()?;
    let started = set_interval(vm, shortest).and_then(|()| GATE.open_to(vm.jvmti, EVENTS));
    if let Err(error) = started {
        engine.asked.store(0, Ordering::Relaxed);
        log::warn!("{}: the VM does not sample allocations ({error})", engine.engine.name());
        return None;
    }
    Some(Guard::new(move || stop(vm, engine)))
}

/// Stops sampling for one engine. No thread takes a sample after the last engine has stopped.
fn stop(vm: &Vm, engine: &Interval) {
    engine.asked.store(0, Ordering::Relaxed);
    if !INTERVALS.alloc.is_on() && !INTERVALS.live.is_on() {
        GATE.close_to(vm.jvmti, EVENTS);
    }
}

/// Sets the VM's interval after the budget has changed the stretch of an engine.
pub(super) fn stretched(vm: &Vm) {
    let Some(interval) = INTERVALS.shortest() else { return };
    if interval != INTERVALS.of_vm.load(Ordering::Relaxed)
        && let Err(error) = set_interval(vm, interval)
    {
        log::debug!("the VM keeps its interval for sampling allocations: {error}");
    }
}

fn set_interval(vm: &Vm, interval: u64) -> Result<(), JvmtiError> {
    let interval = interval.min(jint::MAX as u64);
    // 0 samples every allocation (JVMTI specification, SetHeapSamplingInterval).
    let asked = if interval <= 1 { 0 } else { interval as jint };
    vm.jvmti.set_heap_sampling_interval(asked)?;
    INTERVALS.of_vm.store(interval, Ordering::Relaxed);
    Ok(())
}

/// Enters the callback of the event that both engines enable.
pub(super) fn set_callbacks(callbacks: &mut EventCallbacks) {
    callbacks.sampled_object_alloc = Some(sampled_object_alloc);
}

unsafe extern "system" fn sampled_object_alloc(
    _: *mut RawEnv,
    env: *mut JNIEnv,
    _thread: jobject,
    object: jobject,
    class: jobject,
    size: jlong,
) {
    let Some(_inside) = GATE.enter() else { return };
    guarded("SampledObjectAlloc", |vm| {
        let size = size.cast_unsigned();
        // The VM has just chosen the thread's next point (runtime/threadHeapSampler.cpp, `check_for_sampling`
        // in 11-21, `sample` in 25).
        let now = INTERVALS.of_vm.load(Ordering::Relaxed);
        let of_vm = match CHOSEN_WITH.replace(now) {
            0 => now,
            before => before,
        };
        let estimated = |engine| INTERVALS.estimate(engine, of_vm, size);
        let (alloc, live) = (estimated(&INTERVALS.alloc), estimated(&INTERVALS.live));
        if alloc.is_none() && live.is_none() {
            return;
        }
        // SAFETY: the VM passes the current thread's environment and live references.
        unsafe {
            let subject = || own_sample::subject_of(vm, class);
            if let Some(values) = alloc {
                own_sample::take(vm, env, Engine::Alloc, values, subject);
            }
            if let Some(values) = live {
                live_objects::allocated(vm, env, object, values, subject);
            }
        }
    });
}
