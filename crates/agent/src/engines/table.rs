//! The table of engines: where each is described.

use otlpprof_core::engine::Engine;
use otlpprof_options::Options;

use super::description::{EngineDescription, StartStage};
use super::{alloc, cpu, exceptions, live, lock, method_traces, native_memory, perf_event, wait, wall};
use crate::resolve::SubjectForm;

/// The description of an engine.
pub(crate) fn description(engine: Engine) -> &'static EngineDescription {
    match engine {
        Engine::Cpu => &cpu::ENGINE,
        Engine::Wall => &wall::ENGINE,
        Engine::Alloc => &alloc::ENGINE,
        Engine::Lock => &lock::ENGINE,
        Engine::Wait => &wait::ENGINE,
        Engine::Exceptions => &exceptions::ENGINE,
        Engine::Event => &perf_event::ENGINE,
        Engine::NativeMemory => &native_memory::ENGINE,
        Engine::Live => &live::ENGINE,
        Engine::Trace => &method_traces::ENGINE,
    }
}

/// Whether the options enable an engine, so that threads and loaded objects must be known.
pub(crate) fn is_any_enabled(options: &Options) -> bool {
    enabled(options).next().is_some()
}

/// The engines that the options enable.
pub(crate) fn enabled(options: &Options) -> impl DoubleEndedIterator<Item = Engine> {
    Engine::ALL.into_iter().filter(|&engine| (description(engine).is_on)(options))
}

/// The form of the subjects of an engine's samples.
pub(crate) fn subject_form(engine: Engine) -> SubjectForm {
    description(engine).subject
}

/// All engines in the order in which they start.
pub(super) fn in_start_order() -> impl Iterator<Item = Engine> {
    let of_stage =
        |stage| Engine::ALL.into_iter().filter(move |&engine| description(engine).start_stage == stage);
    StartStage::ALL.into_iter().flat_map(of_stage)
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
            (description(engine).turn_off)(&mut options);
            on.retain(|&other| other != engine);
            assert_eq!(enabled(&options).collect::<Vec<_>>(), on);
        }
    }

    /// Each thread gets the perf event when it is registered; all other engines need registered threads.
    #[test]
    fn every_engine_starts_once_and_only_the_event_before_threads_are_registered() {
        let order: Vec<_> = in_start_order().collect();
        assert_eq!(order[..2], [Engine::Event, Engine::Cpu]);
        assert!(order.len() == Engine::COUNT && Engine::ALL.iter().all(|engine| order.contains(engine)));
    }
}
