//! Values of samples, summed by key.
//!
//! A merged profile has as many keys as its processes have stacks, so that nearly each access to a hash table
//! would wait for main memory. Values are appended to a list instead. Now and then the list is sorted, and
//! values of equal keys are summed. A later message mostly adds higher keys: the list is nearly sorted then.

/// The fewest values that are sorted before the end.
const FEWEST: usize = 1 << 12;

/// Values by key.
#[derive(Debug)]
pub(super) struct SampleSums<K> {
    values: Vec<(K, i64)>,
    /// The number of values at the beginning that are sorted and have different keys.
    summed: usize,
}

impl<K> Default for SampleSums<K> {
    fn default() -> Self {
        Self { values: Vec::new(), summed: 0 }
    }
}

impl<K: Copy + Ord> SampleSums<K> {
    /// Adds a value.
    pub(super) fn add(&mut self, key: K, value: i64) {
        self.values.push((key, value));
        if self.values.len() >= 2 * self.summed.max(FEWEST) {
            self.sum();
        }
    }

    /// Multiplies all sums by a factor.
    pub(super) fn scale(&mut self, factor: i64) {
        self.sum();
        self.values.iter_mut().for_each(|(_, value)| *value = value.saturating_mul(factor));
    }

    /// The sums, in the order of their keys.
    pub(super) fn into_sorted(mut self) -> Vec<(K, i64)> {
        self.sum();
        self.values
    }

    /// Sums the values of each key, in the order in which they were added.
    fn sum(&mut self) {
        self.values.sort_by_key(|&(key, _)| key);
        self.values.dedup_by(|(key, value), (kept, sum)| {
            let is_same = key == kept;
            *sum = if is_same { sum.saturating_add(*value) } else { *sum };
            is_same
        });
        self.summed = self.values.len();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn sums_are_those_of_a_map() {
        let (mut sums, mut expected) = (SampleSums::default(), BTreeMap::<u32, i64>::new());
        for at in 0..10 * FEWEST as u32 {
            let (key, value) = (at.wrapping_mul(0x9e37_79b1) >> (at % 32), i64::from(at) - 9);
            sums.add(key, value);
            *expected.entry(key).or_default() += value;
            if at == 3 * FEWEST as u32 {
                sums.scale(3);
                expected.values_mut().for_each(|value| *value *= 3);
            }
        }
        assert!(expected.len() > FEWEST);
        assert_eq!(sums.into_sorted(), expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn values_are_added_in_their_order_up_to_the_largest() {
        let mut sums = SampleSums::default();
        [i64::MAX, 1, -1].into_iter().for_each(|value| sums.add(0, value));
        assert_eq!(sums.into_sorted(), [(0, i64::MAX - 1)]);
    }
}
