//! The tree of all stacks: each node is a frame with its callers.

use std::hint::black_box;

use super::frame_table::FrameId;
use super::pair_table::PairTable;

/// A node, by its number in a [`CallTree`].
pub type NodeId = u32;

/// The node above all stacks.
pub const ROOT: NodeId = 0;

/// A node's parent and frame.
#[derive(Clone, Copy, Debug)]
struct Node {
    parent: NodeId,
    frame: FrameId,
}

/// A tree of stacks. A child's number is higher than its parent's.
///
/// Most nodes have one child. A child that is added right after its parent has the next number, by which it
/// is found. So the new frames of a stack are written one after another, and the hash table has the other
/// children alone: at most one for each stack.
#[derive(Debug)]
pub struct CallTree {
    /// The root is its own parent, and its frame means nothing.
    nodes: Vec<Node>,
    /// By parent and frame: the children that do not follow their parents.
    others: PairTable,
}

impl Default for CallTree {
    fn default() -> Self {
        Self { nodes: vec![Node { parent: ROOT, frame: 0 }], others: PairTable::default() }
    }
}

impl CallTree {
    /// The number of nodes, the root included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the tree has the root alone.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// A node's parent; the root's is the root.
    pub fn parent(&self, node: NodeId) -> NodeId {
        self.nodes[node as usize].parent
    }

    /// A node's frame. The root has none.
    pub fn frame(&self, node: NodeId) -> FrameId {
        self.nodes[node as usize].frame
    }

    /// The child of `parent` with this frame, which is added if it does not exist.
    pub fn child(&mut self, parent: NodeId, frame: FrameId) -> NodeId {
        if let Some(child) = self.following_child(parent, frame) {
            return child;
        }
        // SANITY: 2^32 nodes do not fit into memory.
        let new = self.nodes.len() as NodeId;
        let child = if self.is_last(parent) { new } else { self.others.find_or_add([parent, frame], new) };
        if child == new {
            self.nodes.push(Node { parent, frame });
        }
        child
    }

    /// The child of `parent` with this frame, if the child was added right after `parent`.
    pub fn following_child(&self, parent: NodeId, frame: FrameId) -> Option<NodeId> {
        let node = self.nodes.get(parent as usize + 1)?;
        (node.parent == parent && node.frame == frame).then_some(parent + 1)
    }

    /// Whether no node has been added after this one, which has no child then.
    pub fn is_last(&self, node: NodeId) -> bool {
        node as usize + 1 == self.nodes.len()
    }

    /// Prepares a call of [`CallTree::child`] with the same arguments. Several preparations take hardly
    /// longer than one: they overlap.
    pub fn prepare_child(&self, parent: NodeId, frame: FrameId) {
        self.others.load([parent, frame]);
    }

    /// Prepares calls of [`CallTree::following_child`] with this parent, as [`CallTree::prepare_child`] does.
    pub fn prepare_following(&self, parent: NodeId) {
        black_box(self.nodes.get(parent as usize + 1).map(|node| node.parent));
    }

    /// The frames from a node to the root, leaf first.
    pub fn stack(&self, node: NodeId) -> impl Iterator<Item = FrameId> {
        let mut node = node;
        std::iter::from_fn(move || {
            if node == ROOT {
                return None;
            }
            let Node { parent, frame } = self.nodes[node as usize];
            node = parent;
            Some(frame)
        })
    }

    /// The nodes in pre-order, each with its level: the root has level 0. Children are in the order of their
    /// numbers.
    pub fn pre_order(&self) -> Vec<(NodeId, u32)> {
        // By node: the number of nodes of its subtree, and its level. A parent's number is lower than its
        // children's.
        let mut subtrees = vec![(1_u32, 0_u32); self.nodes.len()];
        for id in (1..self.nodes.len()).rev() {
            let parent = self.nodes[id].parent as usize;
            subtrees[parent].0 += subtrees[id].0;
        }
        let mut order = vec![(ROOT, 0); self.nodes.len()];
        // The first number becomes the place of the next child. No visit of a node waits for the one before,
        // so that accesses to main memory overlap.
        subtrees[ROOT as usize] = (1, 0);
        for (id, node) in (0..).zip(&self.nodes).skip(1) {
            let (size, _) = subtrees[id as usize];
            let (next, level_above) = &mut subtrees[node.parent as usize];
            let (place, level) = (*next, *level_above + 1);
            *next += size;
            subtrees[id as usize] = (place + 1, level);
            order[place as usize] = (id, level);
        }
        order
    }

    /// Totals of all nodes from their self values: each node's own and those below it.
    pub fn totals(&self, own: impl IntoIterator<Item = (NodeId, i64)>) -> Vec<i64> {
        let mut totals = vec![0_i64; self.nodes.len()];
        for (node, value) in own {
            totals[node as usize] = totals[node as usize].saturating_add(value);
        }
        // A parent's number is lower than its children's.
        for id in (1..self.nodes.len()).rev() {
            let parent = self.nodes[id].parent as usize;
            totals[parent] = totals[parent].saturating_add(totals[id]);
        }
        totals
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
        assert_eq!((tree.following_child(first, 9), tree.following_child(second, 7)), (None, None));
        assert_eq!((tree.is_last(first), tree.is_last(second)), (false, true));
        assert_eq!(tree.others.len(), 1);
    }

    #[test]
    fn pre_order_visits_each_node_below_its_parent() {
        let (tree, [first, second, third]) = tree();
        let middle = tree.parent(second);
        assert_eq!(tree.pre_order(), [(ROOT, 0), (third, 1), (first, 2), (middle, 2), (second, 3)]);
        assert_eq!(CallTree::default().pre_order(), [(ROOT, 0)]);
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
}
