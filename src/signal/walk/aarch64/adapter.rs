//! An interrupted I2C or C2I adapter, on aarch64 (cpu/aarch64/sharedRuntime_aarch64.cpp, gen_i2c_adapter,
//! gen_c2i_adapter, JDK 11-25).
//!
//! Neither has a frame: the return address is in x30, and the caller's x29 in x29, but for where C2I has the caller's
//! call patched, which makes a frame record. C2I saves the compiled caller's SP in x13 (11 and 17) or x19 (21 on) before
//! it makes room for the arguments; before that SP is the caller's. An interpreted caller is found by x29 alone.

use super::instructions::{Around, INSTRUCTION_BYTES};
use crate::core::memory::Memory;
use crate::core::vm_layout::VmLayout;
use crate::signal::walk::blob::Blob;
use crate::signal::walk::registers::Registers;
use crate::signal::walk::{Cursor, Walk, WalkError};

/// Adapters are smaller: what is longest in them saves all registers.
const MAX_ADAPTER_BYTES: u64 = 4096;
/// More than all registers take (`push_CPU_state`), those of SVE included.
const MAX_SAVED_BYTES: u64 = 32 * 1024;
/// How much of an adapter is looked at together.
const WINDOW: usize = 64;
/// `mov x13, sp` and `mov x19, sp`.
const SET_SENDER_SP: [(u32, u8); 2] = [(0x9100_03ed, 13), (0x9100_03f3, 19)];

impl<M: Memory> Walk<'_, M> {
    /// The caller of the adapter that has called the VM, which C2I does to have its caller's call patched
    /// (`patch_callers_callsite`): x29 leads to its record.
    pub(in crate::signal::walk) fn called_out_of_adapter_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
    ) -> Option<Cursor> {
        if cursor.fp.wrapping_sub(cursor.sp) >= MAX_SAVED_BYTES {
            return None;
        }
        let pc = self.load_return_address(cursor.fp.wrapping_add(8)).ok()?;
        let (sp, fp) = (cursor.fp.wrapping_add(16), self.memory.load_u64(cursor.fp)?);
        self.is_java_code(vm, pc).then_some(Cursor { pc, sp, fp, interrupted: false })
    }

    /// The caller of the adapter that was interrupted at `cursor`.
    pub(in crate::signal::walk) fn interrupted_adapter_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        if let Some(record) = Around::read(self.memory, cursor.pc).record(0) {
            return self.caller_by_record(cursor, registers, record);
        }
        let lr = registers.lr();
        if !self.is_return_address(vm, lr) {
            // Between the two, around a call of the VM: x29 leads to the record.
            let is_near = registers.fp().wrapping_sub(cursor.sp) < MAX_SAVED_BYTES;
            let above = registers.fp().wrapping_sub(cursor.sp).wrapping_add(16);
            return if is_near {
                self.sized_caller(cursor, above as i64)
            } else {
                Err(WalkError::UnknownCode)
            };
        }
        let saved_lr = || self.load_return_address(registers.fp().wrapping_add(8));
        let is_record = registers.fp() >= cursor.sp
            && registers.fp().wrapping_sub(cursor.sp) < MAX_SAVED_BYTES
            && saved_lr() == Ok(lr);
        if is_record {
            let above = registers.fp().wrapping_sub(cursor.sp).wrapping_add(16);
            return self.sized_caller(cursor, above as i64);
        }
        let set_before = self.sender_sp_set_before(blob, cursor.pc)?;
        let sp = set_before.and_then(|register| registers.by_dwarf_number(register)).unwrap_or(cursor.sp);
        if sp < cursor.sp || sp > self.stack_high {
            return Err(WalkError::BadStackPointer);
        }
        Ok(Cursor { pc: lr, sp, fp: registers.fp(), interrupted: false })
    }

    /// The register in which C2I has saved the sender's SP before it came to `pc`. It does so once, behind I2C.
    fn sender_sp_set_before(&self, blob: &Blob, pc: u64) -> Result<Option<u8>, WalkError> {
        let begin = blob.code_begin.max(pc.wrapping_sub(MAX_ADAPTER_BYTES));
        let mut at = begin;
        while at < pc {
            let mut window = [0_u8; WINDOW];
            let length = (pc.wrapping_sub(at) as usize).min(WINDOW);
            let Some(code) = window.get_mut(..length) else { return Ok(None) };
            if !self.memory.read_bytes(at, code) {
                return Err(WalkError::Unreadable);
            }
            let (instructions, _) = code.as_chunks::<{ INSTRUCTION_BYTES as usize }>();
            let set = instructions.iter().find_map(|&code| {
                let code = u32::from_le_bytes(code);
                SET_SENDER_SP.iter().find(|(set, _)| *set == code).map(|&(_, register)| register)
            });
            if set.is_some() {
                return Ok(set);
            }
            at = at.wrapping_add(WINDOW as u64);
        }
        Ok(None)
    }
}
