//! The content of a profile that is shown in every format.

use std::collections::HashMap;

use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::encoded_profiles::EncodedProfile;
use otlpprof_otlp::frames::{Frame, frames};
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::wire::{Link, Profile, Sample, ValueType};
use otlpprof_report::measure::{Measure, ProfileMeasure};

/// The most frames of a stack that are shown for each of its samples. A longer stack is shown once for each
/// profile. No profiler walks that deep.
const LONG_STACK: usize = 4096;

/// A profile's header and totals.
#[derive(Debug)]
pub(super) struct ProfileSummary<'a> {
    /// The profile without its samples and payload.
    pub(super) header: Profile,
    /// The kind and unit of values.
    pub(super) sample_type: (&'a str, &'a str),
    /// The kind and unit of the period.
    pub(super) period_type: (&'a str, &'a str),
    /// Types and period in one line, without totals.
    pub(super) kind: String,
    /// Number of samples.
    pub(super) samples: usize,
    /// The sum of all values.
    pub(super) total: i128,
    /// The measure.
    pub(super) measure: Measure,
    /// The sum in the unit of the measure.
    pub(super) amount: i128,
}

impl<'a> ProfileSummary<'a> {
    pub(super) fn new(tables: EncodedTables<'a>, profile: EncodedProfile<'a>) -> Self {
        let header = profile.header();
        let (mut samples, mut sum) = (0, 0_i128);
        for sample in profile.samples() {
            samples += 1;
            sum += total(&sample);
        }
        let ProfileMeasure { measure, factor, .. } = ProfileMeasure::of(tables, &header);
        Self {
            measure,
            amount: sum.saturating_mul(factor.into()),
            sample_type: tables.value_type(header.sample_type),
            period_type: tables.value_type(header.period_type),
            kind: kind_of(tables, header.sample_type, header.period_type),
            samples,
            total: sum,
            header,
        }
    }
}

/// A sample with its indices resolved.
#[derive(Debug)]
pub(super) struct SampleView<'a> {
    pub(super) total: i128,
    pub(super) sample: Sample,
    pub(super) frames: ShownFrames<'a>,
    pub(super) link: Option<Link>,
}

/// The frames of a sample.
#[derive(Debug)]
pub(super) enum ShownFrames<'a> {
    /// The frames, leaf first.
    All(Vec<Frame<'a>>),
    /// The frames are those of an earlier sample of the profile, with this number.
    OfSample(usize),
}

/// The long stacks of a profile that were already shown, by index, each with the number of the sample that
/// showed it.
pub(super) type LongStacks = HashMap<i32, usize>;

impl<'a> SampleView<'a> {
    /// Resolves a sample. `number` is its number in the profile.
    pub(super) fn new(
        tables: EncodedTables<'a>,
        number: usize,
        sample: Sample,
        shown: &mut LongStacks,
    ) -> Self {
        let frames = match shown.get(&sample.stack_index) {
            Some(&first) => ShownFrames::OfSample(first),
            None => {
                let frames = frames(tables, sample.stack_index);
                if frames.len() > LONG_STACK {
                    shown.insert(sample.stack_index, number);
                }
                ShownFrames::All(frames)
            }
        };
        Self { total: total(&sample), frames, link: tables.link(sample.link_index), sample }
    }
}

/// The name of a kind of profile, for example `samples/count by cpu/nanoseconds`.
pub(super) fn kind_of(
    tables: EncodedTables<'_>,
    sample_type: Option<ValueType>,
    period_type: Option<ValueType>,
) -> String {
    let name = |value_type| match tables.value_type(value_type) {
        ("", "") => "?".to_owned(),
        (name, unit) => format!("{name}/{unit}"),
    };
    format!("{} by {}", name(sample_type), name(period_type))
}

/// The total observed by a sample: the sum of its values, or the number of its timestamps if it has no
/// values.
pub(super) fn total(sample: &Sample) -> i128 {
    match &*sample.values {
        [] => sample.timestamps_unix_nano.len() as i128,
        values => values.iter().map(|&value| i128::from(value)).sum(),
    }
}
