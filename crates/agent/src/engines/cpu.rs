//! CPU time: the registration of the process's threads, which all engines need, and the clock of CPU samples.

use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::thread::ClockKind;
use otlpprof_model::types;
use otlpprof_options::{CpuClock, Options};
use otlpprof_sampling::config::{ClockChoice, Config};
use otlpprof_sampling::cpu;
use parking_lot::Mutex;

use super::description::{
    EngineDescription, EngineSignal, EssentialParts, StartStage, Started, every, first,
};
use crate::guards::Guard;
use crate::thread_renames;
use crate::vm::Vm;

/// The engine `cpu`.
pub(super) static ENGINE: EngineDescription = EngineDescription {
    detail: |options| every(options.cpu),
    replaces: &["jdk.ExecutionSample", "jdk.CPUTimeSample", "jdk.NativeMethodSample"],
    signal: |options| {
        let number = match options.cpu_clock {
            // The signal of this clock cannot be chosen.
            CpuClock::Itimer => libc::SIGPROF,
            _ => options.signal,
        };
        Some(EngineSignal { number, option: "signal" })
    },
    start_stage: StartStage::Threads,
    ..EngineDescription::of(EssentialParts {
        is_on: |options| options.cpu.is_some(),
        turn_off: |options| options.cpu = None,
        profiles: |options| first(&types::CPU, options.cpu.map_or(1, |interval| interval.as_nanos() as u64)),
        start,
    })
};

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

/// Sets up the clock and its signal's handler, if the engine is enabled. Fails if the system refuses one.
pub(super) fn prepare(options: &Options) -> Result<(), cpu::StartError> {
    cpu::prepare(&config(options))
}

/// Forgets the clock of the last session.
pub(super) fn begin_session() {
    *CLOCK.lock() = None;
}

/// Registers the threads of the process, which any engine needs, and samples their CPU time, if that is
/// enabled.
fn start(vm: &'static Vm, options: &Options) -> Started {
    let sampling = cpu::start(&config(options))?;
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
