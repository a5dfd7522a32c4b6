//! What is said of a profile, whatever the format.

use crate::otlp::frames::{Frame, frames};
use crate::otlp::lookup::Lookup;
use crate::otlp::wire::{Link, Profile, Sample, Value};

/// A profile's header and totals.
#[derive(Debug)]
pub(super) struct ProfileSummary<'a> {
    /// The kind and unit of values.
    pub(super) sample_type: (&'a str, &'a str),
    /// The kind and unit of the period.
    pub(super) period_type: (&'a str, &'a str),
    /// The sum of all values.
    pub(super) total: i128,
    /// Attributes by key.
    pub(super) attributes: Vec<(&'a str, Option<&'a Value>)>,
}

impl<'a> ProfileSummary<'a> {
    pub(super) fn new(tables: Lookup<'a>, profile: &'a Profile) -> Self {
        Self {
            sample_type: tables.value_type(profile.sample_type),
            period_type: tables.value_type(profile.period_type),
            total: profile.samples.iter().map(total).sum(),
            attributes: tables.attributes(&profile.attribute_indices).collect(),
        }
    }

    /// What was sampled, in one line without totals.
    pub(super) fn kind(&self) -> String {
        kind(self.sample_type, self.period_type)
    }
}

/// `samples/count by cpu/nanoseconds`.
pub(super) fn kind(sample_type: (&str, &str), period_type: (&str, &str)) -> String {
    let name = |(name, unit): (&str, &str)| match (name, unit) {
        ("", "") => "?".to_owned(),
        (name, unit) => format!("{name}/{unit}"),
    };
    format!("{} by {}", name(sample_type), name(period_type))
}

/// All that was observed by a sample: the sum of its values, or, where it has none, one for each timestamp.
pub(super) fn total(sample: &Sample) -> i128 {
    match &*sample.values {
        [] => sample.timestamps_unix_nano.len() as i128,
        values => values.iter().map(|&value| i128::from(value)).sum(),
    }
}

/// A sample with its indices resolved.
#[derive(Debug)]
pub(super) struct SampleView<'a> {
    pub(super) total: i128,
    pub(super) sample: &'a Sample,
    pub(super) frames: Vec<Frame<'a>>,
    pub(super) attributes: Vec<(&'a str, Option<&'a Value>)>,
    pub(super) link: Option<&'a Link>,
}

impl<'a> SampleView<'a> {
    pub(super) fn new(tables: Lookup<'a>, sample: &'a Sample) -> Self {
        Self {
            total: total(sample),
            sample,
            frames: frames(tables, sample.stack_index),
            attributes: tables.attributes(&sample.attribute_indices).collect(),
            link: tables.link(sample.link_index),
        }
    }
}
