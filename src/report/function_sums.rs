//! Sums by function: self (the function is the leaf) and total (the function is anywhere in the stack).

use std::cmp::Reverse;

use super::call_tree::{CallTree, NodeId};
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

/// Returns the sums of each frame of the tree, by the frame's number. `frames` is their number.
pub fn function_sums(
    tree: &CallTree,
    frames: usize,
    own: impl IntoIterator<Item = (NodeId, i64)>,
) -> Vec<FunctionSum> {
    let mut sums = vec![FunctionSum::default(); frames];
    let mut distinct = DistinctFrames::default();
    for (node, value) in own {
        distinct.visit(tree.stack(node), |frame, is_leaf| sums[frame as usize].add(value, is_leaf));
    }
    sums
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
    use crate::report::call_tree::ROOT;

    #[test]
    fn recursion_counts_once_in_total() {
        let mut tree = CallTree::default();
        let mut add = |stack: &[FrameId]| stack.iter().fold(ROOT, |node, &frame| tree.child(node, frame));
        let (recursive, leaf) = (add(&[0, 1, 1, 1]), add(&[0, 1, 2]));
        let sums = function_sums(&tree, 3, [(recursive, 5), (leaf, 7), (ROOT, 1)]);
        let expected = [(0, 12), (5, 12), (7, 7)].map(|(own, total)| FunctionSum { own, total });
        assert_eq!(sums, expected);
        let names = |sort_by| sorted(&sums, sort_by).into_iter().map(|(frame, _)| frame).collect::<Vec<_>>();
        assert_eq!(names(SortBy::Own), [2, 1, 0]);
        assert_eq!(names(SortBy::Total), [1, 0, 2]);
    }
}
