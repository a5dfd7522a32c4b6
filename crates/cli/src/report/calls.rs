//! The calls of a tree that are shown: from the callers down, or inverted, from the functions up.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use otlpprof_report::call_tree::{CallTree, NodeId, ROOT};
use otlpprof_report::collect::SelfValues;
use otlpprof_report::frame_table::FrameId;

use super::amount::percent;

/// A call of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) frame: FrameId,
    /// The number of calls above this one.
    pub(super) depth: usize,
    /// The value of the call with all calls below.
    pub(super) total: i64,
    /// The value of the call itself; in an inverted tree, the value of the stacks that begin with this call.
    pub(super) own: i64,
}

/// The calls that are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallBounds {
    /// The share, in percent of the whole, below which calls are folded.
    pub(super) least_percent: f64,
    /// The total of which shares are taken.
    pub(super) whole: i64,
    /// The most levels.
    pub(super) most_levels: usize,
}

impl CallBounds {
    fn is_folded(self, total: i64) -> bool {
        percent(total, self.whole) < self.least_percent
    }
}

/// Calls in pre-order: of several calls by one function, the highest total is first.
#[derive(Debug)]
pub(super) struct Calls {
    bounds: CallBounds,
    pub(super) shown: Vec<Call>,
    /// The number of calls below the share, without the calls below them.
    pub(super) folded: usize,
    /// The number of calls below the last level that is shown.
    pub(super) elided: usize,
    /// The number of levels of the whole tree, without folded calls.
    pub(super) levels: usize,
}

impl Calls {
    fn new(bounds: CallBounds) -> Self {
        Self { bounds, shown: Vec::new(), folded: 0, elided: 0, levels: 0 }
    }

    fn add(&mut self, call: Call) {
        self.levels = self.levels.max(call.depth + 1);
        if call.depth < self.bounds.most_levels {
            self.shown.push(call);
        } else {
            self.elided += 1;
        }
    }
}

/// The calls from the callers down.
pub(super) fn calls(tree: &CallTree, own: &SelfValues, bounds: CallBounds) -> Calls {
    let mut calls = Calls::new(bounds);
    let totals = tree.totals(own.iter().map(|(&node, &value)| (node, value)));
    let mut children: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    for (node, &total) in (0..).zip(&totals).skip(1).filter(|(_, total)| **total != 0) {
        let parent = tree.parent(node);
        if !bounds.is_folded(total) {
            children.entry(parent).or_default().push(node);
        } else if parent == ROOT || !bounds.is_folded(totals[parent as usize]) {
            calls.folded += 1;
        }
    }
    for of_node in children.values_mut() {
        // The last one is taken first.
        of_node.sort_by_key(|&node| Reverse((Reverse(totals[node as usize]), tree.frame(node))));
    }
    // Nodes that are still to be added, each with its depth.
    let mut pending = Vec::new();
    let mut add_children = |pending: &mut Vec<_>, node: NodeId, depth: usize| {
        pending.extend(children.remove(&node).into_iter().flatten().map(|child| (child, depth)));
    };
    add_children(&mut pending, ROOT, 0);
    while let Some((node, depth)) = pending.pop() {
        let own = own.get(&node).copied().unwrap_or(0);
        calls.add(Call { frame: tree.frame(node), depth, total: totals[node as usize], own });
        add_children(&mut pending, node, depth + 1);
    }
    calls
}

/// The calls of one frame, by one frame: the nodes of the frame, each with the value of the stacks that reach
/// the first level through it.
#[derive(Default)]
struct Group {
    total: i64,
    nodes: Vec<(NodeId, i64)>,
}

