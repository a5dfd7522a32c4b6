//! The functions and threads with the highest values.

use std::cmp::Reverse;
use std::collections::HashMap;

use otlpprof_report::code_kind::{KindSums, StackCodes};
use otlpprof_report::frame_table::FrameId;
use otlpprof_report::function_sums::{DistinctFrames, FunctionSum, SortBy, sorted};
use otlpprof_report::sample_reader::SampleReader;
use otlpprof_report::thread_role::ThreadRole;
use regex::Regex;

use super::message_sums::StackValues;

/// The functions and threads, the highest first.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// The sum of all stacks.
    pub(super) whole: i64,
    pub(super) functions: Vec<(FrameId, FunctionSum)>,
    /// The frames that stand for threads, each with its value.
    pub(super) threads: Vec<(FrameId, i64)>,
    /// The sums by kind of code, if they are known.
    pub(super) kinds: Option<KindSums>,
}

impl Ranking {
    /// Ranks the stacks in which a function matches the expression, or whose thread's name does.
    pub(super) fn of(
        reader: &SampleReader<'_>,
        values: &StackValues,
        filter: Option<&Regex>,
        sort_by: SortBy,
    ) -> Self {
        let mut matches: HashMap<FrameId, bool> = HashMap::new();
        let mut is_match = |frame: FrameId| match filter {
            None => true,
            Some(filter) => {
                *matches.entry(frame).or_insert_with(|| filter.is_match(&reader.frames.get(frame).name))
            }
        };
        let mut sums = vec![FunctionSum::default(); reader.frames.len()];
        let mut threads: HashMap<FrameId, i64> = HashMap::new();
        let mut distinct = DistinctFrames::default();
        let (mut whole, mut stack, mut ranked) = (0_i64, Vec::new(), Vec::new());
        for (&node, &value) in values {
            stack.clear();
            stack.extend(reader.tree.stack(node));
            // Rounding may leave less than nothing of a stack.
            let Some((&thread, functions)) = stack.split_last().filter(|_| value > 0) else { continue };
            if !stack.iter().any(|&frame| is_match(frame)) {
                continue;
            }
            whole = whole.saturating_add(value);
            let of_thread = threads.entry(thread).or_default();
            *of_thread = of_thread.saturating_add(value);
            ranked.push((ThreadRole::of(&reader.frames.get(thread).name), node, value));
            distinct.visit(functions.iter().copied(), |frame, is_leaf| {
                sums[frame as usize].add(value, is_leaf);
            });
        }
        let mut threads: Vec<_> = threads.into_iter().collect();
        threads.sort_unstable_by_key(|&(frame, value)| (Reverse(value), frame));
        let kinds = KindSums::of(&StackCodes::of(&reader.tree, &reader.frames), ranked);
        Self { whole, functions: sorted(&sums, sort_by), threads, kinds }
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_otlp::frames::{Frame, Naming};
    use otlpprof_report::call_tree::ROOT;
    use otlpprof_report::frame_table::FrameOrigin;
    use otlpprof_report::sample_reader::SampleForm;
    use otlpprof_report::selection::Selection;

    use super::*;

    #[test]
    fn a_filter_keeps_stacks_by_function_or_thread() {
        let selection = Selection::default();
        let mut reader = SampleReader::new(&selection, SampleForm::default());
        let mut values = StackValues::default();
        for (thread, functions, value) in
            [("main", vec!["run", "cart", "cart"], 5), ("worker", vec!["run"], 7), ("gc", vec![], 2)]
        {
            let thread = reader.frames.intern_group(thread);
            let mut node = reader.tree.child(ROOT, thread);
            for name in functions {
                let (naming, frame_type) = (Naming::Function, "jvm");
                let frame = Frame {
                    text: name.into(),
                    naming,
                    frame_type,
                    is_stub: false,
                    mapping_index: 0,
                    file: "",
                    line: 0,
                };
                let frame = reader.frames.intern(&frame, false, 0, FrameOrigin::Jvm);
                node = reader.tree.child(node, frame);
            }
            values.insert(node, value);
        }
        let ranking = |filter: &str| {
            let filter = Regex::new(filter).unwrap();
            let Ranking { whole, functions, threads, .. } =
                Ranking::of(&reader, &values, Some(&filter), SortBy::Total);
            let name = |frame| reader.frames.get(frame).name.to_string();
            let functions = functions.into_iter().map(|(frame, sum)| (name(frame), sum.own, sum.total));
            let threads = threads.into_iter().map(|(frame, value)| (name(frame), value));
            (whole, functions.collect::<Vec<_>>(), threads.collect::<Vec<_>>())
        };
        let function = |name: &str, own, total| (name.to_owned(), own, total);
        let thread = |name: &str, value| (name.to_owned(), value);
        let (run, cart) = (function("run", 7, 12), function("cart", 5, 5));
        assert_eq!(
            ranking(""),
            (14, vec![run, cart.clone()], vec![thread("worker", 7), thread("main", 5), thread("gc", 2)])
        );
        assert_eq!(ranking("^cart$"), (5, vec![cart, function("run", 0, 5)], vec![thread("main", 5)]));
        assert_eq!(ranking("gc"), (2, vec![], vec![thread("gc", 2)]));
    }
}
