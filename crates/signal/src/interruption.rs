//! A thread that a handler of ours has interrupted: all that the handler is given.

use std::ffi::c_void;

use otlpprof_core::thread::ThreadRecord;

use super::handler_stack::StackRoom;
use super::walk::registers::Registers;

/// The interrupted thread, which is the current one.
#[derive(Clone, Copy, Debug)]
pub struct Interruption<'a> {
    thread: &'a ThreadRecord,
    context: *mut c_void,
    room: StackRoom,
}

impl<'a> Interruption<'a> {
    /// Returns the interruption of `thread` at the `ucontext_t` at `context`. `room` is the room on the stack
    /// that the handler runs on.
    ///
    /// # Safety
    /// `thread` is the record of the current thread, and `context` is the `ucontext_t` that the kernel passed
    /// to the handler that this thread is in. The value is used no longer than that handler runs.
    #[inline]
    pub const unsafe fn new(thread: &'a ThreadRecord, context: *mut c_void, room: StackRoom) -> Self {
        Self { thread, context, room }
    }

    /// The current thread.
    #[inline]
    pub(super) const fn thread(&self) -> &'a ThreadRecord {
        self.thread
    }

    /// The interrupted `ucontext_t`.
    #[inline]
    pub(super) const fn context(&self) -> *mut c_void {
        self.context
    }

    /// The room on the stack that the handler runs on.
    #[inline]
    pub(super) const fn room(&self) -> StackRoom {
        self.room
    }

    /// The interrupted registers.
    #[inline]
    pub(super) fn registers(&self) -> Registers {
        // SAFETY: by the contract of `new` the context is the one that the kernel passed to the handler.
        unsafe { Registers::from_context(self.context) }
    }
}
