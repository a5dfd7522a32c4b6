//! Keeps what the profiler itself costs within a share of the processors' time: engines that cost too much sample more
//! seldom (`signal::stretch`), and what they then say is true of all the same.
//!
//! Each second the time of all handlers, by engine, and that of the profiler's own threads is set against the time that the
//! process has used. Over the budget, the engine that costs most is stretched to twice what it was, again and again until what
//! is to be expected is within it; well below it, the engine that is stretched most gets half of that back.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::core::record::Engine;
use crate::sampling::own_threads;
use crate::signal::counters::COUNTERS;
use crate::signal::stretch::STRETCHES;

/// How often it is looked.
const PERIOD: Duration = Duration::from_secs(1);
/// No engine samples more seldom than one in so many.
const MOST: u32 = 4096;
/// Looks before the first is believed: what is made once, like unwind tables, can be had at no other rate.
const SETTLING: u32 = 2;
/// Looks well below the budget before an engine gets something back.
const PATIENCE: u32 = 5;
/// What is well below: then it is still within it when it has doubled.
const WELL_BELOW: f64 = 0.4;

/// The budget of a session.
pub(super) struct Budget {
    /// The share of the processors' time; `None`: no limit.
    share: Option<f64>,
    looked: Instant,
    before: Costs,
    looks: u32,
    quiet_looks: u32,
    /// The longest stretch of each engine since the interval began.
    longest: [u32; Engine::COUNT],
    /// What the profiler's threads have used since the session began.
    threads_ns: u64,
    has_warned: bool,
}

/// CPU time since the process began.
#[derive(Clone, Debug, Default)]
struct Costs {
    process_ns: u64,
    handlers_ns: [u64; Engine::COUNT],
    /// Of the profiler's threads, by the kernel's id.
    threads_ns: HashMap<i32, u64>,
}

impl Costs {
    fn now() -> Self {
        Self {
            process_ns: own_threads::process_cpu_ns(),
            handlers_ns: Engine::ALL
                .map(|engine| COUNTERS.engine_ns[engine as usize].load(Ordering::Relaxed)),
            threads_ns: own_threads::cpu_times_ns(),
        }
    }

    /// What the profiler's threads have used since `earlier`.
    fn threads_ns_since(&self, earlier: &Self) -> u64 {
        let used = |(tid, ns): (&i32, &u64)| ns.saturating_sub(*earlier.threads_ns.get(tid).unwrap_or(&0));
        self.threads_ns.iter().map(used).sum()
    }
}

impl Budget {
    /// One of `share` of a processor for each processor that is used, from now on.
    pub(super) fn new(share: Option<f64>) -> Self {
        for engine in Engine::ALL {
            STRETCHES.set(engine, 1);
        }
        Self {
            share,
            looked: Instant::now(),
            before: Costs::now(),
            looks: 0,
            quiet_looks: 0,
            longest: [1; Engine::COUNT],
            threads_ns: 0,
            has_warned: false,
        }
    }

    /// Looks whether what the profiler costs is within the budget, if it is time to.
    pub(super) fn look(&mut self) {
        let elapsed = self.looked.elapsed();
        if elapsed < PERIOD {
            return;
        }
        self.looked = Instant::now();
        let now = Costs::now();
        let before = std::mem::replace(&mut self.before, now);
        let threads_ns = self.before.threads_ns_since(&before);
        self.threads_ns += threads_ns;
        let Some(share) = self.share else { return };
        self.looks += 1;
        if self.looks <= SETTLING {
            return;
        }
        let mut handlers_ns = [0; Engine::COUNT];
        for (cost, (now, before)) in
            handlers_ns.iter_mut().zip(self.before.handlers_ns.iter().zip(before.handlers_ns))
        {
            *cost = now.saturating_sub(before);
        }
        let used_ns = self.before.process_ns.saturating_sub(before.process_ns) as f64;
        let allowed_ns = share * used_ns.max(elapsed.as_nanos() as f64);
        let stretches = Engine::ALL.map(|engine| STRETCHES.of(engine));
        let cost_ns = handlers_ns.iter().sum::<u64>() + threads_ns;
        let next = if cost_ns as f64 > allowed_ns {
            self.quiet_looks = 0;
            longer(stretches, handlers_ns, threads_ns, allowed_ns)
        } else if (cost_ns as f64) < WELL_BELOW * allowed_ns {
            self.quiet_looks += 1;
            shorter(stretches, &mut self.quiet_looks)
        } else {
            self.quiet_looks = 0;
            stretches
        };
        for ((engine, stretch), longest) in Engine::ALL.into_iter().zip(next).zip(&mut self.longest) {
            STRETCHES.set(engine, stretch);
            *longest = stretch.max(*longest);
        }
        if next != stretches && !self.has_warned {
            self.has_warned = true;
            log::warn!(
                "the profiler used {:.1} % of the processors' time, more than `budget`: engines sample more seldom \
                 (otlpprof.limit.* in profiles say how much)",
                100.0 * share * cost_ns as f64 / allowed_ns
            );
        }
    }

