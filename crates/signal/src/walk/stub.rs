//! The steps from a stub and from an adapter to its caller: frames of generated code that is no method.
//!
//! The caller of an interrupted stub is found by the stub's kind: one file for each kind. The caller of a
//! stub that has called other code is found in one way for most kinds, which is here; the other kinds have
//! their way in their file.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::blob::{Blob, StubKind};
use super::cursor::Cursor;
use super::registers::Registers;
use super::sink::FrameSink;
use super::stack_walk::Walk;
use super::walk_error::WalkError;

impl<M: Memory> Walk<'_, M> {
    /// Appends the adapter at `cursor`, and finds its caller. `interrupted` has the registers if the adapter
    /// was interrupted.
    pub(super) fn adapter_step(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        interrupted: Option<&Registers>,
        sink: &mut FrameSink<'_>,
    ) -> Result<Cursor, WalkError> {
        let cursor = &self.without_call_words(*cursor);
        sink.stub(cursor.lookup_pc());
        match interrupted {
            Some(registers) => self.interrupted_adapter_caller(vm, blob, cursor, registers),
            None => self.returned_adapter_caller(vm, blob, cursor).ok_or(WalkError::NoFrameSize),
        }
    }

    /// Appends the stub at `cursor`, and finds its caller. `interrupted` has the registers if the stub was
    /// interrupted.
    #[inline(never)] // Few frames need this, and a handler's stack may be small.
    pub(super) fn stub_step(
        &self,
        vm: &VmLayout,
        kind: StubKind,
        blob: &Blob,
        cursor: &Cursor,
        interrupted: Option<&Registers>,
        sink: &mut FrameSink<'_>,
    ) -> Result<Cursor, WalkError> {
        let cursor = &self.without_call_words(*cursor);
        sink.stub(cursor.lookup_pc());
        // Guard before all kinds, and only by the blob's name: while a compiled frame is being replaced, only
        // the thread's vframeArray leads to its caller.
        if let Some(caller) = self.deoptimized_frames(vm, blob, cursor, sink)? {
            return Ok(caller);
        }
        match (kind, interrupted) {
            (StubKind::ForwardException, _) => self.forward_exception_caller(vm, cursor, interrupted),
            (_, Some(registers)) => self
                .interrupted_stub_caller(vm, kind, blob, cursor, registers)
                .and_then(|caller| self.without_frameless_entry(vm, caller, registers)),
            (_, None) => self.returned_stub_caller(vm, kind, blob, cursor),
        }
    }

    /// The caller of a stub that has called other code: by the stub's frame size, else by the frame pointer
    /// that it keeps.
    fn returned_stub_caller(
        &self,
        vm: &VmLayout,
        kind: StubKind,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Result<Cursor, WalkError> {
        if kind == StubKind::MethodHandleEntry {
            return self.returned_method_handle_entry_caller(vm, blob, cursor);
        }
        if kind == StubKind::Collector
            && let Some(caller) = self.collector_stub_caller(vm, blob, cursor)
        {
            return Ok(caller);
        }
        if let Ok(caller) = self.sized_caller(cursor, blob.frame_bytes)
            && self.is_java_code(vm, caller.pc)
        {
            return Ok(caller);
        }
        // All other stubs without a frame size have a frame record.
        if kind == StubKind::UnwindException
            && let Some(caller) = self.returned_unwind_exception_caller(vm, cursor)
        {
            return Ok(caller);
        }
        if cursor.fp < cursor.sp || !cursor.fp.is_multiple_of(8) {
            return Err(WalkError::NoFrameSize);
        }
        let slot = if vm.stubs.method_entry_barrier.contains(cursor.pc) {
            self.entry_barrier_return_slot(cursor.fp)?
        } else {
            cursor.fp.wrapping_add(8)
        };
        let caller = Cursor {
            pc: self.load_return_address(slot)?,
            sp: slot.wrapping_add(8),
            fp: self.load(cursor.fp)?,
            interrupted: false,
        };
        if !self.is_java_code(vm, caller.pc) {
            return Err(WalkError::NoFrameSize);
        }
        self.check_progress(cursor, caller)
    }
}

/// A frame that was left at `pc` for its own exception handler.
pub(super) fn left_at(pc: u64, sp: u64, registers: &Registers) -> Cursor {
    Cursor { pc, sp, fp: registers.fp(), interrupted: false }
}
