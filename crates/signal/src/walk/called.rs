//! The stack of a thread that takes a sample of itself. In a call from the VM the walk begins at the last
//! Java frame, since the frames above are the VM's work for that frame, and the agent's. In a call from
//! native code it begins at the caller.

use otlpprof_core::memory::Memory;
use otlpprof_core::stack_walker::StackWalker;

use super::cursor::Cursor;
use super::sink::FrameSink;
use super::stack_walk::Walk;
use super::vm::From;

impl<M: Memory> Walk<'_, M> {
    /// Walks the stack from the last Java frame on into `sink`, in the same way for all walkers: no native
    /// frame has to be found first by frame pointers or rules, and AsyncGetCallTrace need not be asked where
    /// the VM's layout is known. A thread without Java frames gets one frame that says so.
    pub fn walk_from_call(&self, sink: &mut FrameSink<'_>) {
        match self.walker {
            StackWalker::No => sink.leave_out_native_frames(),
            _ => sink.begin_at_java(),
        }
        match self.anchor() {
            Some(cursor) => self.run(From { cursor, registers: None, anchor: None }, sink).note(sink),
            None if self.vm.is_none() && self.call_trace.is_some() => self.call_trace_frames(None, sink),
            None => {}
        }
        if sink.is_empty() {
            sink.no_java_frame();
        }
    }

    /// Walks the stack from `caller` on, a frame of native code that has called the agent.
    pub fn walk_from_native_call(&self, caller: Cursor, sink: &mut FrameSink<'_>) {
        let from = From { cursor: caller, registers: None, anchor: self.anchor() };
        match self.walker {
            StackWalker::No => self.walk_java_only(from, sink),
            StackWalker::Fp | StackWalker::Dwarf => self.walk_with_call_trace(from, sink),
            StackWalker::Vm | StackWalker::Vmx => self.run(from, sink).note(sink),
        }
    }
}
