//! The rounds of the wall-clock sampler: chooses the threads that are visited and those that are asked for a
//! sample, and attributes their time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use otlpprof_core::engine::Engine;
use otlpprof_core::thread::{RecordState, ThreadRecord, WallAccount};
use otlpprof_signal::clock::monotonic_ns;
use otlpprof_signal::sample::SETUP;
use otlpprof_signal::stretch::STRETCHES;

use super::counts::{COUNTS, count};
use super::signals::Sender;
use super::waiting_place::{WaitingState, whereabouts};
use crate::clock::cpu_time_of;
use crate::random::random;
use crate::run_delay::RunAccount;
use crate::thread_records::all_records;

/// The configuration of wall-clock sampling, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallConfig {
    /// The time between two visits of a thread, if the budgets allow it.
    pub interval: Duration,
    /// The signal that is sent to a thread.
    pub signal: i32,
    /// The longest duration of a round over all threads, unless there are too many threads for it.
    pub longest_round: Duration,
}

/// Time that a thread has spent at the place where its last sample found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// The sample's number.
    pub number: u32,
    /// The time in ns.
    pub ns: u64,
    /// CLOCK_MONOTONIC, in ns, at the visit.
    pub monotonic_ns: u64,
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// The largest number of threads that are visited in a second: a visit takes some 300 ns.
pub const VISITS_PER_S: f64 = 20_000.0;
/// The largest number of signals that are sent in a second: with the thread's way in and out of the kernel a
/// signal takes some 10 µs.
pub const SIGNALS_PER_S: f64 = 4_000.0;
/// The number of threads that are visited at one time.
const BATCH: f64 = 8.0;
/// The shortest time between two batches.
const SHORTEST_TICK: Duration = Duration::from_millis(1);
/// A place that was empty in more rounds than this is not visited until a thread occupies it.
const MOST_EMPTY_ROUNDS: u32 = 16;
/// The largest CPU time of a thread, in ns, from the end of a handler until it waits again.
const WAY_BACK_NS: i64 = 20_000;
/// After this time, in ns, a signal that has not been handled is considered lost or blocked, and another one
/// is sent.
const LOST_AFTER_NS: u64 = 1_000_000_000;

/// The sampler's state for one place in the table of threads, and for the thread that occupies it.
#[derive(Clone, Copy, Debug)]
struct Visited {
    generation: u32,
    /// The number of rounds in which the place was empty, up to now.
    empty_rounds: u32,
    /// The time of the last visit, in ns.
    at_ns: u64,
    /// The number of the last sample that the thread was asked for; 0 if there is none.
    asked: u32,
    asked_at_ns: u64,
    /// The last interval in which that sample can be repeated.
    interval: u32,
    /// Whether the thread was asked although it had not moved before, as far as could be determined.
    confirms: bool,
    /// The thread's CPU clock, in ns, when it was found to have returned to waiting.
    idle_cpu_ns: Option<i64>,
    /// The thread's time, in ns, since it was asked, for which samples of other threads stand.
    stood_for_ns: u64,
    /// The thread's account of running and of waiting for a processor.
    run: RunAccount,
}

impl Visited {
    /// Returns the state of a thread that has not been asked yet, in a place that was visited at `at_ns`.
    fn new(generation: u32, at_ns: u64) -> Self {
        Self {
            generation,
            empty_rounds: 0,
            at_ns,
            asked: 0,
            asked_at_ns: 0,
            interval: 0,
            confirms: false,
            idle_cpu_ns: None,
            stood_for_ns: 0,
            run: RunAccount::default(),
        }
    }

    /// Returns the time since the last visit, in ns, and makes `now_ns` the time of the last visit.
    fn take_elapsed(&mut self, now_ns: u64) -> u64 {
        let elapsed_ns = now_ns.saturating_sub(self.at_ns);
        self.at_ns = self.at_ns.max(now_ns);
        elapsed_ns
    }

