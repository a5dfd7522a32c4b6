//! The samples of a pprof profile, summed by stack, labels and process.

use otlpprof_model::{AttributeSetId, StackId};
use otlpprof_pprof::messages::ValueType;

use otlpprof_otlp::lookup::DictionaryTables as _;

use super::labels::LabelSets;
use super::tables::ProfileTables;
use crate::export::processes::Processes;
use crate::measure::{Measure, Weight};
use crate::observations::sum_in;
use crate::profile_context::ProfileContext;
use crate::sample_reader::{SampleSink, SelectedSample};
use crate::selection::Window;
use crate::summed::Summed;

/// The identity of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampleKey {
    /// The stack.
    pub stack: StackId,
    /// The labels.
    pub labels: AttributeSetId,
    /// The number of the process.
    pub process: u32,
}

/// A type of values.
#[derive(Debug)]
pub struct Kind {
    measure: Measure,
    /// The type in the file.
    pub sample_type: ValueType,
    /// The quantity between two samples.
    pub period_type: Option<ValueType>,
    /// The amount of that quantity; `Some(0)` if profiles differ.
    pub period: Option<i64>,
    /// The values.
    pub sums: Summed<SampleKey>,
}

/// Collects the samples of one pprof profile.
#[derive(Debug)]
pub struct PprofSamples {
    window: Window,
    /// The texts, functions, mappings, locations and stacks.
    pub tables: ProfileTables,
    /// The labels.
    pub labels: LabelSets,
    /// The processes.
    pub processes: Processes,
    /// The types of values, the one that is shown first at the end.
    pub kinds: Vec<Kind>,
    /// The first start and the last end of a profile, in nanoseconds since 1970.
    pub times: Option<(u64, u64)>,
    /// Whether samples had times of their own.
    pub has_times: bool,
    /// The number of the present profile's measure.
    present: usize,
    /// The number of the present profile's process.
    process: u32,
}

impl PprofSamples {
    /// Collects samples of the measures in the window. The last measure is the one that is shown first.
    pub fn new(measures: Vec<Measure>, window: Window, weight: Weight) -> Self {
        let mut tables = ProfileTables::default();
        let kinds = measures.into_iter().map(|measure| Kind {
            sample_type: ValueType {
                quantity: tables.text(&measure.name),
                unit: tables.text(weight.unit(&measure)),
            },
            measure,
            period_type: None,
            period: None,
            sums: Summed::default(),
        });
        let kinds = kinds.collect();
        Self {
            window,
            tables,
            labels: LabelSets::default(),
            processes: Processes::default(),
            kinds,
            times: None,
            has_times: false,
            present: 0,
            process: 0,
        }
    }
}

impl Kind {
    /// Takes the types and the period of a profile.
    fn describe(&mut self, texts: &mut ProfileTables, profile: &ProfileContext<'_>) {
        let (name, _) = profile.tables.value_type(profile.header.sample_type);
        // Values that count periods have become amounts of the measure.
        if name != "samples" && !name.is_empty() {
            self.sample_type.quantity = texts.text(name);
        }
        let (name, unit) = profile.tables.value_type(profile.header.period_type);
        self.period_type = Some(ValueType { quantity: texts.text(name), unit: texts.text(unit) });
        let period = profile.header.period;
        self.period = Some(if self.period.is_none_or(|known| known == period) { period } else { 0 });
    }
}

impl SampleSink for PprofSamples {
    fn begin_message(&mut self) {
        self.tables.begin_message();
        self.labels.begin_message();
    }

    fn begin_profile(&mut self, profile: &ProfileContext<'_>) -> bool {
        let Some(at) = self.kinds.iter().position(|kind| kind.measure == profile.measure) else {
            return false;
        };
        let kind = &mut self.kinds[at];
        if !kind.sums.begin(profile) {
            return false;
        }
        kind.describe(&mut self.tables, profile);
        (self.present, self.process) = (at, self.processes.of(profile));
        if profile.start_ns != 0 {
            let end_ns = profile.start_ns.saturating_add(profile.duration_ns);
            let (first, last) = self.times.unwrap_or((profile.start_ns, end_ns));
            self.times = Some((first.min(profile.start_ns), last.max(end_ns)));
        }
        true
    }

    fn take(&mut self, profile: &ProfileContext<'_>, sample: &SelectedSample<'_>) {
        let sum = sum_in(profile, sample.sample, self.window);
        if sum == 0 {
            return;
        }
        self.has_times |= !sample.sample.timestamps_unix_nano.is_empty();
        let key = SampleKey {
            stack: self.tables.stack(profile.tables, sample.sample.stack_index),
            labels: self.labels.of(&mut self.tables, profile.tables, sample),
            process: self.process,
        };
        self.kinds[self.present].sums.add(profile, key, sum);
    }
}
