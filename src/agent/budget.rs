//! Keeps what the profiler itself costs within a share of the processors' time: engines that cost too much sample more
//! seldom (`signal::stretch`), and what they then say is true of all the same.
//!
//! Each second the time of all handlers, by engine, and that of the profiler's own threads is set against the time that the
//! process has used, in the mean of the last while: an interval's end, where a profile is made and sent, is no overuse if the
//! interval's mean is none. Over the budget, the engine that costs most is stretched to twice what it was, again and again
//! until what is to be expected is within it; well below it for a whole interval, the engine that is stretched most gets half
//! of that back.
//!
//! What no stretch makes less counts as well, and leaves the engines less: what the kernel needs to deliver the signals of
//! clocks that go on at their pace, and the VM's events in which waits begin and virtual threads are mounted. But it leaves
//! them a part: to stretch them further would cost samples and gain nothing. Not within the budget is the thread that reads the
//! JVM's recording, which depends on no engine.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::recording;
use crate::core::memory::Memory;
use crate::core::record::Engine;
use crate::sampling::own_threads;
use crate::signal::counters::{COUNTERS, CountByEngine};
use crate::signal::safe_load::ProcessMemory;
use crate::signal::stretch::STRETCHES;

/// How often it is looked.
const PERIOD: Duration = Duration::from_secs(1);
/// No engine samples more seldom than one in so many.
const MOST: u32 = 4096;
/// Looks before the first is believed: what is made once, like unwind tables, can be had at no other rate.
const SETTLING: u32 = 2;
/// The mean is one of so many intervals: then it hardly differs whether the last end of one has just been.
const INTERVALS_OF_MEAN: u32 = 2;
/// The shortest and longest time of which the mean is taken.
const TIMES_OF_MEAN: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(60)];
/// The least time that it has been well below the budget when an engine gets something back.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);
/// What is well below: then it is still within it when it has doubled.
const WELL_BELOW: f64 = 0.4;
/// The part of the budget that engines have whatever costs what no stretch makes less.
const LEAST_FOR_ENGINES: f64 = 0.25;
/// An engine whose samples themselves need no more of the budget than this is left alone: the threads' time is hardly for it.
const WORTH_STRETCHING: f64 = 0.125;

/// The budget of a session.
pub(super) struct Budget {
    /// The share of the processors' time; `None`: no limit.
    share: Option<f64>,
    looked: Instant,
    before: Costs,
    looks: u32,
    stretcher: Stretcher,
    /// The longest stretch of each engine since the interval began.
    longest: [u32; Engine::COUNT],
    used: Used,
    has_warned: bool,
}

/// What the profiler has used since the session began, besides its handlers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    /// Its threads, but that which reads the recording.
    pub(super) threads_ns: u64,
    /// That one.
    pub(super) recording_ns: u64,
    /// What the kernel needed to deliver its signals, by what one costs.
    pub(super) signals_ns: u64,
}

/// CPU time since the process began.
#[derive(Clone, Debug, Default)]
struct Costs {
    process_ns: u64,
    /// Of samples, by engine.
    engines_ns: [u64; Engine::COUNT],
    signals: [u64; Engine::COUNT],
    /// Of events that take no sample.
    events_ns: u64,
    /// Of the profiler's threads, by the kernel's id.
    threads_ns: HashMap<i32, u64>,
}

impl Costs {
    fn now() -> Self {
        let of_engines = |counts: &CountByEngine| Engine::ALL.map(|engine| counts.of(engine));
        Self {
            process_ns: own_threads::process_cpu_ns(),
            engines_ns: of_engines(&COUNTERS.engine_ns),
            signals: of_engines(&COUNTERS.engine_signals),
            events_ns: COUNTERS.event_ns.load(Ordering::Relaxed),
            threads_ns: own_threads::cpu_times_ns(),
        }
    }

