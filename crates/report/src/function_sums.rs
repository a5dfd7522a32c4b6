//! Sums by function: self (the function is the leaf) and total (the function is anywhere in the stack).

use std::cmp::Reverse;
use std::panic::resume_unwind;
use std::thread;

use otlpprof_workers::processors;

use super::call_tree::{CallTree, NodeId, ROOT};
use super::frame_table::FrameId;

/// The sums of a function or line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionSum {
    /// The sum of the samples with the function as leaf.
    pub own: i64,
    /// The sum of the samples with the function in their stacks. A recursive function counts once.
    pub total: i64,
}

impl FunctionSum {
    /// Adds the value of a stack that has the function.
    pub fn add(&mut self, value: i64, is_leaf: bool) {
        self.total = self.total.saturating_add(value);
        self.own = self.own.saturating_add(if is_leaf { value } else { 0 });
    }
}

/// The order of functions in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// By self, then by total.
    #[default]
    Own,
    /// By total, then by self.
    Total,
}

impl SortBy {
    /// The key by which sums are sorted, the highest first.
    pub fn key(self, sum: FunctionSum) -> (i64, i64) {
        match self {
            Self::Own => (sum.own, sum.total),
            Self::Total => (sum.total, sum.own),
        }
    }
}

/// Visits each function of a stack once, however often the function recurs.
#[derive(Debug, Default)]
pub struct DistinctFrames {
    /// By frame: the number of the last stack that had the frame.
    last_stacks: Vec<u64>,
    /// The number of stacks so far.
    stacks: u64,
}

impl DistinctFrames {
    /// Calls `visit` once for each frame of the next stack, which is given leaf first. The second argument is
    /// whether the frame is the leaf.
    pub fn visit(&mut self, stack: impl IntoIterator<Item = FrameId>, mut visit: impl FnMut(FrameId, bool)) {
        self.stacks += 1;
        for (depth, frame) in stack.into_iter().enumerate() {
            let at = frame as usize;
            if self.last_stacks.len() <= at {
                self.last_stacks.resize(at + 1, 0);
            }
            if std::mem::replace(&mut self.last_stacks[at], self.stacks) != self.stacks {
                visit(frame, depth == 0);
            }
        }
    }

    /// The approximate bytes that the numbers occupy.
    pub fn bytes(&self) -> usize {
        self.last_stacks.len() * size_of::<u64>()
    }
}

/// Stacks are summed by visiting the whole tree if the tree has fewer nodes than this for each of them.
const NODES_FOR_EACH_STACK: usize = 16;
/// The most threads that sum stacks.
const MOST_THREADS: usize = 8;
/// Another thread sums stacks if there are so many for each frame, of which each thread has a table.
const STACKS_FOR_EACH_FRAME: usize = 4;

/// Returns the sums of each frame of the tree, by the frame's number. `frames` is their number.
pub fn function_sums(
    tree: &CallTree,
    frames: usize,
    own: impl ExactSizeIterator<Item = (NodeId, i64)>,
) -> Vec<FunctionSum> {
    if tree.len() / NODES_FOR_EACH_STACK < own.len() {
        let mut sums = vec![FunctionSum::default(); frames];
        add_tree(tree, own, &mut sums);
        return sums;
    }
    // In the order of their numbers nodes are near each other in memory.
    let mut own: Vec<_> = own.collect();
    own.sort_unstable();
    let threads = processors(MOST_THREADS).min(own.len() / STACKS_FOR_EACH_FRAME / frames.max(1)).max(1);
    let mut parts = own.chunks(own.len().div_ceil(threads).max(1));
    let first = parts.next().unwrap_or_default();
    thread::scope(|scope| {
        let others: Vec<_> = parts.map(|part| scope.spawn(move || sums_of(tree, frames, part))).collect();
        let mut sums = sums_of(tree, frames, first);
        for other in others {
            let other = other.join().unwrap_or_else(|panic| resume_unwind(panic));
            for (sum, other) in sums.iter_mut().zip(other) {
                sum.own = sum.own.saturating_add(other.own);
                sum.total = sum.total.saturating_add(other.total);
            }
        }
        sums
    })
}

