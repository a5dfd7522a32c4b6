//! Ticks to times. Each chunk has a clock of its own.

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// How a chunk's ticks become times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// When the chunk was begun, in nanoseconds since 1970-01-01 UTC.
    pub start_unix_nano: i64,
    /// The same in ticks.
    pub start_ticks: i64,
    /// Ticks per second.
    pub ticks_per_second: i64,
}

impl Clock {
    /// The time of a tick in nanoseconds since 1970-01-01 UTC.
    pub fn unix_nano(&self, ticks: i64) -> i64 {
        let nanos = nanos(i128::from(ticks) - i128::from(self.start_ticks), self.ticks_per_second);
        clamped(i128::from(self.start_unix_nano) + nanos)
    }

    /// A number of ticks in nanoseconds.
    pub fn duration_ns(&self, ticks: i64) -> i64 {
        clamped(nanos(i128::from(ticks), self.ticks_per_second))
    }
}

fn nanos(ticks: i128, ticks_per_second: i64) -> i128 {
    // A frequency of 0 is damage; ticks are then taken as nanoseconds.
    match ticks_per_second {
        ..=0 => ticks,
        frequency => ticks * NANOS_PER_SECOND / i128::from(frequency),
    }
}

fn clamped(nanos: i128) -> i64 {
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_count_from_the_chunks_start() {
        let clock = Clock { start_unix_nano: 1_000, start_ticks: 300, ticks_per_second: 2_000_000_000 };
        assert_eq!(clock.unix_nano(302), 1_001);
        assert_eq!(clock.unix_nano(298), 999);
        assert_eq!(clock.duration_ns(6), 3);
    }

    #[test]
    fn nonsense_gives_some_time() {
        for ticks_per_second in [i64::MIN, -1, 0, 1, i64::MAX] {
            let clock = Clock { start_unix_nano: i64::MAX, start_ticks: i64::MIN, ticks_per_second };
            for ticks in [i64::MIN, 0, i64::MAX] {
                clock.unix_nano(ticks);
                clock.duration_ns(ticks);
            }
        }
    }
}