    /// The state of the request for the thread's last sample.
    fn request(&self, account: &WallAccount, now_ns: u64) -> Request {
        let is_taken = account.taken.load(Ordering::Acquire) == self.asked;
        match () {
            () if self.asked == 0 => Request::None,
            () if is_taken => Request::Taken,
            () if now_ns.saturating_sub(self.asked_at_ns) < LOST_AFTER_NS => Request::UnderWay,
            () => Request::Lost,
        }
    }

    /// Lets the sample that is under way stand for the time since the last visit too.
    fn extend_request(&mut self, visit: &Visit) {
        let account = &visit.record.wall;
        account.due_ns.fetch_add(visit.elapsed_ns, Ordering::AcqRel);
        let is_runnable = account.is_runnable.load(Ordering::Relaxed);
        let is_runnable = self.run.extend(visit.cpu_ns, visit.elapsed_ns, is_runnable);
        account.is_runnable.store(is_runnable, Ordering::Relaxed);
    }

    /// Notes that the thread is asked for a sample. Returns whether the sample is to be reported as a wait
    /// for a processor. `was_waiting`: the last sample found the thread waiting.
    fn begin_request(&mut self, visit: &Visit, was_waiting: bool) -> bool {
        let since_asked_ns = visit.now_ns.saturating_sub(self.asked_at_ns);
        let run_delay_ns = self.run.run_delay_of(visit.tid, visit.cpu_ns, since_asked_ns);
        let stands_for_ns = visit.elapsed_ns + self.stood_for_ns;
        // If the kernel does not report the wait, the thread is taken to be running.
        run_delay_ns.is_some_and(|run_delay_ns| {
            self.run.request(visit.cpu_ns, run_delay_ns, stands_for_ns, was_waiting, random())
        })
    }

    /// Whether the thread's CPU clock has stood still since it was found to have returned to waiting.
    fn is_still(&self, visit: &Visit) -> bool {
        self.idle_cpu_ns == Some(visit.cpu_ns)
    }

    /// Whether the thread, which has taken its last sample while it waited, has used no more CPU time since
    /// than it takes to wait again.
    fn seems_idle(&self, visit: &Visit) -> bool {
        let account = &visit.record.wall;
        account.was_waiting.load(Ordering::Relaxed)
            && (self.is_still(visit) || visit.cpu_ns - account.cpu_ns.load(Ordering::Relaxed) < WAY_BACK_NS)
    }

    /// Whether a thread that seems idle waits where its last sample found it. After its handler the thread
    /// may have gone to wait elsewhere. It is woken once more to check that only if the kernel reports
    /// another place: a system call that waits may fail each time it is interrupted.
    fn still_waits(&self, visit: &Visit) -> bool {
        let is_found_twice = self.confirms && self.idle_cpu_ns.is_none();
        self.is_still(visit)
            || is_found_twice
            || whereabouts(visit.tid, &visit.record.wall) != WaitingState::Other
    }
}

/// The state of the last request for a sample of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// The thread has not been asked.
    None,
    /// The thread has not taken the sample yet.
    UnderWay,
    /// The thread has not taken the sample for so long that the signal is lost or blocked.
    Lost,
    /// The thread has taken the sample.
    Taken,
}

/// A thread at the time of a visit.
struct Visit {
    record: &'static ThreadRecord,
    generation: u32,
    tid: i32,
    now_ns: u64,
    /// The time since the last visit, in ns.
    elapsed_ns: u64,
    /// The thread's CPU clock, in ns.
    cpu_ns: i64,
}

pub(super) struct WallSampler {
    config: WallConfig,
    sender: Sender,
    started_ns: u64,
    /// The number of the current interval of profiles.
    interval: u32,
    /// The state of each place, by index.
    visited: Vec<Option<Visited>>,
    next_number: u32,
    pub(super) repeats: Vec<Repeat>,
    /// Time, in ns, of threads that were not asked because there are too many. The next sample stands for it.
    unasked_ns: u64,
    /// The places that are yet to be visited in this round.
    round: Vec<&'static ThreadRecord>,
    /// The planned duration of the round. `places` is the number of threads' places when the round began.
    round_time: Duration,
    places: usize,
    /// The fraction of the chosen threads that are asked.
    chance: f64,
    /// The number of threads that were to be asked in this round.
    wanted: u32,
    visits_due: f64,
}

