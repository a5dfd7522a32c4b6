//! Leaf stubs, on aarch64. They have no frame record, unless they call a slow function.

use otlpprof_core::a64_branch::{INSTRUCTION_BYTES, RET};
use otlpprof_core::address::RuntimeAddr;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::instructions::{POP_RECORD, PUSH_RECORD, has_pushed_record, pushed_record};
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

/// The most instructions with a record in a stub that native code calls: `mov x29, sp`, loading the slow
/// function's address, the call.
const MAX_SLOW_CALL: u64 = 8;
/// The most instructions of a leaf stub that are read up to its return.
const MAX_LEAF_INSTRUCTIONS: u64 = 96;

impl<M: Memory> Walk<'_, M> {
    /// The caller of the interrupted slow_subtype_check, whose arguments lie on the caller's frame.
    pub(super) fn interrupted_subtype_check_caller(
        &self,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let sp = self.sp_at_return(cursor)?;
        Ok(leaf_caller(sp.wrapping_add(self.bytes_below_subtype_check(registers.lr())), registers))
    }

    /// SP when the leaf stub at `cursor` returns: the registers that it has pushed are popped by then.
    fn sp_at_return(&self, cursor: &Cursor) -> Result<u64, WalkError> {
        let mut sp = cursor.sp;
        for index in 0..MAX_LEAF_INSTRUCTIONS {
            let address = cursor.pc.wrapping_add(index.wrapping_mul(INSTRUCTION_BYTES));
            let code = self.memory.load_u32(address).ok_or(WalkError::Unreadable)?;
            if code == RET {
                return Ok(sp);
            }
            sp = sp.wrapping_add_signed(sp_change(code));
        }
        Err(WalkError::NoFrameSize)
    }

    /// The caller of a leaf stub that native code has called, in a thread without Java frames. JNI's fast
    /// field getters and similar stubs leave the return address in x30, and x29 unchanged. If the fast path
    /// fails, they make a record and call the slow function (cpu/aarch64/jniFastGetField_aarch64.cpp).
    pub(in crate::walk) fn native_leaf_stub_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        registers: Option<&Registers>,
    ) -> Result<Cursor, WalkError> {
        let registers = registers.filter(|_| cursor.interrupted).ok_or(WalkError::UnknownCode)?;
        let begin = cursor.pc.wrapping_sub(MAX_SLOW_CALL.wrapping_mul(INSTRUCTION_BYTES));
        let caller = if has_pushed_record(self.memory, begin, cursor.pc) {
            let record = pushed_record(self.memory, cursor.pc, cursor.sp, cursor.fp);
            self.caller_by_record(cursor, registers, record)?
        } else {
            Cursor { pc: registers.lr(), sp: cursor.sp, fp: cursor.fp, interrupted: false }
        };
        if self.objects.find(RuntimeAddr(caller.pc)).is_none() || !self.is_return_address(vm, caller.pc) {
            return Err(WalkError::UnknownCode);
        }
        Ok(caller)
    }
}

/// The number of bytes that an instruction adds to SP by pushing or popping registers: `stp`, `ldp`, `str`,
/// `ldr` with write-back.
fn sp_change(code: u32) -> i64 {
    const SP: u32 = 31;
    if code >> 5 & 0x1f != SP || matches!(code, PUSH_RECORD | POP_RECORD) {
        return 0;
    }
    // stp and ldp: a signed 7-bit immediate, in words; post-indexed or pre-indexed.
    if matches!(code & 0xffc0_0000, 0xa880_0000 | 0xa8c0_0000 | 0xa980_0000 | 0xa9c0_0000) {
        return i64::from((code << 10) as i32 >> 25).wrapping_mul(8);
    }
    // str and ldr: a signed 9-bit immediate, in bytes.
    if matches!(code & 0xffe0_0400, 0xf800_0400 | 0xf840_0400) {
        return i64::from((code << 11) as i32 >> 23);
    }
    0
}

/// The caller of a leaf stub, which returns to it with this SP.
pub(super) fn leaf_caller(sp: u64, registers: &Registers) -> Cursor {
    Cursor { pc: registers.lr(), sp, fp: registers.fp(), interrupted: false }
}
