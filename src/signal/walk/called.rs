//! The stack of a thread that takes a sample of itself, in a call from the VM: from its last Java frame on. What lies
//! above is the VM's work for that frame, and ours.

use super::vm::From;
use super::{FrameSink, Walk};
use crate::core::memory::Memory;
use crate::core::stack_walker::StackWalker;

impl<M: Memory> Walk<'_, M> {
    /// Walks the stack from the last Java frame on into `sink`, whichever the walker: there is nothing that frame
    /// pointers or rules would find first, and where the VM's layout is known it need not be asked. A thread without
    /// Java frames gets one frame that says so.
    pub fn walk_from_call(&self, sink: &mut FrameSink<'_>) {
        match self.walker {
            StackWalker::No => sink.leave_out_native_frames(),
            _ => sink.begin_at_java(),
        }
        match self.anchor() {
            Some(cursor) => self.run(From { cursor, registers: None, anchor: None }, sink).note(sink),
            None if self.vm.is_none() && self.call_trace.is_some() => self.asked_java_frames(None, sink),
            None => {}
        }
        if sink.is_empty() {
            sink.no_java_frame();
        }
    }
}