impl WallSampler {
    pub(super) fn new(config: WallConfig) -> Self {
        Self {
            config,
            sender: Sender::new(config.signal),
            started_ns: monotonic_ns(),
            interval: 1,
            visited: Vec::new(),
            next_number: 0,
            repeats: Vec::new(),
            unasked_ns: 0,
            round: Vec::new(),
            round_time: config.interval,
            places: 0,
            chance: 1.0,
            wanted: 0,
            visits_due: 0.0,
        }
    }

    /// Returns the time to wait before the next batch of visits. Begins a round if the last one is over.
    pub(super) fn next_tick(&mut self) -> Duration {
        if self.round.is_empty() {
            self.begin_round();
        }
        let batch = self.round_time.mul_f64((BATCH / self.places.max(1) as f64).min(1.0));
        let tick = batch.max(SHORTEST_TICK.min(self.round_time));
        // At random, so that visits are not in step with the application's periodic work.
        tick.mul_f64(0.5 + (random() % 1024) as f64 / 1024.0)
    }

    /// Visits as many places as are due after the time `elapsed`.
    pub(super) fn visit_due(&mut self, elapsed: Duration) {
        self.visits_due += self.places as f64 * elapsed.as_secs_f64() / self.round_time.as_secs_f64();
        let visits = (self.visits_due as usize).min(self.round.len());
        self.visits_due = (self.visits_due - visits as f64).min(BATCH);
        for _ in 0..visits {
            if let Some(record) = self.round.pop() {
                self.visit(record);
            }
        }
    }

    /// Plans a round: the places of all threads, the duration of the round, and the fraction of threads that
    /// are asked.
    ///
    /// A round fits into an interval of profiles, even if the profiler's budget asks for a longer one. The
    /// rest of the reduction is made by asking fewer threads.
    fn begin_round(&mut self) {
        let mut fresh = 0_u32;
        for record in all_records() {
            let place = record.index.load(Ordering::Relaxed) as usize;
            if place >= self.visited.len() {
                self.visited.resize(place + 1, None);
            }
            let is_known = self.visited[place].is_some();
            if record.state() == RecordState::Armed || is_known {
                self.round.push(record);
                fresh += u32::from(!is_known);
            }
        }
        self.places = self.round.len();
        let WallConfig { interval, longest_round, .. } = self.config;
        let wanted_pace = interval.saturating_mul(STRETCHES.of(Engine::Wall));
        let visits_time = Duration::from_secs_f64(self.places as f64 / VISITS_PER_S);
        self.round_time = wanted_pace.min(longest_round).max(interval).max(visits_time);
        if visits_time > interval {
            count(&COUNTS.long_rounds);
        }
        let wanted = std::mem::take(&mut self.wanted).max(fresh).max(1);
        let round_s = self.round_time.as_secs_f64();
        let by_budget = round_s / wanted_pace.as_secs_f64();
        self.chance = by_budget.min(SIGNALS_PER_S * round_s / f64::from(wanted)).min(1.0);
    }

    /// Visits a place, which the round has found occupied or known.
    fn visit(&mut self, record: &'static ThreadRecord) {
        let place = record.index.load(Ordering::Relaxed) as usize;
        let generation = record.generation.load(Ordering::Relaxed);
        let now_ns = monotonic_ns();
        let born_ns = record.wall.born_ns.load(Ordering::Relaxed).max(self.started_ns);
        let mut visited =
            self.visited[place].unwrap_or_else(|| Visited::new(generation, born_ns.min(now_ns)));
        let elapsed_ns = visited.take_elapsed(now_ns);
        if record.state() == RecordState::Armed {
            visited.empty_rounds = 0;
            let tid = record.os_tid.load(Ordering::Relaxed);
            if let Some(cpu_ns) = cpu_time_of(tid) {
                let visit = Visit { record, generation, tid, now_ns, elapsed_ns, cpu_ns };
                self.visit_thread(&visit, &mut visited);
            }
        } else {
            visited.empty_rounds += 1;
        }
        // Threads occupy the lowest free places, so a place that stays empty was needed only for a temporary
        // crowd of threads.
        let is_needed = visited.empty_rounds <= MOST_EMPTY_ROUNDS;
        self.visited[place] = is_needed.then_some(visited);
    }

