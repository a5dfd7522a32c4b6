//! The engines whose samples threads take of themselves: in events that the VM sends (allocations, waits for
//! monitors, waits for notifications, exceptions), at calls of the C library's allocation functions, and at
//! the end of long calls of traced methods.
//!
//! | Module | Duty |
//! |---|---|
//! | `allocations`, `monitors`, `exceptions` | one engine each, or two that share their events |
//! | `exception_turns` | which exceptions are sampled |
//! | `new_throwables` | exceptions where they are created |
//! | `method_traces` | long calls of chosen methods |
//! | `native_memory` | native allocations, and those of them that were not freed |
//! | `live_objects`, `live_table` | the live heap: which sampled objects have survived collections |
//! | `class_hook` | the VM's event in which classes are changed |
//! | `capabilities` | the capabilities that the VM must grant |
//! | `gate` | lets samples through while an engine runs, and waits for those under way when it stops |
//! | `parking` | threads that wait in `LockSupport.park` |
//! | `owners` | the owner of the lock that a thread begins to wait for |
//! | `own_sample` | the sample that a thread takes of itself |
//! | `wait_start` | since when, and for what, a thread waits |

mod allocations;
mod capabilities;
mod class_hook;
mod exception_turns;
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
mod wait_start;

use jni::sys::{JNIEnv, jobject};

use super::options::Options;
use super::resolve::FrameResolver;
use super::vm::Vm;
use crate::aggregate::Alive;
use crate::core::engine::Engine;
use crate::core::record::{FrameKind, FrameRecord, SampleHeader};
use crate::jvm::jvmti_events::EventCallbacks;

pub(super) use live_objects::{collection_ended, thinned};

/// Whether any of these engines is requested.
pub(super) fn are_asked_for(options: &Options) -> bool {
    capabilities::need_any(options) || options.nativemem.is_some()
}

/// Acquires the capabilities that the engines need, as early as the options are known: the VM grants some of
/// them only while it starts. An engine that does not get its capability is turned off, with a line in the
/// log that says why.
pub(super) fn acquire(vm: &Vm, options: &mut Options) {
    capabilities::acquire(vm.jvmti, options);
}

/// Starts taking samples. The VM must be live, and the session must drain.
pub(super) fn start(vm: &Vm, options: &Options) {
    allocations::start(vm, options.alloc, options.live);
    wait_start::begin_session();
    monitors::start(vm, options.lock, options.wait);
    parking::start(vm, options.lock);
    exceptions::start(vm, options);
    native_memory::start(options);
    method_traces::start(vm, &options.trace);
}

/// Adjusts the engines after the budget has changed a stretch.
pub(super) fn stretched(vm: &Vm) {
    allocations::stretched(vm);
}

/// Stops taking samples. None is taken after this function has returned.
pub(super) fn stop(vm: &Vm) {
    allocations::stop(vm);
    monitors::stop(vm);
    parking::stop(vm);
    exceptions::stop(vm);
    native_memory::stop();
    method_traces::stop(vm);
}

/// Checks which sampled objects are still alive, if an engine tracks them. `at_once` is set where they are
/// about to be reported.
///
/// # Safety
/// `env` is the current thread's. The thread holds none of the agent's locks, except that of an interval's
/// end.
pub(super) unsafe fn sweep(vm: &Vm, options: &Options, env: *mut JNIEnv, at_once: bool) {
    if options.live.is_some() {
        // SAFETY: the contract gives the current thread's `env`, and excludes the locks that are needed in a
        // safepoint.
        unsafe { live_objects::sweep(vm.jvmti, env, at_once) };
    }
}

/// Stops tracking objects, after the last profiles have been made.
///
/// # Safety
/// As for [`sweep`].
pub(super) unsafe fn forget(vm: &Vm, options: &Options, env: Option<*mut JNIEnv>) {
    if options.live.is_none() {
        return;
    }
    live_objects::forget();
    if let Some(env) = env {
        // SAFETY: the contract gives the current thread's `env`, and excludes the locks that are needed in a
        // safepoint.
        unsafe { live_objects::sweep(vm.jvmti, env, false) };
    }
}

/// Sampled objects and native memory that are still allocated, keyed by sample number.
pub(super) fn alive(options: &Options) -> Alive {
    let mut alive = Alive::new();
    native_memory::add_alive(options, &mut alive);
    if options.live.is_some() {
        live_objects::add_alive(&mut alive);
    }
    alive
}

/// Notes that a virtual thread, the current thread, leaves its carrier.
///
/// # Safety
/// Called in the VM's event, with its arguments.
pub(super) unsafe fn virtual_thread_unmounts(vm: &Vm, env: *mut JNIEnv, thread: jobject) {
    // SAFETY: the contract requires the arguments of the VM's event.
    unsafe { parking::unmounts(vm, env, thread) };
}

/// Notes that a virtual thread, the current thread, has a carrier again.
///
/// # Safety
/// As for [`virtual_thread_unmounts`].
pub(super) unsafe fn virtual_thread_mounted(vm: &Vm, env: *mut JNIEnv, thread: jobject) {
    // SAFETY: the contract requires the arguments of the VM's event.
    unsafe { parking::mounted(vm, env, thread) };
}

/// Handles a class that has been prepared. None of its methods has run yet.
///
/// # Safety
/// `class` is a live reference to that class.
pub(super) unsafe fn class_prepared(vm: &Vm, class: jobject) {
    // SAFETY: the contract requires a live reference to the class.
    unsafe { method_traces::class_prepared(vm.jvmti, class) };
}

/// Returns the frames of a sample without those that belong to the engine's own mechanism.
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

/// The Java frames, each with its index in `frames`.
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
