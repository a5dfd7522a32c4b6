//! Collects the samples of one measure: the self values of the nodes of a tree, by group.
//!
//! Values are in the measure's unit. The states of a snapshot measure are not added up: of each process the
//! last one counts.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState as FastState;
use otlpprof_otlp::wire::Sample;

use super::call_tree::{CallTree, NodeId, ROOT};
use super::code_kind::{CodeKind, KindSums, StackCodes};
use super::frame_table::FrameTable;
use super::measure::Measure;
use super::observations::sum_in;
use super::profile_context::ProfileContext;
use super::profiled_time::ProfiledTime;
use super::sample_reader::{SampleSink, SelectedSample};
use super::selection::{Window, text_of};
use super::summed::{Summed, Values};
use super::thread_role::ThreadRole;
use super::wait_state::wait_state;
use super::waits::Waits;

/// The self values of nodes.
pub type SelfValues = Values<NodeId>;

/// The sum of self values, at most the largest number.
pub fn total(own: &SelfValues) -> i64 {
    own.values().fold(0, |sum, &value| sum.saturating_add(value))
}

/// Whether the sum of self values is below the largest number, at which sums are cut. Shares of a sum that
/// was cut would be wrong.
pub fn is_countable(own: &SelfValues) -> bool {
    total(own) < i64::MAX
}

/// A group of samples, by its number in the order of appearance.
type GroupId = u32;

/// The properties that all samples of a group have.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Group {
    /// The value of the attribute by which samples are grouped; empty for samples without the attribute.
    name: String,
    /// The role of the thread.
    role: ThreadRole,
    /// The state of the thread, if it waits.
    wait: Option<String>,
}

/// The collected samples of one measure.
#[derive(Debug)]
pub struct Collected<'w> {
    measure: &'w Measure,
    window: Window,
    /// The attribute by whose values samples are grouped: of the sample, its profile or its resource.
    by: Option<&'w str>,
    /// Whether a sample has the attribute.
    pub has_group: bool,
    group_ids: HashMap<Group, GroupId>,
    sums: Summed<(GroupId, NodeId)>,
    /// The time that the profiles of the measure cover.
    pub time: ProfiledTime,
    /// By the number of a sample's labels in the present profile.
    of_labels: HashMap<u64, GroupId, FastState>,
}

impl<'w> Collected<'w> {
    /// Collects samples of `measure` in the window. Samples are grouped by the values of the attribute `by`.
    pub fn new(measure: &'w Measure, window: Window, by: Option<&'w str>) -> Self {
        Self {
            measure,
            window,
            by,
            has_group: false,
            group_ids: HashMap::new(),
            sums: Summed::default(),
            time: ProfiledTime::default(),
            of_labels: HashMap::default(),
        }
    }

    /// The self values of each group, by the group's name.
    pub fn groups(&self) -> BTreeMap<&str, SelfValues> {
        let mut names: Vec<_> = self.group_ids.keys().map(|group| &*group.name).collect();
        names.sort_unstable();
        names.dedup();
        // By group: the place of its name.
        let mut places = vec![0; self.group_ids.len()];
        for (Group { name, .. }, &group) in &self.group_ids {
            places[group as usize] = names.partition_point(|other| *other < &**name);
        }
        let mut values = vec![SelfValues::default(); names.len()];
        for ((group, node), value) in self.sums.values() {
            let sum: &mut i64 = values[places[group as usize]].entry(node).or_default();
            *sum = sum.saturating_add(value);
        }
        // A later state of a process may lack a group of an earlier one.
        names.into_iter().zip(values).filter(|(_, values)| !values.is_empty()).collect()
    }

    /// The sums by kind of code, of these stacks. `None` if the profiles are not of a JVM.
    pub fn kinds(&self, stacks: &StackCodes) -> Option<KindSums> {
        let roles = self.roles();
        let values = self.sums.values().map(|((group, node), value)| (roles[group as usize], node, value));
        KindSums::of(stacks, values)
    }

