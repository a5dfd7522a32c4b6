//! The engines whose samples threads take of themselves, in events that the VM sends them: allocations, waiting for
//! monitors, waiting for notifications, exceptions.
//!
//! | Module | Duty |
//! |---|---|
//! | `allocations`, `monitors`, `exceptions` | an engine each, or two that share their events |
//! | `capabilities` | what the VM must grant for them |
//! | `gate` | lets samples through while an engine runs, and waits for those under way when it stops |
//! | `own_sample` | the sample that a thread takes of itself |
//! | `subjects` | the classes that samples are about |

mod allocations;
mod capabilities;
mod exceptions;
mod gate;
mod monitors;
mod own_sample;
mod subjects;

use super::options::Options;
use super::vm::Vm;
use crate::aggregate::{EngineProfiles, ProfileKind};
use crate::core::record::Engine;
use crate::jvm::jvmti_events::EventCallbacks;
use crate::model::{ProfileType, types};

pub(super) use subjects::SUBJECTS;

/// Whether an engine beside that of CPU time is asked for.
pub(super) fn are_asked_for(options: &Options) -> bool {
    options.wall.is_some()
        || options.alloc.is_some()
        || options.lock.is_some()
        || options.wait.is_some()
        || options.exceptions.is_some()
}

/// Has the VM grant what the engines need. Some of it is granted only while the VM starts: as early as the options are
/// known. An engine that is refused something is turned off, with a line that says why.
pub(super) fn acquire(vm: &Vm, options: &mut Options) {
    capabilities::acquire(vm.jvmti, options);
}

/// Begins to take samples; the VM is live, and drains are made.
pub(super) fn start(vm: &Vm, options: &Options) {
    allocations::start(vm, options.alloc);
    monitors::start(vm, options.lock, options.wait);
    exceptions::start(vm, options.exceptions);
}

/// Takes no more samples from when it returns on.
pub(super) fn stop(vm: &Vm) {
    allocations::stop(vm);
    monitors::stop(vm);
    exceptions::stop(vm);
}

/// Adds the engines' callbacks to the agent's.
pub(super) fn add_callbacks(callbacks: EventCallbacks) -> EventCallbacks {
    EventCallbacks {
        exception: Some(exceptions::exception),
        monitor_wait: Some(monitors::monitor_wait),
        monitor_waited: Some(monitors::monitor_waited),
        monitor_contended_enter: Some(monitors::monitor_contended_enter),
        monitor_contended_entered: Some(monitors::monitor_contended_entered),
        sampled_object_alloc: Some(allocations::sampled_object_alloc),
        ..callbacks
    }
}

/// The profiles that an engine's samples become.
pub(super) fn profiles_of(engine: Engine, options: &Options) -> EngineProfiles {
    let kind = |profile_type: &'static ProfileType, period: u64| {
        // A period is never 0.
        Some(ProfileKind { profile_type, period: i64::try_from(period).unwrap_or(i64::MAX).max(1) })
    };
    match engine {
        Engine::Cpu => {
            let period = options.cpu.map_or(1, |interval| interval.as_nanos() as u64);
            [kind(&types::CPU, period), None]
        }
        Engine::Wall => {
            let period = options.wall.map_or(1, |interval| interval.as_nanos() as u64);
            [kind(&types::WALL, period), None]
        }
        Engine::Alloc => {
            let period = options.alloc.unwrap_or(1);
            [kind(&types::ALLOC_SPACE, period), kind(&types::ALLOC_OBJECTS, period)]
        }
        Engine::Lock => [kind(&types::LOCK_COUNT, 1), kind(&types::LOCK_TIME, 1)],
        Engine::Wait => [kind(&types::WAIT_COUNT, 1), kind(&types::WAIT_TIME, 1)],
        Engine::Exceptions => [kind(&types::EXCEPTIONS, options.exceptions.unwrap_or(1)), None],
    }
}
