//! Wall-clock sampling: a thread of the profiler visits all threads in turn, and signals those that may have
//! moved since the last visit.
//!
//! At each visit a thread is credited with the time since its place was last visited, in whichever state it
//! is. So all samples together stand for the time that passed, times the number of threads. Threads occupy a
//! place one after the other. So a thread that lives shorter than a round is met as seldom as its life is
//! short, and then stands for the threads that occupied the place and were not met. A thread whose CPU clock
//! has not moved since its last sample is still where that sample found it. It is not woken, and the time is
//! added to that sample ([`Repeat`]), also in later intervals of profiles. The CPU time that a thread uses to
//! return to waiting, after a sample, is enough to begin to wait elsewhere. So the kernel is asked where the
//! thread waits (`waiting_place`), and the thread is sampled once more if the place differs.
//!
//! The cost is bounded for any number of threads. A round takes as long as [`VISITS_PER_S`] demands, if that
//! is longer than the interval. Of the threads that are to be asked in the round, [`SIGNALS_PER_S`] and the
//! budget limit how many are asked, at random; the sample of each stands for the threads before it that were
//! not asked. At the end of an interval of profiles the time up to then is attributed as well ([`settle`]),
//! so that each interval's sum equals its threads' time, however long a round is.
//!
//! | Module | Duty |
//! |---|---|
//! | `sampler` | the rounds: which threads are visited, asked for a sample, and credited with time |
//! | `signals` | the signal that asks a thread for a sample |
//! | `waiting_place` | the place where a thread waits, as the kernel reports it |
//! | `counts` | the counts of the wall-clock sampler |

mod counts;
mod sampler;
mod signals;
mod waiting_place;

use std::sync::atomic::Ordering;
use std::time::Instant;

use parking_lot::Mutex;

pub use self::counts::{COUNTS, WallCounts};
pub use self::sampler::{Repeat, SIGNALS_PER_S, VISITS_PER_S, WallConfig};

use otlpprof_signal::clock::monotonic_ns;
use otlpprof_signal::delivery::install_handler;
use otlpprof_signal::thread_table::record;
use otlpprof_signal::wall::SESSION;

use self::sampler::WallSampler;
use super::cpu::StartError;
use super::forked_child::FORKED;
use super::handler_wait::HandlerWait;
use super::handler_watch::{self, Watch, WatchGuard};
use super::stoppable_thread::{Stop, StoppableThread};
use super::thread_records::for_each_thread;

static REPEATS: Mutex<Vec<Repeat>> = Mutex::new(Vec::new());
/// The sampler of the running session.
static SAMPLER: Mutex<Option<WallSampler>> = Mutex::new(None);

/// Takes the repeats that have been recorded so far.
pub fn take_repeats() -> Vec<Repeat> {
    std::mem::take(&mut REPEATS.lock())
}

/// Gives back time whose sample is no longer known. The thread is asked for another sample, which stands for
/// that time.
pub fn return_time(repeat: &Repeat) {
    if let Some(record) = record(repeat.index)
        && record.generation.load(Ordering::Relaxed) == repeat.generation
    {
        record.wall.due_ns.fetch_add(repeat.ns, Ordering::AcqRel);
        record.wall.is_forgotten.store(true, Ordering::Release);
    }
}

/// Ends the interval of profiles at `end_ns` by CLOCK_MONOTONIC. The caller has drained the interval's
/// samples. The repeats until then can be taken afterwards. Returns the numbers of the samples that may be
/// repeated in the next interval.
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

/// A running session. Dropping it stops the session.
pub struct WallSampling {
    sampler: Option<StoppableThread>,
    _watched: WatchGuard,
}

/// Starts to sample the threads that `sampling::cpu` knows, whose session must outlast this one.
pub fn start(config: &WallConfig) -> Result<WallSampling, StartError> {
    install_handler(config.signal)?;
    REPEATS.lock().clear();
    let now_ns = monotonic_ns();
    for_each_thread(|record| record.wall.reset(now_ns));
    SESSION.open(config.signal);
    *SAMPLER.lock() = Some(WallSampler::new(*config));
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
    Ok(WallSampling { sampler: Some(sampler), _watched: watched })
}

impl Drop for WallSampling {
    fn drop(&mut self) {
        SESSION.close();
        drop(self.sampler.take());
        if FORKED.load(Ordering::Relaxed) {
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

/// Makes rounds until the thread is to stop.
fn run(stop: &Stop) {
    let mut last = Instant::now();
    loop {
        let Some(tick) = SAMPLER.lock().as_mut().map(WallSampler::next_tick) else { return };
        if stop.is_stopped_within(tick) {
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
