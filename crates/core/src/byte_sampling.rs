//! Samples a stream of bytes at random points. Allocations are sampled in this way.
//!
//! The distances between the points are distributed exponentially with the interval as their mean. An
//! allocation of `s` bytes contains at least one point with the probability `p = 1 - exp(-s / interval)`, so
//! each allocation that contains a point stands for `1 / p` allocations of its size. Sums are then unbiased
//! for any mix of sizes, of small objects and of large arrays.

use std::sync::atomic::{AtomicU64, Ordering};

/// Returns the numbers of bytes and allocations that a sampled allocation of `size` bytes stands for.
#[inline]
pub fn estimate(size: u64, interval: u64) -> [f64; 2] {
    let allocations = 1.0 / probability(size, interval);
    [size as f64 * allocations, allocations]
}

/// Returns the probability that an allocation of `size` bytes contains a point.
fn probability(size: u64, interval: u64) -> f64 {
    if interval <= 1 || size == 0 { 1.0 } else { -(-(size as f64) / interval as f64).exp_m1() }
}

/// Thins samples at `interval` to samples at `longer_interval`. Whether an allocation of `size` bytes,
/// sampled with `interval`, is to be kept; it is kept with the probability that is right for its size.
/// `random` is any number.
pub fn is_sampled_at_longer_interval(size: u64, interval: u64, longer_interval: u64, random: u64) -> bool {
    let share = probability(size, longer_interval) / probability(size, interval);
    ((random >> 11) as f64) < share * (1_u64 << 53) as f64
}

/// Returns the number of bytes up to the next point: at least 1, and always 1 if every allocation is to be
/// sampled. `random` is any number. Rounding up does not change the probability that a distance exceeds `s`
/// whole bytes.
#[inline]
pub fn distance(random: u64, interval: u64) -> u64 {
    if interval <= 1 {
        return 1;
    }
    // In (0, 1], since 0 has no logarithm.
    let uniform = ((random >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
    (-uniform.ln() * interval as f64).ceil().max(1.0) as u64
}

/// Returns a pseudorandom number that depends on all bits of `seed`: the finalizer of splitmix64 (Steele,
/// Lea, Flood 2014).
pub const fn mix(seed: u64) -> u64 {
    let mixed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// A generator of pseudorandom numbers for any number of threads: splitmix64.
#[derive(Debug)]
pub struct Random(AtomicU64);

impl Random {
    /// Returns a generator that begins at `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Restarts the generator at `seed`.
    pub fn seed(&self, seed: u64) {
        self.0.store(seed, Ordering::Relaxed);
    }

    /// Returns the next number.
    #[inline]
    pub fn number(&self) -> u64 {
        mix(self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_stand_for_the_allocations_that_are_not_sampled() {
        let interval = 512 * 1024;
        for size in [16_u64, 1024, 512 * 1024, 64 << 20] {
            let [bytes, objects] = estimate(size, interval);
            let met = 1.0 - (-(size as f64) / interval as f64).exp();
            assert!((objects * met - 1.0).abs() < 1e-6, "{size}: {objects}");
            assert!((bytes / objects - size as f64).abs() < 1e-3, "{size}: {bytes}");
        }
        assert_eq!(estimate(24, 1), [24.0, 1.0]);
    }

    #[test]
    fn samples_at_a_short_interval_are_thinned_to_a_longer_one() {
        let random = Random::new(3);
        for size in [16, 1_000, 4_096, 1_000_000] {
            let (short, long) = (1_024, 8_192);
            let tries = 200_000;
            let kept = (0..tries)
                .filter(|_| is_sampled_at_longer_interval(size, short, long, random.number()))
                .count() as f64;
            // Each allocation that is kept stands for its estimate at the long interval. The expected number
            // is the one that the short interval's samples stand for.
            let estimated = kept * estimate(size, long)[1];
            let expected = f64::from(tries) * estimate(size, short)[1];
            assert!((estimated / expected - 1.0).abs() < 0.03, "{size}: {estimated} of {expected}");
        }
        assert!((0..1_000).all(|_| is_sampled_at_longer_interval(24, 512, 512, random.number())));
    }

    #[test]
    fn distances_are_exponential() {
        let interval = 1_000;
        let distances: Vec<u64> = (0..100_000).map(|n| distance(mix(n), interval)).collect();
        let mean = distances.iter().sum::<u64>() as f64 / distances.len() as f64;
        // Rounding up adds half a byte. The standard deviation of the mean is 0.3 %.
        assert!((mean / 1_000.5 - 1.0).abs() < 0.015, "{mean}");
        let longer = distances.iter().filter(|&&distance| distance > interval).count() as f64;
        assert!((longer / distances.len() as f64 / (-1_f64).exp() - 1.0).abs() < 0.03, "{longer}");
        assert!(distances.iter().all(|&distance| distance >= 1));
        assert_eq!(distance(u64::MAX, 1), 1);
    }
}
