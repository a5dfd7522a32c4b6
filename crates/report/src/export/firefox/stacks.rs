//! The stacks of a Firefox profile: their tree, frames and objects.

use crate::call_tree::CallTree;
use crate::frame_table::FrameTable;
use crate::objects::Object;

/// The stacks of a file.
#[derive(Clone, Copy, Debug)]
pub struct Stacks<'s> {
    /// The stacks.
    pub tree: &'s CallTree,
    /// Their frames.
    pub frames: &'s FrameTable,
    /// The objects of the frames.
    pub objects: &'s [Object],
}
