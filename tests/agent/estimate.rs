//! Judges figures that come from samples by their own standard error, so that chance decides no test.

use std::ops::RangeInclusive;

/// The number of standard errors by which a right figure may miss the truth: one of two million does by
/// chance, if errors are normally distributed.
const STANDARD_ERRORS: f64 = 5.0;
/// A factor by which a wrong figure would be found, whatever the chance.
const WRONG_FACTOR: f64 = 1.5;

/// A sum of sampled weights. Each sample stands for as much as its weight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Estimate {
    samples: i64,
    sum: f64,
    sum_of_squares: f64,
}

impl Estimate {
    /// The sum over groups: a number of samples, and the weight of each sample in the group.
    pub(crate) fn of(groups: impl IntoIterator<Item = (i64, f64)>) -> Self {
        let mut estimate = Self::default();
        for (samples, weight) in groups {
            estimate.samples += samples;
            estimate.sum += samples as f64 * weight;
            estimate.sum_of_squares += samples as f64 * weight * weight;
        }
        estimate
    }

    /// The estimated amount.
    pub(crate) fn sum(&self) -> f64 {
        self.sum
    }

    /// The standard error of the sum: √Σw² for samples that are independent of each other.
    pub(crate) fn standard_error(&self) -> f64 {
        self.sum_of_squares.sqrt()
    }

    /// Asserts that the sum is right. `truth` is the amount, or the range within which the amount is known.
    ///
    /// # Panics
    /// If the sum is further away from `truth` than [`STANDARD_ERRORS`], or if the samples are too few to
    /// find a sum that is wrong by [`WRONG_FACTOR`].
    #[track_caller]
    pub(crate) fn assert_near(&self, truth: RangeInclusive<f64>, label: &str) {
        let error = STANDARD_ERRORS * self.standard_error();
        let (least, most) = (truth.start() - error, truth.end() + error);
        assert!(self.is_enough(), "{label}: too few samples to judge: {self:?}");
        assert!(
            (least..=most).contains(&self.sum),
            "{label}: {:.6e} is not within {least:.6e} to {most:.6e}, of {truth:?}: {self:?}",
            self.sum
        );
    }

    /// Whether the samples are enough to find a sum that is wrong by [`WRONG_FACTOR`].
    pub(crate) fn is_enough(&self) -> bool {
        STANDARD_ERRORS * self.standard_error() < self.sum * (1.0 - 1.0 / WRONG_FACTOR)
    }
}

/// Asserts that `part` of `all` samples are the expected share, or within the range of expected shares. The
/// standard error of a share p of n samples is √(p(1−p)/n).
///
/// # Panics
/// If the share is further away than [`STANDARD_ERRORS`], or if the samples are too few to find a share that
/// is wrong by [`WRONG_FACTOR`].
#[track_caller]
pub(crate) fn assert_share(part: i64, all: i64, expected: RangeInclusive<f64>, label: &str) {
    let error_of = |share: f64| STANDARD_ERRORS * (share * (1.0 - share) / all as f64).sqrt();
    let (least, most) = (expected.start(), expected.end());
    let share = part as f64 / all as f64;
    let smallest_wrong = least * (1.0 - 1.0 / WRONG_FACTOR);
    assert!(
        all > 0 && error_of(*least) < smallest_wrong,
        "{label}: too few samples to judge: {part} of {all} for {expected:?}"
    );
    let range = least - error_of(*least)..=most + error_of(*most);
    assert!(range.contains(&share), "{label}: {share:.4}, {part} of {all}, is not within {range:.4?}");
}

#[test]
fn sums_are_judged_by_their_own_error() {
    let rejects = |estimate: Estimate, truth: f64| {
        std::panic::catch_unwind(move || estimate.assert_near(truth..=truth, "a sum")).is_err()
    };
    // 400 samples of weight 10: a sum of 4,000 with a standard error of 200.
    let sum = Estimate::of([(400, 10.0)]);
    assert!(!rejects(sum, 3_001.0) && !rejects(sum, 4_999.0));
    assert!(rejects(sum, 2_999.0) && rejects(sum, 5_001.0));
    assert!(rejects(sum, 4_000.0 / 1.5) && rejects(sum, 4_000.0 * 1.5));
    // Too few, although the sum is right. One heavy sample counts as few.
    assert!(rejects(Estimate::of([(200, 10.0)]), 2_000.0));
    assert!(rejects(Estimate::of([(400, 10.0), (1, 2_000.0)]), 6_000.0));
}

#[test]
fn shares_are_judged_by_their_own_error() {
    let rejects = |part, all, expected: f64| {
        std::panic::catch_unwind(move || assert_share(part, all, expected..=expected, "a share")).is_err()
    };
    // The standard error of 0.5 of 10,000 is 0.005.
    assert!(!rejects(5_249, 10_000, 0.5) && !rejects(4_751, 10_000, 0.5));
    assert!(rejects(5_251, 10_000, 0.5) && rejects(4_749, 10_000, 0.5));
    assert!(rejects(50, 100, 0.5), "too few to judge");
    assert!(rejects(0, 0, 0.5), "no sample");
}
