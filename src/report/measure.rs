//! The quantity that a profile measures, and its unit.

use crate::model::types;
use crate::otlp::encoded::EncodedTables;
use crate::otlp::wire::Profile;

/// A measured quantity. Values of one quantity and unit can be added.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Measure {
    /// The name of the quantity, such as `cpu` or `alloc-space`.
    pub name: String,
    /// The unit of the values, such as `nanoseconds`.
    pub unit: String,
}

/// The names of the measures of which one is shown if none is chosen, in the order of preference.
pub const PREFERRED: [&str; 2] = ["cpu", "wall"];

/// The measure of a profile, and the factor from its samples' values to values of the measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileMeasure {
    /// The measure.
    pub measure: Measure,
    /// The factor: the period, where values count periods. Periods may differ from message to message.
    pub factor: i64,
    /// Whether values count periods, each of which is one sample.
    pub counts_periods: bool,
}

/// The quantity by which stacks are weighed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// The amount that is measured: time, bytes, events.
    #[default]
    Amount,
    /// The number of samples: periods, where values count periods; else one for each time of a sample, or one
    /// for each value of a sample without times.
    Samples,
}

impl Weight {
    /// The unit in which a measure is shown.
    pub fn unit(self, measure: &Measure) -> &str {
        match self {
            Self::Amount => &measure.unit,
            Self::Samples => "count",
        }
    }
}

impl Measure {
    /// The quantity in words; its name if it is not one of this profiler's.
    pub fn title(&self) -> &str {
        match &*self.name {
            "cpu" => "CPU time",
            "wall" => "Wall-clock time",
            "alloc-samples" => "Sampled allocations",
            "alloc-space" => "Allocated memory",
            "alloc-objects" => "Allocated objects",
            "live-space" => "Live heap",
            "live-objects" => "Live objects",
            "lock-count" => "Waits for locks",
            "lock-time" => "Time in waits for locks",
            "wait-count" => "Calls of Object.wait",
            "wait-time" => "Time in Object.wait",
            "nativemem-space" => "Native memory",
            "nativemem-objects" => "Native allocations",
            "nativeleak-space" => "Native memory not freed",
            "nativeleak-objects" => "Native allocations not freed",
            "exceptions" => "Exceptions",
            "trace-count" => "Traced calls",
            "trace-time" => "Time in traced calls",
            other => other,
        }
    }

    /// Whether a profile of this measure is the state at a moment. Such states are never added up.
    pub fn is_snapshot(&self) -> bool {
        // The last two are Go's: the present goroutines, and the threads created so far.
        ["live-", "nativeleak-", "inuse-"].iter().any(|prefix| self.name.starts_with(prefix))
            || ["goroutine", "threadcreate"].contains(&&*self.name)
    }
}

impl ProfileMeasure {
    /// The measure of a profile.
    pub fn of(tables: EncodedTables<'_>, header: &Profile) -> Self {
        let (sample_type, sample_unit) = tables.value_type(header.sample_type);
        let (period_type, period_unit) = tables.value_type(header.period_type);
        let counts_periods = sample_type == "samples"
            && sample_unit == "count"
            && header.period > 0
            && !period_type.is_empty();
        let known = types::ALL.iter().find(|known| {
            (known.sample_type, known.sample_unit, known.period_type, known.period_unit)
                == (sample_type, sample_unit, period_type, period_unit)
        });
        let name = match known {
            Some(known) => known.name.to_owned(),
            None if counts_periods => period_type.to_owned(),
            None => sample_type.replace('_', "-"),
        };
        let (unit, factor) = if counts_periods { (period_unit, header.period) } else { (sample_unit, 1) };
        Self { measure: Measure { name, unit: unit.to_owned() }, factor, counts_periods }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_at_a_moment_are_snapshots() {
        let is_snapshot = |name: &str| Measure { name: name.into(), unit: "bytes".into() }.is_snapshot();
        for snapshot in [&types::LIVE_SPACE, &types::LIVE_OBJECTS, &types::NATIVELEAK_SPACE] {
            assert!(is_snapshot(snapshot.name), "{}", snapshot.name);
        }
        assert!(is_snapshot("inuse-space"));
        assert!(!is_snapshot(types::ALLOC_SPACE.name));
        assert!(!is_snapshot(types::CPU.name));
    }
}