    /// The waits of threads, in these stacks of the tree. `None` if no thread waits.
    pub fn waits(&self, stacks: &StackCodes, tree: &CallTree, frames: &FrameTable) -> Option<Waits> {
        // By group: the state of its threads.
        let mut states = vec![None; self.group_ids.len()];
        self.group_ids.iter().for_each(|(group, &id)| states[id as usize] = group.wait.as_deref());
        let roles = self.roles();
        let waiting = self.sums.values().filter_map(|((group, node), value)| {
            let group = group as usize;
            Some((states[group]?, roles[group], node, value))
        });
        Waits::of(waiting, tree, frames, stacks)
    }

    /// Replaces the stacks of the VM's own threads by one frame for each kind of code, whose name `name`
    /// returns. Returns whether there are any.
    pub fn fold_vm_threads(
        &mut self,
        stacks: &StackCodes,
        tree: &mut CallTree,
        frames: &mut FrameTable,
        name: impl Fn(CodeKind) -> &'static str,
    ) -> bool {
        let roles = self.roles();
        let marks = CodeKind::ALL.map(|kind| tree.child(ROOT, frames.intern_group(name(kind))));
        let folded = |(group, node): (GroupId, NodeId)| {
            let role = roles[group as usize];
            let kind = stacks.kind(role, node);
            kind.is_of_vm_thread(role).then(|| (group, marks[kind as usize]))
        };
        let has_any = self.sums.values().any(|(key, _)| folded(key).is_some());
        self.sums.rename(|key| folded(key).unwrap_or(key));
        has_any
    }

    /// By group: the role of its threads.
    fn roles(&self) -> Vec<ThreadRole> {
        let mut roles = vec![ThreadRole::default(); self.group_ids.len()];
        self.group_ids.iter().for_each(|(group, &id)| roles[id as usize] = group.role);
        roles
    }

    /// The self values of all groups.
    pub fn merged(&self) -> SelfValues {
        let mut sums = SelfValues::with_capacity_and_hasher(self.sums.len(), FastState::default());
        for ((_, node), value) in self.sums.values() {
            let sum: &mut i64 = sums.entry(node).or_default();
            *sum = sum.saturating_add(value);
        }
        sums
    }

    fn group_of(&mut self, profile: &ProfileContext<'_>, sample: &SelectedSample<'_>) -> GroupId {
        if let Some(&known) = self.of_labels.get(&sample.labels) {
            return known;
        }
        let name = self.by.and_then(|by| group_name(profile, sample.sample, by));
        self.has_group |= name.is_some();
        let name = name.unwrap_or_default();
        // SANITY: 2^32 names do not fit into memory.
        let next = self.group_ids.len() as GroupId;
        let wait = wait_state(profile, sample.sample);
        let group = Group { name, role: sample.thread, wait };
        let group = *self.group_ids.entry(group).or_insert(next);
        self.of_labels.insert(sample.labels, group);
        group
    }
}

/// The value of an attribute: the sample's, else its profile's, else its resource's.
fn group_name(profile: &ProfileContext<'_>, sample: &Sample, key: &str) -> Option<String> {
    let indices = [&sample.attribute_indices, &profile.header.attribute_indices];
    let mut attributes = indices.into_iter().flat_map(|indices| profile.tables.attributes(indices));
    let found = attributes.find(|(found, _)| *found == key);
    let found = found.map(|(_, value)| text_of(profile.tables, value.as_ref()).into_owned());
    found.or_else(|| {
        let of_resource = profile.resource.iter().find(|(found, _)| found == key);
        of_resource.map(|(_, value)| value.clone())
    })
}

impl SampleSink for Collected<'_> {
    fn begin_message(&mut self) {
        self.of_labels.clear();
    }

    fn begin_profile(&mut self, profile: &ProfileContext<'_>) -> bool {
        self.of_labels.clear();
        if profile.measure != *self.measure || !self.sums.begin(profile) {
            return false;
        }
        self.time.add(profile, self.window);
        true
    }

    fn prepare(&self, sample: &SelectedSample<'_>) {
        if let Some(&group) = self.of_labels.get(&sample.labels) {
            self.sums.prepare((group, sample.node));
        }
    }

    fn take(&mut self, profile: &ProfileContext<'_>, sample: &SelectedSample<'_>) {
        let sum = sum_in(profile, sample.sample, self.window);
        if sum == 0 {
            return;
        }
        let group = self.group_of(profile, sample);
        self.sums.add(profile, (group, sample.node), sum);
    }
}
