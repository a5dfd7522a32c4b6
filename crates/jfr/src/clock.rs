//! Converts ticks to times. Each chunk has its own clock.

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// The conversion of a chunk's ticks to times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The start of the chunk, in nanoseconds since 1970-01-01 UTC.
    pub start_unix_nano: i64,
    /// The start of the chunk, in ticks.
    pub start_ticks: i64,
    /// Ticks per second.
    pub ticks_per_second: i64,
}

impl Clock {
    /// The time of a tick in nanoseconds since 1970-01-01 UTC.
    #[inline]
    pub fn unix_nano(&self, ticks: i64) -> i64 {
        if let Some(since) = ticks.checked_sub(self.start_ticks)
            && let Some(nanos) = short_nanos(since, self.ticks_per_second)
            && let Some(time) = self.start_unix_nano.checked_add(nanos)
        {
            return time;
        }
        let nanos = nanos(i128::from(ticks) - i128::from(self.start_ticks), self.ticks_per_second);
        clamped(i128::from(self.start_unix_nano) + nanos)
    }

    /// Converts a number of ticks to nanoseconds.
    #[inline]
    pub fn duration_ns(&self, ticks: i64) -> i64 {
        if let Some(nanos) = short_nanos(ticks, self.ticks_per_second) {
            return nanos;
        }
        clamped(nanos(i128::from(ticks), self.ticks_per_second))
    }
}

/// [`nanos`] in 64 bits; `None` where 64 bits do not suffice. A 128-bit division is a function call and takes
/// ten times as long.
#[inline]
fn short_nanos(ticks: i64, ticks_per_second: i64) -> Option<i64> {
    const NANOS_PER_SECOND: i64 = self::NANOS_PER_SECOND as i64;
    if ticks_per_second == NANOS_PER_SECOND {
        return Some(ticks);
    }
    if ticks_per_second <= 0 || ticks_per_second > i64::MAX / NANOS_PER_SECOND {
        return None;
    }
    // Whole seconds, and the ticks of an incomplete second. Both have the sign of `ticks`.
    let (seconds, rest) = (ticks / ticks_per_second, ticks % ticks_per_second);
    seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(rest * NANOS_PER_SECOND / ticks_per_second)
}

#[cold]
fn nanos(ticks: i128, ticks_per_second: i64) -> i128 {
    // A frequency of 0 is corrupt; ticks are then taken as nanoseconds.
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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn results_equal_those_of_128_bits(
            ticks: i64, shift in 0u32..63, start_ticks in -1_000i64..1 << 50, frequency in 1i64..1 << 40,
        ) {
            let ticks = ticks >> shift;
            let start_unix_nano = 1_700_000_000_000_000_000;
            let clock = Clock { start_unix_nano, start_ticks, ticks_per_second: frequency };
            prop_assert_eq!(clock.duration_ns(ticks), clamped(nanos(i128::from(ticks), frequency)));
            let since = nanos(i128::from(ticks) - i128::from(start_ticks), frequency);
            prop_assert_eq!(clock.unix_nano(ticks), clamped(i128::from(clock.start_unix_nano) + since));
        }
    }

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
