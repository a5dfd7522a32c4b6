//! Limits the samples per second of engines that sample single events. An excess of events is thinned
//! (`signal::stretch`) from the first excess event on, while the budget takes time to measure the cost.
//!
//! Time is divided into windows. The number of events in one window determines the stretch in the next: one
//! sample for so many events. If more events arrive than expected, the stretch is doubled within the window.
//! Which events are sampled, and for how much they stand, depends only on earlier events, so sums stay
//! unbiased for any sequence of events.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use otlpprof_core::engine::Engine;

const WINDOW_NS: u64 = 100_000_000;
const WINDOWS_IN_A_SECOND: u32 = 10;
/// The longest stretch.
const LONGEST_STRETCH: u32 = 1 << 20;

/// The limits of all engines.
pub struct RateLimits([RateLimit; Engine::COUNT]);

/// The limits of this process.
pub static LIMITS: RateLimits = RateLimits([const { RateLimit::new() }; Engine::COUNT]);

impl RateLimits {
    /// Limits the engine to `samples_per_second` from now on; `None` removes the limit.
    pub fn set(&self, engine: Engine, samples_per_second: Option<u32>) {
        if let Some(limit) = self.of(engine) {
            limit.set(samples_per_second);
        }
    }

    /// Returns the longest stretch of each engine since the last call.
    pub fn take_longest(&self) -> [u32; Engine::COUNT] {
        Engine::ALL.map(|engine| self.of(engine).map_or(1, RateLimit::take_longest))
    }

    /// The longest stretch of each engine since the last call of [`RateLimits::take_longest`].
    pub fn longest(&self) -> [u32; Engine::COUNT] {
        Engine::ALL.map(|engine| self.of(engine).map_or(1, |limit| limit.longest.load(Ordering::Relaxed)))
    }

    pub(super) fn of(&self, engine: Engine) -> Option<&RateLimit> {
        self.0.get(engine as usize)
    }
}

/// The limit of one engine. Threads may interleave between two steps of an operation; a window then has a few
/// samples more.
pub(super) struct RateLimit {
    /// The limit in samples per window; 0: no limit.
    most: AtomicU32,
    window_began_ns: AtomicU64,
    /// The events of this window, sampled or not.
    seen: AtomicU32,
    /// The samples of this window since the stretch was last increased.
    taken: AtomicU32,
    stretch: AtomicU32,
    longest: AtomicU32,
}

impl RateLimit {
    const fn new() -> Self {
        Self {
            most: AtomicU32::new(0),
            window_began_ns: AtomicU64::new(0),
            seen: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            stretch: AtomicU32::new(1),
            longest: AtomicU32::new(1),
        }
    }

    fn set(&self, samples_per_second: Option<u32>) {
        let most = samples_per_second
            .map_or(0, |samples| samples.checked_div(WINDOWS_IN_A_SECOND).unwrap_or(0).max(1));
        self.most.store(most, Ordering::Relaxed);
        for counter in [&self.seen, &self.taken] {
            counter.store(0, Ordering::Relaxed);
        }
        for stretch in [&self.stretch, &self.longest] {
            stretch.store(1, Ordering::Relaxed);
        }
    }

    pub(super) fn is_set(&self) -> bool {
        self.most.load(Ordering::Relaxed) != 0
    }

    /// Counts one event. Returns the stretch: one of so many such events is to be sampled.
    pub(super) fn stretch(&self, monotonic_ns: u64) -> u32 {
        let began_ns = self.window_began_ns.load(Ordering::Relaxed);
        let elapsed_ns = monotonic_ns.saturating_sub(began_ns);
        if elapsed_ns >= WINDOW_NS
            && self
                .window_began_ns
                .compare_exchange(began_ns, monotonic_ns, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            let seen = u64::from(self.seen.swap(0, Ordering::Relaxed));
            self.taken.store(0, Ordering::Relaxed);
            self.stretch_to(self.stretch_for(seen, elapsed_ns));
        }
        self.seen.fetch_add(1, Ordering::Relaxed);
        self.stretch.load(Ordering::Relaxed)
    }

    /// Returns the stretch for a window with events at the rate of `seen` in `elapsed_ns`.
    fn stretch_for(&self, seen: u64, elapsed_ns: u64) -> u32 {
        let most = u64::from(self.most.load(Ordering::Relaxed)).max(1);
        let expected = seen.saturating_mul(WINDOW_NS).checked_div(elapsed_ns).unwrap_or(0);
        if expected <= most {
            return 1;
        }
        // An eighth more than is expected, so that most windows need no increase of the stretch.
        let with_room = expected.saturating_add(expected.wrapping_shr(3));
        let stretch = with_room.checked_div(most).unwrap_or(0).saturating_add(1);
        u32::try_from(stretch).unwrap_or(LONGEST_STRETCH)
    }

