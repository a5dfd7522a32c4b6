//! The rows of a page: selected samples of all measures, summed by stack, labels, time and side.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState as FastState;

use super::labels::{LabelSetId, Labels};
use super::steps::Steps;
use crate::call_tree::{NodeId, ROOT};
use crate::last_states::LastStates;
use crate::measure::{Measure, Weight};
use crate::observations::timed_values;
use crate::profile_context::ProfileContext;
use crate::profiled_time::ProfiledTime;
use crate::sample_reader::{SampleSink, SelectedSample};
use crate::selection::Window;
use crate::summed;

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
    /// The window of time of the profiles that are being read.
    pub window: Window,
    /// The side of the profiles that are being read.
    pub side: u8,
    /// The keys of the resource's attributes that are labels.
    pub resource_keys: BTreeSet<String>,
    /// The steps of time; `None` if times are not kept.
    steps: Option<Steps>,
    /// Steps are merged where there are more rows than this.
    pub most_rows: usize,
    /// The measures that are wanted; all if there are none.
    wanted: Vec<Measure>,
    measures: Vec<MeasureRows>,
    labels: Labels,
    /// By the number of a sample's labels in the present message, of the present process.
    of_labels: HashMap<u64, LabelSetId, FastState>,
    /// The process of the present profile; `None` before the first one of a message.
    process: Option<u64>,
    /// The measure of the present profile, by its number, and the step of its start.
    present: usize,
    start_step: u32,
    /// The time that the profiles of each side cover.
    times: [ProfiledTime; 2],
    /// The quantity by which stacks are weighed.
    weight: Weight,
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
            resource_keys: BTreeSet::new(),
            steps,
            most_rows: usize::MAX,
            wanted,
            measures: Vec::new(),
            labels: Labels::new(most_values),
            of_labels: HashMap::default(),
            process: None,
            present: 0,
            start_step: 0,
            times: Default::default(),
            weight: Weight::default(),
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

    /// Keeps the label with this key, however many values it has.
    pub fn keep_label(&mut self, key: &'static str) {
        self.labels.kept = Some(key);
    }

    /// The time that the profiles of a side cover.
    pub fn time(&self, side: u8) -> &ProfiledTime {
        &self.times[usize::from(side)]
    }

    /// Merges steps until there are few enough rows, or few steps.
    pub fn merge_steps(&mut self) {
        while self.measures.iter().map(MeasureRows::len).sum::<usize>() > self.most_rows
            && let Some((steps, factor)) = self.steps.and_then(Steps::longer)
        {
            self.measures.iter_mut().for_each(|measure| measure.merge_steps(factor));
            self.steps = Some(steps);
        }
    }

    /// The quantity by which stacks are weighed.
    pub fn weight(&self) -> Weight {
        self.weight
    }

    /// Whether a side has a value other than 0.
    pub fn has_values(&self, side: u8) -> bool {
        let rows = self.measures.iter().flat_map(|measure| measure.states.contents().chain([&measure.rows]));
        rows.flatten().any(|(key, &value)| key.side == side && value != 0)
    }

    /// The sum of a side's values of a measure that is no snapshot.
    pub fn total(&self, measure: &str, side: u8) -> i64 {
        let rows = self.measures.iter().filter(|known| known.measure.name == measure);
        let of_side = rows.flat_map(|known| &known.rows).filter(|(key, _)| key.side == side);
        of_side.fold(0, |sum, (_, &value)| sum.saturating_add(value))
    }

    /// Puts a measure before the others.
    pub fn begin_with(&mut self, measure: &Measure) {
        if let Some(at) = self.measures.iter().position(|known| known.measure == *measure) {
            self.measures[..=at].rotate_right(1);
        }
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

    fn len(&self) -> usize {
        self.rows.len() + self.states.contents().map(Rows::len).sum::<usize>()
    }

    /// Makes one step of each `factor` steps.
    fn merge_steps(&mut self, factor: u32) {
        for (key, value) in std::mem::take(&mut self.rows) {
            add(&mut self.rows, RowKey { step: key.step / factor, ..key }, value);
        }
        for ((process, step, side), start_ns, of_state) in std::mem::take(&mut self.states).into_states() {
            if let Some(kept) = self.states.at((process, step / factor, side), start_ns) {
                for (key, value) in of_state {
                    add(kept, RowKey { step: key.step / factor, ..key }, value);
                }
            }
        }
    }

    fn sorted(self) -> (Measure, Vec<Row>) {
        let mut processes = HashMap::new();
        let mut rows: Vec<_> =
            self.rows.into_iter().map(|(key, value)| Row { key, value, series: 0 }).collect();
        let mut states: Vec<_> = self.states.into_states().collect();
        states.sort_unstable_by_key(|(state, ..)| *state);
        for ((process, step, side), _, of_state) in states {
            let next = u32::try_from(processes.len()).unwrap_or(u32::MAX);
            let series = *processes.entry(process).or_insert(next);
            if of_state.is_empty() {
                // Without a row the page would show the state before.
                let key = RowKey { node: ROOT, labels: 0, step, side };
                rows.push(Row { key, value: 0, series });
            }
            rows.extend(of_state.into_iter().map(|(key, value)| Row { key, value, series }));
        }
        rows.sort_unstable_by_key(|row| (row.key, row.series));
        (self.measure, rows)
    }
}

fn add(rows: &mut Rows, key: RowKey, value: i64) {
    let sum = rows.entry(key).or_default();
    *sum = sum.saturating_add(value);
}

