//! The tree of all stacks: each node is a frame with its callers.
//!
//! Most nodes have one child, with the next number. So the tree is kept as runs of such nodes: their frames
//! are one after another, and only the first node of a run has a parent that is written down.

use std::hint::black_box;
use std::iter;

use super::frame_table::FrameId;
use super::pair_table::PairTable;

/// A node, by its number in a [`CallTree`].
pub type NodeId = u32;

/// The node above all stacks.
pub const ROOT: NodeId = 0;

/// The most bytes that a node occupies on average, with a self value for some of them.
const BYTES_PER_NODE: usize = 40;
/// The nodes of a [`Word`].
const NODES_PER_WORD: usize = u64::BITS as usize;

/// Nodes each of which is the child of the one before it. The first is the child of another node.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: NodeId,
    parent: NodeId,
}

/// The starts of runs among [`NODES_PER_WORD`] nodes of successive numbers.
#[derive(Clone, Copy, Debug)]
struct Word {
    /// A bit for each node that begins a run.
    starts: u64,
    /// The number of runs that begin before these nodes.
    runs_before: u32,
}

/// A run of nodes with its place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOfNodes<'t> {
    /// The parent of the first node.
    pub parent: NodeId,
    /// The first node. Each of the others has the next number, and is the child of the node before.
    pub first: NodeId,
    /// The frames of the nodes.
    pub frames: &'t [FrameId],
}

/// A tree of stacks. A child's number is higher than its parent's.
///
/// A child that is added right after its parent has the next number, by which it is found. So the new frames
/// of a stack are written one after another, and the hash table has the other children: at most one for each
/// stack.
#[derive(Debug)]
pub struct CallTree {
    /// By node. The root's frame means nothing.
    frames: Vec<FrameId>,
    words: Vec<Word>,
    /// All nodes but the root, in the order of their numbers.
    runs: Vec<Run>,
    /// By parent and frame: the first nodes of all runs.
    others: PairTable,
}

impl Default for CallTree {
    fn default() -> Self {
        let words = vec![Word { starts: 0, runs_before: 0 }];
        Self { frames: vec![0], words, runs: Vec::new(), others: PairTable::default() }
    }
}

impl CallTree {
    /// The number of nodes, the root included.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// The approximate bytes that the tree occupies, with self values.
    pub fn bytes(&self) -> usize {
        self.len() * BYTES_PER_NODE
    }

    /// Whether the tree has the root alone.
    pub fn is_empty(&self) -> bool {
        self.frames.len() == 1
    }

    /// A node's parent; the root's is the root.
    pub fn parent(&self, node: NodeId) -> NodeId {
        if node == ROOT {
            ROOT
        } else if self.begins_run(node) {
            self.runs[self.run_of(node)].parent
        } else {
            node - 1
        }
    }

    /// A node's frame. The root has none.
    pub fn frame(&self, node: NodeId) -> FrameId {
        self.frames[node as usize]
    }

    /// The child of `parent` with this frame, which is added if it does not exist.
    pub fn child(&mut self, parent: NodeId, frame: FrameId) -> NodeId {
        if let Some(child) = self.following_child(parent, frame) {
            return child;
        }
        // SANITY: 2^32 nodes do not fit into memory.
        let new = self.frames.len() as NodeId;
        if parent != ROOT && self.is_last(parent) {
            self.extend(&[frame]);
            return new;
        }
        let child = self.others.find_or_add([parent, frame], new);
        if child == new {
            self.extend(&[frame]);
            self.words[new as usize / NODES_PER_WORD].starts |= 1 << (new as usize % NODES_PER_WORD);
            self.runs.push(Run { first: new, parent });
        }
        child
    }

    /// Adds nodes of these frames below the last node of the tree, which is not the root, each below the one
    /// before. Returns the last of them.
    pub(super) fn append(&mut self, frames: &[FrameId]) -> NodeId {
        debug_assert!(!self.is_empty(), "a node below the root begins a run");
        self.extend(frames)
    }