    /// The longest stretch of each engine in the interval that ends now.
    pub(super) fn take_longest(&mut self) -> [u32; Engine::COUNT] {
        let current = Engine::ALL.map(|engine| STRETCHES.of(engine));
        std::mem::replace(&mut self.longest, current)
    }

    /// What the profiler's threads have used since the session began.
    pub(super) const fn threads_ns(&self) -> u64 {
        self.threads_ns
    }
}

/// Stretches with which the cost is to be expected within `allowed_ns`. The threads work for what engines sample, and so
/// their time is the engines', each by its part.
fn longer(
    stretches: [u32; Engine::COUNT],
    handlers_ns: [u64; Engine::COUNT],
    threads_ns: u64,
    allowed_ns: f64,
) -> [u32; Engine::COUNT] {
    let all_ns = handlers_ns.iter().sum::<u64>();
    if all_ns == 0 {
        return stretches;
    }
    let with_threads = 1.0 + threads_ns as f64 / all_ns as f64;
    let mut stretches = stretches;
    let mut expected_ns = handlers_ns.map(|ns| ns as f64 * with_threads);
    while expected_ns.iter().sum::<f64>() > allowed_ns {
        let can_be_longer = |index: &usize| stretches[*index] < MOST && expected_ns[*index] > 0.0;
        let costliest = (0..Engine::COUNT)
            .filter(can_be_longer)
            .max_by(|a, b| expected_ns[*a].total_cmp(&expected_ns[*b]));
        let Some(costliest) = costliest else { break };
        stretches[costliest] *= 2;
        expected_ns[costliest] /= 2.0;
    }
    stretches
}

/// Half of the longest stretch, when it has been quiet for long enough.
fn shorter(stretches: [u32; Engine::COUNT], quiet_looks: &mut u32) -> [u32; Engine::COUNT] {
    let mut stretches = stretches;
    if *quiet_looks >= PATIENCE
        && let Some(longest) = stretches.iter_mut().max().filter(|longest| **longest > 1)
    {
        *longest /= 2;
        *quiet_looks = 0;
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_cpu_and_alloc(cpu: u64, alloc: u64) -> [u64; Engine::COUNT] {
        let mut costs = [0; Engine::COUNT];
        costs[Engine::Cpu as usize] = cpu;
        costs[Engine::Alloc as usize] = alloc;
        costs
    }

    #[test]
    fn the_costliest_is_stretched_until_all_is_within_the_budget() {
        let stretches = longer([1; Engine::COUNT], of_cpu_and_alloc(100, 1_000), 0, 400.0);
        assert_eq!(stretches[Engine::Alloc as usize], 4);
        assert_eq!(stretches[Engine::Cpu as usize], 1);
        // The threads' time is in proportion to theirs.
        let stretches = longer([1; Engine::COUNT], of_cpu_and_alloc(100, 1_000), 1_100, 400.0);
        assert_eq!(stretches[Engine::Alloc as usize], 16);
        assert_eq!(stretches[Engine::Cpu as usize], 1);
    }

    #[test]
    fn a_budget_that_cannot_be_kept_ends_at_the_longest_stretch() {
        let stretches = longer([1; Engine::COUNT], of_cpu_and_alloc(1_000_000, 10), 0, 0.0);
        assert_eq!(stretches[Engine::Cpu as usize], MOST);
        assert_eq!(stretches[Engine::Wall as usize], 1, "it costs nothing");
        assert_eq!(longer([1; Engine::COUNT], of_cpu_and_alloc(0, 0), 100, 0.0), [1; Engine::COUNT]);
    }

    #[test]
    fn what_was_taken_is_given_back_slowly() {
        let mut stretches = [1; Engine::COUNT];
        stretches[Engine::Alloc as usize] = 4;
        let mut quiet_looks = PATIENCE - 1;
        assert_eq!(shorter(stretches, &mut quiet_looks), stretches);
        quiet_looks += 1;
        assert_eq!(shorter(stretches, &mut quiet_looks)[Engine::Alloc as usize], 2);
        assert_eq!(quiet_looks, 0);
        quiet_looks = PATIENCE;
        assert_eq!(shorter([1; Engine::COUNT], &mut quiet_looks), [1; Engine::COUNT]);
    }
}
