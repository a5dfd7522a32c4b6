//! The engines, each with its start and its guard. The samples of `cpu`, `wall` and `perf_event` are taken in
//! signal handlers (`sampling`). Threads take the samples of all others of themselves: in events that the VM
//! sends (allocations, waits for monitors, waits for notifications, exceptions), at calls of the C library's
//! allocation functions, and at the end of long calls of traced methods.
//!
//! Each engine's file describes it in one value, `ENGINE`, by which the rest of the agent knows the engine.
//!
//! | Descriptions | Duty |
//! |---|---|
//! | `description` | the form in which an engine is described |
//! | `table` | where each engine is described |
//!
//! | Engines of signals | Duty |
//! |---|---|
//! | `cpu` | CPU time; registers threads for all engines |
//! | `wall` | wall-clock time |
//! | `perf_event` | a perf event of each thread |
//!
//! | Engines of the VM's events | Duty |
//! |---|---|
//! | `alloc` | allocations of objects |
//! | `live` | the live heap |
//! | `lock` | waits to enter monitors and to acquire locks |
//! | `wait` | waits for notifications |
//! | `exceptions` | exceptions, where they are thrown or created |
//!
//! | Engines of changed code | Duty |
//! |---|---|
//! | `method_traces` | long calls of chosen methods |
//! | `native_memory` | native allocations, and those of them that were not freed |
//!
//! | The VM's events | Duty |
//! |---|---|
//! | `allocations` | the event of sampled allocations, for `alloc` and `live` |
//! | `live_objects` | which sampled objects have survived collections |
//! | `live_table` | the sampled objects that may still live, in a bounded table |
//! | `monitors` | waits for monitors, and for their notifications |
//! | `parking` | threads that wait in `LockSupport.park` |
//! | `owners` | the owner of the lock that a thread begins to wait for |
//! | `wait_start` | since when, and for what, a thread waits |
//! | `exception_turns` | which exceptions are sampled |
//!
//! | Changed code | Duty |
//! |---|---|
//! | `new_throwables` | exceptions where they are created |
//! | `class_hook` | the VM's event in which classes are changed |
//!
//! | Shared by engines | Duty |
//! |---|---|
//! | `capabilities` | the capabilities that the VM must grant |
//! | `held_signals` | turns off engines whose signals another handler of the process uses |
//! | `gate` | lets samples through while an engine runs, and waits for those under way when it stops |
//! | `own_sample` | the sample that a thread takes of itself |

mod alloc;
mod allocations;
mod capabilities;
mod class_hook;
mod cpu;
mod description;
mod exception_turns;
mod exceptions;
mod gate;
mod held_signals;
mod live;
mod live_objects;
mod live_table;
mod lock;
mod method_traces;
mod monitors;
mod native_memory;
mod new_throwables;
mod own_sample;
mod owners;
mod parking;
mod perf_event;
mod table;
mod wait;
mod wait_start;
mod wall;

use jni::sys::{JNIEnv, jobject};
use otlpprof_aggregate::Alive;
use otlpprof_core::engine::Engine;
use otlpprof_core::record::{FrameRecord, SampleHeader};
use otlpprof_jvm::jvmti_events::EventCallbacks;
use otlpprof_options::{Options, RecordedEvents};
use otlpprof_sampling::cpu::StartError;

use super::guards::Guards;
use super::resolve::FrameResolver;
use super::vm::Vm;

pub(super) use self::cpu::{check_clock, clock_name, warm_up};
pub(super) use self::held_signals::turn_off as turn_off_held;
pub(super) use self::live_objects::{collection_ended, thinned};
use self::table::in_start_order;
pub(super) use self::table::{description, enabled, is_any_enabled, subject_form};

/// Acquires the capabilities that the engines need, as early as the options are known: the VM grants some of
/// them only while it starts. An engine that does not get its capability is turned off, with a line in the
/// log that says why.
pub(super) fn acquire(vm: &Vm, options: &mut Options) {
    capabilities::acquire(vm.jvmti, options);
}

/// Turns the engine `cpu` off, with a line in the log, if it is refused its clock or its signal's handler:
/// the other engines need neither. Fails if there is no other engine, since nothing would be profiled.
pub(super) fn turn_off_if_refused(options: &mut Options) -> Result<(), StartError> {
    let Err(error) = cpu::prepare(options) else { return Ok(()) };
    options.cpu = None;
    if !is_any_enabled(options) && options.recorded_events == RecordedEvents::None {
        return Err(error);
    }
    log::warn!("cpu is off: {error}");
    Ok(())
}

/// Starts the engines that the options enable. `guards` receives the guards of those that have started, also
/// if one fails. Returns the engines that were refused, which the log names.
pub(super) fn start(
    vm: &'static Vm,
    options: &Options,
    guards: &mut Guards,
) -> Result<Vec<Engine>, StartError> {
    wait_start::begin_session();
    cpu::begin_session();
    let mut refused = Vec::new();
    if !is_any_enabled(options) {
        vm.note_existing_threads();
        return Ok(refused);
    }
    for engine in in_start_order() {
        let started = (description(engine).start)(vm, options)?;
        if started.is_empty() && (description(engine).is_on)(options) {
            refused.push(engine);
        }
        guards.extend(started);
    }
    Ok(refused)
}

/// Adjusts the engines after the budget has changed a stretch.
pub(super) fn stretched(vm: &Vm) {
    for engine in Engine::ALL {
        (description(engine).stretched)(vm);
    }
}

/// Checks which sampled objects are still alive, if an engine tracks them. `at_once` is set where they are
/// about to be reported.
///
/// # Safety
/// `env` belongs to the current thread. The thread holds none of the agent's locks, except the lock of an
/// interval's end.
pub(super) unsafe fn sweep(vm: &Vm, options: &Options, env: *mut JNIEnv, at_once: bool) {
    for sweep in enabled(options).filter_map(|engine| description(engine).sweep) {
        // SAFETY: the contract gives the current thread's `env`, and excludes the locks that are needed in a
        // safepoint.
        unsafe { sweep(vm, env, at_once) };
    }
}

/// Stops tracking objects, after the last profiles have been made.
///
/// # Safety
/// As for [`sweep`].
pub(super) unsafe fn forget(vm: &Vm, options: &Options, env: Option<*mut JNIEnv>) {
    for engine in enabled(options) {
        (description(engine).forget)();
    }
    if let Some(env) = env {
        // SAFETY: `env` belongs to the current thread, and the caller holds no lock that `sweep` takes.
        unsafe { sweep(vm, options, env, false) };
    }
}

/// Sampled objects and native memory that are still allocated, keyed by sample number.
pub(super) fn alive(options: &Options) -> Alive {
    let mut alive = Alive::new();
    for engine in enabled(options) {
        (description(engine).add_alive)(options, &mut alive);
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
    (description(header.engine).frames)(header, frames, resolver)
}

/// Adds the engines' callbacks to the agent's.
pub(super) fn add_callbacks(mut callbacks: EventCallbacks) -> EventCallbacks {
    for engine in Engine::ALL {
        (description(engine).set_callbacks)(&mut callbacks);
    }
    callbacks
}
