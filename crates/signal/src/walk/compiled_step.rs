//! The step from a compiled method's frame to its caller.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::blob::Blob;
use super::compiled::{Decoded, Part};
use super::cursor::{Cursor, Step};
use super::registers::Registers;
use super::repeated::Repeated;
use super::sink::FrameSink;
use super::stack_walk::Walk;
use super::walk_error::WalkError;

impl<M: Memory> Walk<'_, M> {
    /// Appends the Java frames that the compiled frame at `cursor` stands for, and finds its caller.
    /// `interrupted` has the registers if the method was interrupted.
    pub(super) fn compiled_step(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        interrupted: Option<&Registers>,
        repeated: &mut Repeated,
        sink: &mut FrameSink<'_>,
    ) -> Result<Step, WalkError> {
        let cursor = &self.without_call_words(*cursor);
        if let Some(registers) = interrupted
            && let Some(caller) = self
                .static_call_stub_caller(blob, cursor, registers)
                .or_else(|| self.deopt_handler_frame(vm, blob, cursor, registers))
        {
            return Ok(Step::Caller(caller));
        }
        if self.is_continuation_entry(vm, blob, cursor, sink)? {
            return Ok(Step::Root);
        }
        // Only calls of native code leave more than the frame on the stack.
        let saved = match sink.last_method() {
            None if !cursor.interrupted => self.bytes_saved_at(vm, blob, cursor.pc),
            _ => 0,
        };
        let frame_bytes = blob.frame_bytes.wrapping_add_unsigned(saved);
        let first = sink.len();
        let stage = interrupted.map(|_| self.interrupted_stage(vm, blob, cursor.pc));
        let part = stage.and_then(Result::ok).map_or(Part::Body, |(part, _)| part);
        let decoded = self.compiled_frames(vm, blob, cursor, part, sink)?;
        if decoded == Decoded::ByPc && !cursor.interrupted && blob.frame_bytes != 0 {
            repeated.put(cursor.pc, first..sink.len(), frame_bytes);
        }
        if let Some(carrier) = self.yielded(vm, cursor, sink) {
            return Ok(carrier);
        }
        let caller = match interrupted.zip(stage) {
            Some((registers, stage)) => {
                self.interrupted_compiled_caller(vm, blob, cursor, registers, stage?.1)
            }
            None if blob.frame_bytes == 0 => self.frameless_caller_after_call(vm, blob, cursor),
            None => self.sized_caller(cursor, frame_bytes),
        }?;
        if self.is_frozen_by_yield(vm, &caller, sink) {
            return Ok(Step::Frozen);
        }
        Ok(Step::Caller(caller))
    }
}
