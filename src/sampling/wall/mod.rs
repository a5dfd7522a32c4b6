//! Wall-clock sampling: a thread goes round all threads, and signals those that may have moved since they were last seen.
//!
//! At each visit a thread is credited with the time since its place was visited before, whichever state it is in: what all
//! samples stand for is the time that passed, times the threads. A place is what threads have one after the other, so a
//! thread that lives shorter than a round is met as seldom as its life is short, and then stands for the others that were
//! there and were not met. A thread whose CPU clock has not moved since its last sample is where that
//! sample found it: it is not woken, and the time goes to that sample ([`Repeat`]), in later intervals of profiles too. What
//! it uses to go back to waiting, behind a sample, is enough to come to wait elsewhere: the kernel is asked where it waits
//! (`waiting_place`), and the thread once more where that is not the place.
//!
//! The cost is bounded however many threads there are. A round takes as long as [`VISITS_PER_S`] wants, if that is longer
//! than the interval. Of the threads that are to be asked in it so many are, at random, as [`SIGNALS_PER_S`] and the budget
//! allow: the sample of each stands for those before it that were not. At the end of an interval of profiles the time up to
//! then is given out as well ([`settle`]), so that each interval's sum is that of its threads' time, however long a round.

mod sampler;
mod signals;
mod waiting_place;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

pub use self::sampler::{SIGNALS_PER_S, VISITS_PER_S};

use self::sampler::Sampler;
use super::cpu::StartError;
use super::handler_wait::HandlerWait;
use super::handler_watch::{self, Watch, Watched};
use super::stoppable_thread::{Stop, StoppableThread};
use super::thread_records::for_each_thread;
use super::threads;
use crate::core::counts::counts;
use crate::signal::delivery::install_handler;
use crate::signal::sample::monotonic_ns;
use crate::signal::thread_table::record;
use crate::signal::wall::{SESSION, WallSampleFn};

/// Wall-clock sampling, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallConfig {
    /// Between two visits of a thread, if the budgets allow.
    pub interval: Duration,
    /// The signal by which a thread is told.
    pub signal: i32,
    /// The longest that a round over all threads may take, unless there are too many for it.
    pub longest_round: Duration,
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
    /// Counts of the sampler since the process began.
    WallCounts {
        /// Threads looked at.
        visits,
        /// Signals sent.
        signals,
        /// Visits at which the thread was where it had been.
        idle,
        /// Visits at which a thread was to be signalled and was not, since there are too many: others stand for it.
        unasked,
        /// Signals that were not handled in time, and sent again.
        signals_lost,
        /// Rounds that took longer than the interval, since there are too many threads.
        long_rounds,
        /// Times that somebody else's handler was found in the place of ours.
        handler_replaced,
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

static REPEATS: Mutex<Vec<Repeat>> = Mutex::new(Vec::new());
/// The sampler of the running session.
static SAMPLER: Mutex<Option<Sampler>> = Mutex::new(None);

/// Takes what has been seen so far.
pub fn take_repeats() -> Vec<Repeat> {
    std::mem::take(&mut REPEATS.lock())
}

/// Gives back time whose sample nobody knows any more: the thread is asked for another, which stands for it.
pub fn give_back(repeat: &Repeat) {
    if let Some(record) = record(repeat.index)
        && record.generation.load(Ordering::Relaxed) == repeat.generation
    {
        record.wall.due_ns.fetch_add(repeat.ns, Ordering::AcqRel);
        record.wall.is_forgotten.store(true, Ordering::Release);
    }
}

/// The interval of profiles ends at `end_ns` by CLOCK_MONOTONIC, and its samples have been drained. What has been seen until
/// then is there to be taken; the numbers are those of samples that may be repeated in the next interval.
pub fn settle(end_ns: u64) -> Vec<u32> {
    match &mut *SAMPLER.lock() {
        Some(sampler) => {
            let repeatable = sampler.settle(end_ns);
            REPEATS.lock().append(&mut sampler.repeats);
            repeatable
        }
        None => Vec::new(),
    }
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
    let now_ns = monotonic_ns();
    for_each_thread(|record| record.wall.reset(now_ns));
    SESSION.open(config.signal, sample);
    *SAMPLER.lock() = Some(Sampler::new(*config));
    let sampler = StoppableThread::start("otlpprof-wall", run);
    let sampler = sampler.inspect_err(|_| {
        SESSION.close();
        *SAMPLER.lock() = None;
    })?;
    let watched = handler_watch::begin(Watch {
        signal: config.signal,
        samples: "wall-clock samples",
        option: "wall.signal",
        replaced: &COUNTS.handler_replaced,
    });
    log::debug!("wall-clock sampling every {:?}", config.interval);
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
        settle(monotonic_ns());
        *SAMPLER.lock() = None;
    }
}

/// Goes round until it is to stop.
fn run(stop: &Stop) {
    let mut last = Instant::now();
    loop {
        let Some(tick) = SAMPLER.lock().as_mut().map(Sampler::next_tick) else { return };
        if stop.comes_within(tick) {
            return;
        }
        let elapsed = last.elapsed();
        last = Instant::now();
        let mut sampler = SAMPLER.lock();
        let Some(sampler) = &mut *sampler else { return };
        sampler.visit_due(elapsed);
        REPEATS.lock().append(&mut sampler.repeats);
    }
}
