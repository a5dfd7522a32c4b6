//! A merged profile: its period, its window, and the sums of its samples.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState as FastState;
use otlpprof_model::{AttributeSetId, SliceInterner};
use otlpprof_otlp::new_profile_id;
use otlpprof_otlp::wire::{Profile, Sample};

use super::attributes::ProfileAttributes;
use super::dictionary::MergedDictionary;
use super::origins::ScopeId;
use super::sample_sums::SampleSums;
use crate::measure::{Measure, ProfileMeasure};

/// The identity of a merged profile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProfileKey {
    /// The scope, and with it the resource.
    pub scope: ScopeId,
    /// The measure.
    pub measure: Measure,
    /// Name and unit of the sample type.
    pub sample_type: (String, String),
    /// Name and unit of the period type.
    pub period_type: (String, String),
}

/// The identity of a merged sample: its stack, its attributes and its link in the merged message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampleKey {
    /// The index of the stack.
    pub stack: i32,
    /// The set of attributes.
    pub attributes: AttributeSetId,
    /// The index of the link.
    pub link: i32,
}

/// A profile that other profiles are added to.
#[derive(Debug, Default)]
pub struct MergedProfile {
    is_snapshot: bool,
    /// Whether values count periods.
    counts_periods: bool,
    /// Of values that count periods: the greatest period that all periods are multiples of, to which values
    /// are scaled. Of others the shortest period.
    period: i64,
    /// The window, in nanoseconds since 1970; `None` if no profile has a time.
    window: Option<(u64, u64)>,
    /// The start of the state that counts, if the measure is a snapshot.
    state_ns: u64,
    attributes: ProfileAttributes,
    dropped_attributes: u32,
    values: SampleSums<SampleKey>,
    /// The values with their times, if times are kept.
    timed: HashMap<SampleKey, Vec<(u64, i64)>, FastState>,
}

impl MergedProfile {
    /// Takes the period and the times of a profile, before any sample is added.
    pub fn survey(&mut self, header: &Profile, measured: &ProfileMeasure) {
        self.is_snapshot = measured.measure.is_snapshot();
        self.counts_periods = measured.counts_periods;
        self.period = self.shared_period(header.period.max(0));
        let start_ns = header.time_unix_nano;
        if self.is_snapshot && start_ns > self.state_ns {
            // A later state replaces an earlier one.
            (self.state_ns, self.window) = (start_ns, None);
        }
        if start_ns != 0 && self.has_state(start_ns) {
            self.cover(start_ns, start_ns.saturating_add(header.duration_nano));
        }
    }

    /// The period for values of this period as well.
    fn shared_period(&self, period: i64) -> i64 {
        match (self.period, period) {
            (0, period) | (period, 0) => period,
            (known, period) if self.counts_periods => greatest_divisor(known, period),
            (known, period) => known.min(period),
        }
    }

    /// Adds a profile of another resource. Its state is added up too: it is another process's.
    pub fn unite(&mut self, other: Self) {
        let period = self.shared_period(other.period);
        self.rescale(period);
        let mut other = other;
        other.rescale(period);
        if let Some((start_ns, end_ns)) = other.window {
            self.cover(start_ns, end_ns);
        }
        self.state_ns = self.state_ns.max(other.state_ns);
        self.attributes.unite(other.attributes);
        self.add_dropped_attributes(other.dropped_attributes);
        other.values.into_sorted().into_iter().for_each(|(key, value)| self.add(key, value));
        for (key, values) in other.timed {
            self.timed.entry(key).or_default().extend(values);
        }
    }

    /// Scales values that count periods to a divisor of the period.
    fn rescale(&mut self, period: i64) {
        let factor = if self.counts_periods && period > 0 { self.period / period } else { 1 };
        self.period = period;
        if factor > 1 {
            self.values.scale(factor);
            let timed = self.timed.values_mut().flatten();
            timed.for_each(|(_, value)| *value = value.saturating_mul(factor));
        }
    }

    /// Whether samples of a profile with this start count: of states, only those of the last one do.
    pub fn has_state(&self, start_ns: u64) -> bool {
        !self.is_snapshot || start_ns == self.state_ns
    }

    /// The factor by which a profile's values are scaled to the merged profile's period.
    pub fn scale(&self, measured: &ProfileMeasure) -> i64 {
        if measured.counts_periods && self.period > 0 { measured.factor / self.period } else { 1 }
    }

