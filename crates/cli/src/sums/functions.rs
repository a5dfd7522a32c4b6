//! Sums by function or by line: self (the frame is the leaf) and total (the frame is anywhere, counted once a
//! stack).

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

use otlpprof_report::function_sums::DistinctFrames;

use super::frames::{FrameId, FrameTable, IdTranslation};
use super::sum::Sum;

/// The key that frames are summed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Name and file.
    Function,
    /// Name, file and line.
    Line,
}

/// The sums of a function's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FunctionSum {
    /// Sum of the samples with the function as leaf.
    pub(crate) own: Sum,
    /// Sum of the samples with the function anywhere in the stack. A recursive function counts once for each
    /// stack.
    pub(crate) total: Sum,
}

/// Sums by function.
#[derive(Debug, Default)]
pub(super) struct FunctionSums {
    sums: HashMap<FrameId, FunctionSum>,
    distinct: DistinctFrames,
}

/// Approximate bytes that a function's sum occupies.
const OF_ENTRY: usize = 128;

impl FunctionSums {
    /// The approximate bytes that the sums occupy.
    pub(super) fn bytes(&self) -> usize {
        self.sums.len() * OF_ENTRY + self.distinct.bytes()
    }

    /// Adds the value observed with a stack, leaf first.
    pub(super) fn add(&mut self, stack: &[FrameId], by: By, frames: &FrameTable, value: Sum) {
        let Self { sums, distinct } = self;
        let functions = stack.iter().map(|&frame| match by {
            By::Function => frames.function(frame),
            By::Line => frame,
        });
        distinct.visit(functions, |function, is_leaf| {
            let sum = sums.entry(function).or_default();
            sum.total += value;
            if is_leaf {
                sum.own += value;
            }
        });
    }

    /// Whether a function has a sum.
    pub(super) fn has(&self, function: FrameId) -> bool {
        self.sums.contains_key(&function)
    }

    /// Keeps the highest sums, one in `of`, and evicts the rest.
    pub(super) fn evict_to_fraction(&mut self, of: usize) {
        let mut sums: Vec<_> = self.sums.drain().collect();
        sums.sort_unstable_by_key(|&(function, sum)| (Reverse(sum.own), Reverse(sum.total), function));
        sums.truncate(sums.len().div_ceil(of));
        self.sums = sums.into_iter().collect();
    }

    /// Replaces the ids by those of another table.
    pub(super) fn translate(&mut self, moved: &IdTranslation) {
        let sums = std::mem::take(&mut self.sums);
        let moved = |(function, sum)| Some((moved.frames[function as usize]?, sum));
        self.sums = sums.into_iter().filter_map(moved).collect();
        self.distinct = DistinctFrames::default();
    }

    /// The functions with the highest self sums.
    pub(super) fn top<'f>(&self, most: usize, frames: &'f FrameTable) -> Vec<(Cow<'f, str>, FunctionSum)> {
        let mut sums: Vec<_> =
            self.sums.iter().map(|(&function, &sum)| (frames.text(function), sum)).collect();
        let key = |sum: &FunctionSum| (Reverse(sum.own), Reverse(sum.total));
        sums.sort_unstable_by(|(text, sum), (other_text, other)| {
            key(sum).cmp(&key(other)).then_with(|| text.cmp(other_text))
        });
        sums.truncate(most);
        sums
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_otlp::frames::{Frame, Naming};

    use super::*;

    fn frame(name: &'static str, line: i64) -> Frame<'static> {
        let text = Cow::Borrowed(name);
        let naming = Naming::Function;
        Frame { text, naming, frame_type: "jvm", is_stub: false, mapping_index: 0, file: "F.java", line }
    }

    fn sums(by: By, stacks: &[(&[Frame<'_>], i128)]) -> Vec<(String, i128, i128)> {
        let (mut frames, mut sums) = (FrameTable::default(), FunctionSums::default());
        for (stack, value) in stacks {
            let stack = frames.add_all(stack);
            sums.add(&stack, by, &frames, Sum::of_values(*value, 10));
        }
        let top = sums.top(9, &frames);
        let of = |sum: Sum| {
            assert_eq!(sum.amount, 10 * sum.values);
            sum.values
        };
        top.into_iter().map(|(text, sum)| (text.into_owned(), of(sum.own), of(sum.total))).collect()
    }

    /// Regression: sums were by line only, so a function with many lines was never at the top.
    #[test]
    fn a_function_of_many_lines_is_one_and_recursion_counts_once() {
        let one = [frame("fib", 3), frame("fib", 4), frame("main", 1)];
        let other = [frame("fib", 5), frame("fib", 5), frame("main", 1)];
        let leaf = [frame("leaf", 9), frame("fib", 3), frame("main", 2)];
        let stacks = [(&one[..], 3), (&other[..], 4), (&leaf[..], 5)];
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
