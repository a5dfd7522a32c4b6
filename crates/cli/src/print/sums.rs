//! Sums over messages by stack and labels, and by function or line, in bounded memory.
//!
//! The sums may occupy about [`LEAST_KEPT`] bytes, and as many more as the largest message has. Where that is
//! not enough, the sets of labels with the lowest sums are evicted and counted as others; where that is not
//! enough either, the lowest stacks, and at last the lowest functions. Totals stay exact. An evicted entry
//! that recurs lacks the part of its sum from before its eviction.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use foldhash::fast::RandomState;
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_report::call_tree::{CallTree, NodeId};
use otlpprof_report::eviction::keep_stacks;
use otlpprof_report::frame_table::{FrameEntry, FrameTable};
use otlpprof_report::profile_context::ProfileContext;
use otlpprof_report::sample_reader::{SampleForm, SampleReader, SampleSink, SelectedSample};
use otlpprof_report::selection::Selection;
use otlpprof_report::state_times::StateTimes;
use otlpprof_report::survey::Survey;

use super::functions::{By, FunctionSum};
use super::kind::{KindSums, StackSums, SumSort};
use super::labels::{LabelSet, LabelSetId, LabelSets};
use super::sum::Sum;
use super::summary::{kind_of, total};

/// Bytes that the sums may occupy, whatever the size of the messages.
const LEAST_KEPT: usize = 16 << 20;
/// The most sets of labels of a message that are found without a look at their texts.
const REMEMBERED: usize = 1 << 17;

/// Sums of each kind of profile.
#[derive(Debug)]
pub(super) struct Sums<'s> {
    reader: SampleReader<'s>,
    kept: KeptSums<'s>,
}

impl<'s> Sums<'s> {
    /// Empty sums of all samples of the surveyed messages. Sums by function or line are made only if `by` is
    /// given. `everything` is a selection without conditions.
    pub(super) fn new(everything: &'s Selection, survey: &'s Survey, by: Option<By>) -> Self {
        let form = SampleForm { lines: true, ..SampleForm::default() };
        Self {
            reader: SampleReader::new(everything, form).bounded_by_sink(),
            kept: KeptSums {
                states: &survey.states,
                by,
                kinds: Vec::new(),
                places: BTreeMap::new(),
                present: 0,
                labels: LabelSets::default(),
                of_message: HashMap::default(),
                bytes_of_kinds: 0,
                most_bytes: LEAST_KEPT + survey.largest_message,
            },
        }
    }

    /// Adds a message's samples. Of profiles that are a state, the last one of each process counts.
    pub(super) fn add(&mut self, message: &EncodedMessage) {
        self.reader.read(message, &mut self.kept);
    }

    /// Completes the sums after the last message.
    pub(super) fn finish(&mut self) {
        let Some(by) = self.kept.by else { return };
        for kind in &mut self.kept.kinds {
            kind.add_functions(by, &self.reader.tree, &self.reader.frames);
        }
    }

    /// The kinds, by name.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &KindSums> {
        self.kept.places.values().map(|&place| &self.kept.kinds[place])
    }

    /// The stacks of a kind with the highest sums, and the number of all stacks.
    pub(super) fn stacks(&self, kind: &KindSums, most: usize) -> (Vec<StackSums>, usize) {
        let mut stacks = kind.stacks();
        let count = stacks.len() + kind.other_stacks;
        let texts = |stack: &StackSums| self.frames(stack.node).map(FrameEntry::to_string);
        let order = |one: &StackSums, other: &StackSums| {
            Reverse(one.total).cmp(&Reverse(other.total)).then_with(|| texts(one).cmp(texts(other)))
        };
        if most < stacks.len() {
            stacks.select_nth_unstable_by(most, order);
            stacks.truncate(most);
        }
        stacks.sort_unstable_by(order);
        (stacks, count)
    }

    /// The frames of a stack, leaf first.
    pub(super) fn frames(&self, node: NodeId) -> impl Iterator<Item = &FrameEntry> {
        self.reader.tree.stack(node).map(|frame| self.reader.frames.get(frame))
    }

    /// The functions or lines of a kind with the highest self sums.
    pub(super) fn functions(&self, kind: &KindSums, most: usize) -> Vec<(String, FunctionSum)> {
        kind.functions.top(most)
    }

    /// The set of labels with this id.
    pub(super) fn labels(&self, set: LabelSetId) -> &LabelSet {
        self.kept.labels.get(set)
    }
}

