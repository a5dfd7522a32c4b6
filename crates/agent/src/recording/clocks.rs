//! The relation of the recorder's clock to the clock by which changes of contexts are noted.
//!
//! Both are read together repeatedly; times between two readings are interpolated. Times after the last
//! reading are unknown. So the clocks are read after events have been read, and once more after a recording
//! has been stopped.

use std::collections::VecDeque;

/// The most readings that are kept: enough for minutes.
const MOST_READINGS: usize = 2048;

/// The number of attempts for one reading, of which the closest pair counts.
const TRIES: usize = 16;

/// The longest distance of two readings, in ns, for which an interrupted one between them may be discarded.
const LONGEST_GAP_NS: i64 = 1_000_000_000;

/// The least error, in ns: the processor may read a clock some instructions early or late.
const LEAST_DOUBT_NS: i64 = 50;

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    ticks: i64,
    monotonic_ns: i64,
    doubt_ns: i64,
}

/// A time by CLOCK_MONOTONIC, and its possible error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instant {
    pub(super) monotonic_ns: i64,
    pub(super) doubt_ns: i64,
}

impl Reading {
    /// Reads both clocks; `None` if the recorder's clock cannot be read.
    pub(super) fn take(ticks: impl Fn() -> Option<i64>, monotonic_ns: impl Fn() -> i64) -> Option<Self> {
        let mut closest: Option<Self> = None;
        for _ in 0..TRIES {
            let before_ns = monotonic_ns();
            let ticks = ticks()?;
            let doubt_ns = (monotonic_ns() - before_ns) / 2;
            if closest.is_none_or(|closest| doubt_ns < closest.doubt_ns) {
                closest = Some(Self { ticks, monotonic_ns: before_ns + doubt_ns, doubt_ns });
            }
        }
        closest
    }
}

/// The course of both clocks.
#[derive(Debug, Default)]
pub(super) struct RecordingClocks {
    readings: VecDeque<Reading>,
}

impl RecordingClocks {
    /// Adds a reading. It is ignored unless it is later than all before.
    pub(super) fn note(&mut self, reading: Reading) {
        if self.readings.back().is_some_and(|last| reading.ticks <= last.ticks) {
            return;
        }
        self.readings.push_back(reading);
        if self.readings.len() > MOST_READINGS {
            self.readings.pop_front();
        }
        // If the clocks do not run evenly, for example because one is being adjusted, the deviation from a
        // straight line adds to the error of the reading in the middle.
        let count = self.readings.len();
        if count >= 3 {
            let [first, middle, last] = [3, 2, 1].map(|back| self.readings[count - back]);
            let bent_ns = (between(first, last, middle.ticks) - middle.monotonic_ns).abs();
            if middle.doubt_ns > 2 * first.doubt_ns.max(last.doubt_ns)
                && last.monotonic_ns - first.monotonic_ns < LONGEST_GAP_NS
            {
                // This reading was interrupted, and its neighbours are more exact.
                self.readings.remove(count - 2);
            } else {
                // Only the part of the deviation counts that the readings' own errors do not explain.
                let read_ns = middle.doubt_ns + first.doubt_ns.max(last.doubt_ns);
                self.readings[count - 2].doubt_ns += (bent_ns - read_ns).max(0);
            }
        }
    }

    /// Returns the time of a tick; `None` before the first reading and after the last.
    pub(super) fn at(&self, ticks: i64) -> Option<Instant> {
        let next = self.readings.partition_point(|reading| reading.ticks < ticks);
        let after = *self.readings.get(next)?;
        let before = if after.ticks == ticks { after } else { *self.readings.get(next.checked_sub(1)?)? };
        let doubt_ns = before.doubt_ns.max(after.doubt_ns) + LEAST_DOUBT_NS;
        Some(Instant { monotonic_ns: between(before, after, ticks), doubt_ns })
    }
}

fn between(first: Reading, last: Reading, ticks: i64) -> i64 {
    let span = i128::from(last.ticks) - i128::from(first.ticks);
    if span == 0 {
        return first.monotonic_ns;
    }
    let elapsed = i128::from(ticks) - i128::from(first.ticks);
    let ns = (i128::from(last.monotonic_ns) - i128::from(first.monotonic_ns)) * elapsed / span;
    first.monotonic_ns.saturating_add(i64::try_from(ns).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks(readings: &[(i64, i64)]) -> RecordingClocks {
        let mut clocks = RecordingClocks::default();
        for &(ticks, ns) in readings {
            clocks.note(Reading::take(|| Some(ticks), || ns).unwrap());
        }
        clocks
    }

    #[test]
    fn ticks_between_two_readings_have_times_and_others_none() {
        let clocks = clocks(&[(1_000, 5_000), (3_000, 6_000), (5_000, 7_000)]);
        let ns = |ticks| clocks.at(ticks).map(|at| at.monotonic_ns);
        assert_eq!(
            [999, 1_000, 1_500, 3_000, 5_000, 5_001].map(ns),
            [None, Some(5_000), Some(5_250), Some(6_000), Some(7_000), None]
        );
        assert_eq!(clocks.at(1_500).unwrap().doubt_ns, LEAST_DOUBT_NS);
    }

    #[test]
    fn an_uneven_clock_widens_the_error_bound_where_it_was_uneven() {
        let clocks = clocks(&[(0, 0), (1_000, 1_000), (2_000, 2_600), (3_000, 3_600), (4_000, 4_600)]);
        assert!(clocks.at(1_500).unwrap().doubt_ns >= LEAST_DOUBT_NS + 300);
        assert_eq!(clocks.at(3_500).unwrap().doubt_ns, LEAST_DOUBT_NS);
    }

    #[test]
    fn an_interrupted_reading_is_replaced_by_its_neighbours() {
        let mut clocks = clocks(&[(1_000, 5_000)]);
        clocks.note(Reading { ticks: 2_000, monotonic_ns: 5_900, doubt_ns: 400 });
        assert_eq!(clocks.at(1_500).unwrap().doubt_ns, 400 + LEAST_DOUBT_NS);
        clocks.note(Reading { ticks: 3_000, monotonic_ns: 6_000, doubt_ns: 0 });
        assert_eq!(clocks.at(2_000), Some(Instant { monotonic_ns: 5_500, doubt_ns: LEAST_DOUBT_NS }));
    }

    #[test]
    fn the_closest_pair_counts() {
        let now = std::cell::Cell::new(0);
        let slow = std::cell::Cell::new(4_000);
        let read = || {
            // Each reading takes half as long as the previous one.
            slow.set(slow.get() / 2);
            now.set(now.get() + slow.get());
            now.get()
        };
        let closest = Reading::take(|| Some(now.get()), read).unwrap();
        assert!(closest.doubt_ns < 10, "{closest:?}");
    }
}