/// The inverted calls: each function with its callers below. Only calls that are shown are divided by their
/// callers.
pub(super) fn inverted(tree: &CallTree, own: &SelfValues, bounds: CallBounds) -> Calls {
    let mut calls = Calls::new(bounds);
    let leaves = own.iter().filter(|&(&node, &value)| node != ROOT && value != 0);
    let mut pending = groups(tree, leaves.map(|(&node, &value)| (node, value)), 0, &mut calls);
    while let Some((frame, depth, Group { total, nodes })) = pending.pop() {
        let callers = nodes.iter().map(|&(node, value)| (tree.parent(node), value));
        let own = callers.clone().filter(|(caller, _)| *caller == ROOT).map(|(_, value)| value);
        calls.add(Call { frame, depth, total, own: own.fold(0, i64::saturating_add) });
        let callers = callers.filter(|(caller, _)| *caller != ROOT);
        pending.extend(groups(tree, callers, depth + 1, &mut calls));
    }
    calls
}

/// Nodes by their frames, the group with the highest total last. Counts the groups that are folded.
fn groups(
    tree: &CallTree,
    nodes: impl Iterator<Item = (NodeId, i64)>,
    depth: usize,
    calls: &mut Calls,
) -> Vec<(FrameId, usize, Group)> {
    let mut values: BTreeMap<NodeId, i64> = BTreeMap::new();
    for (node, value) in nodes {
        let sum = values.entry(node).or_default();
        *sum = sum.saturating_add(value);
    }
    let mut groups: BTreeMap<FrameId, Group> = BTreeMap::new();
    for (node, value) in values {
        let group = groups.entry(tree.frame(node)).or_default();
        group.total = group.total.saturating_add(value);
        group.nodes.push((node, value));
    }
    let all = groups.len();
    groups.retain(|_, group| !calls.bounds.is_folded(group.total));
    calls.folded += all - groups.len();
    let mut groups: Vec<_> = groups.into_iter().map(|(frame, group)| (frame, depth, group)).collect();
    groups.sort_by_key(|(frame, _, group)| Reverse((Reverse(group.total), *frame)));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `main` 1, `main;work` 10, `main;work;leaf` 20, `other;leaf` 5.
    fn tree() -> (CallTree, SelfValues) {
        let mut tree = CallTree::default();
        let mut add = |stack: &[FrameId]| stack.iter().fold(ROOT, |node, &frame| tree.child(node, frame));
        let own = [(add(&[0]), 1), (add(&[0, 1]), 10), (add(&[0, 1, 2]), 20), (add(&[3, 2]), 5)];
        (tree, own.into_iter().collect())
    }

    fn shown(calls: &Calls) -> Vec<(FrameId, usize, i64, i64)> {
        calls.shown.iter().map(|call| (call.frame, call.depth, call.total, call.own)).collect()
    }

    fn bounds(least_percent: f64, most_levels: usize) -> CallBounds {
        CallBounds { least_percent, whole: 36, most_levels }
    }

    #[test]
    fn callers_are_above_the_functions_that_they_call() {
        let (tree, own) = tree();
        let all = calls(&tree, &own, bounds(0.0, 9));
        let expected = [(0, 0, 31, 1), (1, 1, 30, 10), (2, 2, 20, 20), (3, 0, 5, 0), (2, 1, 5, 5)];
        assert_eq!((shown(&all), all.folded, all.elided), (expected.to_vec(), 0, 0));
        let some = calls(&tree, &own, bounds(50.0, 2));
        assert_eq!((shown(&some), some.folded, some.elided), (expected[..2].to_vec(), 1, 1));
        assert_eq!(some.levels, 3);
    }

    #[test]
    fn callers_are_below_the_functions_of_an_inverted_tree() {
        let (tree, own) = tree();
        let all = inverted(&tree, &own, bounds(0.0, 9));
        let expected = [
            (2, 0, 25, 0),
            (1, 1, 20, 0),
            (0, 2, 20, 20),
            (3, 1, 5, 5),
            (1, 0, 10, 0),
            (0, 1, 10, 10),
            (0, 0, 1, 1),
        ];
        assert_eq!((shown(&all), all.folded, all.elided), (expected.to_vec(), 0, 0));
        let some = inverted(&tree, &own, bounds(20.0, 2));
        let expected = [(2, 0, 25, 0), (1, 1, 20, 0), (1, 0, 10, 0), (0, 1, 10, 10)];
        assert_eq!((shown(&some), some.folded, some.elided), (expected.to_vec(), 2, 1));
    }
}
