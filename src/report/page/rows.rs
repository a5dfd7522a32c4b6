//! The rows of a page: selected samples of all measures, summed by stack, labels, time and side.

use std::collections::HashMap;

use foldhash::fast::RandomState as FastState;

use super::labels::{LabelSetId, Labels};
use crate::report::call_tree::NodeId;
use crate::report::last_states::LastStates;
use crate::report::measure::Measure;
use crate::report::profiled_time::ProfiledTime;
use crate::report::sample_reader::{ProfileContext, SampleSink, SelectedSample, timed_values};
use crate::report::selection::Window;

/// The key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowKey {
    /// The node of the youngest frame.
    pub node: NodeId,
    /// The labels.
    pub labels: LabelSetId,
    /// The time step.
    pub step: u32,
    /// 0 for the base of a comparison, else 1.
    pub side: u8,
}

/// The division of time into steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The start of step 0, in nanoseconds since 1970.
    pub start_ns: u64,
    /// The length of a step in nanoseconds; at least 1.
    pub step_ns: u64,
    /// The number of steps; at least 1.
    pub count: u32,
}

impl Steps {
    /// Divides the time from `start_ns` to `end_ns` into at most `most` steps, which begin at whole
    /// milliseconds.
    pub fn new(start_ns: u64, end_ns: u64, most: u32) -> Self {
        const MILLISECOND: u64 = 1_000_000;
        let start_ns = start_ns / MILLISECOND * MILLISECOND;
        let length = end_ns.saturating_sub(start_ns).max(1);
        let step_ns = length.div_ceil(u64::from(most)).div_ceil(MILLISECOND) * MILLISECOND;
        let count = u32::try_from(length.div_ceil(step_ns)).unwrap_or(most).max(1);
        Self { start_ns, step_ns, count }
    }

    /// The step of a time. Times outside of all steps are in the first or the last one.
    pub fn of(self, unix_ns: u64) -> u32 {
        let step = unix_ns.saturating_sub(self.start_ns) / self.step_ns;
        u32::try_from(step).unwrap_or(u32::MAX).min(self.count - 1)
    }
}

/// The rows of one measure.
type Rows = HashMap<RowKey, i64, FastState>;

/// The rows of a measure, and those of the states of a snapshot measure: by process, step and side, the last
/// state in the step.
#[derive(Debug)]
struct MeasureRows {
    measure: Measure,
    rows: Rows,
    states: LastStates<(u64, u32, u8), Rows>,
}

/// Collects rows. A base and a new set of profiles may be read one after the other.
#[derive(Debug)]
pub struct PageRows {
    window: Window,
    /// The side of the profiles that are being read.
    pub side: u8,
    /// The steps of time; `None` if times are not kept.
    steps: Option<Steps>,
    /// The measures that are wanted; all if there are none.
    wanted: Vec<Measure>,
    measures: Vec<MeasureRows>,
    labels: Labels,
    /// By the number of a sample's labels in the present message.
    of_labels: HashMap<u64, LabelSetId, FastState>,
    /// The measure of the present profile, by its number.
    present: usize,
    /// The time that the profiles of each side cover.
    times: [ProfiledTime; 2],
}

/// A row with its value and, in a snapshot measure, its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The key.
    pub key: RowKey,
    /// The value.
    pub value: i64,
    /// The number of the process; 0 unless the measure is a snapshot.
    pub series: u32,
}

impl PageRows {
    /// Collects samples of the wanted measures in the window; of all measures if none is named. Labels with
    /// more than `most_values` values are not kept.
    pub fn new(wanted: Vec<Measure>, window: Window, steps: Option<Steps>, most_values: usize) -> Self {
        Self {
            window,
            side: 1,
            steps,
            wanted,
            measures: Vec::new(),
            labels: Labels::new(most_values),
            of_labels: HashMap::default(),
            present: 0,
            times: Default::default(),
        }
    }

    /// The steps of time.
    pub fn steps(&self) -> Option<Steps> {
        self.steps
    }

