//! A profile whose samples are read, with what its header and its resource say of them.

use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::wire::Profile;

use super::measure::{Measure, ProfileMeasure, Weight};
use super::selection::Window;

/// A profile whose samples are being read.
#[derive(Debug)]
pub struct ProfileContext<'p> {
    /// The tables of the profile's message.
    pub tables: EncodedTables<'p>,
    /// The measure.
    pub measure: Measure,
    /// Whether the profile is the state at a moment ([`Measure::is_snapshot`]).
    pub is_snapshot: bool,
    /// The factor from values to the measure's unit.
    pub factor: i64,
    /// Whether values count periods, each of which is one sample.
    pub counts_periods: bool,
    /// The quantity by which stacks are weighed.
    pub weight: Weight,
    /// A number that is equal for equal resources.
    pub process: u64,
    /// The attributes of the resource, with their values as text.
    pub resource: &'p [(String, String)],
    /// The profile without its samples and its payload.
    pub header: &'p Profile,
    /// The start, in nanoseconds since 1970.
    pub start_ns: u64,
    /// The length, in nanoseconds.
    pub duration_ns: u64,
}

impl<'p> ProfileContext<'p> {
    /// The profile with this header, of a process with this number and these attributes.
    pub(super) fn new(
        tables: EncodedTables<'p>,
        header: &'p Profile,
        weight: Weight,
        process: u64,
        resource: &'p [(String, String)],
    ) -> Self {
        let ProfileMeasure { measure, factor, counts_periods } = ProfileMeasure::of(tables, header);
        Self {
            tables,
            is_snapshot: measure.is_snapshot(),
            measure,
            factor,
            counts_periods,
            weight,
            process,
            resource,
            header,
            start_ns: header.time_unix_nano,
            duration_ns: header.duration_nano,
        }
    }

    /// The part of the profile's time in which its samples can be in the window, in ns: all of a profile that
    /// begins there, since samples without a time have the profile's start.
    pub(super) fn ns_in(&self, window: Window) -> u64 {
        let end_ns = self.start_ns.saturating_add(self.duration_ns).min(window.to_ns);
        match window.has(self.start_ns) {
            true => self.duration_ns,
            false => end_ns.saturating_sub(window.from_ns),
        }
    }

    /// The weight of a value.
    pub(super) fn weigh(&self, value: i64) -> i64 {
        match self.weight {
            Weight::Amount => value.saturating_mul(self.factor),
            Weight::Samples if self.counts_periods => value,
            Weight::Samples => 1,
        }
    }

    /// Whether samples of the profile may be in the window. Samples without a time have the profile's start.
    pub(super) fn may_have_samples_in(&self, window: Window) -> bool {
        let end_ns = self.start_ns.saturating_add(self.duration_ns);
        self.start_ns < window.to_ns && (end_ns >= window.from_ns || window.has(self.start_ns))
    }
}
