//! What the most was observed of, over all messages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::labels::{LabelSet, LabelSetId, LabelSets};
use super::summary::{kind, total};
use crate::otlp::frames::frames;
use crate::otlp::lookup::Lookup;
use crate::otlp::wire::ProfilesData;

/// Sums of each kind of profile.
#[derive(Debug)]
pub(super) struct Tops {
    /// Whether sums by frame are wanted.
    by_frame: bool,
    kinds: BTreeMap<String, Top>,
    labels: LabelSets,
}

/// As many sets of labels are shown of a stack.
pub(super) const SHOWN_LABELS: usize = 3;

/// Sums of one kind of profile.
#[derive(Debug, Default)]
pub(super) struct Top {
    /// Of all samples.
    pub(super) total: i128,
    /// By stack, the frames' text leaf first.
    stacks: HashMap<Vec<String>, StackSums>,
    /// By frame.
    frames: HashMap<String, FrameSums>,
}

/// What was observed of a stack.
#[derive(Debug, Default)]
struct StackSums {
    total: i128,
    by_labels: HashMap<LabelSetId, i128>,
}

/// A stack, and what was observed of it.
#[derive(Debug)]
pub(super) struct TopStack<'t> {
    /// The frames' text, leaf first.
    pub(super) frames: &'t [String],
    /// Of all its samples.
    pub(super) total: i128,
    by_labels: &'t HashMap<LabelSetId, i128>,
}

impl TopStack<'_> {
    /// How many different sets of labels its samples have.
    pub(super) fn label_set_count(&self) -> usize {
        self.by_labels.len()
    }

    /// The sets of labels with the highest sums.
    pub(super) fn labels(&self, most: usize) -> Vec<(LabelSetId, i128)> {
        let mut labels: Vec<_> = self.by_labels.iter().map(|(&set, &sum)| (set, sum)).collect();
        labels.sort_unstable_by_key(|&(set, sum)| (Reverse(sum), set));
        labels.truncate(most);
        labels
    }
}

/// What was observed in a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameSums {
    /// With the frame as leaf.
    pub(super) own: i128,
    /// With the frame anywhere in the stack.
    pub(super) total: i128,
}

impl Tops {
    pub(super) fn new(by_frame: bool) -> Self {
        Self { by_frame, kinds: BTreeMap::new(), labels: LabelSets::default() }
    }

    /// Adds a message's samples.
    pub(super) fn add(&mut self, data: &ProfilesData) {
        let tables = Lookup::new(data);
        let mut rendered = HashMap::<i32, Vec<String>>::new();
        let mut labelled = HashMap::<(&[i32], i32), LabelSetId>::new();
        let scopes = data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        for profile in scopes.flat_map(|scope| &scope.profiles) {
            let kind = kind(tables.value_type(profile.sample_type), tables.value_type(profile.period_type));
            let top = self.kinds.entry(kind).or_default();
            for sample in &profile.samples {
                let stack = rendered.entry(sample.stack_index).or_insert_with(|| {
                    frames(tables, sample.stack_index).iter().map(ToString::to_string).collect()
                });
                let labels = (&*sample.attribute_indices, sample.link_index);
                let labels = *labelled.entry(labels).or_insert_with(|| self.labels.of(tables, sample));
                top.add(stack, labels, total(sample), self.by_frame);
            }
        }
    }

    /// What the set of labels of this number says.
    pub(super) fn labels(&self, set: LabelSetId) -> &LabelSet {
        self.labels.get(set)
    }

    /// The kinds, by name.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&str, &Top)> {
        self.kinds.iter().map(|(kind, top)| (&**kind, top))
    }
}

impl Top {
    fn add(&mut self, stack: &[String], labels: LabelSetId, value: i128, by_frame: bool) {
        self.total += value;
        if !self.stacks.contains_key(stack) {
            self.stacks.insert(stack.to_vec(), StackSums::default());
        }
        if let Some(sums) = self.stacks.get_mut(stack) {
            sums.total += value;
            *sums.by_labels.entry(labels).or_default() += value;
        }
        if by_frame {
            // A recursive frame is in its stack once.
            let mut seen = HashSet::new();
            for (depth, frame) in stack.iter().enumerate() {
                if seen.insert(frame) {
                    let sums = self.frames.entry(frame.clone()).or_default();
                    sums.total += value;
                    sums.own += if depth == 0 { value } else { 0 };
                }
            }
        }
    }

    /// The number of different stacks.
    pub(super) fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    /// The stacks with the highest sums.
    pub(super) fn stacks(&self, most: usize) -> Vec<TopStack<'_>> {
        let mut stacks: Vec<_> = self
            .stacks
            .iter()
            .map(|(frames, StackSums { total, by_labels })| TopStack { frames, total: *total, by_labels })
            .collect();
        stacks.sort_unstable_by_key(|stack| (Reverse(stack.total), stack.frames));
        stacks.truncate(most);
        stacks
    }

    /// The frames with the highest sums of their own.
    pub(super) fn frames(&self, most: usize) -> Vec<(&str, FrameSums)> {
        let mut frames: Vec<_> = self.frames.iter().map(|(frame, &sums)| (&**frame, sums)).collect();
        frames.sort_unstable_by_key(|&(frame, sums)| (Reverse(sums.own), Reverse(sums.total), frame));
        frames.truncate(most);
        frames
    }

    /// A sum as a percentage of all.
    pub(super) fn percent(&self, sum: i128) -> f64 {
        if self.total == 0 { 0.0 } else { sum as f64 * 100.0 / self.total as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursion_counts_once() {
        let mut top = Top::default();
        let stack = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        top.add(&stack(&["leaf", "fib", "fib", "main"]), 0, 3, true);
        top.add(&stack(&["fib", "fib", "main"]), 0, 4, true);
        let frames: Vec<_> =
            top.frames(9).into_iter().map(|(name, sums)| (name, sums.own, sums.total)).collect();
        assert_eq!(frames, [("fib", 4, 7), ("leaf", 3, 3), ("main", 0, 7)]);
        let most = &top.stacks(1)[0];
        assert_eq!((most.frames, most.total), (&*stack(&["fib", "fib", "main"]), 4));
    }
}
