//! Sums over messages by stack, function and line, in bounded memory.
//!
//! The input is messages, one after the other. The output, for each kind of profile, is its total, the stacks
//! with the highest sums and the labels of their samples, and the functions or lines with the highest sums.
//! Used by commands that show where the time went.
//!
//! The sums may occupy about [`LEAST_KEPT`] bytes, and as many more as the largest message has. Where that is
//! not enough, the stacks, functions and sets of labels with the lowest sums are evicted and counted as
//! others. Totals stay exact. An evicted entry that recurs lacks the part of its sum from before its
//! eviction.
//!
//! | Module | Duty |
//! |---|---|
//! | `kind` | the sums of one kind of profile |
//! | `functions` | sums by function or by line, self and total |
//! | `frames` | frames and stacks, each kept once |
//! | `labels` | the attributes and the span of a sample |
//! | `value` | attribute values as text and as JSON |
//! | `sum` | the sum of some samples: the measured amount, and the values alone |

mod frames;
mod functions;
mod kind;
pub(super) mod labels;
mod sum;
pub(super) mod value;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use otlpprof_otlp::encoded::{EncodedMessage, EncodedTables};
use otlpprof_otlp::encoded_profiles::EncodedScope;
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::wire::{Sample, ValueType};
use otlpprof_report::measure::ProfileMeasure;
use otlpprof_report::state_times::StateTimes;

use frames::{FrameId, FrameTable, StackId};
use labels::{LabelSet, LabelSetId, LabelSets};

pub(super) use functions::{By, FunctionSum};
pub(super) use kind::{KindSums, TopStack};
pub(super) use sum::Sum;

/// Bytes that the sums may occupy, whatever the size of the messages.
const LEAST_KEPT: usize = 16 << 20;
/// The most entries in each table that translates one message's indices into those of the sums.
const TRANSLATED: usize = 1 << 17;

/// The key of a kind of profile: its name, and whether its amounts are values times periods. Profiles of a
/// kind may lack the period.
type KindKey = (String, bool);

/// Sums of each kind of profile.
#[derive(Debug)]
pub(super) struct Sums {
    /// The key of sums by function or line, if they are wanted.
    by: Option<By>,
    kinds: BTreeMap<KindKey, KindSums>,
    frames: FrameTable,
    labels: LabelSets,
    /// The most bytes that are kept.
    most: usize,
}

impl Sums {
    /// Creates empty sums. Sums by function or line are made only if `by` is given.
    pub(super) fn new(by: Option<By>) -> Self {
        Self {
            by,
            kinds: BTreeMap::new(),
            frames: FrameTable::default(),
            labels: LabelSets::default(),
            most: LEAST_KEPT,
        }
    }

    /// Adds a message's samples. Of profiles that are a state, the last one of each process counts.
    pub(super) fn add(&mut self, message: &EncodedMessage, states: &StateTimes) {
        self.most = self.most.max(LEAST_KEPT + message.bytes().len());
        let mut translation = Translation::new(message.tables());
        let profiles = message.resources().flat_map(|resource| {
            let process = states.process(message.tables(), resource);
            resource.scopes().flat_map(EncodedScope::profiles).map(move |profile| (process, profile))
        });
        for (process, profile) in profiles {
            let header = profile.header();
            let measure = ProfileMeasure::of(message.tables(), &header);
            if !states.counts(&measure.measure, process, header.time_unix_nano) {
                continue;
            }
            let factor = measure.factor;
            let name = kind_of(message.tables(), header.sample_type, header.period_type);
            let kind = (name, measure.counts_periods);
            let new = || KindSums::new(kind.0.clone(), measure.measure);
            self.kinds.entry(kind.clone()).or_insert_with(new);
            // Values of one stack with one set of labels are summed before the stack is resolved.
            let mut observed = HashMap::<(i32, LabelSetId), i128>::new();
            for sample in profile.samples() {
                let labels = translation.labels(&sample, &mut self.labels);
                *observed.entry((sample.stack_index, labels)).or_default() += total(&sample);
                if observed.len() >= TRANSLATED {
                    self.add_observed(&kind, factor, observed.drain(), &mut translation);
                }
            }
            self.add_observed(&kind, factor, observed.drain(), &mut translation);
        }
    }

    fn add_observed(
        &mut self,
        kind: &KindKey,
        factor: i64,
        observed: impl Iterator<Item = ((i32, LabelSetId), i128)>,
        translation: &mut Translation<'_>,
    ) {
        for ((stack_index, labels), values) in observed {
            let value = Sum::of_values(values, factor);
            let stack = translation.stack(stack_index, &mut self.frames);
            if let Some(sums) = self.kinds.get_mut(kind) {
                sums.add(stack, labels, value);
                if let Some(by) = self.by {
                    sums.functions.add(self.frames.stack(stack), by, &self.frames, value);
                }
            }
            if self.kept_bytes() > self.most {
                self.evict();
                *translation = Translation::new(translation.tables);
            }
        }
    }

