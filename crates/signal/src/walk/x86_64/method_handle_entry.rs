//! An interpreter's entry for a method handle intrinsic, on x86_64.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::bytes_to_return::ReturnSlot;
use super::frameless_entry::SENDER_SP;
use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

impl<M: Memory> Walk<'_, M> {
    /// The caller of an interpreter's entry for a method handle intrinsic. These entries have no frame, and
    /// receive the sender's SP in r13. An entry with a trailing MemberName pops the return address and pushes
    /// it again: `pop rax; pop rbx; push rax`. A barrier in an entry saves registers
    /// (cpu/x86/methodHandles_x86.cpp, generate_method_handle_interpreter_entry, JDK 11-25).
    pub(super) fn interrupted_method_handle_entry_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let on_top = ReturnSlot { slot: cursor.sp, fp: registers.fp() };
        let ReturnSlot { slot, fp } = self.return_slot_of_frameless(vm, blob, cursor).unwrap_or(on_top);
        let on_stack = self.load(slot)?;
        let (pc, sp) = if self.is_return_address(vm, on_stack) {
            (on_stack, slot.wrapping_add(8))
        } else {
            (registers.rax(), cursor.sp)
        };
        if !self.is_return_address(vm, pc) {
            return Err(WalkError::NoFrameSize);
        }
        let sp = self.passed_sender_sp(sp, registers.r13()).unwrap_or(sp);
        Ok(Cursor { pc, sp, fp, interrupted: false })
    }

    /// The caller of an interpreter's entry for a method handle intrinsic that has called the collector.
    pub(in crate::walk) fn returned_method_handle_entry_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Result<Cursor, WalkError> {
        let slot = self.return_slot_of_frameless(vm, blob, cursor).ok_or(WalkError::NoFrameSize)?;
        self.entry_caller_at(vm, slot, || self.kept_register(SENDER_SP, cursor))
    }
}
