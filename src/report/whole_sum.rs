//! The sum of all values of a measure, selected or not: the whole of which a selection is a part.

use super::measure::{Measure, Weight};
use super::sample_reader::{ProfileContext, sum_in};
use super::selection::Window;
use super::state_times::StateTimes;
use super::summed::Summed;
use crate::otlp::encoded::EncodedMessage;
use crate::otlp::encoded_profiles::EncodedScope;

/// The sum of all values of one measure.
#[derive(Debug)]
pub struct WholeSum<'m> {
    measure: &'m Measure,
    weight: Weight,
    /// Numbers processes.
    states: StateTimes,
    sums: Summed<()>,
}

impl<'m> WholeSum<'m> {
    /// Sums nothing yet.
    pub fn new(measure: &'m Measure, weight: Weight) -> Self {
        Self { measure, weight, states: StateTimes::default(), sums: Summed::default() }
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
                    let sums = profile.samples().map(|sample| sum_in(&context, &sample, Window::default()));
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
