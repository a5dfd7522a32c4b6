//! A perf event of each thread, such as cache misses or page faults.

use otlpprof_core::stack_walker::StackWalker;
use otlpprof_options::Options;
use otlpprof_sampling::{KernelFrames, perf_events};
use otlpprof_signal::sample;

use crate::guards::Guard;

/// Starts to sample the event, if requested. Must precede the registration of threads, each of which then
/// gets the event.
pub(super) fn start(options: &Options) -> Option<Guard> {
    let event = options.event.as_ref()?;
    let kernel_frames =
        if options.stack_walker == StackWalker::No { KernelFrames::Off } else { options.event_kernel };
    let sampling = perf_events::start(event, kernel_frames, options.event_signal, sample::take_event);
    let sampling =
        sampling.inspect_err(|refusal| log::warn!("event={} is off: {refusal}", event.name)).ok()?;
    Some(Guard::new(move || drop(sampling)))
}
