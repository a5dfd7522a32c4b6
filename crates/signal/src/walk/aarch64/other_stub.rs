//! An interrupted stub without debug information, on aarch64.
//!
//! StubRoutines and most helpers begin with `stp x29, x30, [sp, -16]!; mov x29, sp`. Small leaf stubs have no
//! frame record and leave the return address in x30. Until a stub makes a call, x30 has the return address in
//! either case. So x30 shows whether the record at x29 is the stub's own: it is if the record has the same
//! return address.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::instructions::{Around, Record};
use crate::walk::blob::{Blob, BlobKind};
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

/// The most bytes between SP and a stub's own frame record: stubs save registers, SVE's included.
const MAX_STUB_FRAME: u64 = 32 * 1024;
/// The most pairs that a leaf stub without a frame record may have pushed.
const MAX_PAIRS: u64 = 16;

impl<M: Memory> Walk<'_, M> {
    /// The caller of an interrupted stub of a kind without a rule of its own.
    pub(super) fn interrupted_other_stub_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let (sp, fp, lr) = (cursor.sp, registers.fp(), registers.lr());
        if let Some(caller) = self.jump_to_handler_caller(vm, cursor, registers) {
            return Ok(caller);
        }
        // Guard after all kinds, and after the jump to a handler: the stub of the entry barrier.
        if vm.stubs.method_entry_barrier.contains(cursor.pc)
            && let Some(caller) = self.resolved_again_caller(cursor, registers)
        {
            return caller;
        }
        if let Some(record) = Around::read(self.memory, cursor.pc).record(blob.frame_bytes) {
            return self.caller_by_record(cursor, registers, record);
        }
        let by_record = |above: u64| self.caller_by_record(cursor, registers, Record::OnStack(above));
        let return_at = |slot: u64| self.load_return_address(slot).ok();
        let above_fp =
            Some(fp.wrapping_sub(sp)).filter(|&above| above <= MAX_STUB_FRAME && fp.is_multiple_of(8));
        let sized = u64::try_from(blob.frame_bytes).ok().and_then(|bytes| bytes.checked_sub(16));
        let places = [sized, above_fp];
        let mut records = places.into_iter().flatten();
        let saved = |above: u64| return_at(sp.wrapping_add(above).wrapping_add(8));
        if !self.is_return_address(vm, lr) {
            // The stub has called out, or uses x30 for another value.
            let is_saved = |&above: &u64| saved(above).is_some_and(|pc| self.is_return_address(vm, pc));
            // C1's exception stubs replace the return address by the place of the throw, which no call
            // precedes (cpu/aarch64/c1_Runtime1_aarch64.cpp, generate_handle_exception, JDK 11-25).
            let is_in_java = |&above: &u64| saved(above).is_some_and(|pc| self.is_java_code(vm, pc));
            let record = records.find(is_saved).or_else(|| above_fp.filter(is_in_java));
            return by_record(record.ok_or(WalkError::NoFrameSize)?);
        }
        if let Some(record) = records.find(|&above| saved(above) == Some(lr)) {
            return by_record(record);
        }
        Ok(Cursor { pc: lr, sp: self.sp_without_pushes(vm, sp, lr), fp, interrupted: false })
    }

    /// The stack pointer of the frame to which a leaf stub returns at `lr`. The stub has pushed pairs of
    /// registers on top of that frame. A compiled caller is recognised by its own return address.
    fn sp_without_pushes(&self, vm: &VmLayout, sp: u64, lr: u64) -> u64 {
        let Ok(blob) = self.blob_at(vm, lr) else { return sp };
        if blob.kind != BlobKind::Nmethod || vm.stubs.interpreter.contains(lr) {
            return sp;
        }
        let is_frame = |&sp: &u64| {
            let slot = sp.wrapping_add_signed(blob.frame_bytes).wrapping_sub(8);
            self.load_return_address(slot).is_ok_and(|pc| {
                pc == vm.stubs.cont_return_barrier.start
                    || self.in_code_cache(pc) && self.is_return_address(vm, pc)
            })
        };
        let above = (0..=MAX_PAIRS).map(|pair| sp.wrapping_add(pair.wrapping_mul(16)));
        above.into_iter().find(is_frame).unwrap_or(sp)
    }
}