    /// The labels of the rows.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The time that the profiles of a side cover, in ns.
    pub fn profiled_ns(&self, side: u8) -> u64 {
        self.times[usize::from(side)].total_ns()
    }

    /// The measures, each with its rows sorted by node.
    pub fn take(&mut self) -> Vec<(Measure, Vec<Row>)> {
        std::mem::take(&mut self.measures).into_iter().map(MeasureRows::sorted).collect()
    }

    fn step(&self, unix_ns: u64) -> u32 {
        self.steps.map_or(0, |steps| steps.of(unix_ns))
    }
}

impl MeasureRows {
    fn new(measure: Measure) -> Self {
        Self { measure, rows: Rows::default(), states: LastStates::default() }
    }

    fn sorted(self) -> (Measure, Vec<Row>) {
        let mut processes = HashMap::new();
        let mut rows: Vec<_> =
            self.rows.into_iter().map(|(key, value)| Row { key, value, series: 0 }).collect();
        let mut states: Vec<_> = self.states.into_contents().collect();
        states.sort_unstable_by_key(|(state, _)| *state);
        for ((process, ..), of_state) in states {
            let next = u32::try_from(processes.len()).unwrap_or(u32::MAX);
            let series = *processes.entry(process).or_insert(next);
            rows.extend(of_state.into_iter().map(|(key, value)| Row { key, value, series }));
        }
        rows.sort_unstable_by_key(|row| (row.key, row.series));
        (self.measure, rows)
    }
}

impl SampleSink for PageRows {
    fn begin_message(&mut self) {
        self.of_labels.clear();
    }

    fn begin_profile(&mut self, profile: &ProfileContext<'_>) -> bool {
        if !self.wanted.is_empty() && !self.wanted.contains(&profile.measure) {
            return false;
        }
        let known = self.measures.iter().position(|known| known.measure == profile.measure);
        self.present = known.unwrap_or_else(|| {
            self.measures.push(MeasureRows::new(profile.measure.clone()));
            self.measures.len() - 1
        });
        self.times[usize::from(self.side)].add(profile);
        let (step, side) = (self.step(profile.start_ns), self.side);
        // A later state replaces an earlier one, even if it has no selected sample.
        !profile.measure.is_snapshot()
            || self.measures[self.present]
                .states
                .at((profile.process, step, side), profile.start_ns)
                .is_some()
    }

    fn take(&mut self, profile: &ProfileContext<'_>, sample: &SelectedSample<'_>) {
        let labels = match self.of_labels.get(&sample.labels) {
            Some(&known) => known,
            None => {
                let labels = self.labels.set_of(profile.tables, &sample.sample.attribute_indices);
                self.of_labels.insert(sample.labels, labels);
                labels
            }
        };
        let (steps, side) = (self.steps, self.side);
        let of_start = self.step(profile.start_ns);
        let measure = &mut self.measures[self.present];
        let rows = match profile.measure.is_snapshot() {
            true => match measure.states.at((profile.process, of_start, side), profile.start_ns) {
                Some(rows) => rows,
                None => return,
            },
            false => &mut measure.rows,
        };
        timed_values(profile, sample.sample, self.window, |unix_ns, value| {
            let step = steps.map_or(0, |steps| steps.of(unix_ns));
            let sum = rows.entry(RowKey { node: sample.node, labels, step, side }).or_default();
            *sum = sum.saturating_add(value);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_cover_the_time_and_no_more_than_the_most() {
        let second = 1_000_000_000;
        let steps = Steps::new(5 * second, 15 * second, 360);
        assert_eq!((steps.step_ns, steps.count), (28_000_000, 358));
        assert_eq!((steps.of(0), steps.of(5 * second), steps.of(15 * second - 1)), (0, 0, 357));
        assert_eq!(steps.of(u64::MAX), 357);
        assert_eq!(Steps::new(7, 7, 360), Steps { start_ns: 0, step_ns: 1_000_000, count: 1 });
    }
}
