//! An interpreter's entry for a method handle intrinsic, on aarch64.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::frameless_entry::KEPT_SENDER_SP;
use super::instructions::{has_pushed_record, pushed_record};
use super::leaf_stub::leaf_caller;
use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

impl<M: Memory> Walk<'_, M> {
    /// The caller of an interpreter's entry for a method handle intrinsic. An entry with a trailing
    /// MemberName may call a collector's barrier to load the MemberName's target. All entries receive the
    /// sender's SP in a register.
    pub(super) fn interrupted_method_handle_entry_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let caller = if has_pushed_record(self.memory, blob.code_begin, cursor.pc) {
            let record = pushed_record(self.memory, cursor.pc, cursor.sp, registers.fp());
            self.caller_by_record(cursor, registers, record)?
        } else {
            leaf_caller(cursor.sp, registers)
        };
        let passed = registers.by_dwarf_number(vm.stubs.interpreter_code.sender_sp_register);
        let sp = passed.and_then(|passed| self.passed_sender_sp(caller.sp, passed));
        Ok(Cursor { sp: sp.unwrap_or(caller.sp), ..caller })
    }

    /// The caller of an interpreter's entry for a method handle intrinsic that has called the collector. In
    /// JDK 11 and 17 the sender's SP is passed in x13, which no function preserves.
    pub(in crate::walk) fn returned_method_handle_entry_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Result<Cursor, WalkError> {
        if !has_pushed_record(self.memory, blob.code_begin, cursor.pc) {
            return Err(WalkError::NoFrameSize);
        }
        let in_x19 = vm.stubs.interpreter_code.sender_sp_register == KEPT_SENDER_SP;
        self.recorded_entry_caller(vm, cursor, in_x19).ok_or(WalkError::NoFrameSize)
    }
}
