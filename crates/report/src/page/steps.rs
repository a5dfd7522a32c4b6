//! The division of a page's time into steps.

const MILLISECOND: u64 = 1_000_000;

/// Lengths of steps that read well, in milliseconds. Each divides the next, so that steps can be merged.
const LENGTHS_MS: [u64; 17] = [
    1, 2, 10, 20, 100, 200, 1_000, 2_000, 10_000, 20_000, 60_000, 120_000, 600_000, 1_200_000, 3_600_000,
    7_200_000, 86_400_000,
];

/// The most steps that the page's command chooses by itself.
const MOST_CHOSEN: u32 = 36_000;

/// Steps are merged only while at least this many remain.
const FEWEST_MERGED: u32 = 300;

/// The number of steps if the files say nothing about intervals.
const MOST_WITHOUT_INTERVALS: u32 = 360;

/// The division of time into steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The start of step 0, in nanoseconds since 1970.
    pub start_ns: u64,
    /// The length of a step in nanoseconds; whole milliseconds, at least one.
    pub step_ns: u64,
    /// The number of steps; at least 1.
    pub count: u32,
}

/// The time of one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The start, in nanoseconds since 1970.
    pub start_ns: u64,
    /// The length, in nanoseconds.
    pub length_ns: u64,
}

impl Steps {
    /// Divides the time from `start_ns` to `end_ns` into at most `most` steps, which begin at whole
    /// milliseconds.
    pub fn new(start_ns: u64, end_ns: u64, most: u32) -> Self {
        let start_ns = start_ns / MILLISECOND * MILLISECOND;
        let length = end_ns.saturating_sub(start_ns).max(1);
        let step_ns = length.div_ceil(u64::from(most)).div_ceil(MILLISECOND) * MILLISECOND;
        let count = u32::try_from(length.div_ceil(step_ns)).unwrap_or(most).max(1);
        Self { start_ns, step_ns, count }
    }

    /// Steps for samples with times of their own: as fine as the page can show.
    pub fn finest(start_ns: u64, end_ns: u64) -> Self {
        let start_ns = start_ns / MILLISECOND * MILLISECOND;
        let length = end_ns.saturating_sub(start_ns).max(1);
        let mut lengths_ns = LENGTHS_MS.iter().map(|ms| ms * MILLISECOND);
        let fitting = lengths_ns.find(|step_ns| length.div_ceil(*step_ns) <= u64::from(MOST_CHOSEN));
        let of_length = fitting.and_then(|step_ns| Self::of_length(start_ns, length, step_ns));
        of_length.unwrap_or_else(|| Self::new(start_ns, end_ns, MOST_CHOSEN))
    }

    /// Steps for samples that have the start of their profile as time: one for each interval like `usual`;
    /// `None` if no profile has a length. The last profile in the time from `start_ns` to `end_ns` begins at
    /// `last_ns`.
    pub fn of_intervals(start_ns: u64, last_ns: u64, end_ns: u64, usual: Option<Interval>) -> Self {
        let Some(usual) = usual else { return Self::new(start_ns, end_ns, MOST_WITHOUT_INTERVALS) };
        let step_ns = (usual.length_ns.saturating_add(MILLISECOND / 2) / MILLISECOND).max(1) * MILLISECOND;
        // A step begins a little before its profiles do, as their starts vary by some milliseconds. The first
        // and the last profile may be much shorter than the others, so the others' starts divide the time.
        let border = usual.start_ns.saturating_sub(step_ns / 16) / MILLISECOND * MILLISECOND;
        let start = match border.checked_sub(start_ns) {
            Some(later) => border.saturating_sub(later.div_ceil(step_ns) * step_ns),
            None => border + (start_ns - border) / step_ns * step_ns,
        };
        let length_ns = last_ns.saturating_sub(start).saturating_add(1);
        let of_length = Self::of_length(start, length_ns, step_ns).filter(|steps| steps.count <= MOST_CHOSEN);
        of_length.unwrap_or_else(|| Self::new(start_ns, end_ns, MOST_CHOSEN))
    }

    /// `None` if there would be 2^32 steps or more.
    fn of_length(start_ns: u64, length_ns: u64, step_ns: u64) -> Option<Self> {
        let count = u32::try_from(length_ns.div_ceil(step_ns)).ok()?.max(1);
        Some(Self { start_ns, step_ns, count })
    }

    /// The step of a time. Times outside of all steps are in the first or the last one.
    pub fn of(self, unix_ns: u64) -> u32 {
        let step = unix_ns.saturating_sub(self.start_ns) / self.step_ns;
        u32::try_from(step).unwrap_or(u32::MAX).min(self.count - 1)
    }

