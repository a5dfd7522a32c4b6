//! Walking a thread's stack, leaf first, without trusting anything that is read.
//!
//! All walkers have one shape: a [`Walk`] (what is known of the thread and of the VM), a [`Cursor`] (where the
//! walk is), and a [`FrameSink`] (where frames go). A step looks at the cursor, puts frames into the sink, and
//! gives the caller's cursor. Walkers read through [`Memory`], so they run over recorded states as well.
//!
//! - [`vm`]: Java frames through HotSpot's structures, native frames on top of them; the whole native stack of
//!   threads that run no Java.
//! - `asked`: native frames down to Java, and then AsyncGetCallTrace (`fp`, `dwarf`).
//! - `java_only`: the same without native frames (`no`).
//! - `called`: what lies below a call from the VM, or from native code, for samples that a thread takes of itself.
//! - `entry`: where native code has called Java, and what lies below.
//! - [`native`]: one native frame by unwind table, else by frame pointer.
//! - `undescribed`: the caller of native code that has neither.
//! - `kept_register`: what a register was where native code was called.
//! - `code_cache`, `blob`: what the VM has put around a program counter.
//! - `compiled`, `interpreted`, `deoptimized`: one kind of VM frame each, portable part.
//! - `continuation`, `virtual_thread`: the frames of virtual threads that are frozen on the heap, and the ways there;
//!   `thawing`: what they were before a thread began to take them; `relocated`: where ZGC has moved them.
//! - `repeated`: what a walk need not decode again.
//! - the architecture's folder: registers and the stages of entering and leaving a frame.

mod asked;
mod blob;
mod called;
mod code_cache;
mod compiled;
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
mod sink;
mod thawing;
mod undescribed;
mod virtual_thread;
pub mod vm;

#[cfg(target_arch = "aarch64")]
#[path = "aarch64"]
mod arch {
    pub(super) mod adapter;
    pub(super) mod barrier_stub;
    pub(super) mod call_stub_stage;
    pub(super) mod coloured_reference;
    pub(super) mod compiled_stage;
    pub(super) mod compiled_stub;
    pub(super) mod continuation_exit;
    mod done_before;
    pub(super) mod exception_stage;
    pub(super) mod forward_exception_stage;
    mod frameless_entry;
    mod instructions;
    pub(super) mod interpreter_frame;
    pub(super) mod interpreter_stage;
    pub mod registers;
    pub(super) mod return_address;
    pub(super) mod safepoint_stage;
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
    pub(super) mod call_stub_stage;
    pub(super) mod coloured_reference;
    pub(super) mod compiled_stage;
    pub(super) mod compiled_stub;
    pub(super) mod continuation_exit;
    mod done_later;
    pub(super) mod exception_stage;
    pub(super) mod forward_exception_stage;
    mod frameless_entry;
    mod instructions;
    pub(super) mod interpreter_frame;
    pub(super) mod interpreter_stage;
    pub mod registers;
    pub(super) mod return_address;
    pub(super) mod safepoint_stage;
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

use crate::core::collections::Collections;
use crate::core::memory::Memory;
use crate::core::object::ObjectMap;
use crate::core::stack_walker::StackWalker;
use crate::core::vm_layout::VmLayout;
use crate::signal::call_trace::CallTraceSource;
use code_cache::CodeCache;
use registers::Registers;
use relocated::RetainedPages;

/// Why a walk could not go on. Counted, and written into the stack as a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WalkError {
    /// The program counter is in no object, no code blob and no stub.
    UnknownCode,
    /// No unwind rule covers the program counter, and the frame pointer does not lead on.
    NoUnwindRule,
    /// The unwind rule needs what is not known here (an expression, a register of an inner frame).
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
    /// More steps than any stack has.
    TooManySteps,
    /// Native frames above or between Java frames could not be walked; the stack goes on at the Java frame anchor.
    NativeFramesLost,
    /// A virtual thread's frames do not lead on to its carrier's.
    BadContinuationEntry,
    /// AsyncGetCallTrace, which alone could know the Java frames, does not.
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

/// What is known when a walk begins.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The VM's layout, if it is known and trusted.
    pub vm: Option<&'a VmLayout>,
    /// The loaded objects.
    pub objects: &'a ObjectMap,
    /// The `JavaThread*`, or 0 for a thread that is none.
    pub java_thread: u64,
    /// One past the highest address of the stack; `u64::MAX` if not known.
    pub stack_high: u64,
    /// The interrupted registers.
    pub registers: Registers,
    /// How the stack is walked.
    pub walker: StackWalker,
    /// What can be asked for the thread's Java frames.
    pub call_trace: Option<CallTraceSource>,
    /// When the VM moves what is on the heap.
    pub collections: &'a Collections,
}

