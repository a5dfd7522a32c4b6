//! The walkers over recorded states: a small VM built of bytes, in which each kind of frame is brought about.

mod native;
mod vm_world;
mod walks;
