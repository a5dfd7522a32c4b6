//! A compiled method interrupted in the stubs after its code, on aarch64. The stubs have no frame of their
//! own, and the place where the method's code was left is in x30.

use otlpprof_core::a64_branch::INSTRUCTION_BYTES;
use otlpprof_core::memory::Memory;

use super::instructions::{BR_X8, is_call, moved_immediate};
use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;

/// `isb`
const ISB: u32 = 0xd503_3fdf;
/// `ldr x8, pc + 8`
const LOAD_TARGET: u32 = 0x5800_0048;
/// The register in which HotSpot passes the called Method.
const METHOD: u32 = 12;
const SCRATCH: u32 = 8;
/// The most instructions of a stub of either kind: `isb`, an address of up to four instructions in x12 and
/// another in x8, `br x8`.
const MAX_INSTRUCTIONS: u64 = 10;

impl<M: Memory> Walk<'_, M> {
    /// If a stub for a call was interrupted, the call in the same method that led to the stub: the stub has a
    /// return address, but is no callee. There are two kinds: stubs of static calls,
    /// `isb; mov x12, method; mov x8, entry; br x8`, and stubs for targets that a call cannot reach,
    /// `ldr x8, target; br x8` (cpu/aarch64/macroAssembler_aarch64.cpp, emit_static_call_stub,
    /// emit_trampoline_stub, JDK 11-25).
    pub(in crate::walk) fn static_call_stub_caller(
        &self,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Option<Cursor> {
        if !self.is_in_call_stub(cursor.pc) {
            return None;
        }
        // Only a call in the method's code before the stub leads to the stub.
        let pc = registers.lr();
        let is_call = is_call(self.memory.load_u32(pc.wrapping_sub(INSTRUCTION_BYTES))?);
        if !is_call || !(blob.code_begin..cursor.pc).contains(&pc) {
            return None;
        }
        Some(Cursor { pc, sp: cursor.sp, fp: registers.fp(), interrupted: false })
    }

    fn is_in_call_stub(&self, pc: u64) -> bool {
        let code = |index: u64| {
            let address = pc.wrapping_add(index.wrapping_mul(INSTRUCTION_BYTES));
            self.memory.load_u32(address).unwrap_or(0)
        };
        let before = |index: u64| {
            let address = pc.wrapping_sub(index.wrapping_mul(INSTRUCTION_BYTES));
            self.memory.load_u32(address).unwrap_or(0)
        };
        match code(0) {
            LOAD_TARGET => return code(1) == BR_X8,
            BR_X8 if before(1) == LOAD_TARGET => return true,
            _ => {}
        }
        let is_part = |code: u32| code == ISB || matches!(moved_immediate(code), Some(METHOD | SCRATCH));
        let is_method = |code: u32| moved_immediate(code) == Some(METHOD);
        let ahead = (0..MAX_INSTRUCTIONS).take_while(|&index| is_part(code(index)));
        let (parts, names_method) = ahead.fold((0_u64, false), |(_, named), index| {
            (index.wrapping_add(1), named || is_method(code(index)))
        });
        let named_before = || {
            let after = (1..MAX_INSTRUCTIONS).take_while(|&index| is_part(before(index)));
            after.into_iter().any(|index| is_method(before(index)))
        };
        code(parts) == BR_X8 && (names_method || named_before())
    }
}