    /// What the profiler's threads have used since `earlier`, those that read the recording apart.
    fn threads_ns_since(&self, earlier: &Self, readers: &[i32]) -> [u64; 2] {
        let mut used = [0; 2];
        for (tid, ns) in &self.threads_ns {
            let since = ns.saturating_sub(*earlier.threads_ns.get(tid).unwrap_or(&0));
            used[usize::from(readers.contains(tid))] += since;
        }
        used
    }
}

impl Budget {
    /// One of `share` of a processor for each processor that is used, from now on, in profiles of such intervals.
    pub(super) fn new(share: Option<f64>, interval: Duration) -> Self {
        for engine in Engine::ALL {
            STRETCHES.set(engine, 1);
        }
        Self {
            share,
            looked: Instant::now(),
            before: Costs::now(),
            looks: 0,
            stretcher: Stretcher::new(interval),
            longest: [1; Engine::COUNT],
            used: Used::default(),
            has_warned: false,
        }
    }

    /// Looks whether what the profiler costs is within the budget, if it is time to. Returns whether an engine's stretch is
    /// another one now.
    pub(super) fn look(&mut self) -> bool {
        let elapsed = self.looked.elapsed();
        if elapsed < PERIOD {
            return false;
        }
        self.looked = Instant::now();
        let now = Costs::now();
        let before = std::mem::replace(&mut self.before, now);
        let now = &self.before;
        let [threads_ns, recording_ns] =
            now.threads_ns_since(&before, &own_threads::tids_of(recording::THREAD_NAME));
        let mut engines_ns = Engine::ALL
            .map(|engine| now.engines_ns[engine as usize].saturating_sub(before.engines_ns[engine as usize]));
        let signals_ns = Engine::ALL.map(|engine| {
            let signals = now.signals[engine as usize].saturating_sub(before.signals[engine as usize]);
            signals * signal_ns()
        });
        let mut fixed_ns = now.events_ns.saturating_sub(before.events_ns);
        for engine in Engine::ALL {
            let signals_ns = signals_ns[engine as usize];
            match engine {
                // Who is visited more seldom is signalled more seldom; so are events with longer periods.
                Engine::Wall | Engine::Event => engines_ns[engine as usize] += signals_ns,
                _ => fixed_ns += signals_ns,
            }
        }
        self.used.threads_ns += threads_ns;
        self.used.recording_ns += recording_ns;
        self.used.signals_ns += signals_ns.iter().sum::<u64>();
        let Some(share) = self.share else { return false };
        self.looks += 1;
        if self.looks <= SETTLING {
            return false;
        }
        let used_ns = now.process_ns.saturating_sub(before.process_ns) as f64;
        let cost = Cost {
            engines_ns: engines_ns.map(|ns| ns as f64),
            threads_ns: threads_ns as f64,
            fixed_ns: fixed_ns as f64,
            allowed_ns: share * used_ns.max(elapsed.as_nanos() as f64),
        };
        let stretches = Engine::ALL.map(|engine| STRETCHES.of(engine));
        let (next, mean) = self.stretcher.next(stretches, &cost, elapsed);
        for ((engine, stretch), longest) in Engine::ALL.into_iter().zip(next).zip(&mut self.longest) {
            STRETCHES.set(engine, stretch);
            *longest = stretch.max(*longest);
        }
        if next != stretches && !self.has_warned {
            self.has_warned = true;
            log::warn!(
                "the profiler used {:.1} % of the processors' time, more than `budget`: engines sample more seldom \
                 (otlpprof.limit.* in profiles say how much)",
                100.0 * share * mean.total_ns() / mean.allowed_ns
            );
        }
        next != stretches
    }

    /// The longest stretch of each engine in the interval that ends now.
    pub(super) fn take_longest(&mut self) -> [u32; Engine::COUNT] {
        let current = Engine::ALL.map(|engine| STRETCHES.of(engine));
        std::mem::replace(&mut self.longest, current)
    }

    /// What the profiler has used since the session began.
    pub(super) const fn used(&self) -> Used {
        self.used
    }
}

