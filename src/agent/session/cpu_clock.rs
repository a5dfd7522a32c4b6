//! The clock that CPU time is sampled by: which one, and what becomes of a session that is refused it.

use super::is_sampling;
use crate::agent::options::{CpuClock, Options, RecordedEvents};
use crate::core::stack_walker::StackWalker;
use crate::core::thread::ClockKind;
use crate::sampling::config::{ClockChoice, Config};
use crate::sampling::cpu;

/// How CPU time is sampled; with no clock, how threads are known to the engines that need them.
pub(super) fn config(options: &Options) -> Config {
    Config {
        interval: options.cpu.unwrap_or(Config::LONGEST_INTERVAL),
        clock: options.cpu.map_or(ClockChoice::None, |_| clock_choice(options.cpu_clock)),
        signal: options.signal,
        kernel_frames: options.cpu_kernel && options.stack_walker != StackWalker::No,
    }
}

/// The engine's word for the option.
pub(in crate::agent) fn clock_choice(clock: CpuClock) -> ClockChoice {
    match clock {
        CpuClock::Auto => ClockChoice::Auto,
        CpuClock::Perf => ClockChoice::Only(ClockKind::Perf),
        CpuClock::Timer => ClockChoice::Only(ClockKind::Timer),
        CpuClock::Itimer => ClockChoice::Only(ClockKind::Itimer),
    }
}

/// Whether the clock that is asked for can be had. Sampling begins when the VM is live, where a refusal no longer
/// fails its start.
pub(in crate::agent) fn check_clock(options: &Options) -> Result<(), cpu::StartError> {
    cpu::check(&config(options))
}

/// Turns off the engine if it is refused its clock or its signal's handler, with a line that says why: the others need
/// neither. Fails where there is none, since nothing would be profiled.
pub(super) fn turn_off_if_refused(options: &mut Options) -> Result<(), cpu::StartError> {
    let Err(error) = cpu::prepare(&config(options)) else { return Ok(()) };
    options.cpu = None;
    if !is_sampling(options) && options.recorded_events == RecordedEvents::None {
        return Err(error);
    }
    log::warn!("cpu is off: {error}");
    Ok(())
}
