//! Eviction: the policy of sums in bounded memory.
//!
//! Tables of frames and trees of stacks only grow. Once they are too large, the owner of the sums keeps the
//! highest ones ([`keep_first`]), and has the frames and stacks copied to which these sums refer
//! ([`keep_stacks`]). The rest is freed.

use super::call_tree::{CallTree, NodeId, ROOT};
use super::frame_table::{FrameId, FrameTable};

/// Keeps the first items in the order of a key: one in `part`, rounded up. Returns the others.
pub fn keep_first<T, K: Ord>(items: &mut Vec<T>, part: usize, key: impl FnMut(&T) -> K) -> Vec<T> {
    items.sort_unstable_by_key(key);
    items.split_off(items.len().div_ceil(part))
}

/// Keeps the stacks of some nodes. Frames and nodes get other numbers: those of `nodes` are replaced.
pub fn keep_stacks<'n>(
    tree: &mut CallTree,
    frames: &mut FrameTable,
    nodes: impl Iterator<Item = &'n mut NodeId>,
) {
    let (before, frames_before) = (std::mem::take(tree), std::mem::take(frames));
    // By number before: the number now.
    let mut numbers = vec![None; frames_before.len()];
    let mut number = |frame: FrameId| {
        *numbers[frame as usize].get_or_insert_with(|| frames.intern_copy(&frames_before, frame, true))
    };
    let mut stack = Vec::new();
    for node in nodes {
        stack.extend(before.stack(*node));
        *node = stack.drain(..).rev().fold(ROOT, |node, frame| tree.child(node, number(frame)));
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use super::*;

    #[test]
    fn the_first_items_of_an_order_are_kept() {
        let mut items = vec![3, 9, 1, 7, 5];
        let mut others = keep_first(&mut items, 2, |&item| Reverse(item));
        others.sort_unstable();
        assert_eq!((items, others), (vec![9, 7, 5], vec![1, 3]));
    }

    #[test]
    fn kept_stacks_are_the_same_under_other_numbers() {
        let (mut tree, mut frames) = (CallTree::default(), FrameTable::default());
        let mut add = |stack: &[&str]| {
            stack.iter().fold(ROOT, |node, name| tree.child(node, frames.intern_group(name)))
        };
        let mut nodes = [add(&["main", "gone", "leaf"]), add(&["main", "cart", "cart"]), add(&[])];
        keep_stacks(&mut tree, &mut frames, nodes[1..].iter_mut());
        let stack: Vec<_> = tree.stack(nodes[1]).map(|frame| &*frames.get(frame).name).collect();
        assert_eq!(stack, ["cart", "cart", "main"]);
        assert_eq!((nodes[2], tree.len(), frames.len()), (ROOT, 4, 2));
    }
}