/// The sums that are kept.
#[derive(Debug)]
struct KeptSums<'s> {
    /// The times of the states that count.
    states: &'s StateTimes,
    /// The key of sums by function or line, if they are wanted.
    by: Option<By>,
    kinds: Vec<KindSums>,
    /// By name, and by whether amounts are values times periods: the places of the kinds. Profiles of a kind
    /// may lack the period.
    places: BTreeMap<(String, bool), usize>,
    /// The place of the present profile's kind.
    present: usize,
    labels: LabelSets,
    /// By the number of a sample's labels in the present message.
    of_message: HashMap<u64, LabelSetId, RandomState>,
    bytes_of_kinds: usize,
    most_bytes: usize,
}

impl KeptSums<'_> {
    fn bytes(&self) -> usize {
        self.bytes_of_kinds + self.labels.bytes()
    }

    /// Evicts the lowest sums of one sort, with frames, stacks and labels that no sum has any more. Of `part`
    /// sums of a kind one is kept.
    fn evict(&mut self, sort: SumSort, part: usize, tree: &mut CallTree, frames: &mut FrameTable) {
        let kinds = self.kinds.iter_mut();
        let mut stacks: Vec<_> = kinds.map(|kind| kind.evict(sort, part, self.by, tree, frames)).collect();
        keep_stacks(tree, frames, stacks.iter_mut().flatten().map(|stack| &mut stack.node));
        let used = stacks.iter().flatten().flat_map(|stack| &stack.labels);
        let used: HashSet<_> = used.map(|&(set, _)| set).collect();
        self.labels.keep(|set| used.contains(&set));
        self.kinds.iter_mut().zip(stacks).for_each(|(kind, stacks)| kind.put_back(stacks));
        self.bytes_of_kinds = self.kinds.iter().map(KindSums::bytes).sum();
    }
}

impl SampleSink for KeptSums<'_> {
    fn begin_message(&mut self) {
        self.of_message.clear();
    }

    fn begin_profile(&mut self, profile: &ProfileContext<'_>) -> bool {
        let process = self.states.process_of(profile.resource);
        if !self.states.counts(&profile.measure, process, profile.start_ns) {
            return false;
        }
        let name = kind_of(profile.tables, profile.header.sample_type, profile.header.period_type);
        let next = self.kinds.len();
        self.present = *self.places.entry((name.clone(), profile.counts_periods)).or_insert(next);
        if self.present == next {
            self.kinds.push(KindSums::new(name, profile.measure.clone()));
        }
        true
    }

    fn take(&mut self, profile: &ProfileContext<'_>, sample: &SelectedSample<'_>) {
        if self.of_message.len() >= REMEMBERED {
            self.of_message.clear();
        }
        let of_sample = || self.labels.of(profile.tables, sample.sample);
        let labels = *self.of_message.entry(sample.labels).or_insert_with(of_sample);
        let value = Sum::of_values(total(sample.sample), profile.factor);
        self.bytes_of_kinds += self.kinds[self.present].add(sample.node, labels, value);
    }

    fn lacks_room(&self, bytes: usize) -> bool {
        bytes + self.bytes() > self.most_bytes
    }

    /// Evicts the lowest sums until a quarter of the allowed bytes is free.
    fn make_room(&mut self, tree: &mut CallTree, frames: &mut FrameTable) {
        self.of_message.clear();
        let mut left = usize::MAX;
        for part in (1..=20).map(|power| 1 << power) {
            for sort in SumSort::ALL {
                self.evict(sort, part, tree, frames);
                left = tree.bytes() + frames.bytes() + self.bytes();
                if left <= self.most_bytes / 4 * 3 {
                    return;
                }
            }
        }
        // A few stacks are so large. The next eviction must be worth its time.
        self.most_bytes = self.most_bytes.max(2 * left);
    }
}
