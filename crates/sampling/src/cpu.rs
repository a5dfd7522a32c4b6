//! A session of CPU sampling: start and stop.

use std::io;
use std::panic::catch_unwind;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use otlpprof_core::thread::ClockKind;
use otlpprof_signal::chain::ChainError;
use otlpprof_signal::cpu::SESSION;
use otlpprof_signal::cpu_counters::{COUNTERS, CpuCounts};
use otlpprof_signal::delivery::install_handler;
use otlpprof_signal::handler_stack;
use otlpprof_signal::thread_table::SignalToken;
use thiserror::Error;

use super::clock::{ITIMER, check_kernel_frames, probe_perf, probe_timer};
use super::config::{ArmedConfig, ClockChoice, Config};
use super::forked_child::FORKED;
use super::handler_watch::{self, Watch, WatchGuard};
use super::process_account::ProcessAccount;
use super::stoppable_thread::StoppableThread;
use super::tasks::{self, Tasks};
use super::{kernel_names, own_threads, poller, random, thread_start, threads};

/// The reason why CPU sampling could not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// Another session is running.
    #[error("CPU sampling is running already")]
    AlreadyRunning,
    /// The process is a forked child of a profiled one.
    #[error("a forked child of a profiled process is not profiled")]
    ForkedChild,
    /// See [`Config::allows_interval`].
    #[error(
        "the CPU sampling interval must be from {:?} to {:?}",
        Config::SHORTEST_INTERVAL,
        Config::LONGEST_INTERVAL
    )]
    Interval,
    /// See [`Config::allows_signal`].
    #[error("signal {0} cannot be used for sampling; leave `signal` at its default, SIGPROF")]
    Signal(i32),
    /// A clock was asked for by name, and is not available.
    #[error(
        "cpu.clock={} is not available ({error}); {}cpu.clock=auto takes a clock that is available",
        .kind.name(),
        allowed_by(*kind)
    )]
    Clock {
        /// The clock.
        kind: ClockKind,
        /// The error.
        error: io::Error,
    },
    /// Other code has installed handlers over ours too often.
    #[error("no more signal handlers can be installed in this process")]
    HandlersUsedUp,
    /// `/proc/self/task` cannot be opened, mostly for lack of a descriptor.
    #[error("CPU sampling: the list of threads cannot be opened: {0}")]
    Tasks(io::Error),
    /// A system call failed.
    #[error("CPU sampling: {0}")]
    System(#[from] io::Error),
}

/// Returns the system's settings that permit a clock, for a message.
fn allowed_by(kind: ClockKind) -> &'static str {
    match kind {
        ClockKind::Perf => {
            "allow it by CAP_PERFMON, or by sysctl kernel.perf_event_paranoid=1, and in a container by a \
             seccomp profile that lets perf_event_open through; "
        }
        ClockKind::Timer => {
            "allow more of them by ulimit -i, the limit of pending signals, of which each timer uses one; "
        }
        ClockKind::Itimer => "",
    }
}