    /// Attributes the time since a thread's last visit: to the sample that is under way, to the last sample
    /// if the thread still waits there, to samples of other threads, or to a sample that it is asked for now.
    fn visit_thread(&mut self, visit: &Visit, visited: &mut Visited) {
        count(&COUNTS.visits);
        if visited.generation != visit.generation {
            *visited = Visited::new(visit.generation, visit.now_ns);
        }
        let account = &visit.record.wall;
        let request = visited.request(account, visit.now_ns);
        match request {
            Request::UnderWay => return visited.extend_request(visit),
            Request::Lost => count(&COUNTS.signals_lost),
            Request::None | Request::Taken => {}
        }
        if account.is_forgotten.swap(false, Ordering::AcqRel) {
            visited.interval = 0;
        }
        let seems_idle =
            request == Request::Taken && visited.interval == self.interval && visited.seems_idle(visit);
        if seems_idle && visited.still_waits(visit) {
            return self.repeat_sample(visit, visited);
        }
        self.wanted += 1;
        if self.leaves_out_one() {
            return self.leave_unasked(visit, visited);
        }
        self.ask(visit, visited, request, seems_idle);
    }

    /// Repeats the last sample of a thread that still waits where that sample found it.
    fn repeat_sample(&mut self, visit: &Visit, visited: &mut Visited) {
        visited.idle_cpu_ns = Some(visit.cpu_ns);
        count(&COUNTS.idle);
        if visit.record.wall.is_unwanted.load(Ordering::Relaxed) {
            return;
        }
        self.repeats.push(Repeat {
            number: visited.asked,
            ns: visit.elapsed_ns,
            monotonic_ns: visit.now_ns,
            index: visit.record.index.load(Ordering::Relaxed),
            generation: visit.generation,
        });
    }

    /// Decides, at random, whether a thread that would be asked is left out for the sake of the budget.
    fn leaves_out_one(&self) -> bool {
        self.chance < 1.0 && (random() >> 11) as f64 >= self.chance * (1_u64 << 53) as f64
    }

    /// Lets samples of other threads stand for the time of a thread that is not asked.
    fn leave_unasked(&mut self, visit: &Visit, visited: &mut Visited) {
        count(&COUNTS.unasked);
        let unasked_ns = unasked(visit.record, visited, visit.elapsed_ns);
        visited.stood_for_ns += unasked_ns;
        self.unasked_ns += unasked_ns;
    }

    /// Asks the thread for a sample. `confirms`: the thread has not moved since the last one, as far as that
    /// could be determined.
    fn ask(&mut self, visit: &Visit, visited: &mut Visited, last: Request, confirms: bool) {
        let account = &visit.record.wall;
        self.next_number = self.next_number.wrapping_add(1).max(1);
        let was_waiting = last == Request::Taken && account.was_waiting.load(Ordering::Relaxed);
        let is_runnable = visited.begin_request(visit, was_waiting);
        account.is_runnable.store(is_runnable, Ordering::Relaxed);
        *visited = Visited {
            asked: self.next_number,
            asked_at_ns: visit.now_ns,
            interval: self.interval,
            confirms,
            idle_cpu_ns: None,
            stood_for_ns: 0,
            ..*visited
        };
        let mut due_ns = visit.elapsed_ns;
        if !account.is_unwanted.load(Ordering::Relaxed) {
            due_ns += std::mem::take(&mut self.unasked_ns);
        }
        account.due_ns.fetch_add(due_ns, Ordering::AcqRel);
        account.asked.store(self.next_number, Ordering::Release);
        count(&COUNTS.signals);
        self.sender.ask(visit.record);
    }