/// The sums of each frame in these stacks, stack by stack.
fn sums_of(tree: &CallTree, frames: usize, own: &[(NodeId, i64)]) -> Vec<FunctionSum> {
    // By frame: the number of the last stack that had the frame, and its sums, which one access loads.
    let mut sums = vec![(usize::MAX, FunctionSum::default()); frames];
    for (stack, &(node, value)) in own.iter().enumerate() {
        if node == ROOT {
            continue;
        }
        let of_leaf = &mut sums[tree.frame(node) as usize].1;
        of_leaf.own = of_leaf.own.saturating_add(value);
        for part in tree.parts(node) {
            for &frame in part {
                let (last, sum) = &mut sums[frame as usize];
                if std::mem::replace(last, stack) != stack {
                    sum.total = sum.total.saturating_add(value);
                }
            }
        }
    }
    sums.into_iter().map(|(_, sum)| sum).collect()
}

/// Adds the values of stacks, node by node: callers that many stacks share are visited once.
fn add_tree(tree: &CallTree, own: impl Iterator<Item = (NodeId, i64)>, sums: &mut [FunctionSum]) {
    let own = own.inspect(|&(node, value)| {
        if node != ROOT {
            let sum = &mut sums[tree.frame(node) as usize].own;
            *sum = sum.saturating_add(value);
        }
    });
    let totals = tree.totals(own);
    // The frames of the present node's callers, and how often each frame is among them.
    let (mut callers, mut counts) = (Vec::new(), vec![0_u32; sums.len()]);
    for (node, level) in tree.pre_order().into_iter().skip(1) {
        for frame in callers.drain(level as usize - 1..) {
            counts[frame as usize] -= 1;
        }
        let frame = tree.frame(node);
        let count = &mut counts[frame as usize];
        if *count == 0 {
            // Below a node of the same function, the value is in that node's total.
            let sum = &mut sums[frame as usize].total;
            *sum = sum.saturating_add(totals[node as usize]);
        }
        *count += 1;
        callers.push(frame);
    }
}

/// The frames with sums, the highest first.
pub fn sorted(sums: &[FunctionSum], sort_by: SortBy) -> Vec<(FrameId, FunctionSum)> {
    let mut sorted: Vec<_> = (0..)
        .zip(sums.iter().copied())
        .filter(|(_, sum): &(FrameId, FunctionSum)| *sum != FunctionSum::default())
        .collect();
    sorted.sort_unstable_by_key(|&(frame, sum)| (Reverse(sort_by.key(sum)), frame));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn recursion_counts_once_in_total() {
        let mut tree = CallTree::default();
        let mut add = |stack: &[FrameId]| stack.iter().fold(ROOT, |node, &frame| tree.child(node, frame));
        let (recursive, leaf) = (add(&[0, 1, 1, 1]), add(&[0, 1, 2]));
        let sums = function_sums(&tree, 3, [(recursive, 5), (leaf, 7), (ROOT, 1)].into_iter());
        let expected = [(0, 12), (5, 12), (7, 7)].map(|(own, total)| FunctionSum { own, total });
        assert_eq!(sums, expected);
        let names = |sort_by| sorted(&sums, sort_by).into_iter().map(|(frame, _)| frame).collect::<Vec<_>>();
        assert_eq!(names(SortBy::Own), [2, 1, 0]);
        assert_eq!(names(SortBy::Total), [1, 0, 2]);
    }

    #[test]
    fn few_stacks_and_many_have_the_same_sums() {
        let mut tree = CallTree::default();
        // Frames recur at different depths.
        let stack = |at: u32| (0..at % 9).map(move |depth| (at * 7 + depth * depth * at) % 5);
        let values: Vec<_> = (0..300)
            .map(|at| (stack(at).fold(ROOT, |node, frame| tree.child(node, frame)), i64::from(at) - 40))
            .collect();
        let mut expected = vec![FunctionSum::default(); 5];
        for &value in &values {
            let alone = function_sums(&tree, 5, std::iter::once(value));
            for (sum, alone) in expected.iter_mut().zip(alone) {
                sum.own += alone.own;
                sum.total += alone.total;
            }
        }
        assert!(tree.len() / NODES_FOR_EACH_STACK >= 1, "one stack alone is visited");
        assert_eq!(function_sums(&tree, 5, values.into_iter()), expected);
    }
}
