//! The times at which attempts are repeated.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, SystemTime};

/// The waits between attempts, and their total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Upper bound of the first wait. It doubles with every further wait.
    pub initial: Duration,
    /// Upper bound of any wait.
    pub longest: Duration,
    /// A message is given up if its next attempt would start later than this after its first attempt. Waits
    /// that the collector asked for are added to it.
    pub total: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            total: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// The wait after the `failures`-th failure in a row: a random duration in the upper half of an
    /// exponentially growing bound. The randomness keeps a fleet that lost its collector from returning all
    /// at once.
    pub(super) fn backoff(&self, failures: u32, jitter: &mut Jitter) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let bound = self.initial.saturating_mul(1 << doublings).min(self.longest);
        bound.mul_f64(0.5 + jitter.next_fraction() / 2.0)
    }
}

/// Reads `Retry-After`: a number of seconds, or a date, which is converted to the time left from `now` on.
pub(super) fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number beyond a u64 means practically never.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// Random numbers that are good enough to spread retries: xorshift64, seeded by the standard library's hash
/// keys.
#[derive(Debug)]
pub(super) struct Jitter(u64);

impl Jitter {
    pub(super) fn new() -> Self {
        Self(RandomState::new().build_hasher().finish() | 1)
    }

    /// A number in [0, 1).
    fn next_fraction(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // The 53 bits that an f64 holds exactly.
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let policy = RetryPolicy::default();
        let mut jitter = Jitter::new();
        for (failures, bound) in [(1, 1), (2, 2), (3, 4), (5, 16), (6, 30), (7, 30), (u32::MAX, 30)] {
            let bound = Duration::from_secs(bound);
            for _ in 0..1_000 {
                let wait = policy.backoff(failures, &mut jitter);
                assert!(wait >= bound / 2 && wait <= bound, "{failures}: {wait:?}");
            }
        }
    }

    #[test]
    fn waits_differ() {
        let policy = RetryPolicy::default();
        let mut jitter = Jitter::new();
        let waits: std::collections::HashSet<_> = (0..100).map(|_| policy.backoff(1, &mut jitter)).collect();
        assert!(waits.len() > 50);
    }

    #[test]
    fn retry_after_in_seconds_or_as_a_date() {
        let now = std::time::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (value, seconds) in [
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sun, 06 Nov 1994 08:40:37 GMT", Some(0)),
            ("-1", None),
            ("1.5", None),
            ("", None),
            ("later", None),
        ] {
            assert_eq!(parse_retry_after(value, now), seconds.map(Duration::from_secs), "{value}");
        }
    }
}
