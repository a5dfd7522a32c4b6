//! The tree of all stacks: each node is a frame with its callers.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher as _;

use super::frame_table::FrameId;

/// A node, by its number in a [`CallTree`].
pub type NodeId = u32;

/// The node above all stacks.
pub const ROOT: NodeId = 0;

/// A node's parent and frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Node {
    parent: NodeId,
    frame: FrameId,
}

/// A tree of stacks. A child's number is higher than its parent's.
#[derive(Debug)]
pub struct CallTree {
    hasher: RandomState,
    /// The root is its own parent, and its frame means nothing.
    nodes: Vec<Node>,
    by_node: HashTable<NodeId>,
}

impl Default for CallTree {
    fn default() -> Self {
        let nodes = vec![Node { parent: ROOT, frame: 0 }];
        Self { hasher: RandomState::default(), nodes, by_node: HashTable::new() }
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
        let Self { hasher, nodes, by_node } = self;
        let node = Node { parent, frame };
        let hash = hasher.hash_one(node);
        if let Some(&known) = by_node.find(hash, |&known| nodes[known as usize] == node) {
            return known;
        }
        // SANITY: 2^32 nodes do not fit into memory.
        let id = nodes.len() as NodeId;
        nodes.push(node);
        by_node.insert_unique(hash, id, |&id| hasher.hash_one(nodes[id as usize]));
        id
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
        let count = self.nodes.len();
        let (mut first_child, mut next_sibling) = (vec![ROOT; count], vec![ROOT; count]);
        // Backwards, so that each node becomes the first child in turn.
        for id in (1..count).rev() {
            let parent = self.nodes[id].parent as usize;
            next_sibling[id] = first_child[parent];
            first_child[parent] = id as NodeId;
        }
        let mut order = Vec::with_capacity(count);
        let (mut node, mut level) = (ROOT, 0);
        loop {
            order.push((node, level));
            if first_child[node as usize] != ROOT {
                (node, level) = (first_child[node as usize], level + 1);
                continue;
            }
            while node != ROOT && next_sibling[node as usize] == ROOT {
                (node, level) = (self.parent(node), level - 1);
            }
            if node == ROOT {
                return order;
            }
            node = next_sibling[node as usize];
        }
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
