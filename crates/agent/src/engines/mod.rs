//! The engines, each with its start and its guard. The samples of `cpu`, `wall` and `perf_event` are taken in
//! signal handlers (`sampling`). Threads take the samples of all others of themselves: in events that the VM
//! sends (allocations, waits for monitors, waits for notifications, exceptions), at calls of the C library's
//! allocation functions, and at the end of long calls of traced methods.
//!
//! | Signals | Duty |
//! |---|---|
//! | `cpu` | CPU time; registers threads for all engines |
//! | `wall` | wall-clock time |
//! | `perf_event` | a perf event of each thread |
//! | `held_signals` | turns off engines whose signals another handler of the process uses |
//!
//! | The VM's events | Duty |
//! |---|---|
//! | `allocations` | allocations, also for the live heap |
//! | `live_objects` | the live heap: which sampled objects have survived collections |
//! | `live_table` | the sampled objects that may still live, in a bounded table |
//! | `monitors` | waits for monitors, and for their notifications |
//! | `parking` | threads that wait in `LockSupport.park` |
//! | `owners` | the owner of the lock that a thread begins to wait for |
//! | `wait_start` | since when, and for what, a thread waits |
//! | `exceptions` | exceptions, where they are thrown or created |
//! | `exception_turns` | which exceptions are sampled |
//!
//! | Changed code | Duty |
//! |---|---|
//! | `new_throwables` | exceptions where they are created |
//! | `method_traces` | long calls of chosen methods |
//! | `class_hook` | the VM's event in which classes are changed |
//! | `native_memory` | native allocations, and those of them that were not freed |
//!
//! | Shared by engines | Duty |
//! |---|---|
//! | `capabilities` | the capabilities that the VM must grant |
//! | `gate` | lets samples through while an engine runs, and waits for those under way when it stops |
//! | `own_sample` | the sample that a thread takes of itself |

mod allocations;
mod capabilities;
mod class_hook;
mod cpu;
mod exception_turns;
mod exceptions;
mod gate;
mod held_signals;
mod live_objects;
mod live_table;
mod method_traces;
mod monitors;
mod native_memory;
mod new_throwables;
mod own_sample;
mod owners;
mod parking;
mod perf_event;
mod wait_start;
mod wall;

use jni::sys::{JNIEnv, jobject};
use otlpprof_aggregate::Alive;
use otlpprof_core::engine::Engine;
use otlpprof_core::record::{FrameRecord, SampleHeader};
use otlpprof_jvm::jvmti_events::EventCallbacks;
use otlpprof_options::Options;
use otlpprof_sampling::cpu as cpu_sampling;

use super::engine_table::{enabled, row};
use super::guards::{Guard, Guards};
use super::resolve::FrameResolver;
use super::vm::Vm;

pub(super) use self::cpu::{check_clock, clock_name, turn_off_if_refused, warm_up};
pub(super) use self::held_signals::turn_off as turn_off_held;
pub(super) use self::live_objects::{collection_ended, thinned};

/// The functions of an engine that a session calls.
struct Operations {
    /// Starts the engine, if the options enable it. The VM must be live, and the session must drain. An
    /// engine that is refused logs the reason and has no guard.
    start: fn(&'static Vm, &Options) -> Started,
    /// Adjusts the engine after the budget has changed its stretch.
    stretched: fn(&Vm),
    /// Checks which sampled objects are still alive; `true` where they are about to be reported.
    sweep: Option<unsafe fn(&Vm, *mut JNIEnv, bool)>,
    /// Forgets sampled objects, after the last profiles have been made.
    forget: fn(),
    /// Adds the sampled memory and objects that are still allocated.
    add_alive: fn(&Options, &mut Alive),
    /// Returns the frames of a sample without those that belong to the engine's own mechanism.
    frames: for<'a> fn(&SampleHeader, &'a [FrameRecord], &mut FrameResolver) -> &'a [FrameRecord],
}

/// The guards of the sources of samples that an engine has started.
type Started = Result<Vec<Guard>, cpu_sampling::StartError>;

fn started<const SOURCES: usize>(guards: [Option<Guard>; SOURCES]) -> Started {
    Ok(guards.into_iter().flatten().collect())
}

/// The operations of an engine that samples events which need nothing else.
const EVENTS_ONLY: Operations = Operations {
    start: |_, _| started([]),
    stretched: |_| (),
    sweep: None,
    forget: || (),
    add_alive: |_, _| (),
    frames: |_, frames, _| frames,
};

