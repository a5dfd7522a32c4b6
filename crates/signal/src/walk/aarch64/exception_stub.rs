//! Stubs that pass an exception from one compiled frame on to the next, on aarch64. The compiled frame below
//! such a stub is complete, but has made no call: the place where its code was left is in x3, and in x30 too
//! where a stub is entered.
//!
//! - ExceptionBlob, to which a compiled method's exception handler jumps: `stp x29, x30, [sp, -16]!; … ;
//!   ldp x29, x3, [sp], 16; … ; br x8` (generate_exception_blob, cpu/aarch64/sharedRuntime_aarch64.cpp, in
//!   JDK 25 cpu/aarch64/runtime_aarch64.cpp; x30 in place of x3 in 11 and 17).
//! - Stubs that are entered with a return address and leave for the handler of that address:
//!   `mov x3, x30; … ; br`, or `mov x3, x19` in forward_exception, which keeps the address in x19
//!   (stubGenerator_aarch64.cpp generate_forward_exception; C1's unwind_exception, c1_Runtime1_aarch64.cpp
//!   generate_unwind_exception; C2's rethrow stub).
//! - C1's handle_exception_from_callee, which is called, and replaces its return address by the handler:
//!   `str x0, [x29, 8]; mov sp, x29; ldp x29, x30, [sp], 16; ret` (c1_Runtime1_aarch64.cpp,
//!   generate_handle_exception).

use otlpprof_core::a64_branch::{Branch, INSTRUCTION_BYTES};
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::instructions::POP_RECORD;
use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::stub::left_at;
use crate::walk::walk_error::WalkError;

/// `ldp x29, x3, [sp], 16`
const POP_TO_X3: u32 = 0xa8c1_0ffd;
/// `mov x3, x30` and `mov x3, x19`.
const MOVES_TO_X3: [u32; 2] = [0xaa1e_03e3, 0xaa13_03e3];
/// The most instructions between the move or pop and the jump.
const JUMP_INSTRUCTIONS: u64 = 8;
/// The most pairs of words that a stub without a frame may have pushed before it called out.
const MAX_PAIRS: u64 = 4;

impl<M: Memory> Walk<'_, M> {
    /// The compiled frame whose exception the interrupted ExceptionBlob at `cursor` handles.
    pub(super) fn interrupted_exception_blob_caller(
        &self,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        if cursor.pc == blob.code_begin {
            return Ok(left_at(registers.x3(), cursor.sp, registers));
        }
        let done = cursor.pc.wrapping_sub(blob.code_begin) / INSTRUCTION_BYTES;
        let popped = (1..=done.min(JUMP_INSTRUCTIONS)).find_map(|back| {
            let address = cursor.pc.wrapping_sub(back.wrapping_mul(INSTRUCTION_BYTES));
            self.memory.load_u32(address).filter(|code| matches!(*code, POP_TO_X3 | POP_RECORD))
        });
        match popped {
            Some(POP_TO_X3) => Ok(left_at(registers.x3(), cursor.sp, registers)),
            Some(_) => Ok(left_at(registers.lr(), cursor.sp, registers)),
            None => self.sized_caller(cursor, blob.frame_bytes),
        }
    }

    /// The frame to whose handler a stub is about to jump. The stub has the address to which it was to return
    /// in x3.
    pub(super) fn jump_to_handler_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Option<Cursor> {
        let code = |distance: i64| {
            let address = cursor.pc.wrapping_add_signed(distance.wrapping_mul(INSTRUCTION_BYTES as i64));
            self.memory.load_u32(address)
        };
        let most = JUMP_INSTRUCTIONS as i64;
        let is_set =
            (1..=most).any(|back| code(back.wrapping_neg()).is_some_and(|at| MOVES_TO_X3.contains(&at)));
        let is_jump = |code: u32| matches!(Branch::of(code), Some(Branch::RegisterJump { .. }));
        let jumps = (0..most).any(|ahead| code(ahead).is_some_and(is_jump));
        let pc = registers.x3();
        (is_set && jumps && self.is_java_code(vm, pc)).then(|| left_at(pc, cursor.sp, registers))
    }

    /// The caller of a stub that has no frame size and has called out: C1's unwind_exception. It pushes x30
    /// with the exception, and one more pair for the call (MacroAssembler::call_VM_leaf_base).
    pub(in crate::walk) fn returned_unwind_exception_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
    ) -> Option<Cursor> {
        (0..MAX_PAIRS).map(|pair| cursor.sp.wrapping_add(pair.wrapping_mul(16))).find_map(|slot| {
            let pc = self.load_return_address(slot).ok()?;
            let is_return = self.in_code_cache(pc) && self.is_return_address(vm, pc);
            let caller = Cursor { pc, sp: slot.wrapping_add(16), fp: cursor.fp, interrupted: false };
            is_return.then_some(caller)
        })
    }
}