/// A walk of one stack.
pub struct Walk<'a, M> {
    /// Where everything is read.
    memory: &'a M,
    vm: Option<&'a VmLayout>,
    objects: &'a ObjectMap,
    java_thread: u64,
    stack_high: u64,
    registers: Registers,
    walker: StackWalker,
    call_trace: Option<CallTraceSource>,
    collections: &'a Collections,
    code_cache: CodeCache,
    retained_pages: RetainedPages,
    /// How many instructions of undescribed code this walk may still follow.
    instructions_left: Cell<u32>,
}

/// A physical frame, between callee and caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The program counter: where the thread was interrupted, or a return address.
    pub pc: u64,
    /// The stack pointer in this frame. Below an interpreted frame it is the sender's unextended one.
    pub sp: u64,
    /// The frame pointer register in this frame.
    pub fp: u64,
    /// Whether `pc` is where the thread was interrupted (the topmost frame, or the one below a signal frame)
    /// rather than a return address.
    pub interrupted: bool,
}

impl Cursor {
    /// The address to look symbols and rules up by: a return address belongs to the call before it.
    pub const fn lookup_pc(&self) -> u64 {
        if self.interrupted { self.pc } else { self.pc.wrapping_sub(1) }
    }
}

/// What a step found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The caller's frame.
    Caller(Cursor),
    /// This frame was the outermost.
    Root,
    /// The caller is frozen on the heap: the mounted continuation's chunks have it.
    Frozen,
}

/// The most steps of one walk, whatever it meets: inlining makes more frames than steps, never fewer.
pub const MAX_STEPS: usize = 16 * 1024;

/// The most instructions of undescribed code that one walk follows, whatever it meets: a millisecond's work.
const MAX_FOLLOWED_INSTRUCTIONS: u32 = 32 * 1024;

/// A frame larger than this is taken for a mistake: HotSpot's default stacks are 1 MiB, a main thread's 8 MiB.
const MAX_FRAME_BYTES: u64 = 16 * 1024 * 1024;

impl<'a, M: Memory> Walk<'a, M> {
    /// A walk from `start` on. `memory` is where everything is read.
    #[inline(always)] // `start` is made into it in place: a handler's stack may be small.
    pub fn new(memory: &'a M, start: Start<'a>) -> Self {
        let Start { vm, objects, java_thread, stack_high, registers, walker, call_trace, collections } =
            start;
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
            code_cache,
            retained_pages: RetainedPages::default(),
            instructions_left: Cell::new(MAX_FOLLOWED_INSTRUCTIONS),
        }
    }

    /// Walks the whole stack into `sink`, which always gets at least one frame.
    pub fn walk(&self, sink: &mut FrameSink<'_>) {
        match self.walker {
            StackWalker::No => self.walk_java_only(self.top(), sink),
            StackWalker::Fp | StackWalker::Dwarf => self.walk_asking_the_vm(self.top(), sink),
            StackWalker::Vm | StackWalker::Vmx => self.walk_vm(sink),
        }
    }

    /// The topmost frame.
    pub fn start(&self) -> Cursor {
        Cursor { pc: self.registers.pc, sp: self.registers.sp(), fp: self.registers.fp(), interrupted: true }
    }

    /// `caller`, if its stack pointer lies further towards the root than `cursor`'s, aligned and on the stack.
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

    /// The return address that is saved at `slot`.
    fn load_return_address(&self, slot: u64) -> Result<u64, WalkError> {
        self.load(slot).map(arch::return_address::strip)
    }

    fn load_i32(&self, address: u64) -> Result<i32, WalkError> {
        self.memory.load_u32(address).map(|value| value as i32).ok_or(WalkError::Unreadable)
    }
}

#[cfg(test)]
mod tests;
