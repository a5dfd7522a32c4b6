//! Sums by function: self (the function is the leaf) and total (the function is anywhere in the stack).

use std::cmp::Reverse;

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

/// The order of functions in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortBy {
    /// By self, then by total.
    #[default]
    Own,
    /// By total, then by self.
    Total,
}

/// Returns the sums of each frame of the tree, by the frame's number. `frames` is their number.
pub fn function_sums(
    tree: &CallTree,
    frames: usize,
    own: impl IntoIterator<Item = (NodeId, i64)>,
) -> Vec<FunctionSum> {
    let mut sums = vec![FunctionSum::default(); frames];
    // The number of the last stack in which each frame was met.
    let mut met = vec![0_u32; frames];
    for (stack, (node, value)) in (1..).zip(own) {
        if node != ROOT {
            let sum = &mut sums[tree.frame(node) as usize];
            sum.own = sum.own.saturating_add(value);
        }
        for frame in tree.stack(node) {
            let frame = frame as usize;
            if std::mem::replace(&mut met[frame], stack) != stack {
                sums[frame].total = sums[frame].total.saturating_add(value);
            }
        }
    }
    sums
}

/// The frames with sums, the highest first.
pub fn sorted(sums: &[FunctionSum], sort_by: SortBy) -> Vec<(FrameId, FunctionSum)> {
    let mut sorted: Vec<_> = (0..)
        .zip(sums.iter().copied())
        .filter(|(_, sum): &(FrameId, FunctionSum)| *sum != FunctionSum::default())
        .collect();
    sorted.sort_unstable_by_key(|&(frame, sum)| {
        let (first, second) = match sort_by {
            SortBy::Own => (sum.own, sum.total),
            SortBy::Total => (sum.total, sum.own),
        };
        (Reverse(first), Reverse(second), frame)
    });
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
        let sums = function_sums(&tree, 3, [(recursive, 5), (leaf, 7), (ROOT, 1)]);
        let expected = [(0, 12), (5, 12), (7, 7)].map(|(own, total)| FunctionSum { own, total });
        assert_eq!(sums, expected);
        let names = |sort_by| sorted(&sums, sort_by).into_iter().map(|(frame, _)| frame).collect::<Vec<_>>();
        assert_eq!(names(SortBy::Own), [2, 1, 0]);
        assert_eq!(names(SortBy::Total), [1, 0, 2]);
    }
}
