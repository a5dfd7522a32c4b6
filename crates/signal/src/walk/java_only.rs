//! The `no` walker: Java frames, without the native frames and stubs on top of them and between them.

use otlpprof_core::memory::Memory;

use super::sink::FrameSink;
use super::stack_walk::Walk;
use super::vm::{End, From};

impl<M: Memory> Walk<'_, M> {
    /// Walks the Java frames into `sink`. The walk begins at `top`, the topmost frame, if that is in the code
    /// cache or the thread is in Java state, in which it may have called native code without an anchor; else
    /// it begins at the anchor. A thread without Java frames gets one frame that says so, so that its time is
    /// counted. If the VM's layout is not known, AsyncGetCallTrace is asked.
    pub(super) fn walk_java_only(&self, top: From, sink: &mut FrameSink<'_>) {
        sink.leave_out_native_frames();
        if self.vm.is_none() && self.call_trace.is_some() {
            self.call_trace_frames(None, sink);
            if sink.is_empty() {
                sink.no_java_frame();
            }
            return;
        }
        let is_java = self.java_thread != 0;
        let in_java = self.vm.is_some_and(|vm| self.in_code_cache(top.cursor.pc) || self.is_in_java(vm));
        let end = match (is_java && !self.in_code_cache(top.cursor.pc), top.anchor) {
            (true, Some(below)) => self.run(From { cursor: below, registers: None, anchor: None }, sink),
            _ if is_java && in_java => self.run(top, sink),
            _ => End::Root,
        };
        end.note(sink);
        if sink.is_empty() {
            sink.no_java_frame();
        }
    }
}
