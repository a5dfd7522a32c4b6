//! Sums by function or by line: self (the frame is the leaf) and total (the frame is anywhere, counted once a
//! stack).

use std::cmp::Reverse;

use otlpprof_report::call_tree::{CallTree, NodeId};
use otlpprof_report::eviction::keep_first;
use otlpprof_report::frame_table::{FrameEntry, FrameId, FrameTable};
use otlpprof_report::function_sums::DistinctFrames;

use super::sum::Sum;

/// The key that frames are summed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Name and file.
    Function,
    /// Name, file and line.
    Line,
}

/// The sums of a function's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FunctionSum {
    /// Sum of the samples with the function as leaf.
    pub(super) own: Sum,
    /// Sum of the samples with the function anywhere in the stack. A recursive function counts once for each
    /// stack.
    pub(super) total: Sum,
}

/// Sums by function or line.
#[derive(Debug, Default)]
pub(super) struct FunctionSums {
    /// The functions, or lines, that have a sum.
    frames: FrameTable,
    /// By frame.
    sums: Vec<FunctionSum>,
}

impl FunctionSums {
    /// The approximate bytes that the sums occupy.
    pub(super) fn bytes(&self) -> usize {
        self.frames.bytes() + self.sums.len() * size_of::<FunctionSum>()
    }

    /// Adds the sums of stacks.
    pub(super) fn add(
        &mut self,
        stacks: impl Iterator<Item = (NodeId, Sum)>,
        by: By,
        tree: &CallTree,
        frames: &FrameTable,
    ) {
        let Self { frames: functions, sums } = self;
        // By frame of the tree.
        let mut known = vec![None; frames.len()];
        let mut distinct = DistinctFrames::default();
        for (node, of_stack) in stacks {
            let stack = tree.stack(node).map(|frame| {
                let intern = || functions.intern_copy(frames, frame, by == By::Line);
                *known[frame as usize].get_or_insert_with(intern)
            });
            distinct.visit(stack, |function, is_leaf| {
                if sums.len() <= function as usize {
                    sums.push(FunctionSum::default());
                }
                let sum = &mut sums[function as usize];
                sum.total += of_stack;
                if is_leaf {
                    sum.own += of_stack;
                }
            });
        }
    }

    /// Evicts the lowest sums. Of `part` of them one is kept.
    pub(super) fn evict(&mut self, part: usize) {
        let Self { frames, sums } = std::mem::take(self);
        let mut kept: Vec<(FrameId, _)> = (0..).zip(sums).collect();
        keep_first(&mut kept, part, |&(function, sum)| (highest(sum), function));
        for (function, sum) in kept {
            self.frames.intern_copy(&frames, function, true);
            self.sums.push(sum);
        }
    }

    /// The functions with the highest self sums.
    pub(super) fn top(&self, most: usize) -> Vec<(String, FunctionSum)> {
        let texts = self.frames.all().iter().map(FrameEntry::to_string);
        let mut sums: Vec<_> = texts.zip(self.sums.iter().copied()).collect();
        sums.sort_unstable_by(|(text, sum), (other_text, other)| {
            (highest(*sum), text).cmp(&(highest(*other), other_text))
        });
        sums.truncate(most);
        sums
    }
}

/// The key by which the highest sums are first.
fn highest(sum: FunctionSum) -> impl Ord {
    (Reverse(sum.own), Reverse(sum.total))
}

#[cfg(test)]
mod tests {
    use otlpprof_otlp::frames::{Frame, Naming};
    use otlpprof_report::call_tree::ROOT;
    use otlpprof_report::frame_table::FrameOrigin;

    use super::*;

    /// Sums of stacks, leaf first, of lines of functions.
    fn sums(by: By, stacks: &[(&[(&'static str, i64)], i128)]) -> Vec<(String, i128, i128)> {
        let (mut tree, mut frames) = (CallTree::default(), FrameTable::default());
        let mut stack_of = |&(stack, value): &(&[(&'static str, i64)], i128)| {
            let node = stack.iter().rev().fold(ROOT, |node, &(name, line)| {
                let (text, naming, file) = (name.into(), Naming::Function, "F.java");
                let frame =
                    Frame { text, naming, frame_type: "jvm", is_stub: false, mapping_index: 0, file, line };
                tree.child(node, frames.intern(&frame, true, 0, FrameOrigin::Jvm))
            });
            (node, Sum::of_values(value, 10))
        };
        let stacks: Vec<_> = stacks.iter().map(&mut stack_of).collect();
        let mut sums = FunctionSums::default();
        sums.add(stacks.into_iter(), by, &tree, &frames);
        let of = |sum: Sum| {
            assert_eq!(sum.amount, 10 * sum.values);
            sum.values
        };
        let top = sums.top(9).into_iter();
        top.map(|(text, sum)| (text, of(sum.own), of(sum.total))).collect()
    }

    /// Regression: sums were by line only, so a function with many lines was never at the top.
    #[test]
    fn a_function_of_many_lines_is_one_and_recursion_counts_once() {
        let stacks = [
            (&[("fib", 3), ("fib", 4), ("main", 1)][..], 3),
            (&[("fib", 5), ("fib", 5), ("main", 1)], 4),
            (&[("leaf", 9), ("fib", 3), ("main", 2)], 5),
        ];
        let of = |name: &str, own, total| (name.to_owned(), own, total);
        assert_eq!(
            sums(By::Function, &stacks),
            [of("fib (F.java)", 7, 12), of("leaf (F.java)", 5, 5), of("main (F.java)", 0, 12)]
        );
        assert_eq!(
            sums(By::Line, &stacks),
            [
                of("leaf (F.java:9)", 5, 5),
                of("fib (F.java:5)", 4, 4),
                of("fib (F.java:3)", 3, 8),
                of("main (F.java:1)", 0, 7),
                of("main (F.java:2)", 0, 5),
                of("fib (F.java:4)", 0, 3),
            ]
        );
    }
}