impl From<ChainError> for StartError {
    fn from(error: ChainError) -> Self {
        match error {
            ChainError::NoLinkLeft => Self::HandlersUsedUp,
            ChainError::System(errno) => Self::System(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// A running session. Dropping it stops the session.
pub struct CpuSampling {
    poller: Option<StoppableThread>,
    watched: Option<WatchGuard>,
    clock: Option<ClockKind>,
    clock_reason: String,
}

static RUNNING: AtomicBool = AtomicBool::new(false);

/// Checks whether sampling could start as configured, as far as that can be determined without starting it.
pub fn check(config: &Config) -> Result<(), StartError> {
    check_limits(config)?;
    match config.clock {
        // One of the clocks is always available.
        ClockChoice::Auto | ClockChoice::None => Ok(()),
        ClockChoice::Only(_) => choose_clock(config).map(drop),
    }
}

/// Acquires, before sampling begins, everything that the system may refuse: the configured clock is checked,
/// and the signal's handler is installed, which stays.
pub fn prepare(config: &Config) -> Result<(), StartError> {
    check(config)?;
    if config.clock != ClockChoice::None {
        install_handler(config.signal)?;
    }
    Ok(())
}

/// Starts to sample every thread of the process except the profiler's own, including threads that start
/// later.
pub fn start(config: &Config) -> Result<CpuSampling, StartError> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(StartError::ForkedChild);
    }
    check_limits(config)?;
    if RUNNING.swap(true, Ordering::SeqCst) {
        return Err(StartError::AlreadyRunning);
    }
    // From here on, dropping the session undoes the steps that have been done.
    let mut session = CpuSampling { poller: None, watched: None, clock: None, clock_reason: String::new() };
    if let Some((clock, reason)) = choose_clock(config)? {
        (session.clock, session.clock_reason) = (Some(clock), reason);
    }
    // Before events use up the last descriptors.
    let mut tasks = Tasks::open().map_err(StartError::Tasks)?;
    SignalToken::choose_cookie(random::system_random());
    if !handler_stack::prepare() {
        log::warn!(
            "no memory for the stacks of signal handlers: threads with small or unknown stacks are not \
             sampled"
        );
    }
    handle_forks();
    if !threads::make_key() {
        log::warn!("no pthread key left: the ends of threads are noticed late");
    }
    if session.clock.is_some() {
        install_handler(config.signal)?;
        session.watched = Some(handler_watch::begin(Watch {
            signal: config.signal,
            samples: "CPU samples",
            option: "signal",
            replaced: &COUNTERS.handler_replaced,
        }));
    }
    // The interval is at most an hour, so it fits.
    SESSION.open(config.interval.as_nanos() as i64, tick_ns());
    let kernel_frames = config.kernel_frames && has_kernel_frames(session.clock);
    let armed = ArmedConfig { clock: session.clock, signal: config.signal, kernel_frames };
    threads::set_config(Some(armed));
    // Threads that start from here on arm themselves. Then the existing threads are armed.
    thread_start::install();
    threads::arm_all(&mut tasks)?;
    let account = session.clock.map(|_| ProcessAccount::begin(&tasks));
    session.poller = Some(poller::start(account, tasks)?);
    if let Some(clock) = session.clock {
        let (interval, reason) = (config.interval, &session.clock_reason);
        log::debug!("CPU sampling every {interval:?} of CPU time by {} ({reason})", clock.name());
    }
    Ok(session)
}

impl CpuSampling {
    /// The clock by which threads are sampled, unless limits run out; `None` if no thread is sampled.
    pub fn clock(&self) -> Option<ClockKind> {
        self.clock
    }

    /// The reason for that choice of clock, in words.
    pub fn clock_reason(&self) -> &str {
        &self.clock_reason
    }

    /// Stops sampling. When the function returns, no sample is being taken and none will be. No timer,
    /// descriptor, thread or redirected import of the session is left. The signal handler stays, for signals
    /// that are still pending.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for CpuSampling {
    fn drop(&mut self) {
        if FORKED.load(Ordering::Relaxed) {
            return;
        }
        SESSION.close();
        drop(self.poller.take());
        drop(self.watched.take());
        thread_start::remove();
        threads::retire_all();
        ITIMER.lock().stop();
        threads::set_config(None);
        RUNNING.store(false, Ordering::SeqCst);
    }
}

/// Returns the counters, over the life of the process.
pub fn counts() -> CpuCounts {
    COUNTERS.read()
}

/// Returns the CPU time of ended threads, in ns, that no sample stands for yet; negative if samples stand for
/// too much. The first sample of a later thread settles it.
pub fn ended_balance_ns() -> i64 {
    SESSION.ended_balance_ns.load(Ordering::Relaxed)
}

/// Prepares the kernel for perf events while other threads work. The first event on a machine waits until all
/// CPUs have left the code they were in (perf_event_open's `perf_sched_events`: 8 to 20 ms were measured).
/// Later events do not wait, until a second after the last event has been closed.
///
/// Returns the thread that does this. No other thread needs to wait for it; without it, the start itself
/// waits.
pub fn warm_up(clock: ClockChoice) -> Option<JoinHandle<()>> {
    let needs_perf = matches!(clock, ClockChoice::Auto | ClockChoice::Only(ClockKind::Perf));
    needs_perf.then(|| own_threads::spawn("otlpprof-warm", || drop(probe_perf())))?.ok()
}

fn check_limits(config: &Config) -> Result<(), StartError> {
    if !Config::allows_interval(config.interval) {
        return Err(StartError::Interval);
    }
    if !Config::allows_signal(config.signal) {
        return Err(StartError::Signal(config.signal));
    }
    Ok(())
}

fn choose_clock(config: &Config) -> Result<Option<(ClockKind, String)>, StartError> {
    let probe = |kind| match kind {
        ClockKind::Perf => probe_perf(),
        ClockKind::Timer => probe_timer(config.signal),
        ClockKind::Itimer => Ok(()),
    };
    Ok(Some(match config.clock {
        ClockChoice::None => return Ok(None),
        ClockChoice::Only(kind) => {
            probe(kind).map_err(|error| StartError::Clock { kind, error })?;
            (kind, "as configured".to_owned())
        }
        ClockChoice::Auto => {
            let no_perf = match probe(ClockKind::Perf) {
                Ok(()) => {
                    let reason = "perf events are granted, the kernel's time included".to_owned();
                    return Ok(Some((ClockKind::Perf, reason)));
                }
                Err(error) => format!("perf events are not granted: {error}"),
            };
            match probe(ClockKind::Timer) {
                Ok(()) => (ClockKind::Timer, no_perf),
                Err(error) => {
                    (ClockKind::Itimer, format!("{no_perf}; timers are not available either: {error}"))
                }
            }
        }
    }))
}

/// Whether stacks have the kernel's frames, which the user has asked for. If they are not available, the
/// reason is logged.
fn has_kernel_frames(clock: Option<ClockKind>) -> bool {
    let why = match clock {
        None => return false,
        Some(ClockKind::Perf) => match check_kernel_frames() {
            Ok(()) => {
                kernel_names::read_ahead();
                return true;
            }
            Err(refusal) => refusal.to_string(),
        },
        Some(clock) => format!(
            "they need the perf clock, and threads are sampled by {}; allow the perf clock by CAP_PERFMON, \
             or by sysctl kernel.perf_event_paranoid=1",
            clock.name()
        ),
    };
    log::warn!("cpu.kernel: stacks are without kernel frames: {why}");
    false
}

/// Returns the length of the scheduler's tick, in ns: the resolution of the clocks that the tick updates.
fn tick_ns() -> i64 {
    let mut resolution = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    let known = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut resolution) } == 0;
    // The usual length, if it cannot be read.
    if known && resolution.tv_nsec > 0 { resolution.tv_nsec } else { 4_000_000 }
}

/// Registers a handler for forks. In a forked child timers do not exist, the process's timer is cleared, and
/// descriptors are inherited (and closed by exec). The child, which has only one thread and may have locks
/// that are held for ever, stops profiling.
fn handle_forks() {
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::SeqCst);
        SESSION.close();
        // A panic here must not end the child.
        let _ = catch_unwind(|| {
            threads::close_inherited_events();
            tasks::close_inherited();
        });
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function is async-signal-safe and lives as long as the library, which is never
        // unloaded.
        let result = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        if result != 0 {
            log::warn!("forked children cannot be notified: they may keep descriptors of perf events open");
        }
    });
}
