//! What the most was observed of, over all messages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

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
}

/// Sums of one kind of profile.
#[derive(Debug, Default)]
pub(super) struct Top {
    /// Of all samples.
    pub(super) total: i128,
    /// By stack, the frames' text leaf first.
    stacks: HashMap<Vec<String>, i128>,
    /// By frame.
    frames: HashMap<String, FrameSums>,
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
        Self { by_frame, kinds: BTreeMap::new() }
    }

    /// Adds a message's samples.
    pub(super) fn add(&mut self, data: &ProfilesData) {
        let tables = Lookup::new(data);
        let mut rendered = HashMap::<i32, Vec<String>>::new();
        let scopes = data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        for profile in scopes.flat_map(|scope| &scope.profiles) {
            let kind = kind(tables.value_type(profile.sample_type), tables.value_type(profile.period_type));
            let top = self.kinds.entry(kind).or_default();
            for sample in &profile.samples {
                let stack = rendered.entry(sample.stack_index).or_insert_with(|| {
                    frames(tables, sample.stack_index).iter().map(ToString::to_string).collect()
                });
                top.add(stack, total(sample), self.by_frame);
            }
        }
    }

    /// The kinds, by name.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&str, &Top)> {
        self.kinds.iter().map(|(kind, top)| (&**kind, top))
    }
}

impl Top {
    fn add(&mut self, stack: &[String], value: i128, by_frame: bool) {
        self.total += value;
        match self.stacks.get_mut(stack) {
            Some(sum) => *sum += value,
            None => drop(self.stacks.insert(stack.to_vec(), value)),
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
    pub(super) fn stacks(&self, most: usize) -> Vec<(&[String], i128)> {
        let mut stacks: Vec<_> = self.stacks.iter().map(|(stack, &sum)| (&**stack, sum)).collect();
        stacks.sort_unstable_by_key(|&(stack, sum)| (Reverse(sum), stack));
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
        top.add(&stack(&["leaf", "fib", "fib", "main"]), 3, true);
        top.add(&stack(&["fib", "fib", "main"]), 4, true);
        let frames: Vec<_> =
            top.frames(9).into_iter().map(|(name, sums)| (name, sums.own, sums.total)).collect();
        assert_eq!(frames, [("fib", 4, 7), ("leaf", 3, 3), ("main", 0, 7)]);
        assert_eq!(top.stacks(1), [(&*stack(&["fib", "fib", "main"]), 4)]);
    }
}
