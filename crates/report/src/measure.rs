//! The quantity that a profile measures, and its unit.

use otlpprof_model::types;
use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::wire::Profile;

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

    /// Whether the measure is wall-clock time, whose samples have the states of threads.
    pub fn is_wall_clock(&self) -> bool {
        self.name == types::WALL.name
    }

    /// Whether a profile of this measure is the state at a moment. Such states are never added up.
    pub fn is_snapshot(&self) -> bool {
        // The last two are Go's: the present goroutines, and the threads created so far.
        ["live-", "nativeleak-", "inuse-"].iter().any(|prefix| self.name.starts_with(prefix))
            || ["goroutine", "threadcreate"].contains(&&*self.name)
    }
}

/// The measure that a user calls by this name: the one of that name; otherwise one of those that belong to
/// the engine or the `profile.type` of that name, of which durations and sizes go before numbers of events.
/// `None` if there is none.
pub fn called<'m>(measures: impl Iterator<Item = &'m Measure> + Clone, name: &str) -> Option<&'m Measure> {
    let is_part = |measure: &Measure| {
        let of_engine = measure.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
        of_engine || types::ALL.iter().any(|known| known.name == measure.name && known.profile_type == name)
    };
    let rank = |measure: &&Measure| match &*measure.unit {
        _ if measure.name.ends_with("-time") || measure.name.ends_with("-space") => 0,
        "count" => 2,
        _ => 1,
    };
    let exact = measures.clone().find(|measure| measure.name == name);
    exact.or_else(|| measures.filter(|measure| is_part(measure)).min_by_key(rank))
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
    fn engines_and_profile_types_name_their_measures() {
        let measures = |names: &dyn Fn(&str) -> bool| {
            let known = types::ALL.iter().filter(|known| names(known.name));
            let measure = |known: &&otlpprof_model::ProfileType| Measure {
                name: known.name.into(),
                unit: known.sample_unit.into(),
            };
            known.map(measure).collect::<Vec<_>>()
        };
        let called =
            |measures: &[Measure], name| called(measures.iter(), name).map(|found| found.name.clone());
        let some = measures(&|name| name != "alloc-space" && name != "lock-time");
        assert_eq!(called(&some, "alloc").as_deref(), Some("alloc-samples"));
        assert_eq!(called(&some, "lock").as_deref(), Some("lock-count"));
        let all = measures(&|_| true);
        for (name, found) in [
            ("cpu", "cpu"),
            ("wall", "wall"),
            ("alloc", "alloc-space"),
            ("alloc-objects", "alloc-objects"),
            ("lock", "lock-time"),
            ("lock-contention", "lock-time"),
            ("wait", "wait-time"),
            ("exceptions", "exceptions"),
            ("nativemem", "nativemem-space"),
            ("nativemem-leak", "nativeleak-space"),
            ("live", "live-space"),
            ("live-heap", "live-space"),
            ("trace", "trace-time"),
            ("socket-io", "socket-time"),
        ] {
            assert_eq!(called(&all, name).as_deref(), Some(found), "{name}");
        }
        for unknown in ["", "al", "alloc-", "space"] {
            assert_eq!(called(&all, unknown), None, "{unknown}");
        }
    }

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
