//! The callers and callees of functions.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

use otlpprof_report::call_tree::CallTree;
use otlpprof_report::collect::SelfValues;
use otlpprof_report::frame_table::{FrameId, FrameTable};
use otlpprof_report::function_sums::{DistinctFrames, FunctionSum, SortBy};
use regex::Regex;

use super::amount::{amount, percent};
use super::fitted::width;
use super::style::Style;
use super::table::print_rest;

/// The columns of the values before a function.
const OF_VALUES: usize = 20;

/// The sums of a function, of its calls, and of the calls to it. Each stack counts once in each of them.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    pub(super) sum: FunctionSum,
    callers: HashMap<FrameId, i64>,
    callees: HashMap<FrameId, i64>,
}

impl Neighbours {
    /// The functions that call this one, the highest value first.
    pub(super) fn callers(&self) -> Vec<(FrameId, i64)> {
        sorted(&self.callers)
    }

    /// The functions that this one calls, the highest value first.
    pub(super) fn callees(&self) -> Vec<(FrameId, i64)> {
        sorted(&self.callees)
    }
}

/// The options of callers and callees.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeekOptions<'p> {
    /// The expression that the functions match.
    pub(super) matching: &'p Regex,
    /// The unit of the values.
    pub(super) unit: &'p str,
    /// The order of the functions.
    pub(super) sort_by: SortBy,
    /// The most functions.
    pub(super) most: usize,
    /// The total of which shares are shown.
    pub(super) whole: i64,
    pub(super) style: Style,
}

/// Writes the callers and callees of each function that matches.
pub(super) fn print(
    tree: &CallTree,
    frames: &FrameTable,
    own: &SelfValues,
    options: PeekOptions<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let PeekOptions { matching, unit, sort_by, most, whole, style } = options;
    let found = neighbours(tree, frames, own, matching, sort_by);
    for (at, (frame, of)) in found.iter().take(most).enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        let mut line = |before: &str, value: i64, whole: i64, frame: FrameId, behind: &str| {
            let others = OF_VALUES + width(before) + width(behind);
            let name = style.name_at_end(frames.get(frame), others);
            let (value, share) = (amount(value, unit), percent(value, whole));
            writeln!(out, "{value:>10} {share:>5.1} %  {before}{name}{behind}")
        };
        for (caller, value) in of.callers() {
            line("  called by ", value, of.sum.total, caller, "")?;
        }
        let FunctionSum { own, total } = of.sum;
        line("", total, whole, *frame, &format!(" (self {})", amount(own, unit)))?;
        for (callee, value) in of.callees() {
            line("  calls ", value, of.sum.total, callee, "")?;
        }
    }
    if found.is_empty() {
        writeln!(out, "no function matches {matching}")?;
    }
    print_rest(found.len(), most, out)
}

/// The entries with the highest values first.
fn sorted(values: &HashMap<FrameId, i64>) -> Vec<(FrameId, i64)> {
    let mut values: Vec<_> = values.iter().map(|(&frame, &value)| (frame, value)).collect();
    values.sort_by_key(|&(frame, value)| (Reverse(value), frame));
    values
}

/// The functions that match, in this order.
pub(super) fn neighbours(
    tree: &CallTree,
    frames: &FrameTable,
    own: &SelfValues,
    matching: &Regex,
    sort_by: SortBy,
) -> Vec<(FrameId, Neighbours)> {
    let is_match: Vec<_> = frames.all().iter().map(|entry| matching.is_match(&entry.name)).collect();
    let mut found = BTreeMap::<FrameId, Neighbours>::new();
    let (mut distinct, mut calls) = (DistinctFrames::default(), HashSet::new());
    for (&leaf, &value) in own {
        distinct.visit(tree.stack(leaf), |frame, is_leaf| {
            if is_match[frame as usize] {
                found.entry(frame).or_default().sum.add(value, is_leaf);
            }
        });
        calls.clear();
        let mut callee = None;
        for frame in tree.stack(leaf) {
            if let Some(callee) = callee.replace(frame)
                && calls.insert((frame, callee))
            {
                let mut add = |of: FrameId, is_callee: bool, other: FrameId| {
                    if is_match[of as usize] {
                        let of = found.entry(of).or_default();
                        let values = if is_callee { &mut of.callees } else { &mut of.callers };
                        let sum = values.entry(other).or_default();
                        *sum = sum.saturating_add(value);
                    }
                };
                add(frame, true, callee);
                add(callee, false, frame);
            }
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|(frame, of)| (Reverse(sort_by.key(of.sum)), *frame));
    found
}

#[cfg(test)]
mod tests {
    use otlpprof_report::call_tree::ROOT;

    use super::*;

    #[test]
    fn each_stack_counts_once_for_a_caller_and_for_a_callee() {
        let (mut tree, mut frames) = (CallTree::default(), FrameTable::default());
        let [main, work, leaf] = ["main", "work", "leaf"].map(|name| frames.intern_group(name));
        let mut add = |stack: &[FrameId]| stack.iter().fold(ROOT, |node, &frame| tree.child(node, frame));
        let own: SelfValues =
            [(add(&[main, work, work, work]), 5), (add(&[main, work, leaf]), 7)].into_iter().collect();
        let found = neighbours(&tree, &frames, &own, &Regex::new("^work$").unwrap(), SortBy::Total);
        let [(function, of)] = &found[..] else { panic!("{found:?}") };
        assert_eq!((*function, of.sum), (work, FunctionSum { own: 5, total: 12 }));
        assert_eq!(of.callers(), [(main, 12), (work, 5)]);
        assert_eq!(of.callees(), [(leaf, 7), (work, 5)]);
    }
}
