//! The sum of all values of a measure, selected or not: the whole of which a selection is a part. It lacks
//! idle threads if the selection lacks them.

use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_otlp::encoded_profiles::EncodedScope;
use otlpprof_otlp::wire::Sample;

use super::idle_threads::Idleness;
use super::measure::{Measure, Weight};
use super::observations::sum_in;
use super::profile_context::ProfileContext;
use super::selection::Window;
use super::state_times::StateTimes;
use super::summed::Summed;

/// The sum of all values of one measure.
#[derive(Debug)]
pub struct WholeSum<'m> {
    measure: &'m Measure,
    weight: Weight,
    without_idle: bool,
    /// Numbers processes.
    states: StateTimes,
    sums: Summed<()>,
}

impl<'m> WholeSum<'m> {
    /// Sums nothing yet. `without_idle` is that of the selection.
    pub fn new(measure: &'m Measure, weight: Weight, without_idle: bool) -> Self {
        Self { measure, weight, without_idle, states: StateTimes::default(), sums: Summed::default() }
    }

    /// Adds the values of a message.
    pub fn add(&mut self, message: &EncodedMessage) {
        let tables = message.tables();
        for resource in message.resources() {
            for profile in resource.scopes().flat_map(EncodedScope::profiles) {
                let header = profile.header();
                let mut context = ProfileContext::new(tables, &header, self.weight, 0, &[]);
                if context.measure != *self.measure {
                    continue;
                }
                if context.is_snapshot {
                    context.process = self.states.process(tables, resource);
                }
                if self.sums.begin(&context) {
                    let is_idle = |sample: &Sample| {
                        Idleness::of(&context.measure, tables, &sample.attribute_indices)
                            .is_idle(tables, sample.stack_index)
                    };
                    let samples = profile.samples().filter(|sample| !self.without_idle || !is_idle(sample));
                    let sums = samples.map(|sample| sum_in(&context, &sample, Window::default()));
                    let sum = sums.fold(0, i64::saturating_add);
                    self.sums.add(&context, (), sum);
                }
            }
        }
    }

    /// The sum.
    pub fn sum(&self) -> i64 {
        self.sums.values().fold(0, |sum, ((), value)| sum.saturating_add(value))
    }
}
