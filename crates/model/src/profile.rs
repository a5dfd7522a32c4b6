//! One profile: samples of one type over one span of time, summed by identity.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::ids::{AttributeSetId, LinkId, StackId};
use super::observations::{Observation, Observations};
use super::profile_types::ProfileType;

/// The key by which samples are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SampleIdentity {
    /// The stack of the thread.
    pub stack: StackId,
    /// The attributes of the thread and the sample.
    pub attributes: AttributeSetId,
    /// The span that was active.
    pub link: LinkId,
}

/// The sum of all additions with one identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The common identity.
    pub identity: SampleIdentity,
    /// The sum of the values, which saturates at the bounds of `i64`.
    pub value: i64,
    /// The number of additions.
    pub additions: u64,
}

/// Samples of one [`ProfileType`].
///
/// The profile's window is `[start_unix_nano, start_unix_nano + duration_nano)`. Times of additions should be
/// within it: a time outside is written as the window's nearest nanosecond.
#[derive(Clone, Debug)]
pub struct Profile {
    /// The meaning of the values.
    pub profile_type: &'static ProfileType,
    /// The start of the window, in nanoseconds since 1970-01-01 UTC.
    pub start_unix_nano: u64,
    /// The length of the window, in nanoseconds.
    pub duration_nano: u64,
    /// The amount of [`ProfileType::period_type`] between two samples; 1 if every event is recorded.
    pub period: i64,
    /// Attributes of the profile as a whole. The writer adds `profile.type`.
    pub attributes: AttributeSetId,
    samples: Vec<Sample>,
    indices: HashTable<u32>,
    hasher: RandomState,
    /// The timed additions of each sample, up to the last sample that has any.
    observations: Vec<Observations>,
    additions: u64,
    timed_additions: u64,
    /// Whether all additions with a time have a value above 0.
    adds_only: bool,
}

impl Profile {
    /// A profile without samples. The window can be set later.
    pub fn new(profile_type: &'static ProfileType, period: i64) -> Self {
        Self {
            profile_type,
            start_unix_nano: 0,
            duration_nano: 0,
            period,
            attributes: AttributeSetId::EMPTY,
            samples: Vec::new(),
            indices: HashTable::new(),
            hasher: RandomState::default(),
            observations: Vec::new(),
            additions: 0,
            timed_additions: 0,
            adds_only: true,
        }
    }

    /// Adds `value` to the sample of this identity. A time is stored with the value, which mostly takes three
    /// to eight bytes: pass `None` unless times are to be written.
    #[inline]
    pub fn add(&mut self, identity: SampleIdentity, value: i64, at_unix_nano: Option<u64>) {
        let sample = self.sample(identity);
        self.add_to(sample, value, at_unix_nano);
    }

    /// Returns the position in [`Profile::samples`] of the sample with this identity. A sample that does not
    /// exist is created without additions: the caller must add to it.
    #[inline]
    pub fn sample(&mut self, identity: SampleIdentity) -> u32 {
        let Self { samples, indices, hasher, .. } = self;
        let hash = hasher.hash_one(identity);
        if let Some(&index) = indices.find(hash, |&index| samples[index as usize].identity == identity) {
            return index;
        }
        // SANITY: 2^32 samples of 32 bytes exhaust memory first.
        let index = u32::try_from(samples.len()).expect("fewer than 2^32 samples");
        samples.push(Sample { identity, value: 0, additions: 0 });
        indices.insert_unique(hash, index, |&index| hasher.hash_one(samples[index as usize].identity));
        index
    }

    /// Adds to the sample at this position as [`Profile::add`] does.
    ///
    /// # Panics
    /// If there is no such sample.
    #[inline]
    pub fn add_to(&mut self, sample: u32, value: i64, at_unix_nano: Option<u64>) {
        let sum = &mut self.samples[sample as usize];
        sum.value = sum.value.saturating_add(value);
        sum.additions += 1;
        self.additions += 1;
        let Some(unix_nano) = at_unix_nano else { return };
        self.timed_additions += 1;
        self.adds_only &= value > 0;
        let sample = sample as usize;
        if self.observations.len() <= sample {
            self.observations.resize_with(sample + 1, Observations::default);
        }
        self.observations[sample].push(Observation { value, unix_nano });
    }

    /// Returns the profile with all identities replaced. `of` must map different identities to different
    /// ones.
    pub(super) fn with_identities(mut self, mut of: impl FnMut(SampleIdentity) -> SampleIdentity) -> Self {
        for sample in &mut self.samples {
            sample.identity = of(sample.identity);
        }
        let Self { samples, indices, hasher, .. } = &mut self;
        indices.clear();
        for (index, sample) in (0..).zip(samples.iter()) {
            indices.insert_unique(hasher.hash_one(sample.identity), index, |&index: &u32| {
                hasher.hash_one(samples[index as usize].identity)
            });
        }
        self
    }

    /// The samples, in the order of their first addition.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The additions with a time to the sample at this position, in the order in which they were made.
    pub fn observations(&self, sample: usize) -> impl Iterator<Item = Observation> {
        self.observations.get(sample).into_iter().flat_map(Observations::iter)
    }

    /// Whether every addition had a time.
    pub fn is_timed(&self) -> bool {
        self.additions == self.timed_additions
    }

    /// Whether all additions with a time had a value above 0.
    pub fn adds_only(&self) -> bool {
        self.adds_only
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The number of additions.
    pub fn additions(&self) -> u64 {
        self.additions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types;

    fn identity(stack: u32, attributes: u32, link: u32) -> SampleIdentity {
        SampleIdentity { stack: StackId(stack), attributes: AttributeSetId(attributes), link: LinkId(link) }
    }

    #[test]
    fn additions_of_one_identity_are_summed_and_others_kept_apart() {
        let mut profile = Profile::new(&types::CPU, 10_000_000);
        profile.add(identity(1, 0, 0), 2, None);
        profile.add(identity(1, 1, 0), 1, None);
        profile.add(identity(1, 0, 1), 1, None);
        profile.add(identity(2, 0, 0), 1, None);
        profile.add(identity(1, 0, 0), 3, None);
        assert_eq!(profile.samples().len(), 4);
        assert_eq!(profile.samples()[0], Sample { identity: identity(1, 0, 0), value: 5, additions: 2 });
        assert_eq!(profile.additions(), 5);
        assert!(!profile.is_timed());
    }

    #[test]
    fn sums_saturate() {
        let mut profile = Profile::new(&types::CPU, 1);
        profile.add(identity(0, 0, 0), i64::MAX, None);
        profile.add(identity(0, 0, 0), 1, None);
        assert_eq!(profile.samples()[0].value, i64::MAX);
    }

    #[test]
    fn times_are_kept_beside_the_sums_and_one_without_makes_the_profile_untimed() {
        let mut profile = Profile::new(&types::CPU, 1);
        profile.add(identity(1, 0, 0), 1, Some(100));
        profile.add(identity(2, 0, 0), 4, Some(101));
        assert!(profile.is_timed());
        profile.add(identity(1, 0, 0), 2, Some(90));
        let of = |sample| profile.observations(sample).map(|seen| (seen.value, seen.unix_nano)).collect();
        let of: [Vec<_>; 3] = [0, 1, 2].map(of);
        assert_eq!(of, [vec![(1, 100), (2, 90)], vec![(4, 101)], vec![]]);
        assert!(profile.adds_only());
        profile.add(identity(2, 0, 0), 1, None);
        assert!(!profile.is_timed());
        assert_eq!(profile.additions(), 4);
        profile.add(identity(2, 0, 0), 0, Some(102));
        assert!(!profile.adds_only());
    }
}