    /// The next longer steps, and how many of these steps each of them has; `None` if there would be too few.
    pub fn longer(self) -> Option<(Self, u32)> {
        let factor = match LENGTHS_MS.binary_search(&(self.step_ns / MILLISECOND)) {
            Ok(at) => LENGTHS_MS.get(at + 1).map_or(2, |next| next / LENGTHS_MS[at]),
            Err(_) => 2,
        };
        let step_ns = self.step_ns.checked_mul(factor)?;
        let factor = u32::try_from(factor).ok()?;
        let count = self.count.div_ceil(factor);
        (count >= FEWEST_MERGED).then_some((Self { step_ns, count, ..self }, factor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn steps_cover_the_time_and_no_more_than_the_most() {
        let second = SECOND;
        let steps = Steps::new(5 * second, 15 * second, 360);
        assert_eq!((steps.step_ns, steps.count), (28_000_000, 358));
        assert_eq!((steps.of(0), steps.of(5 * second), steps.of(15 * second - 1)), (0, 0, 357));
        assert_eq!(steps.of(u64::MAX), 357);
        assert_eq!(Steps::new(7, 7, 360), Steps { start_ns: 0, step_ns: 1_000_000, count: 1 });
    }

    #[test]
    fn the_finest_steps_have_a_length_that_reads_well() {
        let of = |seconds: u64| {
            let steps = Steps::finest(5 * SECOND + 7, (5 + seconds) * SECOND);
            assert_eq!(steps.start_ns, 5 * SECOND);
            (steps.step_ns / MILLISECOND, steps.count)
        };
        assert_eq!(of(1), (1, 1_000));
        assert_eq!(of(60), (2, 30_000));
        assert_eq!(of(3_600), (100, 36_000));
        assert_eq!(of(86_400), (10_000, 8_640));
        assert!(LENGTHS_MS.windows(2).all(|pair| pair[1] % pair[0] == 0));
    }

    #[test]
    fn each_interval_has_a_step_however_its_start_varies() {
        for (count, late_ms) in [(1, 0), (6, 3), (360, 1)] {
            let starts = (0..count).map(|at: u64| at * 10 * SECOND + at % 3 * late_ms * MILLISECOND);
            let starts: Vec<_> = starts.map(|start| 100 * SECOND + 12_345 + start).collect();
            assert_eq!(of_starts(&starts, 10 * SECOND + 200_000), (0..count).collect::<Vec<_>>());
        }
        assert_eq!(Steps::of_intervals(0, 30 * SECOND, 36 * SECOND, None).count, 360);
        let short = Interval { start_ns: 0, length_ns: MILLISECOND };
        let end_ns = 1_000 * SECOND;
        assert_eq!(Steps::of_intervals(0, end_ns, end_ns, Some(short)).count, 35_715);
    }

    /// Regression: the agent's first interval is a random part of the others, from a tenth on. It shared a
    /// step with the second one, and a last step was empty.
    #[test]
    fn a_short_first_or_last_interval_has_a_step_of_its_own() {
        for first in [10, 11, 40, 57, 94, 99, 100] {
            let starts = (0..6).map(|at| match at {
                0 => 100 * SECOND,
                _ => (100 + (at - 1) * 10) * SECOND + first * SECOND / 10,
            });
            let starts: Vec<_> = starts.collect();
            assert_eq!(of_starts(&starts, 10 * SECOND), [0, 1, 2, 3, 4, 5], "{first}");
        }
    }

    /// The step of each start, where the third profile, or the last one, has the usual length.
    fn of_starts(starts: &[u64], length_ns: u64) -> Vec<u64> {
        let usual = Interval { start_ns: starts[2.min(starts.len() - 1)], length_ns };
        let last_ns = *starts.last().unwrap();
        let steps = Steps::of_intervals(starts[0], last_ns, last_ns + length_ns / 8, Some(usual));
        assert_eq!(u64::from(steps.count), starts.len() as u64);
        starts.iter().map(|&start| u64::from(steps.of(start))).collect()
    }

    #[test]
    fn longer_steps_are_merged_ones() {
        let mut steps = Steps::finest(3 * SECOND, 3_603 * SECOND);
        let mut lengths = vec![steps.step_ns / MILLISECOND];
        while let Some((longer, factor)) = steps.longer() {
            for time in (0..3_700).map(|second| second * SECOND + 999_999_999) {
                assert_eq!(longer.of(time), steps.of(time) / factor);
            }
            steps = longer;
            lengths.push(steps.step_ns / MILLISECOND);
        }
        assert_eq!((lengths, steps.count), (vec![100, 200, 1_000, 2_000, 10_000], 360));
        let usual = Interval { start_ns: 0, length_ns: 7 * SECOND };
        let odd = Steps::of_intervals(0, 6_993 * SECOND, 7_000 * SECOND, Some(usual));
        assert_eq!(odd.longer().map(|(longer, factor)| (longer.count, factor)), Some((500, 2)));
    }
}