    /// Adds nodes of these frames. Returns the last of them.
    fn extend(&mut self, frames: &[FrameId]) -> NodeId {
        self.frames.extend_from_slice(frames);
        let words = self.frames.len().div_ceil(NODES_PER_WORD);
        // SANITY: there are fewer runs than nodes.
        self.words.resize(words, Word { starts: 0, runs_before: self.runs.len() as u32 });
        self.frames.len() as NodeId - 1
    }

    /// The child of `parent` with this frame, if the child was added right after `parent`. The root has no
    /// such child.
    pub fn following_child(&self, parent: NodeId, frame: FrameId) -> Option<NodeId> {
        let is_child = *self.frames.get(parent as usize + 1)? == frame && !self.begins_run(parent + 1);
        is_child.then_some(parent + 1)
    }

    /// Whether no node has been added after this one, which has no child then.
    pub fn is_last(&self, node: NodeId) -> bool {
        node as usize + 1 == self.frames.len()
    }

    /// Prepares a call of [`CallTree::child`] with the same arguments. Several preparations take hardly
    /// longer than one: they overlap.
    pub fn prepare_child(&self, parent: NodeId, frame: FrameId) {
        self.others.load([parent, frame]);
    }

    /// Prepares calls of [`CallTree::following_child`] with this parent, as [`CallTree::prepare_child`] does.
    pub fn prepare_following(&self, parent: NodeId) {
        let next = parent as usize + 1;
        let starts = self.words.get(next / NODES_PER_WORD).map(|word| word.starts);
        black_box((self.frames.get(next).copied(), starts));
    }

    /// The frames from a node to the root, leaf first.
    pub fn stack(&self, node: NodeId) -> impl Iterator<Item = FrameId> {
        self.parts(node).flat_map(|part| part.iter().rev().copied())
    }

    /// The frames from a node to the root in parts, the leaf's first. The frames of a part are in the other
    /// order: callers come first.
    pub fn parts(&self, node: NodeId) -> impl Iterator<Item = &[FrameId]> {
        let mut node = node;
        iter::from_fn(move || {
            if node == ROOT {
                return None;
            }
            let Run { first, parent } = self.runs[self.run_of(node)];
            let part = &self.frames[first as usize..=node as usize];
            node = parent;
            Some(part)
        })
    }

