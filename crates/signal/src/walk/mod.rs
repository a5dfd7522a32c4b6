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
mod deoptimized;
mod entry;
pub mod frame_info;
mod frozen_reason;
mod interpreted;
mod java_only;
mod kept_register;
pub mod mounted_thread;
pub mod native;
mod relocated;
mod repeated;
mod return_address;
mod sink;
mod site;
mod stub;
mod thawing;
mod undescribed;
mod virtual_thread;
pub mod vm;

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
pub use frozen_reason::FrozenReason;
pub use sink::FrameSink;

use std::cell::Cell;

use otlpprof_core::collections::Collections;
use otlpprof_core::memory::Memory;
use otlpprof_core::object::ObjectMap;
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::vm_layout::VmLayout;

use crate::call_trace::CallTraceSource;
use code_cache::CodeCache;
use registers::Registers;
use relocated::RetainedPages;

/// The reason why a walk could not go on. Each is counted, and written into the stack as a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WalkError {
    /// The program counter is in no object, no code blob and no stub.
    UnknownCode,
    /// No unwind rule covers the program counter, and the frame pointer does not lead on.
    NoUnwindRule,
    /// The unwind rule needs a value that is not known here (an expression, a register of an inner frame).
    UnsupportedRule,
    /// The stack pointer would not move towards the root, or would leave the stack.
    BadStackPointer,
    /// Memory that the walk needs is not readable.
    Unreadable,
    /// No code blob is allocated at a program counter in the code cache.
    NoCodeBlob,
    /// A code blob without a usable frame size.
    NoFrameSize,
    /// An interpreter frame whose method or frame pointer is not plausible.
    BadInterpreterFrame,
    /// An entry frame whose call wrapper cannot be read.
    BadEntryFrame,
    /// The walk has taken more steps than any stack has frames.
    TooManySteps,
    /// Native frames above or between Java frames could not be walked. The stack goes on at the Java frame
    /// anchor.
    NativeFramesLost,
    /// A virtual thread's frames do not lead on to the frames of its carrier.
    BadContinuationEntry,
    /// AsyncGetCallTrace does not know the Java frames, and no other source could.
    NoCallTrace,
}

impl WalkError {
    /// The number of reasons.
    pub const COUNT: usize = 13;

    /// All reasons.
    pub const ALL: [Self; Self::COUNT] = [
        Self::UnknownCode,
        Self::NoUnwindRule,
        Self::UnsupportedRule,
        Self::BadStackPointer,
        Self::Unreadable,
        Self::NoCodeBlob,
        Self::NoFrameSize,
        Self::BadInterpreterFrame,
        Self::BadEntryFrame,
        Self::TooManySteps,
        Self::NativeFramesLost,
        Self::BadContinuationEntry,
        Self::NoCallTrace,
    ];

    /// The reason as it stands in `[unwalkable: reason]` and in the counters' names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownCode => "unknown_code",
            Self::NoUnwindRule => "no_unwind_rule",
            Self::UnsupportedRule => "unsupported_rule",
            Self::BadStackPointer => "bad_stack_pointer",
            Self::Unreadable => "unreadable_memory",
            Self::NoCodeBlob => "no_code_blob",
            Self::NoFrameSize => "no_frame_size",
            Self::BadInterpreterFrame => "bad_interpreter_frame",
            Self::BadEntryFrame => "bad_entry_frame",
            Self::TooManySteps => "too_many_steps",
            Self::NativeFramesLost => "native_frames_lost",
            Self::BadContinuationEntry => "bad_continuation_entry",
            Self::NoCallTrace => "no_call_trace",
        }
    }
}

/// The knowledge about thread and VM when a walk begins.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The VM's layout, if it is known and trusted.
    pub vm: Option<&'a VmLayout>,
    /// The loaded objects.
    pub objects: &'a ObjectMap,
    /// The `JavaThread*`, or 0 for a thread that is not a Java thread.
    pub java_thread: u64,
    /// One past the highest address of the stack; `u64::MAX` if not known.
    pub stack_high: u64,
    /// The interrupted registers.
    pub registers: Registers,
    /// The way to walk the stack.
    pub walker: StackWalker,
    /// The function to ask for the thread's Java frames.
    pub call_trace: Option<CallTraceSource>,
    /// The times at which the VM moves objects on the heap.
    pub collections: &'a Collections,
    /// The dynamic linker, for objects that are not among `objects` yet.
    pub loader: FindFrameHeader,
}

/// A function that returns the run-time address of `.eh_frame_hdr` of the object at a run-time address.
pub type FindFrameHeader = fn(u64) -> Option<u64>;