impl SampleSink for PageRows {
    fn begin_message(&mut self) {
        self.of_labels.clear();
        self.process = None;
    }

    fn begin_profile(&mut self, profile: &ProfileContext<'_>) -> bool {
        if !self.wanted.is_empty() && !self.wanted.contains(&profile.measure) {
            return false;
        }
        if self.process.replace(profile.process) != Some(profile.process) {
            self.of_labels.clear();
        }
        self.merge_steps();
        let known = self.measures.iter().position(|known| known.measure == profile.measure);
        self.present = known.unwrap_or_else(|| {
            self.measures.push(MeasureRows::new(profile.measure.clone()));
            self.measures.len() - 1
        });
        self.times[usize::from(self.side)].add(profile, self.window);
        self.weight = profile.weight;
        let (step, side) = (self.step(profile.start_ns), self.side);
        self.start_step = step;
        // A later state replaces an earlier one, even if it has no selected sample.
        !profile.is_snapshot
            || self.measures[self.present]
                .states
                .at((profile.process, step, side), profile.start_ns)
                .is_some()
    }

    fn prepare(&self, sample: &SelectedSample<'_>) {
        if sample.sample.timestamps_unix_nano.is_empty()
            && let Some(&labels) = self.of_labels.get(&sample.labels)
        {
            let (node, step, side) = (sample.node, self.start_step, self.side);
            summed::prepare(&self.measures[self.present].rows, &RowKey { node, labels, step, side });
        }
    }

    fn take(&mut self, profile: &ProfileContext<'_>, sample: &SelectedSample<'_>) {
        let labels = match self.of_labels.get(&sample.labels) {
            Some(&known) => known,
            None => {
                let of_resource = profile.resource.iter().filter(|(key, _)| self.resource_keys.contains(key));
                let of_sample = &sample.sample.attribute_indices;
                let labels = self.labels.set_of(profile.tables, of_resource, of_sample, sample.thread);
                self.of_labels.insert(sample.labels, labels);
                labels
            }
        };
        let (steps, side) = (self.steps, self.side);
        let of_start = self.step(profile.start_ns);
        let is_state = profile.is_snapshot;
        let measure = &mut self.measures[self.present];
        let rows = match is_state {
            true => match measure.states.at((profile.process, of_start, side), profile.start_ns) {
                Some(rows) => rows,
                None => return,
            },
            false => &mut measure.rows,
        };
        timed_values(profile, sample.sample, self.window, |unix_ns, value| {
            // A state is one moment, whatever times its samples have.
            let step = if is_state { of_start } else { steps.map_or(0, |steps| steps.of(unix_ns)) };
            add(rows, RowKey { node: sample.node, labels, step, side }, value);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(entries: &[(u32, u32, i64)]) -> Rows {
        let key = |node, step| RowKey { node, labels: 0, step, side: 1 };
        entries.iter().map(|&(node, step, value)| (key(node, step), value)).collect()
    }

    fn measure(name: &str) -> MeasureRows {
        MeasureRows::new(Measure { name: name.into(), unit: "bytes".into() })
    }

    #[test]
    fn merged_steps_have_the_sums_of_samples_and_the_last_of_states() {
        let mut samples = measure("alloc-space");
        samples.rows = rows(&[(1, 0, 3), (1, 1, 4), (2, 1, 5), (1, 2, 6)]);
        samples.merge_steps(2);
        assert_eq!(samples.rows, rows(&[(1, 0, 7), (2, 0, 5), (1, 1, 6)]));

        let mut states = measure("live-space");
        for (start_ns, step) in [(20, 1), (10, 0), (30, 2)] {
            let state = states.states.at((7, step, 1), start_ns).unwrap();
            *state = rows(&[(1, step, i64::from(step) + 1)]);
        }
        states.merge_steps(2);
        assert_eq!(states.len(), 2);
        let (_, sorted) = states.sorted();
        let found: Vec<_> = sorted.iter().map(|row| (row.key.step, row.value)).collect();
        assert_eq!(found, [(0, 2), (1, 3)]);
    }

    #[test]
    fn too_many_rows_merge_steps_until_few_steps_remain() {
        let steps = Steps { start_ns: 0, step_ns: 1_000_000, count: 1_000 };
        let mut page = PageRows::new(Vec::new(), Window { from_ns: 0, to_ns: u64::MAX }, Some(steps), 10);
        let mut samples = measure("alloc-space");
        samples.rows = (0..1_000).map(|step| (RowKey { node: 1, labels: 0, step, side: 1 }, 1)).collect();
        page.measures.push(samples);
        page.merge_steps();
        assert_eq!((page.steps(), page.measures[0].len()), (Some(steps), 1_000));
        page.most_rows = 10;
        page.merge_steps();
        let merged = Steps { step_ns: 2_000_000, count: 500, ..steps };
        assert_eq!((page.steps(), page.measures[0].len()), (Some(merged), 500));
    }

    /// Regression: a page went on to show the state before one without samples.
    #[test]
    fn a_state_without_samples_is_a_row_without_value() {
        let mut states = measure("live-space");
        *states.states.at((7, 0, 1), 10).unwrap() = rows(&[(1, 0, 5)]);
        states.states.at((7, 1, 1), 20).unwrap();
        let (_, sorted) = states.sorted();
        let found: Vec<_> = sorted.iter().map(|row| (row.key.node, row.key.step, row.value)).collect();
        assert_eq!(found, [(ROOT, 1, 0), (1, 0, 5)]);
    }
}
