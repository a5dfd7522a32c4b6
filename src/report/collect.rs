//! Collects the samples of one measure: the self values of the nodes of a tree, by group.
//!
//! Values are in the measure's unit. The states of a snapshot measure are not added up: of each process the
//! last one counts.

use std::collections::{BTreeMap, HashMap, HashSet};

use foldhash::fast::RandomState as FastState;

use super::call_tree::NodeId;
use super::measure::Measure;
use super::sample_reader::{ProfileContext, SampleSink, SelectedSample, timed_values};
use super::selection::{Window, text_of};

/// The self values of nodes.
pub type SelfValues = HashMap<NodeId, i64, FastState>;

/// A group of samples, by its number in the order of appearance.
type GroupId = usize;

/// The collected samples of one measure.
#[derive(Debug)]
pub struct Collected<'w> {
    measure: &'w Measure,
    window: Window,
    /// The attribute by whose values samples are grouped.
    by: Option<&'w str>,
    /// The groups by name: a value of that attribute; empty for samples without it.
    group_ids: HashMap<String, GroupId>,
    groups: BTreeMap<GroupId, SelfValues>,
    /// Of a snapshot measure: by process, the time of the last state and its values.
    snapshots: HashMap<u64, (u64, BTreeMap<GroupId, SelfValues>)>,
    /// The profiled intervals: process and start, each with its length in ns.
    intervals: HashMap<(u64, u64), u64>,
    /// By the number of a sample's labels in the present message.
    of_labels: HashMap<u64, GroupId, FastState>,
}

impl<'w> Collected<'w> {
    /// Collects samples of `measure` in the window. Samples are grouped by the values of the attribute `by`.
    pub fn new(measure: &'w Measure, window: Window, by: Option<&'w str>) -> Self {
        Self {
            measure,
            window,
            by,
            group_ids: HashMap::new(),
            groups: BTreeMap::new(),
            snapshots: HashMap::new(),
            intervals: HashMap::new(),
            of_labels: HashMap::default(),
        }
    }

    /// The self values of each group, by the group's name.
    pub fn groups(&self) -> BTreeMap<&str, SelfValues> {
        let names: HashMap<GroupId, &str> = self.group_ids.iter().map(|(name, &id)| (id, &**name)).collect();
        let mut groups: BTreeMap<&str, SelfValues> = BTreeMap::new();
        let of_snapshots = self.snapshots.values().flat_map(|(_, groups)| groups);
        for (group, values) in self.groups.iter().chain(of_snapshots) {
            let sums = groups.entry(names[group]).or_default();
            for (&node, &value) in values {
                let sum = sums.entry(node).or_default();
                *sum = sum.saturating_add(value);
            }
        }
        groups
    }

    /// The profiled time in ns: the lengths of all intervals, of each process.
    pub fn profiled_ns(&self) -> u64 {
        self.intervals.values().sum()
    }

    /// The number of processes with profiles of the measure.
    pub fn processes(&self) -> usize {
        self.intervals.keys().map(|(process, _)| process).collect::<HashSet<_>>().len()
    }

    /// Prepares for a state of a process at this time. Returns `false` if a later one is known.
    fn begin_snapshot(&mut self, process: u64, unix_ns: u64) -> bool {
        let (known_ns, groups) = self.snapshots.entry(process).or_default();
        if unix_ns > *known_ns {
            (*known_ns, *groups) = (unix_ns, BTreeMap::new());
        }
        unix_ns == *known_ns
    }

    fn group_of(&mut self, profile: &ProfileContext<'_>, sample: &SelectedSample<'_>) -> GroupId {
        if let Some(&known) = self.of_labels.get(&sample.labels) {
            return known;
        }
        let mut attributes = profile.tables.attributes(&sample.sample.attribute_indices);
        let value = self.by.and_then(|by| attributes.find(|(key, _)| *key == by));
        let name =
            value.map_or_else(String::new, |(_, value)| text_of(profile.tables, value.as_ref()).into_owned());
        let next = self.group_ids.len();
        let group = *self.group_ids.entry(name).or_insert(next);
        self.of_labels.insert(sample.labels, group);
        group
    }
}

impl SampleSink for Collected<'_> {
    fn begin_message(&mut self) {
        self.of_labels.clear();
    }

    fn begin_profile(&mut self, profile: &ProfileContext<'_>) -> bool {
        if profile.measure != *self.measure
            || profile.measure.is_snapshot() && !self.begin_snapshot(profile.process, profile.start_ns)
        {
            return false;
        }
        let length = self.intervals.entry((profile.process, profile.start_ns)).or_default();
        *length = (*length).max(profile.duration_ns);
        true
    }

    fn take(&mut self, profile: &ProfileContext<'_>, sample: &SelectedSample<'_>) {
        let mut sum = 0_i64;
        timed_values(profile, sample.sample, self.window, |_, value| sum = sum.saturating_add(value));
        if sum == 0 {
            return;
        }
        let group = self.group_of(profile, sample);
        let groups = match self.snapshots.get_mut(&profile.process) {
            Some((_, groups)) => groups,
            None => &mut self.groups,
        };
        let own = groups.entry(group).or_default().entry(sample.node).or_default();
        *own = own.saturating_add(sum);
    }
}
