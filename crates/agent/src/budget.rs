//! Keeps the profiler's own cost within a share of the processors' time. An engine that costs too much
//! samples less often (`signal::stretch`); its samples then weigh more, so that its sums stay true.
//!
//! Once a second the CPU time of all handlers, by engine, and that of the profiler's own threads is compared
//! with the CPU time that the process has used. Both are averaged over the recent past, so that the end of an
//! interval, where a profile is made and sent, is no overuse if the interval's mean is within the budget.
//! Over the budget, the engine that costs most has its stretch doubled, repeatedly, until the expected cost
//! is within the budget. If the cost has been well below the budget for a whole interval, the longest stretch
//! is halved.
//!
//! Some costs do not shrink with any stretch: the kernel's delivery of signals for clocks that keep their
//! pace, and the VM's events in which waits begin and virtual threads are mounted. They count against the
//! budget, and leave the engines less. A part of the budget is always left to the engines, since stretching
//! them further would cost samples and gain nothing. The thread that reads the JVM's recording is not
//! counted, since its cost depends on no engine.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use otlpprof_core::engine::Engine;
use otlpprof_core::memory::Memory;
use otlpprof_sampling::own_threads;
use otlpprof_signal::counters::{COUNTERS, CountByEngine};
use otlpprof_signal::safe_load::ProcessMemory;
use otlpprof_signal::stretch::STRETCHES;

use super::recording;

/// The time between two comparisons of cost and budget.
const PERIOD: Duration = Duration::from_secs(1);
/// The longest stretch: an engine takes at least one in this many samples.
const LONGEST_STRETCH: u32 = 4096;
/// The number of comparisons before the first that counts. Work done once at the start, such as compiling
/// unwind tables, cannot be made cheaper by sampling less.
const SETTLING: u32 = 2;
/// The mean is taken over this many intervals. With two of them it hardly matters whether an interval has
/// just ended.
const INTERVALS_OF_MEAN: u32 = 2;
/// The shortest and the longest time over which the mean is taken.
const TIMES_OF_MEAN: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(60)];
/// The least time for which the cost must have been well below the budget before a stretch is halved.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);
/// The cost is well below the budget if it is less than this part of it: it may double and still fit.
const WELL_BELOW: f64 = 0.4;
/// The part of the budget that is left to the engines, however high the costs are that no stretch reduces.
const LEAST_FOR_ENGINES: f64 = 0.25;
/// An engine whose samples need at most this part of the budget is not stretched: it can hardly be the cause
/// of the threads' time.
const WORTH_STRETCHING: f64 = 0.125;

/// The budget of a session.
pub(super) struct Budget {
    /// The share of the processors' time; `None`: no limit.
    share: Option<f64>,
    compared_at: Instant,
    before: Costs,
    comparisons: u32,
    stretcher: Stretcher,
    /// The longest stretch of each engine since the interval began.
    longest: [u32; Engine::COUNT],
    used: Used,
    has_warned: bool,
}

/// The CPU time that the profiler has used since the session began, without its handlers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    /// The profiler's threads, except the one that reads the recording.
    pub(super) threads_ns: u64,
    /// The thread that reads the recording.
    pub(super) recording_ns: u64,
    /// The kernel's time to deliver the profiler's signals: their number times the measured cost of one.
    pub(super) signals_ns: u64,
}

/// CPU time since the process began.
#[derive(Clone, Debug, Default)]
struct Costs {
    process_ns: u64,
    /// Time spent in samples, by engine.
    engines_ns: [u64; Engine::COUNT],
    signals: [u64; Engine::COUNT],
    /// Time spent in events that take no sample.
    events_ns: u64,
    /// CPU time of the profiler's threads, by kernel thread id.
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

    /// Returns the CPU time that the profiler's threads have used since `earlier`: first that of all others,
    /// then that of `readers`, which read the recording.
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
    /// A budget of `share` of one processor for each processor in use. It holds from now on, for profiles of
    /// this interval.
    pub(super) fn new(share: Option<f64>, interval: Duration) -> Self {
        for engine in Engine::ALL {
            STRETCHES.set(engine, 1);
        }
        Self {
            share,
            compared_at: Instant::now(),
            before: Costs::now(),
            comparisons: 0,
            stretcher: Stretcher::new(interval),
            longest: [1; Engine::COUNT],
            used: Used::default(),
            has_warned: false,
        }
    }

    /// Compares the profiler's cost with the budget, if it is time to. Returns whether the stretch of an
    /// engine has changed.
    pub(super) fn compare(&mut self) -> bool {
        let elapsed = self.compared_at.elapsed();
        if elapsed < PERIOD {
            return false;
        }
        self.compared_at = Instant::now();
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
            match engine.pace().slows_signals() {
                true => engines_ns[engine as usize] += signals_ns,
                false => fixed_ns += signals_ns,
            }
        }
        self.used.threads_ns += threads_ns;
        self.used.recording_ns += recording_ns;
        self.used.signals_ns += signals_ns.iter().sum::<u64>();
        let Some(share) = self.share else { return false };
        self.comparisons += 1;
        if self.comparisons <= SETTLING {
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
                "the profiler used {:.1} % of the processors' time, more than `budget`: engines now sample \
                 less often (the counters otlpprof.limit.* in profiles have the factors)",
                100.0 * share * mean.total_ns() / mean.allowed_ns
            );
        }
        next != stretches
    }

    /// Returns the longest stretch of each engine in the interval that ends now.
    pub(super) fn take_longest(&mut self) -> [u32; Engine::COUNT] {
        let current = Engine::ALL.map(|engine| STRETCHES.of(engine));
        std::mem::replace(&mut self.longest, current)
    }

    /// The longest stretch of each engine in the interval so far.
    pub(super) const fn longest(&self) -> [u32; Engine::COUNT] {
        self.longest
    }

    /// Returns the CPU time that the profiler has used since the session began.
    pub(super) const fn used(&self) -> Used {
        self.used
    }
}

