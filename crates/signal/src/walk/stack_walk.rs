//! A walk of one stack: the knowledge about the thread and the VM, and the loads that all walkers make.

use std::cell::Cell;

use otlpprof_core::collections::Collections;
use otlpprof_core::memory::Memory;
use otlpprof_core::object::ObjectMap;
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::vm_layout::VmLayout;

use super::arch::registers::Registers;
use super::arch::return_address;
use super::code_cache::CodeCache;
use super::cursor::Cursor;
use super::retained_pages::RetainedPages;
use super::sink::FrameSink;
use super::walk_error::WalkError;
use crate::call_trace::CallTraceSource;

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
    pub(super) memory: &'a M,
    pub(super) vm: Option<&'a VmLayout>,
    pub(super) objects: &'a ObjectMap,
    pub(super) java_thread: u64,
    pub(super) stack_high: u64,
    pub(super) registers: Registers,
    pub(super) walker: StackWalker,
    pub(super) call_trace: Option<CallTraceSource>,
    pub(super) collections: &'a Collections,
    pub(super) loader: FindFrameHeader,
    pub(super) code_cache: CodeCache,
    pub(super) retained_pages: RetainedPages,
    /// The number of undescribed code's instructions that this walk may still follow.
    pub(super) instructions_left: Cell<u32>,
}

/// The most instructions of undescribed code that one walk follows: some tenths of a millisecond. The time is
/// the program's, and counts as its CPU time.
pub(super) const MAX_FOLLOWED_INSTRUCTIONS: u32 = 2 * 1024;

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
    pub(super) fn check_progress(&self, cursor: &Cursor, caller: Cursor) -> Result<Cursor, WalkError> {
        let is_leaf = cursor.interrupted && !return_address::IS_PUSHED;
        let grows = (caller.sp > cursor.sp || is_leaf && caller.sp == cursor.sp)
            && caller.sp.wrapping_sub(cursor.sp) <= MAX_FRAME_BYTES;
        if grows && caller.sp.is_multiple_of(8) && caller.sp <= self.stack_high {
            Ok(caller)
        } else {
            Err(WalkError::BadStackPointer)
        }
    }

    pub(super) fn load(&self, address: u64) -> Result<u64, WalkError> {
        self.memory.load_u64(address).ok_or(WalkError::Unreadable)
    }

    /// Loads the return address that is saved at `slot`.
    pub(super) fn load_return_address(&self, slot: u64) -> Result<u64, WalkError> {
        self.load(slot).map(return_address::strip)
    }

    pub(super) fn load_i32(&self, address: u64) -> Result<i32, WalkError> {
        self.memory.load_u32(address).map(|value| value as i32).ok_or(WalkError::Unreadable)
    }
}