/// What the kernel needs to interrupt a thread for a signal, to begin the handler and to go back: as much as for a load that
/// fails, which is interrupted by the processor and goes on by a signal of its own. Measured once, in some 100 microseconds.
fn signal_ns() -> u64 {
    /// In the first pages, where nothing is ever mapped.
    const NOWHERE: u64 = 0x1000;
    const LOADS: u32 = 8;
    static SIGNAL_NS: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *SIGNAL_NS.get_or_init(|| {
        // The best of some: others are interrupted themselves.
        let tries = (0..8).map(|_| {
            let start = Instant::now();
            for _ in 0..LOADS {
                black_box(ProcessMemory.load_u64(black_box(NOWHERE)));
            }
            start.elapsed().as_nanos() as u64 / u64::from(LOADS)
        });
        tries.min().unwrap_or(0)
    })
}

/// CPU time of a while.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// What engines need less of when they are stretched.
    engines_ns: [f64; Engine::COUNT],
    /// They work for what engines sample, and so their time is the engines', each by its part.
    threads_ns: f64,
    /// What no stretch makes less.
    fixed_ns: f64,
    /// What all that may be.
    allowed_ns: f64,
}

impl Cost {
    fn total_ns(&self) -> f64 {
        self.engines_ns.iter().sum::<f64>() + self.threads_ns + self.fixed_ns
    }

    /// Each part of both.
    fn plus(&self, other: &Self, factor: f64) -> Self {
        let mut engines_ns = self.engines_ns;
        for (ns, other) in engines_ns.iter_mut().zip(other.engines_ns) {
            *ns = *ns * factor + other;
        }
        Self {
            engines_ns,
            threads_ns: self.threads_ns * factor + other.threads_ns,
            fixed_ns: self.fixed_ns * factor + other.fixed_ns,
            allowed_ns: self.allowed_ns * factor + other.allowed_ns,
        }
    }

    /// What it would have been with other stretches.
    fn with_stretches(&self, from: [u32; Engine::COUNT], to: [u32; Engine::COUNT]) -> Self {
        let mut engines_ns = self.engines_ns;
        for ((ns, from), to) in engines_ns.iter_mut().zip(from).zip(to) {
            *ns *= f64::from(from) / f64::from(to);
        }
        let (before_ns, after_ns) = (self.engines_ns.iter().sum::<f64>(), engines_ns.iter().sum::<f64>());
        let ratio = if before_ns > 0.0 { after_ns / before_ns } else { 1.0 };
        Self { engines_ns, threads_ns: self.threads_ns * ratio, ..*self }
    }
}

/// Decides by what has been used lately. Sums of the past fade; what was used at another stretch is kept as what it would have
/// been at the current one.
struct Stretcher {
    time_of_mean: Duration,
    /// How long it is well below the budget before an engine gets something back.
    patience: Duration,
    past: Cost,
    quiet: Duration,
}

impl Stretcher {
    fn new(interval: Duration) -> Self {
        let [shortest, longest] = TIMES_OF_MEAN;
        Self {
            time_of_mean: interval.saturating_mul(INTERVALS_OF_MEAN).clamp(shortest, longest),
            patience: interval.clamp(LEAST_PATIENCE, longest),
            past: Cost::default(),
            quiet: Duration::ZERO,
        }
    }

    /// The stretches from now on, when `cost` was used in the last while; and the sums that say so.
    fn next(
        &mut self,
        stretches: [u32; Engine::COUNT],
        cost: &Cost,
        elapsed: Duration,
    ) -> ([u32; Engine::COUNT], Cost) {
        let faded = (-elapsed.as_secs_f64() / self.time_of_mean.as_secs_f64()).exp();
        let mean = self.past.plus(cost, faded);
        let is_quiet = mean.total_ns() < WELL_BELOW * mean.allowed_ns;
        self.quiet = if is_quiet { self.quiet + elapsed } else { Duration::ZERO };
        let next = if mean.total_ns() > mean.allowed_ns {
            longer(stretches, &mean)
        } else if self.quiet >= self.patience {
            self.quiet = Duration::ZERO;
            shorter(stretches)
        } else {
            stretches
        };
        self.past = mean.with_stretches(stretches, next);
        (next, mean)
    }
}