/// The table of all engines' operations.
fn operations(engine: Engine) -> &'static Operations {
    match engine {
        Engine::Cpu => &Operations { start: cpu::start, ..EVENTS_ONLY },
        Engine::Wall => &Operations { start: |_, options| started([wall::start(options)]), ..EVENTS_ONLY },
        Engine::Alloc => &Operations {
            start: |vm, options| started([allocations::start_alloc(vm, options.alloc)]),
            stretched: allocations::stretched,
            ..EVENTS_ONLY
        },
        Engine::Lock => &Operations {
            start: |vm, options| {
                started([monitors::start_entering(vm, options.lock), parking::start(vm, options.lock)])
            },
            ..EVENTS_ONLY
        },
        Engine::Wait => &Operations {
            start: |vm, options| started([monitors::start_notifications(vm, options.wait)]),
            ..EVENTS_ONLY
        },
        Engine::Exceptions => &Operations {
            start: |vm, options| started([exceptions::start(vm, options)]),
            frames: |header, frames, resolver| {
                new_throwables::from_creation(frames, header.subject, resolver)
            },
            ..EVENTS_ONLY
        },
        Engine::Event => {
            &Operations { start: |_, options| started([perf_event::start(options)]), ..EVENTS_ONLY }
        }
        Engine::NativeMemory => &Operations {
            start: |_, options| started([native_memory::start(options)]),
            add_alive: native_memory::add_alive,
            ..EVENTS_ONLY
        },
        Engine::Live => &Operations {
            start: |vm, options| started([allocations::start_live(vm, options.live)]),
            stretched: allocations::stretched,
            sweep: Some(live_objects::sweep),
            forget: live_objects::forget,
            add_alive: |_, alive| live_objects::add_alive(alive),
            ..EVENTS_ONLY
        },
        Engine::Trace => &Operations {
            start: |vm, options| started([method_traces::start(vm, &options.trace)]),
            frames: |_, frames, _| method_traces::from_traced_method(frames),
            ..EVENTS_ONLY
        },
    }
}

/// The order in which engines start. The perf event precedes the registration of threads, which `Cpu` does
/// and all others need.
const START_ORDER: [Engine; Engine::COUNT] = [
    Engine::Event,
    Engine::Cpu,
    Engine::Wall,
    Engine::Alloc,
    Engine::Live,
    Engine::Lock,
    Engine::Wait,
    Engine::Exceptions,
    Engine::NativeMemory,
    Engine::Trace,
];

/// Acquires the capabilities that the engines need, as early as the options are known: the VM grants some of
/// them only while it starts. An engine that does not get its capability is turned off, with a line in the
/// log that says why.
pub(super) fn acquire(vm: &Vm, options: &mut Options) {
    capabilities::acquire(vm.jvmti, options);
}

/// Starts the engines that the options enable. `guards` receives the guards of those that have started, also
/// if one fails. Returns the engines that were refused, which the log names.
pub(super) fn start(
    vm: &'static Vm,
    options: &Options,
    guards: &mut Guards,
) -> Result<Vec<Engine>, cpu_sampling::StartError> {
    wait_start::begin_session();
    let mut refused = Vec::new();
    for engine in START_ORDER {
        let started = (operations(engine).start)(vm, options)?;
        if started.is_empty() && (row(engine).is_on)(options) {
            refused.push(engine);
        }
        guards.extend(started);
    }
    Ok(refused)
}

/// Adjusts the engines after the budget has changed a stretch.
pub(super) fn stretched(vm: &Vm) {
    for engine in Engine::ALL {
        (operations(engine).stretched)(vm);
    }
}

/// Checks which sampled objects are still alive, if an engine tracks them. `at_once` is set where they are
/// about to be reported.
///
/// # Safety
/// `env` is the current thread's. The thread holds none of the agent's locks, except that of an interval's
/// end.
pub(super) unsafe fn sweep(vm: &Vm, options: &Options, env: *mut JNIEnv, at_once: bool) {
    for sweep in enabled(options).filter_map(|engine| operations(engine).sweep) {
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
        (operations(engine).forget)();
    }
    if let Some(env) = env {
        // SAFETY: `env` is the current thread's, and the caller holds no lock that `sweep` takes.
        unsafe { sweep(vm, options, env, false) };
    }
}

/// Sampled objects and native memory that are still allocated, keyed by sample number.
pub(super) fn alive(options: &Options) -> Alive {
    let mut alive = Alive::new();
    for engine in enabled(options) {
        (operations(engine).add_alive)(options, &mut alive);
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
    (operations(header.engine).frames)(header, frames, resolver)
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