/// A walk of one stack.
pub struct Walk<'a, M> {
    /// The source of every load.
    memory: &'a M,
    vm: Option<&'a VmLayout>,
    objects: &'a ObjectMap,
    java_thread: u64,
    stack_high: u64,
    registers: Registers,
    walker: StackWalker,
    call_trace: Option<CallTraceSource>,
    collections: &'a Collections,
    loader: FindFrameHeader,
    code_cache: CodeCache,
    retained_pages: RetainedPages,
    /// The number of undescribed code's instructions that this walk may still follow.
    instructions_left: Cell<u32>,
}

/// A physical frame: the position of a walk between callee and caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The program counter: where the thread was interrupted, or a return address.
    pub pc: u64,
    /// The stack pointer in this frame. For the caller of an interpreted frame this is the sender's
    /// unextended SP.
    pub sp: u64,
    /// The frame pointer register in this frame.
    pub fp: u64,
    /// Whether `pc` is where the thread was interrupted (the topmost frame, or the one below a signal frame)
    /// rather than a return address.
    pub interrupted: bool,
}

impl Cursor {
    /// The address to use for looking up symbols and rules. A return address belongs to the call before it.
    pub const fn lookup_pc(&self) -> u64 {
        if self.interrupted { self.pc } else { self.pc.wrapping_sub(1) }
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The caller's frame.
    Caller(Cursor),
    /// This frame was the outermost.
    Root,
    /// The caller is frozen on the heap, in the chunks of the mounted continuation.
    Frozen,
}

/// The most steps of one walk. Inlining makes more frames than steps, never fewer.
pub const MAX_STEPS: usize = 16 * 1024;

/// The most instructions of undescribed code that one walk follows: some tenths of a millisecond. The time is
/// the program's, and counts as its CPU time.
const MAX_FOLLOWED_INSTRUCTIONS: u32 = 2 * 1024;

/// The largest frame, in bytes; a larger one is taken for an error. HotSpot's default stacks are 1 MiB, a
/// main thread's stack is 8 MiB.
const MAX_FRAME_BYTES: u64 = 16 * 1024 * 1024;

impl<'a, M: Memory> Walk<'a, M> {
    /// Prepares a walk from `start` on. Every load goes through `memory`.
    #[inline(always)] // `start` is built in place: a handler's stack may be small.
    pub fn new(memory: &'a M, start: Start<'a>) -> Self {
        let Start {
            vm,
            objects,
            java_thread,
            stack_high,
            registers,
            walker,
            call_trace,
            collections,
            loader,
        } = start;
        let code_cache = match vm {
            Some(vm) => CodeCache::read(memory, &vm.code_cache, java_thread != 0),
            None => CodeCache::default(),
        };
        Self {
            memory,
            vm,
            objects,
            java_thread,
            stack_high,
            registers,
            walker,
            call_trace,
            collections,
            loader,
            code_cache,
            retained_pages: RetainedPages::default(),
            instructions_left: Cell::new(MAX_FOLLOWED_INSTRUCTIONS),
        }
    }

    /// Walks the whole stack into `sink`, which always receives at least one frame.
    pub fn walk(&self, sink: &mut FrameSink<'_>) {
        match self.walker {
            StackWalker::No => self.walk_java_only(self.top(), sink),
            StackWalker::Fp | StackWalker::Dwarf => self.walk_with_call_trace(self.top(), sink),
            StackWalker::Vm | StackWalker::Vmx => self.walk_vm(sink),
        }
    }

    /// The topmost frame.
    pub fn start(&self) -> Cursor {
        Cursor { pc: self.registers.pc, sp: self.registers.sp(), fp: self.registers.fp(), interrupted: true }
    }

    /// Returns `caller` if its stack pointer is aligned, on the stack, and nearer to the root than
    /// `cursor`'s.
    fn check_progress(&self, cursor: &Cursor, caller: Cursor) -> Result<Cursor, WalkError> {
        let is_leaf = cursor.interrupted && !arch::return_address::IS_PUSHED;
        let grows = (caller.sp > cursor.sp || is_leaf && caller.sp == cursor.sp)
            && caller.sp.wrapping_sub(cursor.sp) <= MAX_FRAME_BYTES;
        if grows && caller.sp.is_multiple_of(8) && caller.sp <= self.stack_high {
            Ok(caller)
        } else {
            Err(WalkError::BadStackPointer)
        }
    }

    fn load(&self, address: u64) -> Result<u64, WalkError> {
        self.memory.load_u64(address).ok_or(WalkError::Unreadable)
    }

    /// Loads the return address that is saved at `slot`.
    fn load_return_address(&self, slot: u64) -> Result<u64, WalkError> {
        self.load(slot).map(arch::return_address::strip)
    }

    fn load_i32(&self, address: u64) -> Result<i32, WalkError> {
        self.memory.load_u32(address).map(|value| value as i32).ok_or(WalkError::Unreadable)
    }
}

#[cfg(test)]
mod tests;
