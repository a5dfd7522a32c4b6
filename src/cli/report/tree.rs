//! The tree of calls: each function with the functions that it calls, folded below a share.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};

use super::amount::{amount, percent};
use super::style::Style;
use crate::report::call_tree::{CallTree, NodeId, ROOT};
use crate::report::collect::SelfValues;
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

/// A node that is still to be written.
struct Pending {
    node: NodeId,
    level: usize,
}

/// Writes the tree, callers above the functions that they call.
pub(super) fn print(
    tree: &CallTree,
    frames: &FrameTable,
    own: &SelfValues,
    options: TreeOptions<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let totals = tree.totals(own.iter().map(|(&node, &value)| (node, value)));
    let whole = totals[ROOT as usize];
    let mut children = children_by_total(tree, &totals, whole, options.least_percent);
    writeln!(out, "{:>10} {:>7} {:>10}  CALLS", "TOTAL", "SHARE", "SELF")?;
    let mut pending = vec![Pending { node: ROOT, level: 0 }];
    while let Some(Pending { node, level }) = pending.pop() {
        if node != ROOT {
            let total = totals[node as usize];
            let own = own.get(&node).copied().unwrap_or(0);
            write!(
                out,
                "{:>10} {:>5.1} % {:>10}  ",
                amount(total, options.unit),
                percent(total, whole),
                amount(own, options.unit)
            )?;
            options.style.faint(out)?;
            write!(out, "{}", "│ ".repeat(level.saturating_sub(1)))?;
            options.style.plain(out)?;
            writeln!(out, "{}", frames.get(tree.frame(node)))?;
        }
        let shown = children.remove(&node).unwrap_or_default();
        pending.extend(shown.into_iter().rev().map(|node| Pending { node, level: level + 1 }));
    }
    Ok(())
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
