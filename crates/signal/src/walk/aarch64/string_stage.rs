//! The data that compiled code has on top of its frame while it searches in strings, on aarch64
//! (cpu/aarch64/c2_MacroAssembler_aarch64.cpp, in JDK 11 macroAssembler_aarch64.cpp; JDK 11-25).
//!
//! `string_indexof` has a table of 256 bytes there, which says how far it may skip: `sub sp, sp, 256; mov;
//! mov x, sp; …; add sp, sp, 256; b no_match; …; add sp, sp, 256; b done`. String comparisons have nothing on
//! the stack.

use otlpprof_core::a64_branch::INSTRUCTION_BYTES;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;

pub(super) const TABLE_BYTES: u64 = 256;
/// `sub sp, sp, 256`
const MAKE_TABLE: u32 = 0xd104_03ff;
/// `add sp, sp, 256`
const DROP_TABLE: u32 = 0x9104_03ff;
/// The most instructions from the one that makes the table to the last one that has it. The longest search
/// has some sixty.
const MOST_INSTRUCTIONS: usize = 80;

impl<M: Memory> Walk<'_, M> {
    /// The caller of a compiled frame that has a string search's table on top.
    pub(in crate::walk) fn caller_below_strings(
        &self,
        _vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        _registers: &Registers,
    ) -> Option<Cursor> {
        if !self.has_table(blob, cursor.pc) {
            return None;
        }
        let whole = Cursor { sp: cursor.sp.wrapping_add(TABLE_BYTES), ..*cursor };
        let caller = self.sized_caller(&whole, blob.frame_bytes).ok()?;
        self.is_code(caller.pc).then_some(caller)
    }

    /// Whether `pc` is after the instruction that makes the table, and not after the one that drops it.
    fn has_table(&self, blob: &Blob, pc: u64) -> bool {
        let at = |back: u64| {
            let address = pc.wrapping_sub(back.wrapping_mul(INSTRUCTION_BYTES));
            if address < blob.code_begin { None } else { self.memory.load_u32(address) }
        };
        let mut drops = 0_u32;
        for back in 1..=MOST_INSTRUCTIONS as u64 {
            match at(back) {
                None => return false,
                Some(MAKE_TABLE) => {
                    // Frames of this size are made by the same instruction; only code that makes the table
                    // then takes its address.
                    let next_but_one = pc.wrapping_sub(back.wrapping_sub(2).wrapping_mul(INSTRUCTION_BYTES));
                    return self.memory.load_u32(next_but_one).is_some_and(is_move_of_sp);
                }
                // The table is dropped in two places. The jump after the first one leaves the table to the
                // code up to the second.
                Some(DROP_TABLE) if back == 1 || drops == 1 => return false,
                Some(DROP_TABLE) => drops = 1,
                Some(_) => {}
            }
        }
        false
    }
}

/// `mov x, sp`, which is `add x, sp, 0`.
fn is_move_of_sp(instruction: u32) -> bool {
    instruction & 0xffff_ffe0 == 0x9100_03e0
}
