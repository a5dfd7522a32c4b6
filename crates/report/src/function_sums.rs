//! Sums by function: self (the function is the leaf) and total (the function is anywhere in the stack).

use std::cmp::Reverse;
use std::panic::resume_unwind;
use std::thread;

use otlpprof_workers::processors;

use super::call_tree::{CallTree, NodeId, ROOT, RunOfNodes};
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
    let threads = processors(MOST_THREADS).min(own.len() / STACKS_FOR_EACH_FRAME / frames.max(1));
    sums_by_threads(tree, frames, &own, threads, thread::Builder::new)
}

/// As [`function_sums`], stack by stack, with at most so many threads, this one included. `builder` makes
/// the others.
fn sums_by_threads(
    tree: &CallTree,
    frames: usize,
    own: &[(NodeId, i64)],
    threads: usize,
    builder: fn() -> thread::Builder,
) -> Vec<FunctionSum> {
    // A sum that saturates depends on the order of its values. So one thread adds them, and the result does
    // not depend on the number of processors.
    let threads = if may_saturate(own) { 1 } else { threads.max(1) };
    let mut parts = own.chunks(own.len().div_ceil(threads).max(1));
    let first = parts.next().unwrap_or_default();
    thread::scope(|scope| {
        let spawn = |part| (part, builder().spawn_scoped(scope, move || sums_of(tree, frames, part)));
        let others: Vec<_> = parts.map(spawn).collect();
        let mut sums = sums_of(tree, frames, first);
        for (part, thread) in others {
            let other = match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // The system refuses the thread.
                Err(_) => sums_of(tree, frames, part),
            };
            for (sum, other) in sums.iter_mut().zip(other) {
                sum.own = sum.own.saturating_add(other.own);
                sum.total = sum.total.saturating_add(other.total);
            }
        }
        sums
    })
}

/// Whether a sum of some of the values may saturate.
fn may_saturate(own: &[(NodeId, i64)]) -> bool {
    let magnitudes = own.iter().map(|&(_, value)| u128::from(value.unsigned_abs()));
    magnitudes.sum::<u128>() > i64::MAX as u128
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
    // The frames of the present run's callers, and how often each frame is among them.
    let (mut callers, mut counts) = (Vec::new(), vec![0_u32; sums.len()]);
    for (RunOfNodes { first, frames, .. }, level) in tree.runs_in_pre_order() {
        for frame in callers.drain(level as usize - 1..) {
            counts[frame as usize] -= 1;
        }
        for (&frame, &total) in frames.iter().zip(&totals[first as usize..]) {
            let count = &mut counts[frame as usize];
            if *count == 0 {
                // Below a node of the same function, the value is in that node's total.
                let sum = &mut sums[frame as usize].total;
                *sum = sum.saturating_add(total);
            }
            *count += 1;
        }
        callers.extend_from_slice(frames);
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

    /// Deep stacks of seven frames, with these values.
    fn deep_stacks(values: impl Iterator<Item = i64>) -> (CallTree, Vec<(NodeId, i64)>) {
        let (mut tree, mut state) = (CallTree::default(), 1_u32);
        let own = values.map(|value| {
            let stack = (0..20 + state % 30).map(|_| {
                state = state.wrapping_mul(0x9e37_79b1).wrapping_add(11);
                (state >> 16) % 7
            });
            (stack.fold(ROOT, |node, frame| tree.child(node, frame)), value)
        });
        let own = own.collect();
        (tree, own)
    }

    #[test]
    fn sums_do_not_depend_on_the_number_of_threads() {
        let (tree, own) = deep_stacks((0..200).map(|value| value - 40));
        let mut expected = vec![FunctionSum::default(); 7];
        for &(node, value) in &own {
            let stack: Vec<_> = tree.stack(node).collect();
            let in_stack = (0..7).filter(|frame| stack.contains(frame));
            in_stack.for_each(|frame| expected[frame as usize].add(value, stack[0] == frame));
        }
        assert!(!may_saturate(&own));
        for threads in [0, 1, 3, 8] {
            let sums = sums_by_threads(&tree, 7, &own, threads, thread::Builder::new);
            assert_eq!(sums, expected, "{threads}");
        }
        assert!(tree.len() / NODES_FOR_EACH_STACK >= own.len(), "stacks are summed one by one");
        assert_eq!(function_sums(&tree, 7, own.into_iter()), expected);
    }

    #[test]
    fn sums_that_saturate_do_not_depend_on_the_number_of_threads() {
        let (tree, own) = deep_stacks([i64::MAX, i64::MAX, -i64::MAX].into_iter().cycle().take(30));
        assert!(may_saturate(&own));
        let expected = sums_of(&tree, 7, &own);
        for threads in [1, 3, 8] {
            let sums = sums_by_threads(&tree, 7, &own, threads, thread::Builder::new);
            assert_eq!(sums, expected, "{threads}");
        }
    }

    #[test]
    fn parts_of_refused_threads_are_summed_too() {
        // No address space has room for such a stack.
        let refused = || thread::Builder::new().stack_size(1 << 60);
        assert!(refused().spawn(|| ()).is_err());
        let (tree, own) = deep_stacks(0..200);
        assert_eq!(sums_by_threads(&tree, 7, &own, 8, refused), sums_of(&tree, 7, &own));
    }
}
