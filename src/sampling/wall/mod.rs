//! Wall-clock sampling: a thread goes round all threads, and signals those that may have moved since they were last seen.
//!
//! At each visit a thread is credited with the time since its place was visited before, whichever state it is in: what all
//! samples stand for is the time that passed, times the threads. A place is what threads have one after the other, so a
//! thread that lives shorter than a round is met as seldom as its life is short, and then stands for the others that were
//! there and were not met. A thread whose CPU clock has not moved since its last sample is where that
//! sample found it: it is not woken, and the time goes to that sample ([`Repeat`]). What it uses to go back to waiting, behind
//! a sample, is enough to come to wait elsewhere; so it is asked once more before that is believed.
//!
//! The cost is bounded however many threads there are: a round takes as long as [`VISITS_PER_S`] and [`SIGNALS_PER_S`] want,
//! if that is longer than the interval. All threads are then seen as seldom, whatever they do, so that no state is preferred.

use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::clock::cpu_time_of;
use super::cpu::StartError;
use super::handler_wait::HandlerWait;
use super::handler_watch::{self, Watch, Watched};
use super::random::random;
use super::run_delay::RunAccount;
use super::stoppable_thread::{Stop, StoppableThread};
use super::thread_records::{all_records, for_each_thread};
use super::threads;
use crate::core::counts::counts;
use crate::core::record::Engine;
use crate::core::thread::{RecordState, ThreadRecord};
use crate::signal::delivery::install_handler;
use crate::signal::sample::monotonic_ns;
use crate::signal::stretch::STRETCHES;
use crate::signal::thread_table::{SignalToken, record};
use crate::signal::wall::{SESSION, WallSampleFn};

/// The most threads that are looked at in a second: a look takes some 300 ns.
pub const VISITS_PER_S: f64 = 20_000.0;
/// The most signals that are sent in a second: with the thread's way in and out of the kernel one takes some 10 µs.
pub const SIGNALS_PER_S: f64 = 4_000.0;
/// Threads that are visited at one time.
const BATCH: f64 = 8.0;
/// Between two batches.
const SHORTEST_TICK: Duration = Duration::from_millis(1);
/// A place that was empty in more rounds than that is visited no more until a thread has it.
const MOST_EMPTY_ROUNDS: u32 = 16;
/// What a thread uses from the end of a handler to where it waits again.
const WAY_BACK_NS: i64 = 20_000;
/// A signal that has not been handled for so long was lost, or is blocked: another is sent.
const LOST_AFTER_NS: u64 = 1_000_000_000;

/// Wall-clock sampling, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallConfig {
    /// Between two visits of a thread, if the budgets allow.
    pub interval: Duration,
    /// The signal by which a thread is told.
    pub signal: i32,
}

/// Time that a thread has spent where its last sample found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// The sample's number.
    pub number: u32,
    /// How long.
    pub ns: u64,
    /// CLOCK_MONOTONIC when that was seen.
    pub monotonic_ns: u64,
    index: u32,
    generation: u32,
}

