//! The stretch of each engine: the factor by which it samples more seldom than was asked for, so that the
//! profiler keeps to its budget.
//!
//! Samples of a clock are postponed: a thread's periods add up until there are as many as the stretch, and
//! one sample stands for all of them (`signal::cpu`, `sampling::wall`). Of single events, such as an
//! allocation or a contended monitor, one in as many as the stretch is sampled, at random, and stands for the
//! others ([`thin`]). The same happens where more events arrive than an engine may sample in a second
//! (`signal::rate_limit`). For Java's allocations the VM stretches its interval (`agent::engines`), for perf
//! events the kernel does (`signal::event`).

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use otlpprof_core::engine::{Engine, Pace};

use super::clock::monotonic_ns;
use super::counters::COUNTERS;
use super::rate_limit::LIMITS;

/// The stretch of each engine; 1: the engine samples as often as was asked for.
pub struct Stretches([AtomicU32; Engine::COUNT]);

/// The stretches of this process.
pub static STRETCHES: Stretches = Stretches([const { AtomicU32::new(1) }; Engine::COUNT]);

impl Stretches {
    /// The stretch of an engine.
    pub fn of(&self, engine: Engine) -> u32 {
        self.0.get(engine as usize).map_or(1, |stretch| stretch.load(Ordering::Relaxed)).max(1)
    }

    /// From now on the engine samples `stretch` times more seldom than was asked for.
    pub fn set(&self, engine: Engine, stretch: u32) {
        if let Some(place) = self.0.get(engine as usize) {
            place.store(stretch.max(1), Ordering::Relaxed);
        }
    }
}

/// Returns the values of an event that is sampled and stands for others that are not. Returns `None` for an
/// event that is not sampled, and counts it.
pub fn thin(engine: Engine, values: [f64; 2]) -> Option<[f64; 2]> {
    // Events of a stretched source stand for more already. Only a rate limit thins them.
    let mut stretch = if engine.pace() == Pace::Source { 1 } else { STRETCHES.of(engine) };
    let limit = LIMITS.of(engine).filter(|limit| limit.is_set());
    let now_ns = monotonic_ns();
    if let Some(limit) = limit {
        stretch = stretch.max(limit.stretch(now_ns));
    }
    if stretch == 1 {
        limit.inspect(|limit| limit.count_sample());
        return Some(values);
    }
    let chance = AMOUNTS.get(engine as usize)?.chance(engine.amount(values), stretch);
    if !is_chosen(chance, now_ns) {
        COUNTERS.samples_thinned.add(engine, 1);
        return None;
    }
    limit.inspect(|limit| limit.count_sample());
    Some(values.map(|value| value / chance))
}

/// The mean of the amounts of an engine's events, as the bits of an f64.
struct MeanAmount(AtomicU64);

static AMOUNTS: [MeanAmount; Engine::COUNT] = [const { MeanAmount(AtomicU64::new(0)) }; Engine::COUNT];

impl MeanAmount {
    /// Returns the chance of an event to be sampled. The chance is one in `stretch` on average and grows with
    /// the event's amount, so that a large event is neither lost nor reported as many times its size. It is
    /// at least half of the mean chance, so that counts stay accurate.
    fn chance(&self, amount: f64, stretch: u32) -> f64 {
        let before = f64::from_bits(self.0.load(Ordering::Relaxed));
        let mean = if before > 0.0 { before + (amount - before) / 64.0 } else { amount };
        // Threads may overwrite each other's mean: the mean of some of the events is good enough.
        self.0.store(mean.to_bits(), Ordering::Relaxed);
        let relative = if mean > 0.0 { amount / mean } else { 1.0 };
        ((0.5 + 0.5 * relative) / f64::from(stretch)).min(1.0)
    }
}

/// Whether an event with this chance is chosen. `monotonic_ns` is the source of randomness: it differs from
/// event to event.
fn is_chosen(chance: f64, monotonic_ns: u64) -> bool {
    // The finalizer of Splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
    // 2014), so that neighbouring times get independent results.
    let mut mixed = monotonic_ns;
    mixed = (mixed ^ mixed.wrapping_shr(30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed.wrapping_shr(27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed.wrapping_shr(31);
    (mixed as f64) < chance * 2_f64.powi(64)
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    #[test]
    fn events_are_chosen_by_their_chance() {
        for chance in [1.0, 0.5, 1.0 / 7.0, 1.0 / 64.0] {
            for step_ns in [1, 1_000, 100_003] {
                let chosen = (0..100_000_u64).filter(|i| is_chosen(chance, i * step_ns)).count();
                // Five standard deviations of the smallest count.
                let ratio = chosen as f64 / (100_000.0 * chance);
                assert!((ratio - 1.0).abs() < 0.13, "{chance} {step_ns}: {ratio}");
            }
        }
    }

    #[test]
    fn chosen_events_stand_for_all_and_large_amounts_are_always_chosen() {
        let mean = MeanAmount(AtomicU64::new(0));
        let (mut counted, mut summed, mut chosen, mut large) = (0.0, 0.0, 0, 0);
        let (mut all_sum, mut monotonic_ns) = (0.0, 0_u64);
        for i in 0..200_000_u64 {
            let amount = if i % 1_000 == 0 { 1_000_000.0 } else { 100.0 };
            all_sum += amount;
            monotonic_ns += 977;
            let chance = mean.chance(amount, 16);
            if is_chosen(chance, monotonic_ns) {
                counted += 1.0 / chance;
                summed += amount / chance;
                chosen += 1;
                large += u32::from(amount > 100.0);
            }
        }
        assert!((counted / 200_000.0 - 1.0).abs() < 0.1, "{counted}");
        assert!((summed / all_sum - 1.0_f64).abs() < 0.1, "{summed} of {all_sum}");
        assert!(chosen < 200_000 / 10, "{chosen}");
        assert!(large > 190, "{large} of 200");
    }

    #[test]
    fn an_engine_has_its_own_stretch() {
        let stretches = Stretches([const { AtomicU32::new(1) }; Engine::COUNT]);
        stretches.set(Engine::Lock, 8);
        stretches.set(Engine::Wait, 0);
        assert_eq!(
            Engine::ALL.map(|engine| stretches.of(engine)).iter().sum::<u32>(),
            7 + Engine::COUNT as u32
        );
        assert_eq!(stretches.of(Engine::Lock), 8);
    }
}
