//! Converts a profile's samples to samples of a message: their shape, their times, their indices.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use otlpprof_model::{Profile, SampleIdentity, StackId};

use super::bounds;
use super::dictionary::Dictionary;
use super::encode_options::EncodeOptions;
use super::wire_index::WireIndex;

/// The most times in one profile of a message: 8 MiB of them. A single sample with more times is written with
/// its value instead.
pub(super) const MOST_TIMES: u64 = 1 << 20;

/// The most additions of a sample that readers accept as values with times.
const MOST_ADDITIONS: u64 = bounds::VALUES as u64;

/// The content of every sample of one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One value: the sum.
    Value,
    /// One time for every counted thing: an addition of n repeats its time n times, for any n. Readers that
    /// count times then get the right sums. Several values in one sample are avoided, because some readers
    /// refuse the whole request for them.
    Times,
    /// One value and one time for every addition.
    ValuesAndTimes,
}

impl Shape {
    /// The shape of these samples of a profile. Times are written if the caller asks for them, every addition
    /// has one, and there are not too many. A profile that counts things has only times then, unless the
    /// caller asks for values too.
    pub(super) fn of(profile: &Profile, samples: Range<usize>, options: &EncodeOptions) -> Self {
        let has_few_additions =
            || profile.samples()[samples.clone()].iter().all(|sample| sample.additions <= MOST_ADDITIONS);
        if !options.timestamps || !profile.is_timed() {
            Self::Value
        } else if options.values_beside_times {
            if has_few_additions() { Self::ValuesAndTimes } else { Self::Value }
        } else if !profile.profile_type.is_count() {
            Self::ValuesAndTimes
        } else if profile.adds_only() && times(profile, samples) <= MOST_TIMES {
            Self::Times
        } else {
            Self::Value
        }
    }
}

/// The number of times, if each sample has one for every counted thing.
pub(super) fn times(profile: &Profile, samples: Range<usize>) -> u64 {
    let counts = profile.samples()[samples].iter().map(|sample| u64::try_from(sample.value).unwrap_or(0));
    counts.fold(0, u64::saturating_add)
}

/// The window of a profile. It is not empty if times must lie in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProfileWindow {
    pub(super) start_unix_nano: u64,
    pub(super) duration_nano: u64,
}

impl ProfileWindow {
    pub(super) fn of(profile: &Profile, shape: Shape) -> Self {
        let least = u64::from(shape != Shape::Value);
        let start_unix_nano = profile.start_unix_nano.min(u64::MAX - least);
        let room = u64::MAX - start_unix_nano;
        Self { start_unix_nano, duration_nano: profile.duration_nano.clamp(least, room) }
    }

    fn clamp(self, unix_nano: u64) -> u64 {
        // SANITY: the range is not empty: only shapes with times clamp, and `of` gives them a window of at
        // least 1 ns.
        unix_nano.clamp(self.start_unix_nano, self.start_unix_nano + self.duration_nano - 1)
    }
}

/// One sample of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireSample<'s> {
    pub(super) stack: WireIndex,
    pub(super) attributes: &'s [WireIndex],
    pub(super) link: WireIndex,
    pub(super) values: &'s [i64],
    pub(super) times: &'s [u64],
}

/// Enters everything that the samples in `range` refer to into the dictionary, and calls `write` with each
/// sample.
pub(super) fn for_each_sample(
    dictionary: &mut Dictionary<'_>,
    profile: &Profile,
    range: Range<usize>,
    shape: Shape,
    mut write: impl FnMut(WireSample<'_>),
) {
    profile.samples()[range.clone()].iter().for_each(|sample| {
        dictionary.stack(sample.identity.stack);
    });
    let (profile, range) = if dictionary.stacks_merged() {
        let merged = merge_equal_stacks(dictionary, profile, range);
        let all = 0..merged.samples().len();
        (Cow::Owned(merged), all)
    } else {
        (Cow::Borrowed(profile), range)
    };
    let window = ProfileWindow::of(&profile, shape);
    let (mut attributes, mut values, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for position in range {
        let sample = &profile.samples()[position];
        attributes.clear();
        values.clear();
        times.clear();
        dictionary.attribute_set(sample.identity.attributes, &mut attributes);
        match shape {
            Shape::Value => values.push(sample.value),
            Shape::Times => {
                for seen in profile.observations(position) {
                    times.resize(times.len() + seen.value as usize, window.clamp(seen.unix_nano));
                }
            }
            Shape::ValuesAndTimes => {
                for seen in profile.observations(position) {
                    times.push(window.clamp(seen.unix_nano));
                    values.push(seen.value);
                }
            }
        }
        write(WireSample {
            stack: dictionary.stack(sample.identity.stack),
            attributes: &attributes,
            link: dictionary.link(sample.identity.link),
            values: &values,
            times: &times,
        });
    }
}

/// A copy of the samples in `range`, in which samples whose stacks became equal in the message are summed: a
/// message must not have two samples with one identity.
fn merge_equal_stacks(dictionary: &mut Dictionary<'_>, profile: &Profile, range: Range<usize>) -> Profile {
    let mut first_of: HashMap<WireIndex, StackId> = HashMap::new();
    let mut canonical = |identity: SampleIdentity| {
        let place = dictionary.stack(identity.stack);
        SampleIdentity { stack: *first_of.entry(place).or_insert(identity.stack), ..identity }
    };
    let mut merged = Profile::new(profile.profile_type, profile.period);
    (merged.start_unix_nano, merged.duration_nano) = (profile.start_unix_nano, profile.duration_nano);
    for position in range {
        let sample = profile.samples()[position];
        let identity = canonical(sample.identity);
        if profile.is_timed() {
            for seen in profile.observations(position) {
                merged.add(identity, seen.value, Some(seen.unix_nano));
            }
        } else {
            merged.add(identity, sample.value, None);
        }
    }
    merged
}