counts! {
    /// What the sampler has done since the process began.
    WallCounts {
        /// Threads looked at.
        visits,
        /// Signals sent.
        signals,
        /// Visits at which the thread was where it had been.
        idle,
        /// Signals that were not handled in time, and sent again.
        signals_lost,
        /// Rounds that took longer than the interval, since there are too many threads, or too many that run.
        long_rounds,
        /// Times that somebody else's handler was found in the place of ours.
        handler_replaced,
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

static REPEATS: Mutex<Vec<Repeat>> = Mutex::new(Vec::new());
/// Samples of another interval than this one are not repeated.
static INTERVAL: AtomicU32 = AtomicU32::new(0);

/// Takes what has been seen so far.
pub fn take_repeats() -> Vec<Repeat> {
    std::mem::take(&mut REPEATS.lock())
}

/// Gives back time whose sample nobody knows any more: the thread's next sample stands for it.
pub fn give_back(repeat: &Repeat) {
    if let Some(record) = record(repeat.index)
        && record.generation.load(Ordering::Relaxed) == repeat.generation
    {
        record.wall.due_ns.fetch_add(repeat.ns, Ordering::Relaxed);
    }
}

/// An interval's samples have been taken: every thread is sampled anew.
pub fn interval_ended() {
    INTERVAL.fetch_add(1, Ordering::Release);
}

/// A running session. Stops when dropped.
pub struct Session {
    sampler: Option<StoppableThread>,
    _watched: Watched,
}

/// Starts to sample the threads that `sampling::cpu` knows, whose session lasts longer.
pub fn start(config: &WallConfig, sample: WallSampleFn) -> Result<Session, StartError> {
    install_handler(config.signal)?;
    REPEATS.lock().clear();
    for_each_thread(|record| record.wall.reset());
    SESSION.open(config.signal, sample);
    let sampler = Sampler::new(*config);
    let sampler = StoppableThread::start("otlpprof-wall", move |stop| sampler.run(stop));
    let sampler = sampler.inspect_err(|_| SESSION.close())?;
    let watched = handler_watch::begin(Watch {
        signal: config.signal,
        samples: "wall-clock samples",
        option: "wall.signal",
        replaced: &COUNTS.handler_replaced,
    });
    log::info!("wall-clock sampling every {:?}", config.interval);
    Ok(Session { sampler: Some(sampler), _watched: watched })
}

impl Drop for Session {
    fn drop(&mut self) {
        SESSION.close();
        drop(self.sampler.take());
        if threads::FORKED.load(Ordering::Relaxed) {
            return;
        }
        let wait = HandlerWait::new();
        for_each_thread(|record| {
            wait.for_handler(|| record.wall.busy.load(Ordering::SeqCst));
        });
    }
}

/// What the sampler knows of one place that is visited, and of the thread in it.
#[derive(Clone, Copy, Debug)]
struct Visited {
    generation: u32,
    /// In how many rounds there was nobody in it, until now.
    empty_rounds: u32,
    /// When the place was visited last.
    at_ns: u64,
    /// The number of the last sample that it was asked for; 0: none.
    asked: u32,
    asked_at_ns: u64,
    /// The interval in which it was asked.
    interval: u32,
    /// Whether it was asked although it had not moved before, as far as could be told.
    confirms: bool,
    /// Its CPU clock when it was seen to have gone back to waiting.
    idle_cpu_ns: Option<i64>,
    /// What has been told of its running and waiting for a processor.
    run: RunAccount,
}

struct Sampler {
    config: WallConfig,
    started_ns: u64,
    /// By place.
    visited: Vec<Option<Visited>>,
    next_number: u32,
    repeats: Vec<Repeat>,
    /// How long a round is to take, and how many places of threads there were when it began.
    round: Duration,
    places: usize,
    signals_in_round: u32,
    process: Process,
}

/// Who sends the signals.
#[derive(Clone, Copy)]
struct Process {
    pid: i32,
    uid: u32,
}

impl Process {
    fn current() -> Self {
        // SAFETY: getpid and getuid take nothing and cannot fail.
        unsafe { Self { pid: libc::getpid(), uid: libc::getuid() } }
    }
}

impl Sampler {
    fn new(config: WallConfig) -> Self {
        Self {
            config,
            started_ns: monotonic_ns(),
            visited: Vec::new(),
            next_number: 0,
            repeats: Vec::new(),
            round: config.interval,
            places: 0,
            signals_in_round: 0,
            process: Process::current(),
        }
    }

    fn run(mut self, stop: &Stop) {
        let mut round = Vec::new();
        let mut visits_due = 0.0;
        let mut last = Instant::now();
        loop {
            if round.is_empty() {
                self.begin_round(&mut round);
            }
            // At random, not in step with what the application does at intervals.
            let tick = self.tick().mul_f64(0.5 + (random() % 1024) as f64 / 1024.0);
            if stop.comes_within(tick) {
                return;
            }
            let elapsed = last.elapsed();
            last = Instant::now();
            visits_due += self.places as f64 * elapsed.as_secs_f64() / self.round.as_secs_f64();
            let visits = (visits_due as usize).min(round.len());
            visits_due = (visits_due - visits as f64).min(BATCH);
            for record in round.drain(round.len() - visits..) {
                self.visit(record);
            }
            REPEATS.lock().append(&mut self.repeats);
        }
    }

    /// How long from one batch to the next.
    fn tick(&self) -> Duration {
        let batch = self.round.mul_f64((BATCH / self.places.max(1) as f64).min(1.0));
        batch.max(SHORTEST_TICK.min(self.round))
    }

    /// Plans a round: the places of all threads, and how long it takes.
    fn begin_round(&mut self, round: &mut Vec<&'static ThreadRecord>) {
        for record in all_records() {
            let place = record.index.load(Ordering::Relaxed) as usize;
            if place >= self.visited.len() {
                self.visited.resize(place + 1, None);
            }
            if record.state() == RecordState::Armed || self.visited[place].is_some() {
                round.push(record);
            }
        }
        self.places = round.len();
        let signals = f64::from(std::mem::take(&mut self.signals_in_round));
        let least_s = (round.len() as f64 / VISITS_PER_S).max(signals / SIGNALS_PER_S);
        let interval = self.config.interval * STRETCHES.of(Engine::Wall);
        self.round = interval.max(Duration::from_secs_f64(least_s));
        if self.round > interval {
            count(&COUNTS.long_rounds);
        }
    }

    fn visit(&mut self, record: &'static ThreadRecord) {
        let (index, generation) =
            (record.index.load(Ordering::Relaxed), record.generation.load(Ordering::Relaxed));
        let now_ns = monotonic_ns();
        // A place that nobody had before would have been visited a round ago.
        let a_round_ago_ns = now_ns.saturating_sub(self.round.as_nanos() as u64).max(self.started_ns);
        let fresh = Visited {
            generation,
            empty_rounds: 0,
            at_ns: now_ns,
            asked: 0,
            asked_at_ns: 0,
            interval: 0,
            confirms: false,
            idle_cpu_ns: None,
            run: RunAccount::default(),
        };
        let place = &mut self.visited[index as usize];
        let visited = place.get_or_insert(Visited { at_ns: a_round_ago_ns, ..fresh });
        let elapsed_ns = now_ns.saturating_sub(visited.at_ns);
        visited.at_ns = now_ns;
        if record.state() != RecordState::Armed {
            visited.empty_rounds += 1;
            // Threads take the lowest places that are free: this one was needed for a crowd that has gone.
            if visited.empty_rounds > MOST_EMPTY_ROUNDS {
                *place = None;
            }
            return;
        }
        visited.empty_rounds = 0;
        let tid = record.os_tid.load(Ordering::Relaxed);
        let Some(cpu_ns) = cpu_time_of(tid) else { return };
        count(&COUNTS.visits);
        if visited.generation != generation {
            *visited = fresh;
        }
        let account = &record.wall;
        let is_taken = account.taken.load(Ordering::Acquire) == visited.asked;
        if visited.asked != 0 && !is_taken && now_ns.saturating_sub(visited.asked_at_ns) < LOST_AFTER_NS {
            // Under way: it will stand for this time too.
            account.due_ns.fetch_add(elapsed_ns, Ordering::AcqRel);
            let is_runnable = account.is_runnable.load(Ordering::Relaxed);
            let is_runnable = visited.run.goes_on(cpu_ns, elapsed_ns, is_runnable);
            account.is_runnable.store(is_runnable, Ordering::Relaxed);
            return;
        }
        if visited.asked != 0 && !is_taken {
            count(&COUNTS.signals_lost);
        }
        let interval = INTERVAL.load(Ordering::Acquire);
        let seems_idle = is_taken
            && visited.asked != 0
            && visited.interval == interval
            && account.was_waiting.load(Ordering::Relaxed)
            && match visited.idle_cpu_ns {
                Some(idle_cpu_ns) => cpu_ns == idle_cpu_ns,
                None => cpu_ns - account.cpu_ns.load(Ordering::Relaxed) < WAY_BACK_NS,
            };
        // On its way back the thread may as well have gone to wait elsewhere: it is believed when it was found twice.
        if seems_idle && (visited.confirms || visited.idle_cpu_ns.is_some()) {
            visited.idle_cpu_ns = Some(cpu_ns);
            count(&COUNTS.idle);
            if account.is_unwanted.load(Ordering::Relaxed) {
                return;
            }
            let number = visited.asked;
            self.repeats.push(Repeat { number, ns: elapsed_ns, monotonic_ns: now_ns, index, generation });
            return;
        }
        // In a new interval it is asked again, and is where it was.
        let was_still = visited.idle_cpu_ns == Some(cpu_ns);
        self.next_number = self.next_number.wrapping_add(1).max(1);
        let was_waiting = is_taken && account.was_waiting.load(Ordering::Relaxed);
        // Where the kernel does not say it is taken to run.
        let since_asked_ns = now_ns.saturating_sub(visited.asked_at_ns);
        let run_delay_ns = visited.run.run_delay_of(tid, cpu_ns, since_asked_ns);
        let is_runnable = run_delay_ns.is_some_and(|run_delay_ns| {
            visited.run.ask(cpu_ns, run_delay_ns, elapsed_ns, was_waiting, random())
        });
        account.is_runnable.store(is_runnable, Ordering::Relaxed);
        *visited = Visited {
            asked: self.next_number,
            asked_at_ns: now_ns,
            interval,
            confirms: seems_idle || was_still,
            idle_cpu_ns: None,
            ..*visited
        };
        account.due_ns.fetch_add(elapsed_ns, Ordering::AcqRel);
        account.asked.store(self.next_number, Ordering::Release);
        self.signals_in_round += 1;
        count(&COUNTS.signals);
        if let Err(error) = send(record, self.config.signal, self.process) {
            log::debug!("a thread cannot be signalled: {error}");
        }
    }
}

/// The part of a `siginfo_t` that a queued signal has (include/uapi/asm-generic/siginfo.h, `_rt`).
#[repr(C)]
struct QueuedInfo {
    signo: i32,
    errno: i32,
    code: i32,
    _pad: i32,
    pid: i32,
    uid: u32,
    value: u64,
}

fn send(record: &ThreadRecord, signal: i32, process: Process) -> io::Result<()> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let Process { pid, uid } = process;
    let value = SignalToken::of(record).0;
    let queued = QueuedInfo { signo: signal, errno: 0, code: libc::SI_QUEUE, _pad: 0, pid, uid, value };
    // SAFETY: a siginfo_t is larger than this part, which begins it, and is aligned for it.
    unsafe { info.as_mut_ptr().cast::<QueuedInfo>().write(queued) };
    let tid = record.os_tid.load(Ordering::Relaxed);
    // SAFETY: the kernel reads one siginfo_t.
    let result = unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, info.as_mut_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