    /// Counts one sample.
    pub(super) fn count_sample(&self) {
        let most = self.most.load(Ordering::Relaxed);
        let taken = self.taken.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        // The next increase is due after half as many samples. The first thread to see the limit reached
        // makes the increase.
        if taken >= most
            && self
                .taken
                .compare_exchange(taken, most.wrapping_shr(1), Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            self.stretch_to(self.stretch.load(Ordering::Relaxed).saturating_mul(2));
        }
    }

    fn stretch_to(&self, stretch: u32) {
        let stretch = stretch.min(LONGEST_STRETCH);
        self.stretch.store(stretch, Ordering::Relaxed);
        self.longest.fetch_max(stretch, Ordering::Relaxed);
    }

    fn take_longest(&self) -> u32 {
        self.longest.swap(self.stretch.load(Ordering::Relaxed), Ordering::Relaxed)
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    /// A source of events, with a clock and a random number generator.
    struct Source {
        now_ns: u64,
        random: u64,
    }

    impl Source {
        fn new(seed: u64) -> Self {
            Self { now_ns: 1_000_000_000, random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
        }

        fn next_random(&mut self) -> u64 {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            self.random >> 11
        }

        /// Generates events for a second at this rate, and samples one in as many as the stretch at random.
        /// Returns the number of samples, and the sum of the events that they stand for.
        fn second(&mut self, limit: &RateLimit, rate: u64) -> (u64, f64) {
            let (mut taken, mut sum) = (0, 0.0);
            for _ in 0..rate {
                self.now_ns += 1_000_000_000 / rate;
                let stretch = limit.stretch(self.now_ns);
                if self.next_random().is_multiple_of(u64::from(stretch)) {
                    taken += 1;
                    sum += f64::from(stretch);
                    limit.count_sample();
                }
            }
            (taken, sum)
        }
    }

    fn limit(samples_per_second: u32) -> RateLimit {
        let limit = RateLimit::new();
        limit.set(Some(samples_per_second));
        limit
    }

    #[test]
    fn at_most_the_limit_is_sampled_and_stands_for_all() {
        let (limit, mut source) = (limit(1_000), Source::new(1));
        for rate in [1_000_000, 1_000_000, 10_000, 1_500, 300_000] {
            let (taken, sum) = source.second(&limit, rate);
            // The first window of a storm has a few more samples.
            assert!((400..=1_700).contains(&taken), "{taken} of {rate}");
            // Some six standard deviations.
            let ratio = sum / rate as f64;
            assert!((ratio - 1.0).abs() < 0.25, "{ratio} of {rate}");
        }
        assert!(limit.take_longest() > 500);
    }

    /// The mean of many short runs is nearer to the true value than any single run: samples stand for the
    /// omitted events, and for nothing more.
    #[test]
    fn sums_are_right_on_average_however_the_rate_changes() {
        let rates = [50_000, 500, 5_000, 100_000];
        let mut sums = [0.0; 4];
        for seed in 1..=100 {
            let (limit, mut source) = (limit(500), Source::new(seed));
            for (sum, rate) in sums.iter_mut().zip(rates) {
                *sum += source.second(&limit, rate).1 / (100.0 * rate as f64);
            }
        }
        // The standard deviation of a second is some 2 %, since it begins with the stretch of the previous
        // rate.
        assert!(sums.iter().all(|mean| (mean - 1.0_f64).abs() < 0.08), "{sums:?}");
        let mean = sums.iter().sum::<f64>() / 4.0;
        assert!((mean - 1.0).abs() < 0.03, "{sums:?}");
    }

    #[test]
    fn everything_within_the_limit_is_sampled() {
        let (limit, mut source) = (limit(1_000), Source::new(1));
        assert_eq!([900, 400].map(|rate| source.second(&limit, rate)), [(900, 900.0), (400, 400.0)]);
        assert_eq!(limit.take_longest(), 1);
        // The stretch returns to 1 when a storm is over.
        source.second(&limit, 100_000);
        assert!(limit.take_longest() > 50);
        let (taken, _) = source.second(&limit, 500);
        assert!(taken > 400, "{taken}");
    }

    #[test]
    fn a_new_limit_starts_without_the_state_of_the_last() {
        let limits = RateLimits([const { RateLimit::new() }; Engine::COUNT]);
        limits.set(Engine::Lock, Some(10));
        Source::new(1).second(limits.of(Engine::Lock).unwrap(), 100_000);
        assert!(limits.take_longest()[Engine::Lock as usize] > 1_000);
        limits.set(Engine::Lock, None);
        assert!(!limits.of(Engine::Lock).unwrap().is_set());
        assert_eq!(limits.take_longest(), [1; Engine::COUNT]);
    }
}
