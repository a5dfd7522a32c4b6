//! The walkers over recorded states: a small VM built of bytes, in which each kind of frame is brought about.

mod call_stub;
mod compiled;
mod continuation;
mod corrupted;
mod deoptimized;
mod exceptions;
mod interpreted;
mod little_vm;
mod modes;
mod native;
mod relocated;
mod stubs;
mod subtype_checks;
mod vm_world;
mod walks;
