//! Unwinds a thread's stack, leaf first, without trusting any value that is read from memory.
//!
//! All walkers have one shape: a [`Walk`] (the knowledge about the thread and the VM), a [`Cursor`] (the
//! walk's current frame), and a [`FrameSink`] (the output, a list of frames). A step looks at the cursor,
//! appends frames to the sink, and returns the caller's cursor. Walkers read through [`Memory`], so they also
//! run over recorded states.
//!
//! | Walkers | Duty |
//! |---|---|
//! | [`vm`] | Java frames through HotSpot's structures, and native frames on top of them |
//! | `call_trace_walk` | native frames down to Java, then AsyncGetCallTrace (walkers `fp`, `dwarf`) |
//! | `java_only` | Java frames without native ones (walker `no`) |
//! | `called` | the frames below a call, for samples that a thread takes of itself |
//! | `stack_walk` | the walk of one stack |
//! | `cursor` | its position on the stack |
//! | `walk_error` | the reasons why a walk cannot go on |
//! | `sink` | the list of frames that a walk gives |
//! | `site` | the code that a Java frame is in, recognised before a step |
//!
//! | Native frames | Duty |
//! |---|---|
//! | [`native`] | one native frame, by unwind table, else by frame pointer |
//! | [`frame_info`] | call frame information read in place, while there is no table yet |
//! | `undescribed` | the caller of native code without unwind table and frame pointer |
//! | `kept_register` | a register's value at the time when Java called native code |
//! | `entry` | the frames where native code has called Java |
//!
//! | Java frames | Duty |
//! |---|---|
//! | `code_cache` | the bounds and heaps of the code cache, and the block around an address |
//! | `blob` | the header of a block of the code cache |
//! | `compiled` | the methods of a compiled frame |
//! | `compiled_step` | the step from a compiled frame to its caller |
//! | `interpreted` | interpreter frames |
//! | `stub` | the step from a stub or an adapter to its caller |
//! | `deoptimized` | a compiled frame that is being replaced by interpreter frames |
//! | `return_address` | whether an address can be a stub's return address |
//! | `repeated` | return addresses that the walk has met before, as in recursion |
//!
//! | Virtual threads | Duty |
//! |---|---|
//! | [`mounted_thread`] | the virtual thread whose frames are on this stack |
//! | `virtual_thread` | the way from its frames on the stack to frozen frames, and to its carrier |
//! | `continuation` | the frames that are frozen on the heap |
//! | `thawing` | these frames as they were before a thread began to thaw them |
//! | `frozen_reason` | the reasons why frozen frames could not be read |
//! | `relocated` | the new addresses of objects that ZGC has moved |
//! | `retained_pages` | the pages of objects that ZGC is moving |
//!
//! | In the architecture's folder | Duty |
//! |---|---|
//! | `registers` | the registers with which a walk begins |
//! | `instructions` | the forms and lengths of machine instructions |
//! | `return_address` | a return address without its signature, and whether a call precedes it |
//! | `compiled_stage` | whether a compiled method's frame exists at the interrupted instruction |
//! | `compiled_stub` | the stubs after a compiled method's code |
//! | `barrier_stub` | stubs of compiled code that call a collector's slow path |
//! | `collector_stub` | a collector's stub that compiled code calls for a loaded reference |
//! | `entry_barrier` | the stub of the barrier at the entry of compiled methods |
//! | `string_stage` | data on top of a compiled frame while it searches in strings |
//! | `subtype_check_stage` | words on top of a compiled frame while it searches supertypes |
//! | `reserved_zone` | the end of a method that may use the stack's reserved zone (aarch64) |
//! | `safepoint_stub` | the blobs that compiled code polls into |
//! | `exception_stub` | stubs that pass an exception from one compiled frame on to the next |
//! | `forward_exception_stub` | the stub `forward_exception`, from which a Java frame goes on |
//! | `interpreter_frame` | the ends of an interpreter frame |
//! | `interpreter_stage` | the places of an interpreter frame's values while it is built or removed |
//! | `frameless_entry` | the interpreter's entries that have no frame |
//! | `method_handle_entry` | the interpreter's entry for a method handle intrinsic |
//! | `adapter` | the adapters between compiled and interpreted code |
//! | `actions_before` | the actions of frameless code before an instruction (aarch64) |
//! | `bytes_to_return` | the bytes that frameless code still removes from the stack (x86_64) |
//! | `call_stub_stage` | the stub by which native code calls Java |
//! | `stub_stage` | the way to a stub's caller, by the kind of stub |
//! | `leaf_stub` | stubs without a frame |
//! | `other_stub` | stubs without debug information |
//! | `continuation_exit` | code that leaves a virtual thread for its carrier |
//! | `thaw_stage` | the stubs that thaw frozen frames |
//! | `coloured_reference` | ZGC's coloured pointers |
//! | `undescribed_code` | PLTs and signal trampolines without call frame information |
//! | `way_out` | the return of undescribed code, by its effects on the stack pointer |
//! | `stack_search` | the search on the stack for the caller of undescribed code |

