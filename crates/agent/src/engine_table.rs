//! The engines as the agent knows them, in one table: the option that enables each, the capabilities that it
//! needs, its profiles, the subjects of its samples, and the JDK's events that it replaces. `core::engine`
//! has the properties that handlers need as well.

use std::time::Duration;

use otlpprof_aggregate::{EngineProfiles, ProfileKind};
use otlpprof_core::engine::Engine;
use otlpprof_jvm::jvmti::Capability;
use otlpprof_model::{ProfileType, attribute_keys, types};
use otlpprof_options::Options;

/// The row of an engine.
pub(super) struct Row {
    /// Whether the options enable the engine.
    pub(super) is_on: fn(&Options) -> bool,
    /// Disables the engine.
    pub(super) turn_off: fn(&mut Options),
    /// The part of the options that the log names beside the engine; empty for most.
    pub(super) detail: fn(&Options) -> String,
    /// The JVMTI capabilities without which the engine takes no samples.
    pub(super) needs: fn(&Options) -> Needs,
    /// The profiles of the engine's samples, as they are while the engine is not stretched.
    pub(super) profiles: fn(&Options) -> EngineProfiles,
    /// The profiles of sampled memory or objects that are still allocated.
    pub(super) profiles_of_survivors: fn(&Options) -> EngineProfiles,
    /// The attributes that a sample's subject becomes.
    pub(super) subject: SubjectForm,
    /// The JDK's events that measure the same.
    pub(super) replaces: &'static [&'static str],
}

/// The capabilities that an engine needs.
#[derive(Clone, Copy)]
pub(super) struct Needs {
    /// The option that messages name.
    pub(super) option: &'static str,
    pub(super) capabilities: &'static [Capability],
}

impl Needs {
    const NOTHING: Self = Self { option: "", capabilities: &[] };

    const fn of(option: &'static str, capabilities: &'static [Capability]) -> Self {
        Self { option, capabilities }
    }
}

/// The form of a sample's subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubjectForm {
    /// The samples have no subject.
    None,
    /// A thread's state.
    ThreadState,
    /// A class, as an attribute with this key.
    Class(&'static str),
    /// The class and the kind of a lock.
    Lock,
}

/// A row without capabilities, survivors, subject and replaced events.
const PLAIN: Row = Row {
    is_on: |_| false,
    turn_off: |_| (),
    detail: |_| String::new(),
    needs: |_| Needs::NOTHING,
    profiles: |_| [None, None],
    profiles_of_survivors: |_| [None, None],
    subject: SubjectForm::None,
    replaces: &[],
};

/// Makes the VM pass the bytes of classes to the agent, so that an engine can change methods.
const CHANGE_CLASSES: &[Capability] = &[Capability::AllClassHookEvents, Capability::RetransformClasses];

