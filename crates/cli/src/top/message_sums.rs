//! The sums of one message: by measure, and by stack below its thread.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use otlpprof_model::attribute_keys;
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_report::call_tree::NodeId;
use otlpprof_report::measure::Measure;
use otlpprof_report::observations::sum_in;
use otlpprof_report::profile_context::ProfileContext;
use otlpprof_report::sample_reader::{SampleReader, SampleSink, SelectedSample};
use otlpprof_report::selection::Window;

/// Values by stack. The root frame of a stack is its thread.
pub(super) type StackValues = HashMap<NodeId, i64, RandomState>;

/// Values by measure and process. A message has few of them.
pub(super) type MeasureValues = Vec<(Measure, u64, StackValues)>;

/// The sums of one message.
#[derive(Clone, Debug, Default)]
pub(super) struct MessageSums {
    /// The time that the message covers: the time of its first profile, in nanoseconds since 1970.
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// The service's name, if the message has one.
    pub(super) service: Option<String>,
    pub(super) values: MeasureValues,
}

impl MessageSums {
    /// Reads the selected samples of a message.
    pub(super) fn read(reader: &mut SampleReader<'_>, message: &EncodedMessage) -> Self {
        let mut sink = Sink { sums: Self::default(), has_times: false, present: 0 };
        reader.read(message, &mut sink);
        sink.sums
    }
}

/// The values of a measure and process, which are added if there are none.
pub(super) fn values_of<'v>(
    values: &'v mut MeasureValues,
    measure: &Measure,
    process: u64,
) -> &'v mut StackValues {
    let place = place_of(values, measure, process);
    &mut values[place].2
}

fn place_of(values: &mut MeasureValues, measure: &Measure, process: u64) -> usize {
    let known = values.iter().position(|(known, of, _)| (known, *of) == (measure, process));
    known.unwrap_or_else(|| {
        values.push((measure.clone(), process, StackValues::default()));
        values.len() - 1
    })
}

/// Adds values to others, `factor` times each. Sums of 0 are removed.
pub(super) fn add(to: &mut StackValues, values: &StackValues, factor: i64) {
    for (&node, &value) in values {
        let sum = to.entry(node).or_default();
        *sum = sum.saturating_add(value.saturating_mul(factor));
        if *sum == 0 {
            to.remove(&node);
        }
    }
}

struct Sink {
    sums: MessageSums,
    has_times: bool,
    /// The place of the present profile's values.
    present: usize,
}

impl SampleSink for Sink {
    fn begin_message(&mut self) {}

    fn begin_profile(&mut self, profile: &ProfileContext<'_>) -> bool {
        let Self { sums, has_times, present } = self;
        if !*has_times {
            *has_times = true;
            sums.start_ns = profile.start_ns;
            sums.end_ns = profile.start_ns.saturating_add(profile.duration_ns);
            let name = profile.resource.iter().find(|(key, _)| key == attribute_keys::SERVICE_NAME);
            sums.service = name.map(|(_, name)| name.clone());
        }
        *present = place_of(&mut sums.values, &profile.measure, profile.process);
        true
    }

    fn take(&mut self, profile: &ProfileContext<'_>, sample: &SelectedSample<'_>) {
        let value = sum_in(profile, sample.sample, Window::default());
        if value != 0 {
            let sum = self.sums.values[self.present].2.entry(sample.node).or_default();
            *sum = sum.saturating_add(value);
        }
    }
}
