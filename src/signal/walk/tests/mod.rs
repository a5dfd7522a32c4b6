//! The walkers over recorded states: a small VM built of bytes, in which each kind of frame is brought about.

mod compiled;
mod continuation;
mod deoptimized;
mod exceptions;
mod interpreted;

mod modes;
mod native;
mod stubs;
mod vm_world;
mod walks;
