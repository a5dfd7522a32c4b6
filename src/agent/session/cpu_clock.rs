//! The clock of CPU samples: its choice, and the handling of a refusal.

use super::is_sampling;
use crate::agent::options::{CpuClock, Options, RecordedEvents};
use crate::core::stack_walker::StackWalker;
use crate::core::thread::ClockKind;
use crate::sampling::config::{ClockChoice, Config};
use crate::sampling::cpu;

/// The configuration of CPU sampling. Without a clock it only registers threads, for the engines that need
/// them.
pub(super) fn config(options: &Options) -> Config {
    Config {
        interval: options.cpu.unwrap_or(Config::LONGEST_INTERVAL),
        clock: options.cpu.map_or(ClockChoice::None, |_| clock_choice(options.cpu_clock)),
        signal: options.signal,
        kernel_frames: options.cpu_kernel && options.stack_walker != StackWalker::No,
    }
}

/// Converts the option to the engine's type.
pub(in crate::agent) fn clock_choice(clock: CpuClock) -> ClockChoice {
    match clock {
        CpuClock::Auto => ClockChoice::Auto,
        CpuClock::Perf => ClockChoice::Only(ClockKind::Perf),
        CpuClock::Timer => ClockChoice::Only(ClockKind::Timer),
        CpuClock::Itimer => ClockChoice::Only(ClockKind::Itimer),
    }
}

/// Checks whether the requested clock is available. Sampling begins when the VM is live, when a refusal can
/// no longer fail the VM's start.
pub(in crate::agent) fn check_clock(options: &Options) -> Result<(), cpu::StartError> {
    cpu::check(&config(options))
}

/// Turns the engine off, with a line in the log, if it is refused its clock or its signal's handler: the
/// other engines need neither. Fails if there is no other engine, since nothing would be profiled.
pub(super) fn turn_off_if_refused(options: &mut Options) -> Result<(), cpu::StartError> {
    let Err(error) = cpu::prepare(&config(options)) else { return Ok(()) };
    options.cpu = None;
    if !is_sampling(options) && options.recorded_events == RecordedEvents::None {
        return Err(error);
    }
    log::warn!("cpu is off: {error}");
    Ok(())
}