/// Stretches with which the cost is to be expected within the budget, or as near to it as stretches get.
fn longer(stretches: [u32; Engine::COUNT], cost: &Cost) -> [u32; Engine::COUNT] {
    let all_ns = cost.engines_ns.iter().sum::<f64>();
    if all_ns <= 0.0 {
        return stretches;
    }
    let allowed_ns = (cost.allowed_ns - cost.fixed_ns).max(LEAST_FOR_ENGINES * cost.allowed_ns);
    let with_threads = 1.0 + cost.threads_ns / all_ns;
    let mut stretches = stretches;
    let mut expected_ns = cost.engines_ns;
    while expected_ns.iter().sum::<f64>() * with_threads > allowed_ns {
        let can_be_longer = |index: &usize| {
            stretches[*index] < MOST && expected_ns[*index] > WORTH_STRETCHING * cost.allowed_ns
        };
        let costliest = (0..Engine::COUNT)
            .filter(can_be_longer)
            .max_by(|a, b| expected_ns[*a].total_cmp(&expected_ns[*b]));
        let Some(costliest) = costliest else { break };
        stretches[costliest] *= 2;
        expected_ns[costliest] /= 2.0;
    }
    stretches
}

/// Half of the longest stretch.
fn shorter(stretches: [u32; Engine::COUNT]) -> [u32; Engine::COUNT] {
    let mut stretches = stretches;
    if let Some(longest) = stretches.iter_mut().max().filter(|longest| **longest > 1) {
        *longest /= 2;
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [u32; Engine::COUNT] = [1; Engine::COUNT];

    fn of_cpu_and_alloc(cpu: f64, alloc: f64) -> Cost {
        let mut cost = Cost::default();
        cost.engines_ns[Engine::Cpu as usize] = cpu;
        cost.engines_ns[Engine::Alloc as usize] = alloc;
        cost
    }

    #[test]
    fn the_costliest_is_stretched_until_all_is_within_the_budget() {
        let cost = Cost { allowed_ns: 400.0, ..of_cpu_and_alloc(100.0, 1_000.0) };
        let stretches = longer(NONE, &cost);
        assert_eq!(stretches[Engine::Alloc as usize], 4);
        assert_eq!(stretches[Engine::Cpu as usize], 1);
        // The threads' time is in proportion to theirs.
        let stretches = longer(NONE, &Cost { threads_ns: 1_100.0, ..cost });
        assert_eq!(stretches[Engine::Alloc as usize], 16);
        assert_eq!(stretches[Engine::Cpu as usize], 1);
    }

    #[test]
    fn a_budget_that_cannot_be_kept_ends_at_the_longest_stretch() {
        let stretches = longer(NONE, &of_cpu_and_alloc(1e6, 10.0));
        assert_eq!(stretches[Engine::Cpu as usize], MOST);
        assert_eq!(stretches[Engine::Wall as usize], 1, "it costs nothing");
        assert_eq!(longer(NONE, &Cost { threads_ns: 100.0, ..of_cpu_and_alloc(0.0, 0.0) }), NONE);
    }

    /// Regression: where the threads alone needed more than the budget, engines were stretched to the longest.
    #[test]
    fn an_engine_that_needs_little_is_not_stretched_for_what_threads_need() {
        let cost = Cost { allowed_ns: 400.0, threads_ns: 2_000.0, ..of_cpu_and_alloc(300.0, 10.0) };
        let stretches = longer(NONE, &cost);
        assert_eq!(stretches[Engine::Cpu as usize], 8);
        assert_eq!(stretches[Engine::Alloc as usize], 1);
    }

    #[test]
    fn what_no_stretch_makes_less_takes_of_the_budget_but_not_all() {
        let cost = Cost { allowed_ns: 400.0, ..of_cpu_and_alloc(0.0, 350.0) };
        assert_eq!(longer(NONE, &cost), NONE);
        for (fixed_ns, stretch) in [(100.0, 2), (250.0, 4), (1e9, 4)] {
            let stretches = longer(NONE, &Cost { fixed_ns, ..cost });
            assert_eq!(stretches[Engine::Alloc as usize], stretch, "{fixed_ns}");
        }
    }

    #[test]
    fn what_was_taken_is_given_back_slowly() {
        let mut stretcher = Stretcher::new(Duration::from_secs(1));
        let mut stretches = NONE;
        stretches[Engine::Alloc as usize] = 4;
        let quiet = Cost { allowed_ns: 1_000.0, ..of_cpu_and_alloc(0.0, 100.0) };
        let mut given_back = Vec::new();
        for second in 1..=12 {
            let (next, _) = stretcher.next(stretches, &quiet, PERIOD);
            if next != stretches {
                given_back.push((second, next[Engine::Alloc as usize]));
            }
            stretches = next;
        }
        assert_eq!(given_back, [(5, 2), (10, 1)]);
        assert_eq!(shorter(NONE), NONE);
    }

    /// What a program of steady work costs in each second: the engine, by its stretch, and the threads, for a second in ten
    /// many times as much as otherwise.
    fn steady(second: u32, stretch: u32, engine_ns: f64, end_ns: f64) -> Cost {
        let threads_ns = if second.is_multiple_of(10) { end_ns } else { 0.0 };
        Cost { threads_ns, allowed_ns: 20.0, ..of_cpu_and_alloc(engine_ns / f64::from(stretch), 0.0) }
    }

    /// The stretch of CPU samples in each second.
    fn stretches_of(engine_ns: f64, end_ns: f64) -> Vec<u32> {
        let mut stretcher = Stretcher::new(Duration::from_secs(10));
        let mut stretches = NONE;
        let of_second = |second| {
            let cost = steady(second, stretches[Engine::Cpu as usize], engine_ns, end_ns);
            stretches = stretcher.next(stretches, &cost, PERIOD).0;
            stretches[Engine::Cpu as usize]
        };
        (1..=600).map(of_second).collect()
    }

    /// Regression: the second in which an interval ended was looked at alone, and engines were stretched for it again and
    /// again.
    #[test]
    fn the_end_of_an_interval_is_no_overuse_where_the_mean_is_none() {
        // A mean of 15 of 20, with 60 in the second of an interval's end.
        assert_eq!(stretches_of(9.0, 51.0), [1; 600]);
    }

    #[test]
    fn the_periods_of_a_steady_program_stay_steady() {
        for engine_ns in [5.0, 12.0, 18.0, 19.9, 25.0, 33.0, 70.0, 500.0, 1e6] {
            for end_ns in [0.0, 30.0, 60.0] {
                let stretches = stretches_of(engine_ns, end_ns);
                let changes = stretches[60..].windows(2).filter(|pair| pair[0] != pair[1]).count();
                assert_eq!(changes, 0, "{engine_ns} {end_ns}: {stretches:?}");
            }
        }
    }

    /// A storm is answered in the second in which it is seen, and one answer is enough.
    #[test]
    fn what_was_used_before_a_stretch_is_not_held_against_it() {
        let mut stretcher = Stretcher::new(Duration::from_secs(10));
        let storm = Cost { allowed_ns: 20.0, ..of_cpu_and_alloc(0.0, 80.0) };
        let (stretches, _) = stretcher.next(NONE, &storm, PERIOD);
        assert_eq!(stretches[Engine::Alloc as usize], 4);
        for _ in 0..100 {
            let cost = Cost { allowed_ns: 20.0, ..of_cpu_and_alloc(0.0, 20.0) };
            assert_eq!(stretcher.next(stretches, &cost, PERIOD).0, stretches);
        }
    }

    #[test]
    fn a_signal_has_a_cost() {
        crate::signal::fault::install().unwrap();
        // From the fastest exception to the slowest of emulated ones.
        assert!((50..1_000_000).contains(&signal_ns()), "{}", signal_ns());
    }
}
