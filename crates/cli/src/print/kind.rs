//! Sums of one kind of profile: by stack and labels, and by function or line.

use std::cmp::Reverse;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use otlpprof_report::call_tree::{CallTree, NodeId};
use otlpprof_report::eviction::keep_first;
use otlpprof_report::frame_table::FrameTable;
use otlpprof_report::measure::Measure;

use super::functions::{By, FunctionSums};
use super::labels::LabelSetId;
use super::sum::Sum;

/// Sums of one kind of profile.
#[derive(Debug)]
pub(super) struct KindSums {
    /// Sample and period type, for example `samples/count by cpu/nanoseconds`.
    pub(super) kind: String,
    /// The measure that amounts are of.
    pub(super) measure: Measure,
    /// The sum of all samples.
    pub(super) total: Sum,
    /// By stack and set of labels.
    sums: HashMap<(NodeId, LabelSetId), Sum, RandomState>,
    /// By stack: evicted sets of labels.
    other_labels: HashMap<NodeId, OtherLabels>,
    /// The number of evicted stacks. One that recurs counts again.
    pub(super) other_stacks: usize,
    /// Sums by function or line, of evicted stacks only until all messages are read.
    pub(super) functions: FunctionSums,
}

/// Sums that are evicted together.
#[derive(Clone, Copy, Debug)]
pub(super) enum SumSort {
    /// By labels, of each stack.
    Labels,
    /// By stack.
    Stacks,
    /// By function or line.
    Functions,
}

impl SumSort {
    /// All sorts. The sums that matter least come first.
    pub(super) const ALL: [Self; 3] = [Self::Labels, Self::Stacks, Self::Functions];
}

/// The evicted sets of labels of a stack.
#[derive(Clone, Copy, Debug, Default)]
struct OtherLabels {
    count: usize,
    sum: Sum,
}

/// A stack and its sums.
#[derive(Debug)]
pub(super) struct StackSums {
    /// The node of the youngest frame.
    pub(super) node: NodeId,
    /// The sum of all samples.
    pub(super) total: Sum,
    /// The sets of labels with their sums, the highest first.
    pub(super) labels: Vec<(LabelSetId, Sum)>,
    others: OtherLabels,
}

impl StackSums {
    /// The number of different sets of labels of the stack's samples.
    pub(super) fn label_set_count(&self) -> usize {
        self.labels.len() + self.others.count
    }

    fn evict_labels(&mut self, part: usize) {
        let evicted = self.labels.split_off(self.labels.len().div_ceil(part));
        self.others.count += evicted.len();
        evicted.into_iter().for_each(|(_, sum)| self.others.sum += sum);
    }

    /// The sum of all sets of labels but the first ones.
    pub(super) fn sum_without(&self, first: usize) -> Sum {
        let mut sum = self.others.sum;
        self.labels.iter().skip(first).for_each(|&(_, of_set)| sum += of_set);
        sum
    }
}

/// Approximate bytes that a sum by stack and labels occupies.
const OF_SUM: usize = 160;

impl KindSums {
    /// No sums yet.
    pub(super) fn new(kind: String, measure: Measure) -> Self {
        Self {
            kind,
            measure,
            total: Sum::default(),
            sums: HashMap::default(),
            other_labels: HashMap::new(),
            other_stacks: 0,
            functions: FunctionSums::default(),
        }
    }

    /// The approximate bytes that the sums occupy.
    pub(super) fn bytes(&self) -> usize {
        self.sums.len() * OF_SUM + self.functions.bytes()
    }

    /// Adds the value of samples with one stack and one set of labels. Returns the bytes that it takes.
    pub(super) fn add(&mut self, node: NodeId, labels: LabelSetId, value: Sum) -> usize {
        self.total += value;
        let before = self.sums.len();
        *self.sums.entry((node, labels)).or_default() += value;
        (self.sums.len() - before) * OF_SUM
    }

    /// The stacks that are not evicted.
    pub(super) fn stacks(&self) -> Vec<StackSums> {
        let mut sums: Vec<_> = self.sums.iter().map(|(&(node, set), &sum)| (node, set, sum)).collect();
        sums.sort_unstable_by_key(|&(node, set, sum)| (node, Reverse(sum), set));
        let stacks = sums.chunk_by(|one, other| one.0 == other.0).map(|of_stack| {
            let node = of_stack[0].0;
            let others = self.other_labels.get(&node).copied().unwrap_or_default();
            let labels = of_stack.iter().map(|&(_, set, sum)| (set, sum)).collect();
            let mut stack = StackSums { node, total: Sum::default(), labels, others };
            stack.total = stack.sum_without(0);
            stack
        });
        stacks.collect()
    }

    /// Takes out the stacks. Evicts the lowest sums of one sort: of `part` of them one is kept.
    pub(super) fn evict(
        &mut self,
        sort: SumSort,
        part: usize,
        by: Option<By>,
        tree: &CallTree,
        frames: &FrameTable,
    ) -> Vec<StackSums> {
        let mut stacks = self.stacks();
        (self.sums, self.other_labels) = Default::default();
        match sort {
            SumSort::Labels => stacks.iter_mut().for_each(|stack| stack.evict_labels(part)),
            SumSort::Stacks => {
                let evicted = keep_first(&mut stacks, part, |stack| (Reverse(stack.total), stack.node));
                self.other_stacks += evicted.len();
                if let Some(by) = by {
                    let evicted = evicted.iter().map(|stack| (stack.node, stack.total));
                    self.functions.add(evicted, by, tree, frames);
                }
            }
            SumSort::Functions => self.functions.evict(part),
        }
        stacks
    }

    /// Completes the sums by function or line: adds the stacks that are not evicted.
    pub(super) fn add_functions(&mut self, by: By, tree: &CallTree, frames: &FrameTable) {
        let stacks = self.stacks().into_iter().map(|stack| (stack.node, stack.total));
        self.functions.add(stacks, by, tree, frames);
    }

    /// Puts back stacks that were taken out.
    pub(super) fn put_back(&mut self, stacks: Vec<StackSums>) {
        for StackSums { node, labels, others, .. } in stacks {
            self.sums.extend(labels.into_iter().map(|(set, sum)| ((node, set), sum)));
            if others.count > 0 {
                self.other_labels.insert(node, others);
            }
        }
    }
}
