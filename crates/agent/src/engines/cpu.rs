//! CPU time: the registration of the process's threads, which all engines need, and the clock of CPU samples.

use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::thread::ClockKind;
use otlpprof_options::{CpuClock, Options, RecordedEvents};
use otlpprof_sampling::config::{ClockChoice, Config};
use otlpprof_sampling::cpu;
use otlpprof_signal::sample;
use parking_lot::Mutex;

use crate::engine_table::is_any_enabled;
use crate::guards::Guard;
use crate::thread_renames;
use crate::vm::Vm;

/// The clock of the session that was started last.
static CLOCK: Mutex<Option<ClockKind>> = Mutex::new(None);

/// The configuration of CPU sampling. Without a clock it only registers threads.
fn config(options: &Options) -> Config {
    Config {
        interval: options.cpu.unwrap_or(Config::LONGEST_INTERVAL),
        clock: options.cpu.map_or(ClockChoice::None, |_| clock_choice(options.cpu_clock)),
        signal: options.signal,
        kernel_frames: options.cpu_kernel && options.stack_walker != StackWalker::No,
    }
}

fn clock_choice(clock: CpuClock) -> ClockChoice {
    match clock {
        CpuClock::Auto => ClockChoice::Auto,
        CpuClock::Perf => ClockChoice::Only(ClockKind::Perf),
        CpuClock::Timer => ClockChoice::Only(ClockKind::Timer),
        CpuClock::Itimer => ClockChoice::Only(ClockKind::Itimer),
    }
}

/// Makes the kernel prepare the clock while the VM starts, if the engine is enabled.
pub(crate) fn warm_up(options: &Options) {
    if options.cpu.is_some() {
        cpu::warm_up(clock_choice(options.cpu_clock));
    }
}

/// Checks whether the requested clock is available. Sampling begins when the VM is live, when a refusal can
/// no longer fail the VM's start.
pub(crate) fn check_clock(options: &Options) -> Result<(), cpu::StartError> {
    cpu::check(&config(options))
}

/// Turns the engine off, with a line in the log, if it is refused its clock or its signal's handler: the
/// other engines need neither. Fails if there is no other engine, since nothing would be profiled.
pub(crate) fn turn_off_if_refused(options: &mut Options) -> Result<(), cpu::StartError> {
    let Err(error) = cpu::prepare(&config(options)) else { return Ok(()) };
    options.cpu = None;
    if !is_any_enabled(options) && options.recorded_events == RecordedEvents::None {
        return Err(error);
    }
    log::warn!("cpu is off: {error}");
    Ok(())
}

/// Registers the threads of the process and samples their CPU time, if that is enabled. Threads are not
/// registered if no engine is enabled.
pub(super) fn start(vm: &'static Vm, options: &Options) -> Result<Vec<Guard>, cpu::StartError> {
    *CLOCK.lock() = None;
    if !is_any_enabled(options) {
        vm.note_existing_threads();
        return Ok(Vec::new());
    }
    let sampling = cpu::start(&config(options), sample::take_cpu)?;
    *CLOCK.lock() = sampling.clock();
    let sampling = Guard::new(move || sampling.stop());
    vm.note_existing_threads();
    thread_renames::start(vm);
    Ok(vec![sampling, Guard::new(move || thread_renames::stop(vm))])
}

/// The name of the clock of CPU samples, once sampling has begun; `None` without CPU sampling.
pub(crate) fn clock_name() -> Option<&'static str> {
    CLOCK.lock().map(ClockKind::name)
}
