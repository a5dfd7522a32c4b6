//! Sums of one kind of profile.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::frames::{FrameId, FrameTable, Moved, StackId};
use super::functions::FunctionSums;
use super::labels::{LabelSetId, OTHER_LABELS};
use super::percent;

/// Sums of one kind of profile.
#[derive(Debug, Default)]
pub(in crate::cli) struct KindSums {
    /// Of all samples.
    pub(in crate::cli) total: i128,
    stacks: HashMap<StackId, StackSums>,
    /// Stacks that were given up.
    others: usize,
    /// By function or line.
    pub(super) functions: FunctionSums,
    /// Sets of labels of all stacks.
    label_sums: usize,
}

/// The values of a stack's samples.
#[derive(Debug, Default)]
struct StackSums {
    total: i128,
    by_labels: HashMap<LabelSetId, i128>,
    /// Sets of labels that were given up.
    other_labels: usize,
}

/// A stack, and what was observed of it.
#[derive(Debug)]
pub(in crate::cli) struct TopStack<'s> {
    /// The frames, leaf first.
    pub(in crate::cli) frames: &'s [FrameId],
    /// Of all its samples.
    pub(in crate::cli) total: i128,
    sums: &'s StackSums,
}

impl TopStack<'_> {
    /// How many different sets of labels its samples have.
    pub(in crate::cli) fn label_set_count(&self) -> usize {
        self.sums.by_labels.len() + self.sums.other_labels
    }

    /// The sets of labels with the highest sums.
    pub(in crate::cli) fn labels(&self, most: usize) -> Vec<(LabelSetId, i128)> {
        let mut labels: Vec<_> = self.sums.by_labels.iter().map(|(&set, &sum)| (set, sum)).collect();
        labels.sort_unstable_by_key(|&(set, sum)| (set == OTHER_LABELS, Reverse(sum), set));
        labels.truncate(most);
        labels
    }
}

/// Bytes that a stack's sum takes, and that of a set of labels.
const OF_STACK: usize = 160;
const OF_LABELS: usize = 64;

impl KindSums {
    /// Some bytes more or less.
    pub(super) fn bytes(&self) -> usize {
        self.stacks.len() * OF_STACK + self.label_sums * OF_LABELS + self.functions.bytes()
    }

    /// Adds what was observed of a stack by samples of one set of labels.
    pub(super) fn add(&mut self, stack: StackId, labels: LabelSetId, value: i128) {
        self.total += value;
        let sums = self.stacks.entry(stack).or_default();
        sums.total += value;
        let before = sums.by_labels.len();
        *sums.by_labels.entry(labels).or_default() += value;
        self.label_sums += sums.by_labels.len() - before;
    }

    /// Whether there is a sum of a stack.
    pub(super) fn has(&self, stack: StackId) -> bool {
        self.stacks.contains_key(&stack)
    }

    /// The sets of labels that there are sums of.
    pub(super) fn label_sets(&self) -> impl Iterator<Item = LabelSetId> {
        self.stacks.values().flat_map(|sums| sums.by_labels.keys().copied())
    }

    /// Keeps one of so many stacks, sets of labels and functions: those with the highest sums.
    pub(super) fn give_up(&mut self, of: usize) {
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
        self.functions.give_up(of);
    }

    /// Has the numbers of another table.
    pub(super) fn translate(&mut self, moved: &Moved) {
        let stacks = std::mem::take(&mut self.stacks);
        let of_table = |(stack, sums)| Some((moved.stacks[stack as usize]?, sums));
        self.stacks = stacks.into_iter().filter_map(of_table).collect();
        self.functions.translate(moved);
    }

    /// The number of different stacks.
    pub(in crate::cli) fn stack_count(&self) -> usize {
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

    /// A sum as a percentage of all.
    pub(in crate::cli) fn percent(&self, sum: i128) -> f64 {
        percent(sum, self.total)
    }
}