    fn kept_bytes(&self) -> usize {
        self.frames.bytes() + self.labels.bytes() + self.kinds.values().map(KindSums::bytes).sum::<usize>()
    }

    /// Evicts the entries with the lowest sums until the rest occupies at most half of the allowed bytes.
    fn evict(&mut self) {
        let mut part = 2;
        loop {
            self.kinds.values_mut().for_each(|sums| sums.evict_to_fraction(part));
            let used = |id: StackId| self.kinds.values().any(|sums| sums.has(id));
            let is_function = |id: FrameId| self.kinds.values().any(|sums| sums.functions.has(id));
            let (frames, moved) = self.frames.with_only(used, is_function);
            self.frames = frames;
            self.kinds.values_mut().for_each(|sums| sums.translate(&moved));
            let used: HashSet<_> = self.kinds.values().flat_map(KindSums::label_sets).collect();
            self.labels.forget(|set| used.contains(&set));
            if self.kept_bytes() <= self.most / 2 || part >= 1 << 20 {
                return;
            }
            part *= 2;
        }
    }

    /// The set of labels with this id.
    pub(super) fn labels(&self, set: LabelSetId) -> &LabelSet {
        self.labels.get(set)
    }

    /// The text of a frame.
    pub(super) fn frame(&self, frame: FrameId) -> Cow<'_, str> {
        self.frames.text(frame)
    }

    /// The kinds, by name.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &KindSums> {
        self.kinds.values()
    }

    /// The stacks of a kind with the highest sums.
    pub(super) fn stacks<'s>(&'s self, kind: &'s KindSums, most: usize) -> Vec<TopStack<'s>> {
        kind.stacks(most, &self.frames)
    }

    /// The functions or lines of a kind with the highest self sums.
    pub(super) fn functions(&self, kind: &KindSums, most: usize) -> Vec<(Cow<'_, str>, FunctionSum)> {
        kind.functions.top(most, &self.frames)
    }
}

/// Translates one message's indices into ids of the sums.
struct Translation<'m> {
    tables: EncodedTables<'m>,
    stacks: HashMap<i32, StackId>,
    locations: HashMap<i32, Box<[FrameId]>>,
    /// Keyed by a hash of a sample's attributes and link.
    labels: HashMap<u64, LabelSetId>,
    hasher: RandomState,
}

impl<'m> Translation<'m> {
    fn new(tables: EncodedTables<'m>) -> Self {
        Self {
            tables,
            stacks: HashMap::new(),
            locations: HashMap::new(),
            labels: HashMap::new(),
            hasher: RandomState::new(),
        }
    }

    fn labels(&mut self, sample: &Sample, sets: &mut LabelSets) -> LabelSetId {
        let key = self.hasher.hash_one((&sample.attribute_indices, sample.link_index));
        if let Some(&known) = self.labels.get(&key) {
            return known;
        }
        if self.labels.len() >= TRANSLATED {
            self.labels.clear();
        }
        let set = sets.of(self.tables, sample);
        self.labels.insert(key, set);
        set
    }

    fn stack(&mut self, index: i32, frames: &mut FrameTable) -> StackId {
        if let Some(&known) = self.stacks.get(&index) {
            return known;
        }
        if self.stacks.len() >= TRANSLATED {
            self.stacks.clear();
        }
        let locations = self.tables.stack(index);
        let ids = match locations {
            Some(locations) => {
                locations.iter().flat_map(|&location| self.location(location, frames).to_vec()).collect()
            }
            None => frames.add_all(&otlpprof_otlp::frames::frames(self.tables, index)),
        };
        let stack = frames.add_stack(&ids);
        self.stacks.insert(index, stack);
        stack
    }

    fn location(&mut self, index: i32, frames: &mut FrameTable) -> &[FrameId] {
        if self.locations.len() >= TRANSLATED {
            self.locations.clear();
        }
        self.locations.entry(index).or_insert_with(|| {
            let mut found = Vec::new();
            otlpprof_otlp::frames::push_location(self.tables, index, &mut found);
            frames.add_all(&found).into()
        })
    }
}

/// The name of a kind of profile, for example `samples/count by cpu/nanoseconds`.
pub(super) fn kind_of(
    tables: EncodedTables<'_>,
    sample_type: Option<ValueType>,
    period_type: Option<ValueType>,
) -> String {
    let name = |value_type| match tables.value_type(value_type) {
        ("", "") => "?".to_owned(),
        (name, unit) => format!("{name}/{unit}"),
    };
    format!("{} by {}", name(sample_type), name(period_type))
}

/// The total observed by a sample: the sum of its values, or the number of its timestamps if it has no
/// values.
pub(super) fn total(sample: &Sample) -> i128 {
    match &*sample.values {
        [] => sample.timestamps_unix_nano.len() as i128,
        values => values.iter().map(|&value| i128::from(value)).sum(),
    }
}
