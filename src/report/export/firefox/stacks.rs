//! The stacks of a file.

use crate::report::call_tree::CallTree;
use crate::report::frame_table::FrameTable;
use crate::report::objects::Object;

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