    /// Ends the interval of profiles: attributes the time until `end_ns` to the interval's samples, and
    /// begins the next interval. Returns the numbers of the samples that may be repeated in the next
    /// interval.
    pub(super) fn settle(&mut self, end_ns: u64) -> Vec<u32> {
        let (mut sampled, mut repeatable) = (Vec::new(), Vec::new());
        let next_interval = self.interval.wrapping_add(1).max(1);
        for record in all_records() {
            let (index, generation) =
                (record.index.load(Ordering::Relaxed), record.generation.load(Ordering::Relaxed));
            let place = index as usize;
            if place >= self.visited.len() {
                self.visited.resize(place + 1, None);
            }
            let is_armed = record.state() == RecordState::Armed;
            let born_ns = record.wall.born_ns.load(Ordering::Relaxed).max(self.started_ns);
            let visited = match &mut self.visited[place] {
                Some(visited) => visited,
                none if is_armed && born_ns < end_ns => none.insert(Visited::new(generation, born_ns)),
                None => continue,
            };
            let elapsed_ns = visited.take_elapsed(end_ns);
            if !is_armed {
                continue;
            }
            if visited.generation != generation {
                *visited = Visited::new(generation, visited.at_ns);
            }
            let account = &record.wall;
            let repeat = |ns| Repeat {
                number: visited.asked,
                ns,
                monotonic_ns: end_ns.saturating_sub(1),
                index,
                generation,
            };
            let is_taken = account.taken.load(Ordering::Acquire) == visited.asked;
            if visited.asked == 0 || visited.interval != self.interval {
                self.unasked_ns += unasked(record, visited, elapsed_ns);
            } else if is_taken {
                if account.is_unwanted.load(Ordering::Relaxed) {
                    continue;
                }
                self.repeats.push(repeat(elapsed_ns));
                sampled.push(repeat(0));
                if visited.idle_cpu_ns.is_some() {
                    repeatable.push(visited.asked);
                    visited.interval = next_interval;
                }
            } else {
                account.due_ns.fetch_add(elapsed_ns, Ordering::AcqRel);
                // A thread that is visited for the first time, or that seems to wait, may handle the signal
                // at any later time. A thread that runs handles it soon, and its next sample stands for its
                // own time.
                if account.taken.load(Ordering::Acquire) == 0 || visited.confirms {
                    self.unasked_ns += account.due_ns.swap(0, Ordering::AcqRel);
                }
            }
        }
        self.spread_unasked(sampled);
        self.interval = next_interval;
        repeatable
    }

    /// Lets the samples of threads that were visited in this interval stand for the threads that were not,
    /// each for an equal share.
    fn spread_unasked(&mut self, sampled: Vec<Repeat>) {
        let Ok(count) = u64::try_from(sampled.len()) else { return };
        let Some(each_ns) = self.unasked_ns.checked_div(count) else { return };
        self.unasked_ns %= count;
        if each_ns > 0 {
            self.repeats.extend(sampled.into_iter().map(|repeat| Repeat { ns: each_ns, ..repeat }));
        }
    }
}

/// Returns the part of a thread's time, in ns, that samples of other threads stand for, since the thread is
/// not asked now. If it is not known whether the thread is to be sampled at all, its own next sample stands
/// for its time.
fn unasked(record: &ThreadRecord, visited: &Visited, elapsed_ns: u64) -> u64 {
    if record.wall.is_unwanted.load(Ordering::Relaxed) {
        return 0;
    }
    if visited.asked == 0 && SETUP.filter.load(Ordering::Relaxed) {
        record.wall.due_ns.fetch_add(elapsed_ns, Ordering::AcqRel);
        return 0;
    }
    elapsed_ns
}