    /// All nodes but the root, in the order of their numbers.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = RunOfNodes<'_>> {
        (0..self.runs.len()).map(|at| self.run(at))
    }

    /// The runs in pre-order, each with the level of its first node: the root has level 0. Children are in
    /// the order of their numbers. A node's child in the same run comes before the other children, which have
    /// higher numbers.
    pub(super) fn runs_in_pre_order(&self) -> impl Iterator<Item = (RunOfNodes<'_>, u32)> {
        // By run: the number of runs of its subtree, and its level.
        let mut subtrees = vec![(1_u32, 1_u32); self.runs.len()];
        let of_parents: Vec<u32> = self.runs.iter().map(|run| self.run_of(run.parent) as u32).collect();
        let is_below_root = |at: usize| self.runs[at].parent == ROOT;
        // A parent's number is lower than its children's.
        for at in (0..self.runs.len()).rev().filter(|&at| !is_below_root(at)) {
            subtrees[of_parents[at] as usize].0 += subtrees[at].0;
        }
        // The runs below each run begin with the runs below its last node.
        let mut children: Vec<u64> =
            (0..).zip(&self.runs).map(|(at, run)| u64::from(NodeId::MAX - run.parent) << 32 | at).collect();
        children.sort_unstable();
        // By run: its place after its parent's run; for runs below the root after all before.
        let mut places = vec![0_u32; self.runs.len()];
        let (mut of_root, mut next) = (0, vec![1_u32; self.runs.len()]);
        for at in children.into_iter().map(|child| child as u32 as usize) {
            let next = if is_below_root(at) { &mut of_root } else { &mut next[of_parents[at] as usize] };
            places[at] = *next;
            *next += subtrees[at].0;
        }
        let mut order = vec![0_u32; self.runs.len()];
        for at in 0..self.runs.len() {
            if !is_below_root(at) {
                let (above, parent) = (of_parents[at] as usize, self.runs[at].parent);
                places[at] += places[above];
                subtrees[at].1 = subtrees[above].1 + (parent - self.runs[above].first) + 1;
            }
            order[places[at] as usize] = at as u32;
        }
        order.into_iter().map(move |at| (self.run(at as usize), subtrees[at as usize].1))
    }

    /// Totals of all nodes from their self values: each node's own and the values below it.
    pub fn totals(&self, own: impl IntoIterator<Item = (NodeId, i64)>) -> Vec<i64> {
        let mut totals = vec![0_i64; self.frames.len()];
        for (node, value) in own {
            totals[node as usize] = totals[node as usize].saturating_add(value);
        }
        // A parent's number is lower than its children's.
        for RunOfNodes { parent, first, frames } in self.runs().rev() {
            let first = first as usize;
            for node in (first + 1..first + frames.len()).rev() {
                totals[node - 1] = totals[node - 1].saturating_add(totals[node]);
            }
            totals[parent as usize] = totals[parent as usize].saturating_add(totals[first]);
        }
        totals
    }

    fn begins_run(&self, node: NodeId) -> bool {
        let at = node as usize;
        self.words[at / NODES_PER_WORD].starts >> (at % NODES_PER_WORD) & 1 != 0
    }

    /// The number of the run that a node is in; of no meaning for the root.
    fn run_of(&self, node: NodeId) -> usize {
        let at = node as usize;
        let Word { starts, runs_before } = self.words[at / NODES_PER_WORD];
        let up_to_node = starts & u64::MAX >> (NODES_PER_WORD - 1 - at % NODES_PER_WORD);
        (runs_before as usize + up_to_node.count_ones() as usize).saturating_sub(1)
    }

    fn run(&self, at: usize) -> RunOfNodes<'_> {
        let Run { first, parent } = self.runs[at];
        let end = self.runs.get(at + 1).map_or(self.frames.len(), |next| next.first as usize);
        RunOfNodes { parent, first, frames: &self.frames[first as usize..end] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two stacks that share a caller, and one that recurs.
    fn tree() -> (CallTree, [NodeId; 3]) {
        let mut tree = CallTree::default();
        let mut add = |stack: &[FrameId]| stack.iter().fold(ROOT, |node, &frame| tree.child(node, frame));
        let leaves = [add(&[7, 8]), add(&[7, 9, 7]), add(&[7])];
        assert_eq!(add(&[7, 8]), leaves[0]);
        (tree, leaves)
    }

    #[test]
    fn equal_callers_are_one_node() {
        let (tree, [first, second, third]) = tree();
        assert_eq!(tree.len(), 5);
        assert_eq!(tree.stack(first).collect::<Vec<_>>(), [8, 7]);
        assert_eq!(tree.stack(second).collect::<Vec<_>>(), [7, 9, 7]);
        assert_eq!(tree.stack(third).collect::<Vec<_>>(), [7]);
        assert_eq!(tree.stack(ROOT).count(), 0);
    }

    #[test]
    fn only_children_that_do_not_follow_their_parents_are_hashed() {
        let (tree, [first, second, third]) = tree();
        assert_eq!([third, first, tree.parent(second), second], [1, 2, 3, 4]);
        assert_eq!((tree.following_child(third, 8), tree.following_child(third, 9)), (Some(first), None));
        assert_eq!(tree.following_child(ROOT, 7), None);
        assert_eq!((tree.following_child(first, 9), tree.following_child(second, 7)), (None, None));
        assert_eq!((tree.is_last(first), tree.is_last(second)), (false, true));
        assert_eq!(tree.others.len(), 2, "the nodes below the root, and one more");
    }

    /// The nodes in pre-order, each with its level.
    fn pre_order(tree: &CallTree) -> Vec<(NodeId, u32)> {
        let runs = tree.runs_in_pre_order();
        let nodes = runs.flat_map(|(run, level)| (run.first..).zip(level..).take(run.frames.len()));
        iter::once((ROOT, 0)).chain(nodes).collect()
    }

    #[test]
    fn pre_order_visits_each_node_below_its_parent() {
        let (tree, [first, second, third]) = tree();
        let middle = tree.parent(second);
        assert_eq!(pre_order(&tree), [(ROOT, 0), (third, 1), (first, 2), (middle, 2), (second, 3)]);
        assert_eq!(pre_order(&CallTree::default()), [(ROOT, 0)]);
    }

    #[test]
    fn a_total_has_the_values_of_the_node_and_of_all_below() {
        let (tree, [first, second, third]) = tree();
        let totals = tree.totals([(first, 3), (second, 4), (third, 5), (first, 1)]);
        assert_eq!(totals[ROOT as usize], 13);
        assert_eq!(totals[third as usize], 13);
        assert_eq!(totals[first as usize], 4);
        assert_eq!(totals[tree.parent(second) as usize], 4);
        assert_eq!(tree.totals([(first, i64::MAX), (first, 1)])[ROOT as usize], i64::MAX);
    }

    /// Stacks with common callers, which end, branch and go on at any level, and their nodes one by one: the
    /// parent and the frame of each.
    fn random_tree() -> (CallTree, Vec<(NodeId, FrameId)>) {
        let (mut tree, mut nodes, mut state) = (CallTree::default(), vec![(ROOT, 0)], 7_u32);
        for _ in 0..2_000 {
            let mut node = ROOT;
            state = state.wrapping_mul(0x9e37_79b1).wrapping_add(11);
            for level in 0..state >> 27 {
                let frame = (state >> (level % 20)) % 3;
                let child = tree.child(node, frame);
                if child as usize == nodes.len() {
                    nodes.push((node, frame));
                }
                node = child;
            }
        }
        (tree, nodes)
    }

    #[test]
    fn runs_of_nodes_have_the_parents_that_nodes_had() {
        let (tree, nodes) = random_tree();
        assert!(nodes.len() > 4 * NODES_PER_WORD && tree.len() == nodes.len());
        for (node, &(parent, frame)) in (0..).zip(&nodes) {
            assert_eq!((tree.parent(node), tree.frame(node)), (parent, frame));
            let mut stack = vec![];
            let mut caller = node;
            while caller != ROOT {
                stack.push(nodes[caller as usize].1);
                caller = nodes[caller as usize].0;
            }
            assert_eq!(tree.stack(node).collect::<Vec<_>>(), stack);
        }
        let in_runs = tree.runs().flat_map(|RunOfNodes { parent, first, frames }| {
            let parents = iter::once(parent).chain(first..);
            parents.zip(frames.iter().copied())
        });
        assert!(in_runs.eq(nodes[1..].iter().copied()));
    }

    #[test]
    fn pre_order_is_the_order_of_a_walk() {
        let (tree, nodes) = random_tree();
        let (mut expected, mut open) = (vec![], vec![(ROOT, 0)]);
        while let Some((node, level)) = open.pop() {
            expected.push((node, level));
            let children = (0..).zip(&nodes).skip(1).filter(|(_, (parent, _))| *parent == node);
            let children: Vec<_> = children.map(|(child, _)| (child, level + 1)).collect();
            open.extend(children.into_iter().rev());
        }
        assert_eq!(pre_order(&tree), expected);
    }

    #[test]
    fn appended_frames_are_a_stack_that_is_found_again() {
        let (mut tree, [_, second, _]) = tree();
        let frames: Vec<FrameId> = (0..200).collect();
        let leaf = tree.append(&frames);
        assert_eq!(frames.iter().fold(second, |node, &frame| tree.child(node, frame)), leaf);
        assert_eq!((tree.parent(second + 1), leaf), (second, second + 200));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic = "a node below the root begins a run"]
    fn frames_are_not_appended_below_the_root() {
        CallTree::default().append(&[7]);
    }
}
