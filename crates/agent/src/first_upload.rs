//! The time of the first upload.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Returns a random part of the interval, at least a tenth of it, so that processes of a fleet that were
/// started together do not upload in step.
pub(super) fn first_interval(interval: Duration) -> Duration {
    // RandomState is seeded from the system's randomness.
    part_of(interval, RandomState::new().hash_one(std::process::id()))
}

fn part_of(interval: Duration, random: u64) -> Duration {
    interval.mul_f64(0.1 + 0.9 * (random as f64 / u64::MAX as f64))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_first_upload_lies_within_the_interval_by_the_random_number() {
        let interval = Duration::from_secs(10);
        assert_eq!(part_of(interval, 0), Duration::from_secs(1));
        assert_eq!(part_of(interval, u64::MAX), interval);
        let half = part_of(interval, u64::MAX / 2);
        assert!((Duration::from_millis(5_499)..Duration::from_millis(5_501)).contains(&half), "{half:?}");
    }

    #[test]
    fn processes_started_together_differ() {
        let interval = Duration::from_secs(10);
        let drawn: HashSet<_> = (0..100).map(|_| first_interval(interval)).collect();
        assert!(drawn.len() > 90, "{}", drawn.len());
        assert!(drawn.iter().all(|part| (interval / 10..=interval).contains(part)));
    }
}
