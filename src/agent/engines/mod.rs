//! The engines whose samples threads take of themselves: in events that the VM sends them allocations, waiting for monitors,
//! waiting for notifications and exceptions; native allocations where they call the C library; and calls of methods that
//! took long, where they end.
//!
//! | Module | Duty |
//! |---|---|
//! | `allocations`, `monitors`, `exceptions` | an engine each, or two that share their events |
//! | `new_throwables` | exceptions where they are made |
//! | `method_traces` | calls of chosen methods that take long |
//! | `native_memory` | native allocations, and what of them was not freed |
//! | `live_objects`, `live_table` | the live heap: which sampled objects have survived collections |
//! | `class_hook` | the VM's event in which classes are changed |
//! | `capabilities` | what the VM must grant for them |
//! | `gate` | lets samples through while an engine runs, and waits for those under way when it stops |
//! | `parking` | threads that wait in `LockSupport.park` |
//! | `owners` | who has what a thread begins to wait for |
//! | `own_sample` | the sample that a thread takes of itself |
//! | `wait_start` | since when, and for what, a thread waits |
//! | `subjects` | the classes that samples are about |

mod allocations;
mod capabilities;
mod class_hook;
mod exceptions;
mod gate;
mod live_objects;
mod live_table;
mod method_traces;
mod monitors;
mod native_memory;
mod new_throwables;
mod own_sample;
mod owners;
mod parking;
mod subjects;
mod wait_start;

use jni::sys::{JNIEnv, jobject};

use super::lifecycle::Agent;
use super::options::Options;
use super::resolve::FrameResolver;
use super::vm::Vm;
use crate::aggregate::Alive;
use crate::core::record::{Engine, FrameKind, FrameRecord, SampleHeader};
use crate::jvm::jvmti_events::EventCallbacks;

pub(super) use live_objects::{collection_ended, thinned};
pub(super) use subjects::SUBJECTS;

/// Whether any of these engines is asked for.
pub(super) fn are_asked_for(options: &Options) -> bool {
    need_events(options) || options.nativemem.is_some()
}

/// Whether one is that the VM's events are for.
fn need_events(options: &Options) -> bool {
    options.alloc.is_some()
        || options.live.is_some()
        || options.lock.is_some()
        || options.wait.is_some()
        || options.exceptions.is_some()
        || !options.trace.is_empty()
}

/// Has the VM grant what the engines need. Some of it is granted only while the VM starts: as early as the options are
/// known. An engine that is refused something is turned off, with a line that says why.
pub(super) fn acquire(vm: &Vm, options: &mut Options) {
    capabilities::acquire(vm.jvmti, options);
}

/// Begins to take samples; the VM is live, and drains are made.
pub(super) fn start(vm: &Vm, options: &Options) {
    allocations::start(vm, options.alloc, options.live);
    wait_start::begin_session();
    monitors::start(vm, options.lock, options.wait);
    parking::start(vm, options.lock);
    exceptions::start(vm, options);
    native_memory::start(options);
    method_traces::start(vm, &options.trace);
}

/// The budget has engines sample more seldom, or less so, than before.
pub(super) fn stretched(vm: &Vm) {
    allocations::stretched(vm);
}

/// Takes no more samples from when it returns on.
pub(super) fn stop(vm: &Vm) {
    allocations::stop(vm);
    monitors::stop(vm);
    parking::stop(vm);
    exceptions::stop(vm);
    native_memory::stop();
    method_traces::stop(vm);
}

/// Looks which sampled objects are still there, if they have to be looked after; `at_once` where that is to be told.
///
/// # Safety
/// `env` is the current thread's, which holds none of the agent's locks but that of an interval's end.
pub(super) unsafe fn sweep(vm: &Vm, options: &Options, env: *mut JNIEnv, at_once: bool) {
    if options.live.is_some() {
        // SAFETY: by the contract.
        unsafe { live_objects::sweep(vm.jvmti, env, at_once) };
    }
}

/// The last profiles have been made: nothing is looked after any more.
///
/// # Safety
/// As for [`sweep`].
pub(super) unsafe fn forget(vm: &Vm, options: &Options, env: Option<*mut JNIEnv>) {
    if options.live.is_none() {
        return;
    }
    live_objects::forget();
    if let Some(env) = env {
        // SAFETY: by the contract.
        unsafe { live_objects::sweep(vm.jvmti, env, false) };
    }
}

/// What is still there of what samples are of, by their numbers.
pub(super) fn alive(options: &Options) -> Alive {
    let mut alive = Alive::new();
    native_memory::add_alive(options, &mut alive);
    if options.live.is_some() {
        live_objects::add_alive(&mut alive);
    }
    alive
}

/// A virtual thread, the current thread, leaves its carrier.
///
/// # Safety
/// Called in the VM's event, with what it passes.
pub(super) unsafe fn virtual_thread_unmounts(agent: &Agent, env: *mut JNIEnv, thread: jobject) {
    // SAFETY: by the contract.
    unsafe { parking::unmounts(agent, env, thread) };
}

/// It has a carrier again, and is the current thread.
///
/// # Safety
/// As for [`virtual_thread_unmounts`].
pub(super) unsafe fn virtual_thread_mounted(agent: &Agent, env: *mut JNIEnv, thread: jobject) {
    // SAFETY: by the contract.
    unsafe { parking::mounted(agent, env, thread) };
}

/// A class has been prepared, none of whose methods has run.
///
/// # Safety
/// `class` is a live reference to it.
pub(super) unsafe fn class_prepared(vm: &Vm, class: jobject) {
    // SAFETY: by the contract.
    unsafe { method_traces::class_prepared(vm.jvmti, class) };
}

/// The frames that a sample is about.
pub(super) fn frames_of<'a>(
    header: &SampleHeader,
    frames: &'a [FrameRecord],
    resolver: &mut FrameResolver,
) -> &'a [FrameRecord] {
    match header.engine {
        Engine::Trace => method_traces::from_traced_method(frames),
        Engine::Exceptions => new_throwables::from_creation(frames, header.subject, resolver),
        _ => frames,
    }
}

/// Those that are Java's, and where each is.
fn java_frames(frames: &[FrameRecord]) -> impl Iterator<Item = (usize, &FrameRecord)> {
    let is_java = |frame: &FrameRecord| frame.kind.is_java() || frame.kind == FrameKind::MethodId;
    frames.iter().enumerate().filter(move |(_, frame)| is_java(frame))
}

/// Adds the engines' callbacks to the agent's.
pub(super) fn add_callbacks(callbacks: EventCallbacks) -> EventCallbacks {
    EventCallbacks {
        class_file_load_hook: Some(class_hook::class_file_load_hook),
        exception: Some(exceptions::exception),
        monitor_wait: Some(monitors::monitor_wait),
        monitor_waited: Some(monitors::monitor_waited),
        monitor_contended_enter: Some(monitors::monitor_contended_enter),
        monitor_contended_entered: Some(monitors::monitor_contended_entered),
        sampled_object_alloc: Some(allocations::sampled_object_alloc),
        ..callbacks
    }
}
