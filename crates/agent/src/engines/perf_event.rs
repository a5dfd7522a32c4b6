//! A perf event of each thread, such as cache misses or page faults.

use otlpprof_core::stack_walker::StackWalker;
use otlpprof_model::ProfileType;
use otlpprof_options::Options;
use otlpprof_sampling::{KernelFrames, perf_events};

use super::description::{EngineDescription, EngineSignal, EssentialParts, StartStage, first, started};
use crate::guards::Guard;

/// The engine `event`.
pub(super) static ENGINE: EngineDescription = EngineDescription {
    detail: |options| options.event.as_ref().map_or_else(String::new, |event| event.name.clone()),
    signal: |options| Some(EngineSignal { number: options.event_signal, option: "event.signal" }),
    start_stage: StartStage::BeforeThreads,
    ..EngineDescription::of(EssentialParts {
        is_on: |options| options.event.is_some(),
        turn_off: |options| options.event = None,
        profiles: |options| {
            let event = options.event.as_ref();
            event.map_or([None, None], |event| first(ProfileType::perf_event(&event.name), event.period))
        },
        start: |_, options| started([start(options)]),
    })
};

/// Starts to sample the event, if requested. Must precede the registration of threads, each of which then
/// gets the event.
fn start(options: &Options) -> Option<Guard> {
    let event = options.event.as_ref()?;
    let kernel_frames =
        if options.stack_walker == StackWalker::No { KernelFrames::Off } else { options.event_kernel };
    let sampling = perf_events::start(event, kernel_frames, options.event_signal);
    let sampling =
        sampling.inspect_err(|refusal| log::warn!("event={} is off: {refusal}", event.name)).ok()?;
    Some(Guard::new(move || drop(sampling)))
}
