//! The stacks and locations of a message that have been met.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState as FastState;
use otlpprof_otlp::encoded::EncodedTables;

use super::call_tree::{NodeId, ROOT};
use super::frame_table::FrameId;
use super::framed_message::LocationFrames;

/// The most stacks, and the most frames of locations, that are remembered at a time if there is a bound.
const REMEMBERED: usize = 1 << 17;
/// Stands for a frame that is not known.
const NO_FRAME: FrameId = FrameId::MAX;

/// A message's stacks and locations, as far as they have been met.
#[derive(Debug)]
pub(super) struct MessageStacks<'m> {
    /// The frames of locations that are resolved already.
    pub(super) resolved: &'m LocationFrames,
    /// By resolved location: the number of its only frame, or [`NO_FRAME`] if the location has not been met
    /// or has several frames.
    only_frames: Vec<FrameId>,
    /// By location: the place of its frames in `frames`. Empty if the location has not been met.
    locations: Vec<Range<u32>>,
    /// The frames of locations, each from the outermost call to the innermost one.
    frames: Vec<FrameId>,
    /// By stack: its node below the root of the tree; `None` if it has not been met, `Some(None)` if it is
    /// not selected.
    below_root: Vec<Option<Option<NodeId>>>,
    /// By root and stack: the stack's node, where the root is not that of the tree.
    nodes: HashMap<(NodeId, i32), Option<NodeId>, FastState>,
    is_bounded: bool,
}

impl<'m> MessageStacks<'m> {
    /// Remembers nothing yet, of the message with these tables. With a bound old frames, and old stacks below
    /// other roots than the tree's, are forgotten.
    pub(super) fn new(tables: EncodedTables<'_>, resolved: &'m LocationFrames, is_bounded: bool) -> Self {
        let locations = if resolved.len() == 0 { tables.encoded_locations().len() } else { 0 };
        Self::of_counts(locations, tables.stacks().len(), resolved, is_bounded)
    }

    fn of_counts(locations: usize, stacks: usize, resolved: &'m LocationFrames, is_bounded: bool) -> Self {
        let (frames, nodes) = Default::default();
        let (only_frames, below_root) = (vec![NO_FRAME; resolved.len()], vec![None; stacks]);
        let locations = vec![0..0; locations];
        Self { resolved, only_frames, locations, frames, below_root, nodes, is_bounded }
    }

    /// The frame of a resolved location that has been met and has no other frame.
    pub(super) fn only_frame(&self, location: i32) -> Option<FrameId> {
        let frame = *self.only_frames.get(usize::try_from(location).ok()?)?;
        (frame != NO_FRAME).then_some(frame)
    }

    /// Remembers the only frame of a resolved location.
    pub(super) fn set_only_frame(&mut self, location: i32, frame: FrameId) {
        let at = usize::try_from(location).ok();
        if let Some(known) = at.and_then(|at| self.only_frames.get_mut(at)) {
            *known = frame;
        }
    }

    /// The node of a stack below a root: `None` if it is not known, `Some(None)` if it is not selected.
    pub(super) fn node(&self, root: NodeId, stack: i32) -> Option<Option<NodeId>> {
        match self.index_below_root(root, stack) {
            Some(index) => self.below_root[index],
            None => self.nodes.get(&(root, stack)).copied(),
        }
    }

    /// Remembers the node of a stack.
    pub(super) fn set_node(&mut self, root: NodeId, stack: i32, node: Option<NodeId>) {
        if let Some(index) = self.index_below_root(root, stack) {
            self.below_root[index] = Some(node);
            return;
        }
        if self.is_bounded && self.nodes.len() >= REMEMBERED {
            self.nodes.clear();
        }
        self.nodes.insert((root, stack), node);
    }

    fn index_below_root(&self, root: NodeId, stack: i32) -> Option<usize> {
        usize::try_from(stack).ok().filter(|&index| root == ROOT && index < self.below_root.len())
    }

    /// Appends a location's frames, the outermost call first. `of_location` returns them, the innermost call
    /// first, unless they are remembered.
    pub(super) fn push_frames(
        &mut self,
        location: i32,
        into: &mut Vec<FrameId>,
        of_location: impl FnOnce() -> Vec<FrameId>,
    ) {
        let at = usize::try_from(location).ok().filter(|&at| at < self.locations.len());
        if let Some(known) = at.map(|at| self.locations[at].clone()).filter(|known| !known.is_empty()) {
            into.extend_from_slice(&self.frames[known.start as usize..known.end as usize]);
            return;
        }
        let mut found = of_location();
        found.reverse();
        into.extend_from_slice(&found);
        // An index out of range is not remembered.
        let Some(at) = at else { return };
        if self.is_bounded && self.frames.len() >= REMEMBERED {
            self.frames.clear();
            self.locations.fill(0..0);
        }
        // SANITY: a message has fewer than 2^32 bytes, and each frame of its locations takes some.
        let start = self.frames.len() as u32;
        self.frames.append(&mut found);
        self.locations[at] = start..self.frames.len() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locations_frames_are_found_once_and_are_outermost_first() {
        let none = LocationFrames::default();
        let mut stacks = MessageStacks::of_counts(3, 0, &none, false);
        let mut frames = Vec::new();
        stacks.push_frames(1, &mut frames, || vec![11, 10]);
        stacks.push_frames(2, &mut frames, || vec![20]);
        stacks.push_frames(1, &mut frames, || panic!("known"));
        assert_eq!(frames, [10, 11, 20, 10, 11]);
    }

    #[test]
    fn a_stack_has_a_node_below_each_root() {
        let none = LocationFrames::default();
        let mut stacks = MessageStacks::of_counts(0, 2, &none, false);
        for stack in [0, 1, 2, -1] {
            for (root, node) in [(ROOT, Some(ROOT)), (5, None), (6, Some(7))] {
                assert_eq!(stacks.node(root, stack), None);
                stacks.set_node(root, stack, node);
                assert_eq!(stacks.node(root, stack), Some(node));
            }
        }
    }

    #[test]
    fn indices_out_of_range_are_found_each_time() {
        let none = LocationFrames::default();
        let mut stacks = MessageStacks::of_counts(1, 0, &none, false);
        let mut frames = Vec::new();
        for (location, frame) in [(-1, 5), (1, 6), (-1, 7)] {
            stacks.push_frames(location, &mut frames, || vec![frame]);
        }
        assert_eq!(frames, [5, 6, 7]);
    }

    #[test]
    fn with_a_bound_old_locations_are_found_again() {
        let none = LocationFrames::default();
        let mut stacks = MessageStacks::of_counts(2, 0, &none, true);
        stacks.push_frames(0, &mut Vec::new(), || vec![1; REMEMBERED]);
        stacks.push_frames(1, &mut Vec::new(), || vec![2]);
        let mut frames = Vec::new();
        stacks.push_frames(0, &mut frames, || vec![3]);
        stacks.push_frames(1, &mut frames, || panic!("known"));
        assert_eq!(frames, [3, 2]);
    }
}