    /// Adds a value.
    pub fn add(&mut self, key: SampleKey, value: i64) {
        self.values.add(key, value);
    }

    /// Adds a value with its time, in nanoseconds since 1970.
    pub fn add_timed(&mut self, key: SampleKey, unix_ns: u64, value: i64) {
        if unix_ns != 0 {
            self.cover(unix_ns, unix_ns.saturating_add(1));
        }
        self.timed.entry(key).or_default().push((unix_ns, value));
    }

    /// The attributes of the profile.
    pub fn attributes(&mut self) -> &mut ProfileAttributes {
        &mut self.attributes
    }

    /// Adds a number of attributes that a profile has lost before.
    pub fn add_dropped_attributes(&mut self, count: u32) {
        self.dropped_attributes = self.dropped_attributes.saturating_add(count);
    }

    fn cover(&mut self, start_ns: u64, end_ns: u64) {
        let (first, last) = self.window.unwrap_or((start_ns, end_ns));
        self.window = Some((first.min(start_ns), last.max(end_ns)));
    }

    /// The profile in a message; `None` if it has no sample.
    pub fn into_wire(
        self,
        key: &ProfileKey,
        sets: &SliceInterner<i32, AttributeSetId>,
        dictionary: &mut MergedDictionary,
    ) -> Option<Profile> {
        let (start_ns, end_ns) = self.window.unwrap_or_default();
        // Times lie within the window, which is not empty then.
        let end_ns = if self.timed.is_empty() { end_ns } else { end_ns.max(start_ns + 1) };
        let sample = |key: SampleKey, values, timestamps_unix_nano| Sample {
            stack_index: key.stack,
            attribute_indices: sets.get(key.attributes).to_vec(),
            link_index: key.link,
            values,
            timestamps_unix_nano,
        };
        // Values have times, or none has.
        let (own, timed) = (self.values.into_sorted(), sorted(self.timed));
        let own = own.into_iter().map(|(key, value)| sample(key, vec![value], Vec::new()));
        let timed = timed.into_iter().map(|(key, values)| {
            let sums = sums_by_time(values).into_iter();
            let sums = sums.map(|(unix_ns, value)| (value, unix_ns.clamp(start_ns, end_ns - 1)));
            let (values, times) = sums.unzip();
            sample(key, values, times)
        });
        let mut samples: Vec<Sample> = own.chain(timed).collect();
        if samples.is_empty() {
            return None;
        }
        let is_ones = |sample: &Sample| {
            !sample.timestamps_unix_nano.is_empty() && sample.values.iter().all(|&value| value == 1)
        };
        if samples.iter().all(is_ones) {
            // A time alone counts one.
            samples.iter_mut().for_each(|sample| sample.values.clear());
        }
        let differing = u32::try_from(self.attributes.differing()).unwrap_or(u32::MAX);
        let mut value_type = |(name, unit): &(String, String)| Some(dictionary.value_type((name, unit)));
        Some(Profile {
            samples,
            sample_type: value_type(&key.sample_type),
            period_type: value_type(&key.period_type),
            period: self.period,
            time_unix_nano: start_ns,
            duration_nano: end_ns.saturating_sub(start_ns),
            profile_id: new_profile_id().to_vec(),
            dropped_attributes_count: self.dropped_attributes.saturating_add(differing),
            attribute_indices: self.attributes.into_indices(dictionary),
            ..Profile::default()
        })
    }
}

/// The entries of a table in the order of their keys.
fn sorted<T>(table: HashMap<SampleKey, T, FastState>) -> Vec<(SampleKey, T)> {
    let mut entries: Vec<_> = table.into_iter().collect();
    entries.sort_unstable_by_key(|&(key, _)| key);
    entries
}

/// Values in the order of their times, those of equal times added up.
fn sums_by_time(values: Vec<(u64, i64)>) -> BTreeMap<u64, i64> {
    let mut sums = BTreeMap::new();
    for (unix_ns, value) in values {
        let sum: &mut i64 = sums.entry(unix_ns).or_default();
        *sum = sum.saturating_add(value);
    }
    sums
}

/// The greatest number that both positive numbers are multiples of.
fn greatest_divisor(mut one: i64, mut other: i64) -> i64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_multiples_of_their_divisor() {
        assert_eq!(greatest_divisor(10_000_000, 25_000_000), 5_000_000);
        assert_eq!(greatest_divisor(7, 7), 7);
        assert_eq!(greatest_divisor(1, i64::MAX), 1);
    }
}