/// The table.
pub(super) fn row(engine: Engine) -> Row {
    match engine {
        Engine::Cpu => Row {
            is_on: |options| options.cpu.is_some(),
            turn_off: |options| options.cpu = None,
            detail: |options| every(options.cpu),
            profiles: |options| {
                [kind(&types::CPU, options.cpu.map_or(1, |interval| interval.as_nanos() as u64)), None]
            },
            replaces: &["jdk.ExecutionSample", "jdk.CPUTimeSample", "jdk.NativeMethodSample"],
            ..PLAIN
        },
        Engine::Wall => Row {
            is_on: |options| options.wall.is_some(),
            turn_off: |options| options.wall = None,
            detail: |options| every(options.wall),
            profiles: |options| {
                [kind(&types::WALL, options.wall.map_or(1, |interval| interval.as_nanos() as u64)), None]
            },
            subject: SubjectForm::ThreadState,
            replaces: &["jdk.NativeMethodSample"],
            ..PLAIN
        },
        Engine::Alloc => Row {
            is_on: |options| options.alloc.is_some(),
            turn_off: |options| options.alloc = None,
            needs: |_| Needs::of("alloc", &[Capability::SampledObjectAllocEvents]),
            profiles: |options| both([&types::ALLOC_SPACE, &types::ALLOC_OBJECTS], options.alloc),
            subject: SubjectForm::Class(attribute_keys::OBJECT_CLASS),
            replaces: &[
                "jdk.ObjectAllocationInNewTLAB",
                "jdk.ObjectAllocationOutsideTLAB",
                "jdk.ObjectAllocationSample",
            ],
            ..PLAIN
        },
        Engine::Lock => Row {
            is_on: |options| options.lock.is_some(),
            turn_off: |options| options.lock = None,
            needs: |_| Needs::of("lock", &[Capability::MonitorEvents]),
            profiles: |_| both([&types::LOCK_COUNT, &types::LOCK_TIME], None),
            subject: SubjectForm::Lock,
            replaces: &["jdk.JavaMonitorEnter", "jdk.ThreadPark"],
            ..PLAIN
        },
        Engine::Wait => Row {
            is_on: |options| options.wait.is_some(),
            turn_off: |options| options.wait = None,
            needs: |_| Needs::of("wait", &[Capability::MonitorEvents]),
            profiles: |_| both([&types::WAIT_COUNT, &types::WAIT_TIME], None),
            subject: SubjectForm::Class(attribute_keys::MONITOR_CLASS),
            replaces: &["jdk.JavaMonitorWait"],
            ..PLAIN
        },
        Engine::Exceptions => Row {
            is_on: |options| options.exceptions.is_some(),
            turn_off: |options| options.exceptions = None,
            needs: |options| match options.exceptions_thrown {
                true => Needs::of("exceptions.thrown", &[Capability::ExceptionEvents]),
                false => Needs::of("exceptions", CHANGE_CLASSES),
            },
            profiles: |options| [kind(&types::EXCEPTIONS, options.exceptions.unwrap_or(1)), None],
            subject: SubjectForm::Class(attribute_keys::EXCEPTION_TYPE),
            replaces: &["jdk.JavaExceptionThrow"],
            ..PLAIN
        },
        Engine::Event => Row {
            is_on: |options| options.event.is_some(),
            turn_off: |options| options.event = None,
            detail: |options| options.event.as_ref().map_or_else(String::new, |event| event.name.clone()),
            profiles: |options| {
                let event = options.event.as_ref();
                [event.and_then(|event| kind(ProfileType::perf_event(&event.name), event.period)), None]
            },
            ..PLAIN
        },
        Engine::NativeMemory => Row {
            is_on: |options| options.nativemem.is_some(),
            turn_off: |options| options.nativemem = None,
            profiles: |options| both([&types::NATIVEMEM_SPACE, &types::NATIVEMEM_OBJECTS], options.nativemem),
            profiles_of_survivors: |options| {
                both([&types::NATIVELEAK_SPACE, &types::NATIVELEAK_OBJECTS], options.nativemem)
            },
            ..PLAIN
        },
        // Live objects have no profile of their allocation: they are reported for as long as they live.
        Engine::Live => Row {
            is_on: |options| options.live.is_some(),
            turn_off: |options| options.live = None,
            needs: |_| Needs::of("live", &[Capability::SampledObjectAllocEvents]),
            profiles_of_survivors: |options| both([&types::LIVE_SPACE, &types::LIVE_OBJECTS], options.live),
            subject: SubjectForm::Class(attribute_keys::OBJECT_CLASS),
            replaces: &["jdk.OldObjectSample"],
            ..PLAIN
        },
        Engine::Trace => Row {
            is_on: |options| !options.trace.is_empty(),
            turn_off: |options| options.trace.clear(),
            needs: |_| Needs::of("trace", CHANGE_CLASSES),
            profiles: |_| both([&types::TRACE_COUNT, &types::TRACE_TIME], None),
            replaces: &["jdk.MethodTrace"],
            ..PLAIN
        },
    }
}

/// Whether the options enable an engine, so that threads and loaded objects must be known.
pub(super) fn is_any_enabled(options: &Options) -> bool {
    enabled(options).next().is_some()
}

/// The engines that the options enable.
pub(super) fn enabled(options: &Options) -> impl DoubleEndedIterator<Item = Engine> {
    Engine::ALL.into_iter().filter(|&engine| (row(engine).is_on)(options))
}

fn every(interval: Option<Duration>) -> String {
    interval.map_or_else(String::new, |interval| format!("every {interval:?}"))
}

fn kind(profile_type: &'static ProfileType, period: u64) -> Option<ProfileKind> {
    // A period is never 0: `max(1)` only guards against it.
    let period = i64::try_from(period).unwrap_or(i64::MAX).max(1);
    Some(ProfileKind { profile_type, period, scale: 1.0 })
}

/// Profiles of both values, with one period.
fn both(profile_types: [&'static ProfileType; 2], period: Option<u64>) -> EngineProfiles {
    profile_types.map(|profile_type| kind(profile_type, period.unwrap_or(1)))
}

#[cfg(test)]
mod tests {
    use otlpprof_options::{Environment, Request, parse};

    use super::*;

    #[test]
    fn each_engine_is_enabled_by_its_option_and_turned_off_alone() {
        let text = "file=x,cpu,wall,alloc,lock,wait,exceptions,event=page-faults,nativemem,live,trace=a.B.c";
        let Request::Start(mut options) = parse(text, &Environment::default()).unwrap() else {
            panic!("a start")
        };
        let mut on = Engine::ALL.to_vec();
        assert_eq!(enabled(&options).collect::<Vec<_>>(), on);
        for engine in Engine::ALL {
            (row(engine).turn_off)(&mut options);
            on.retain(|&other| other != engine);
            assert_eq!(enabled(&options).collect::<Vec<_>>(), on);
        }
    }
}
