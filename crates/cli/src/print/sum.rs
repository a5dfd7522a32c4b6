//! The sum of some samples: the measured amount, and the values without their period.

use std::ops::AddAssign;

/// The sum of some samples. Sums are ordered by amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sum {
    /// The measured amount: values times the period of each message, where values count periods.
    pub(super) amount: i128,
    /// The sum of the values alone.
    pub(super) values: i128,
}

impl Sum {
    /// The sum of samples with these values, which stand for `factor` times as much.
    pub(super) fn of_values(values: i128, factor: i64) -> Self {
        Self { amount: values.saturating_mul(factor.into()), values }
    }

    /// The sum as a percentage of another.
    pub(super) fn percent_of(self, whole: Self) -> f64 {
        if whole.amount == 0 { 0.0 } else { self.amount as f64 * 100.0 / whole.amount as f64 }
    }
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.amount = self.amount.saturating_add(other.amount);
        self.values = self.values.saturating_add(other.values);
    }
}