mod blob;
mod call_trace_walk;
mod called;
mod code_cache;
mod compiled;
mod compiled_step;
mod continuation;
mod cursor;
mod deoptimized;
mod entry;
pub mod frame_info;
pub(crate) mod frozen_reason;
mod interpreted;
mod java_only;
mod kept_register;
pub mod mounted_thread;
pub mod native;
mod relocated;
mod repeated;
mod retained_pages;
mod return_address;
pub(crate) mod sink;
mod site;
mod stack_walk;
mod stub;
mod thawing;
mod undescribed;
mod virtual_thread;
pub mod vm;
pub(crate) mod walk_error;

#[cfg(target_arch = "aarch64")]
#[path = "aarch64"]
mod arch {
    mod actions_before;
    pub(super) mod adapter;
    pub(super) mod barrier_stub;
    pub(super) mod call_stub_stage;
    pub(super) mod collector_stub;
    pub(super) mod coloured_reference;
    pub(super) mod compiled_stage;
    pub(super) mod compiled_stub;
    pub(super) mod continuation_exit;
    pub(super) mod entry_barrier;
    pub(super) mod exception_stub;
    pub(super) mod forward_exception_stub;
    mod frameless_entry;
    mod instructions;
    pub(super) mod interpreter_frame;
    pub(super) mod interpreter_stage;
    pub(super) mod leaf_stub;
    pub(super) mod method_handle_entry;
    mod other_stub;
    pub mod registers;
    mod reserved_zone;
    pub(super) mod return_address;
    pub(super) mod safepoint_stub;
    mod stack_search;
    pub(super) mod string_stage;
    pub(super) mod stub_stage;
    pub(super) mod subtype_check_stage;
    pub(super) mod thaw_stage;
    pub(super) mod undescribed_code;
    mod way_out;
}

#[cfg(target_arch = "x86_64")]
#[path = "x86_64"]
mod arch {
    pub(super) mod adapter;
    pub(super) mod barrier_stub;
    mod bytes_to_return;
    pub(super) mod call_stub_stage;
    pub(super) mod collector_stub;
    pub(super) mod coloured_reference;
    pub(super) mod compiled_stage;
    pub(super) mod compiled_stub;
    pub(super) mod continuation_exit;
    pub(super) mod entry_barrier;
    pub(super) mod exception_stub;
    pub(super) mod forward_exception_stub;
    mod frameless_entry;
    mod instructions;
    pub(super) mod interpreter_frame;
    pub(super) mod interpreter_stage;
    pub(super) mod leaf_stub;
    pub(super) mod method_handle_entry;
    mod other_stub;
    pub mod registers;
    pub(super) mod return_address;
    pub(super) mod safepoint_stub;
    mod stack_search;
    pub(super) mod string_stage;
    pub(super) mod stub_stage;
    pub(super) mod subtype_check_stage;
    pub(super) mod thaw_stage;
    pub(super) mod undescribed_code;
    mod way_out;
}

pub use arch::registers;
pub use cursor::{Cursor, MAX_STEPS, Step};
pub use frozen_reason::FrozenReason;
pub use sink::FrameSink;
pub use stack_walk::{FindFrameHeader, Start, Walk};
pub use walk_error::WalkError;

#[cfg(test)]
mod tests;