/// Returns the time, in ns, that the kernel needs to interrupt a thread for a signal, to enter the handler
/// and to return. It is measured as the time of a load that faults, which takes the same path: an interrupt
/// by the processor, and a signal. Measured once, in some 100 microseconds.
fn signal_ns() -> u64 {
    /// An address in the first pages, where nothing is ever mapped.
    const NOWHERE: u64 = 0x1000;
    const LOADS: u32 = 8;
    static SIGNAL_NS: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *SIGNAL_NS.get_or_init(|| {
        // The shortest of several tries counts: the longer ones were interrupted themselves.
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

/// CPU time of one period, or a sum of faded periods.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// The part that shrinks when engines are stretched.
    engines_ns: [f64; Engine::COUNT],
    /// The time of the profiler's threads. They work on what engines sample, so their time is attributed to
    /// the engines in proportion.
    threads_ns: f64,
    /// The part that no stretch reduces.
    fixed_ns: f64,
    /// The time that the budget allows for all parts together.
    allowed_ns: f64,
}

impl Cost {
    fn total_ns(&self) -> f64 {
        self.engines_ns.iter().sum::<f64>() + self.threads_ns + self.fixed_ns
    }

    /// Adds `other` to `self` times `factor`, part by part.
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

    /// Returns the cost as it would have been with the stretches `to` instead of `from`.
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

/// Decides the stretches by the recent cost. Past costs fade. A past cost under another stretch is converted
/// to the cost that it would have been under the current one.
struct Stretcher {
    time_of_mean: Duration,
    /// The time for which the cost must have been well below the budget before a stretch is halved.
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

    /// Returns the stretches from now on, given the `cost` of the time `elapsed`, and the mean that they
    /// follow from.
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

/// Returns stretches with which the expected cost is within the budget, or as near to it as stretches can
/// bring it.
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
            stretches[*index] < LONGEST_STRETCH && expected_ns[*index] > WORTH_STRETCHING * cost.allowed_ns
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

/// Halves the longest stretch.
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
        // The threads' time is attributed in proportion to the engines' own.
        let stretches = longer(NONE, &Cost { threads_ns: 1_100.0, ..cost });
        assert_eq!(stretches[Engine::Alloc as usize], 16);
        assert_eq!(stretches[Engine::Cpu as usize], 1);
    }

    #[test]
    fn a_budget_that_cannot_be_kept_ends_at_the_longest_stretch() {
        let stretches = longer(NONE, &of_cpu_and_alloc(1e6, 10.0));
        assert_eq!(stretches[Engine::Cpu as usize], LONGEST_STRETCH);
        assert_eq!(stretches[Engine::Wall as usize], 1, "it costs nothing");
        assert_eq!(longer(NONE, &Cost { threads_ns: 100.0, ..of_cpu_and_alloc(0.0, 0.0) }), NONE);
    }

    /// Regression: where the threads alone exceeded the budget, engines were stretched to the longest.
    #[test]
    fn a_cheap_engine_is_not_stretched_for_the_cost_of_threads() {
        let cost = Cost { allowed_ns: 400.0, threads_ns: 2_000.0, ..of_cpu_and_alloc(300.0, 10.0) };
        let stretches = longer(NONE, &cost);
        assert_eq!(stretches[Engine::Cpu as usize], 8);
        assert_eq!(stretches[Engine::Alloc as usize], 1);
    }

    #[test]
    fn fixed_costs_reduce_the_engines_budget_but_leave_a_quarter() {
        let cost = Cost { allowed_ns: 400.0, ..of_cpu_and_alloc(0.0, 350.0) };
        assert_eq!(longer(NONE, &cost), NONE);
        for (fixed_ns, stretch) in [(100.0, 2), (250.0, 4), (1e9, 4)] {
            let stretches = longer(NONE, &Cost { fixed_ns, ..cost });
            assert_eq!(stretches[Engine::Alloc as usize], stretch, "{fixed_ns}");
        }
    }

    #[test]
    fn a_stretch_is_reduced_slowly_once_costs_are_low() {
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

    /// The cost of one second of a steady program. The engine's part depends on its stretch. The threads need
    /// `end_ns` in one second of ten, and nothing otherwise.
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

    /// Regression: the second in which an interval ended was judged alone, and engines were stretched for it
    /// again and again.
    #[test]
    fn the_cost_of_an_intervals_end_is_no_overuse_if_the_mean_is_within_the_budget() {
        // The mean is 15 of the allowed 20, with 60 in the second in which an interval ends.
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

    /// A storm leads to a stretch in the second in which it is seen, and one stretch is enough.
    #[test]
    fn cost_before_a_stretch_causes_no_second_stretch() {
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
        otlpprof_signal::fault::install().unwrap();
        // The bounds hold for the fastest exception and for the slowest emulated one.
        assert!((50..1_000_000).contains(&signal_ns()), "{}", signal_ns());
    }
}
