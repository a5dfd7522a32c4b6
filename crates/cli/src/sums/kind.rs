//! Sums of one kind of profile.

use std::cmp::Reverse;
use std::collections::HashMap;

use otlpprof_report::measure::Measure;

use super::frames::{FrameId, FrameTable, IdTranslation, StackId};
use super::functions::FunctionSums;
use super::labels::{LabelSetId, OTHER_LABELS};
use super::sum::Sum;

/// Sums of one kind of profile.
#[derive(Debug)]
pub(crate) struct KindSums {
    /// Sample and period type, for example `samples/count by cpu/nanoseconds`.
    pub(crate) kind: String,
    /// The measure that amounts are of.
    pub(crate) measure: Measure,
    /// The sum of all samples.
    pub(crate) total: Sum,
    stacks: HashMap<StackId, StackSums>,
    /// Number of evicted stacks.
    others: usize,
    /// Sums by function or line.
    pub(super) functions: FunctionSums,
    /// Number of sets of labels over all stacks.
    label_sums: usize,
}

/// The sums of a stack's samples.
#[derive(Debug, Default)]
struct StackSums {
    total: Sum,
    by_labels: HashMap<LabelSetId, Sum>,
    /// Number of evicted sets of labels.
    other_labels: usize,
}

/// A stack and its sums.
#[derive(Debug)]
pub(crate) struct TopStack<'s> {
    /// The frames, leaf first.
    pub(crate) frames: &'s [FrameId],
    /// The sum of all its samples.
    pub(crate) total: Sum,
    sums: &'s StackSums,
}

impl TopStack<'_> {
    /// Number of different sets of labels of the stack's samples.
    pub(crate) fn label_set_count(&self) -> usize {
        self.sums.by_labels.len() + self.sums.other_labels
    }

    /// The sets of labels with the highest sums.
    pub(crate) fn labels(&self, most: usize) -> Vec<(LabelSetId, Sum)> {
        let mut labels: Vec<_> = self.sums.by_labels.iter().map(|(&set, &sum)| (set, sum)).collect();
        labels.sort_unstable_by_key(|&(set, sum)| (set == OTHER_LABELS, Reverse(sum), set));
        labels.truncate(most);
        labels
    }
}

/// Approximate bytes that the sum of a stack, and that of a set of labels, occupies.
const OF_STACK: usize = 192;
const OF_LABELS: usize = 96;

impl KindSums {
    /// No sums yet.
    pub(super) fn new(kind: String, measure: Measure) -> Self {
        Self {
            kind,
            measure,
            total: Sum::default(),
            stacks: HashMap::new(),
            others: 0,
            functions: FunctionSums::default(),
            label_sums: 0,
        }
    }

    /// The approximate bytes that the sums occupy.
    pub(super) fn bytes(&self) -> usize {
        self.stacks.len() * OF_STACK + self.label_sums * OF_LABELS + self.functions.bytes()
    }

    /// Adds the value observed with a stack by samples of one set of labels.
    pub(super) fn add(&mut self, stack: StackId, labels: LabelSetId, value: Sum) {
        self.total += value;
        let sums = self.stacks.entry(stack).or_default();
        sums.total += value;
        let before = sums.by_labels.len();
        *sums.by_labels.entry(labels).or_default() += value;
        self.label_sums += sums.by_labels.len() - before;
    }

    /// Whether a stack has a sum.
    pub(super) fn has(&self, stack: StackId) -> bool {
        self.stacks.contains_key(&stack)
    }

    /// The sets of labels that have sums.
    pub(super) fn label_sets(&self) -> impl Iterator<Item = LabelSetId> {
        self.stacks.values().flat_map(|sums| sums.by_labels.keys().copied())
    }

    /// Keeps the stacks, sets of labels and functions with the highest sums, one in `of`, and evicts the
    /// rest.
    pub(super) fn evict_to_fraction(&mut self, of: usize) {
        let mut stacks: Vec<_> = self.stacks.drain().collect();
        stacks.sort_unstable_by_key(|(stack, sums)| (Reverse(sums.total), *stack));
        let kept = stacks.len().div_ceil(of);
        self.others += stacks.len() - kept;
        stacks.truncate(kept);
        for (_, sums) in &mut stacks {
            let mut labels: Vec<_> = sums.by_labels.drain().collect();
            labels.sort_unstable_by_key(|&(set, sum)| (Reverse(sum), set));
            let kept = labels.len().div_ceil(of);
            sums.other_labels += labels.len() - kept;
            sums.by_labels = labels.into_iter().take(kept).collect();
        }
        self.stacks = stacks.into_iter().collect();
        self.label_sums = self.stacks.values().map(|sums| sums.by_labels.len()).sum();
        self.functions.evict_to_fraction(of);
    }

    /// Replaces the ids by those of another table.
    pub(super) fn translate(&mut self, moved: &IdTranslation) {
        let stacks = std::mem::take(&mut self.stacks);
        let of_table = |(stack, sums)| Some((moved.stacks[stack as usize]?, sums));
        self.stacks = stacks.into_iter().filter_map(of_table).collect();
        self.functions.translate(moved);
    }

    /// The number of different stacks.
    pub(crate) fn stack_count(&self) -> usize {
        self.stacks.len() + self.others
    }

    /// The stacks with the highest sums.
    pub(super) fn stacks<'s>(&'s self, most: usize, frames: &'s FrameTable) -> Vec<TopStack<'s>> {
        let stacks = self.stacks.iter();
        let mut stacks: Vec<_> = stacks
            .map(|(&stack, sums)| TopStack { frames: frames.stack(stack), total: sums.total, sums })
            .collect();
        let texts = |stack: &TopStack<'s>| stack.frames.iter().map(|&frame| frames.text(frame));
        stacks.sort_unstable_by(|one, other| {
            other.total.cmp(&one.total).then_with(|| texts(one).cmp(texts(other)))
        });
        stacks.truncate(most);
        stacks
    }
}
