//! The tree of calls: each function with the functions that it calls, folded below a share.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};

use super::amount::{amount, percent};
use super::style::Style;
use crate::report::call_tree::{CallTree, NodeId, ROOT};
use crate::report::collect::{SelfValues, total};
use crate::report::frame_table::FrameTable;

/// The options of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeOptions<'t> {
    /// The unit of the values.
    pub(super) unit: &'t str,
    /// The share, in percent of the whole, below which calls are folded.
    pub(super) least_percent: f64,
    pub(super) style: Style,
}

/// A call of the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) node: NodeId,
    /// The number of calls above this one.
    pub(super) depth: usize,
    /// The value of the call with all calls below.
    pub(super) total: i64,
    /// The value of the call itself.
    pub(super) own: i64,
}

/// Writes the tree, callers above the functions that they call.
pub(super) fn print(
    tree: &CallTree,
    frames: &FrameTable,
    own: &SelfValues,
    options: TreeOptions<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let whole = total(own);
    writeln!(out, "{:>10} {:>7} {:>10}  CALLS", "TOTAL", "SHARE", "SELF")?;
    for Call { node, depth, total, own } in calls(tree, own, options.least_percent) {
        let (share, own) = (percent(total, whole), amount(own, options.unit));
        write!(out, "{:>10} {share:>5.1} % {own:>10}  ", amount(total, options.unit))?;
        options.style.faint(out)?;
        write!(out, "{}", "│ ".repeat(depth))?;
        options.style.plain(out)?;
        writeln!(out, "{}", frames.get(tree.frame(node)))?;
    }
    Ok(())
}

/// The calls with at least the share, in pre-order. Of several calls by one function, the highest total is
/// first.
pub(super) fn calls(tree: &CallTree, own: &SelfValues, least_percent: f64) -> Vec<Call> {
    let totals = tree.totals(own.iter().map(|(&node, &value)| (node, value)));
    let mut children = children_by_total(tree, &totals, totals[ROOT as usize], least_percent);
    let mut calls = Vec::new();
    // Nodes that are still to be added, each with its depth.
    let mut pending = Vec::new();
    let mut add_children = |pending: &mut Vec<_>, node: NodeId, depth: usize| {
        let children = children.remove(&node).unwrap_or_default();
        pending.extend(children.into_iter().rev().map(|child| (child, depth)));
    };
    add_children(&mut pending, ROOT, 0);
    while let Some((node, depth)) = pending.pop() {
        let own = own.get(&node).copied().unwrap_or(0);
        calls.push(Call { node, depth, total: totals[node as usize], own });
        add_children(&mut pending, node, depth + 1);
    }
    calls
}

/// The children of each node that have at least the share, the highest total first.
fn children_by_total(
    tree: &CallTree,
    totals: &[i64],
    whole: i64,
    least_percent: f64,
) -> HashMap<NodeId, Vec<NodeId>> {
    let mut children: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    for (node, &total) in (0..).zip(totals).skip(1) {
        if total != 0 && percent(total, whole) >= least_percent {
            children.entry(tree.parent(node)).or_default().push(node);
        }
    }
    for of_node in children.values_mut() {
        of_node.sort_by_key(|&node| (Reverse(totals[node as usize]), tree.frame(node)));
    }
    children
}
