//! The form in which the file of an engine describes it to the rest of the agent. `core::engine` has the
//! properties that handlers need as well.

use std::time::Duration;

use jni::sys::JNIEnv;
use otlpprof_aggregate::{Alive, EngineProfiles, ProfileKind};
use otlpprof_core::record::{FrameRecord, SampleHeader};
use otlpprof_jvm::jvmti::Capability;
use otlpprof_jvm::jvmti_events::EventCallbacks;
use otlpprof_model::ProfileType;
use otlpprof_options::Options;
use otlpprof_sampling::cpu::StartError;

use crate::guards::Guard;
use crate::resolve::{FrameResolver, SubjectForm};
use crate::vm::Vm;

/// The description of an engine.
pub(crate) struct EngineDescription {
    /// Whether the options enable the engine.
    pub(crate) is_on: fn(&Options) -> bool,
    /// Disables the engine.
    pub(crate) turn_off: fn(&mut Options),
    /// The part of the options that the log names beside the engine; empty for most.
    pub(crate) detail: fn(&Options) -> String,
    /// The profiles of the engine's samples, as they are while the engine is not stretched.
    pub(crate) profiles: fn(&Options) -> EngineProfiles,
    /// The profiles of sampled memory or objects that are still allocated.
    pub(crate) profiles_of_survivors: fn(&Options) -> EngineProfiles,
    /// The attributes that a sample's subject becomes.
    pub(super) subject: SubjectForm,
    /// The JDK's events that measure the same.
    pub(crate) replaces: &'static [&'static str],
    /// The JVMTI capabilities without which the engine takes no samples.
    pub(super) needs: fn(&Options) -> NeededCapabilities,
    /// Enters the callbacks of the events of JVMTI that the engine enables while it runs.
    pub(super) set_callbacks: fn(&mut EventCallbacks),
    /// The signal in whose handler the samples are taken.
    pub(super) signal: fn(&Options) -> Option<EngineSignal>,
    /// The place of the engine's start among those of other engines.
    pub(super) start_stage: StartStage,
    /// Starts the engine, if the options enable it. The VM must be live, and the session must drain. An
    /// engine that is refused logs the reason and has no guard.
    pub(super) start: StartEngine,
    /// Adjusts the engine after the budget has changed its stretch.
    pub(super) stretched: fn(&Vm),
    /// Checks which sampled objects are still alive; `true` where they are about to be reported.
    pub(super) sweep: Option<unsafe fn(&Vm, *mut JNIEnv, bool)>,
    /// Forgets sampled objects, after the last profiles have been made.
    pub(super) forget: fn(),
    /// Adds the sampled memory and objects that are still allocated.
    pub(super) add_alive: fn(&Options, &mut Alive),
    /// Returns the frames of a sample without those that belong to the engine's own mechanism.
    pub(super) frames: for<'a> fn(&SampleHeader, &'a [FrameRecord], &mut FrameResolver) -> &'a [FrameRecord],
}

/// The parts that no engine can do without, each as in [`EngineDescription`].
pub(super) struct EssentialParts {
    pub(super) is_on: fn(&Options) -> bool,
    pub(super) turn_off: fn(&mut Options),
    pub(super) profiles: fn(&Options) -> EngineProfiles,
    pub(super) start: StartEngine,
}

/// A function that starts an engine.
pub(super) type StartEngine = fn(&'static Vm, &Options) -> Started;

/// The guards of the sources of samples that an engine has started.
pub(super) type Started = Result<Vec<Guard>, StartError>;

/// The stages of a session's start, in their order. Engines of one stage start in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartStage {
    /// Before threads are registered: each thread that is registered then gets what the engine needs.
    BeforeThreads,
    /// With the registration of threads.
    Threads,
    /// When all threads are registered.
    AfterThreads,
}

/// The capabilities that an engine needs.
#[derive(Clone, Copy)]
pub(super) struct NeededCapabilities {
    /// The option that messages name.
    pub(super) option: &'static str,
    pub(super) capabilities: &'static [Capability],
}

/// A signal of an engine.
#[derive(Clone, Copy)]
pub(super) struct EngineSignal {
    pub(super) number: i32,
    /// The option that chooses another signal.
    pub(super) option: &'static str,
}

impl EngineDescription {
    /// Describes an engine that starts when all threads are registered, whose samples have no subject, and
    /// that has nothing else but these parts.
    pub(super) const fn of(parts: EssentialParts) -> Self {
        Self {
            is_on: parts.is_on,
            turn_off: parts.turn_off,
            detail: |_| String::new(),
            profiles: parts.profiles,
            profiles_of_survivors: |_| [None, None],
            subject: SubjectForm::None,
            replaces: &[],
            needs: |_| NeededCapabilities { option: "", capabilities: &[] },
            set_callbacks: |_| (),
            signal: |_| None,
            start_stage: StartStage::AfterThreads,
            start: parts.start,
            stretched: |_| (),
            sweep: None,
            forget: || (),
            add_alive: |_, _| (),
            frames: |_, frames, _| frames,
        }
    }
}

impl StartStage {
    /// All stages, in their order.
    pub(super) const ALL: [Self; 3] = [Self::BeforeThreads, Self::Threads, Self::AfterThreads];
}

impl NeededCapabilities {
    /// Makes the VM pass the bytes of classes to the agent, so that an engine can change methods.
    pub(super) const CHANGE_CLASSES: &[Capability] =
        &[Capability::AllClassHookEvents, Capability::RetransformClasses];

    pub(super) const fn of(option: &'static str, capabilities: &'static [Capability]) -> Self {
        Self { option, capabilities }
    }
}

/// The result of a start that does not fail, but may be refused some of its sources.
pub(super) fn started<const SOURCES: usize>(guards: [Option<Guard>; SOURCES]) -> Started {
    Ok(guards.into_iter().flatten().collect())
}

/// The detail of an engine that samples time.
pub(super) fn every(interval: Option<Duration>) -> String {
    interval.map_or_else(String::new, |interval| format!("every {interval:?}"))
}

/// A profile of the first value.
pub(super) fn first(profile_type: &'static ProfileType, period: u64) -> EngineProfiles {
    [Some(kind(profile_type, period)), None]
}

/// Profiles of both values, with one period.
pub(super) fn both(profile_types: [&'static ProfileType; 2], period: u64) -> EngineProfiles {
    profile_types.map(|profile_type| Some(kind(profile_type, period)))
}

fn kind(profile_type: &'static ProfileType, period: u64) -> ProfileKind {
    // A period is never 0: `max(1)` only guards against it.
    let period = i64::try_from(period).unwrap_or(i64::MAX).max(1);
    ProfileKind { profile_type, period, scale: 1.0 }
}
