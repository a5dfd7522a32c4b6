//! The stubs that thaw, on aarch64 (cpu/aarch64/stubGenerator_aarch64.cpp, generate_cont_thaw, JDK 21 and
//! 25): finds the youngest thawed frame once it is on the stack.
//!
//! | Stage | The youngest thawed frame's SP |
//! |---|---|
//! | `thaw` has returned, to `mov x9, x0` | x0 |
//! | to `sub sp, x9, 16` | x9 |
//! | to `ldp x29, x30, [sp], 16` | sp + 16 |
//! | after that `ldp` | sp |
//! | cont_returnBarrierExc, in a call with a pair pushed | sp + 32 |

use otlpprof_core::a64_branch::INSTRUCTION_BYTES;
use otlpprof_core::continuation::ThawStub;
use otlpprof_core::memory::Memory;

use super::instructions::POP_RECORD;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;

/// The bytes of a frame record, and of the pair that a call of the VM pushes.
const PAIR_BYTES: u64 = 16;
/// `stp x8, x12, [sp, -16]!` and `ldp x8, x12, [sp], 16`, around a call of the VM
/// (MacroAssembler::call_VM_leaf_base).
const PUSH_FOR_CALL: u32 = 0xa9bf_33e8;
const POP_AFTER_CALL: u32 = 0xa8c1_33e8;
/// The most instructions between the push and the call.
const CALL_INSTRUCTIONS: u64 = 6;

/// The stack pointer of the youngest thawed frame. `None` while no frame is thawed yet.
pub(in crate::walk) fn thawed_sp(
    memory: &impl Memory,
    stub: &ThawStub,
    cursor: &Cursor,
    interrupted: Option<&Registers>,
) -> Option<u64> {
    let pc = cursor.pc;
    let Some(registers) = interrupted else {
        // A call from after the change of SP: only the lookup of the exception's handler is called there.
        let is_exception_lookup = pc > stub.takes_stack;
        return is_exception_lookup.then(|| cursor.sp.wrapping_add(2 * PAIR_BYTES));
    };
    if pc == stub.returned || pc.wrapping_add(INSTRUCTION_BYTES) == stub.returned {
        return Some(registers.x0());
    }
    if pc > stub.returned && pc <= stub.takes_stack {
        return Some(registers.x9());
    }
    if pc <= stub.takes_stack {
        return None;
    }
    let code_before = |back: u64| memory.load_u32(pc.wrapping_sub(back.wrapping_mul(INSTRUCTION_BYTES)));
    let after_stack = pc.wrapping_sub(stub.takes_stack) / INSTRUCTION_BYTES;
    if (1..after_stack).any(|back| code_before(back) == Some(POP_RECORD)) {
        return Some(cursor.sp);
    }
    let is_calling = memory.load_u32(pc) == Some(POP_AFTER_CALL)
        || (1..=CALL_INSTRUCTIONS)
            .take_while(|&back| code_before(back) != Some(POP_AFTER_CALL))
            .any(|back| code_before(back) == Some(PUSH_FOR_CALL));
    let pushed = if is_calling { PAIR_BYTES } else { 0 };
    Some(cursor.sp.wrapping_add(PAIR_BYTES).wrapping_add(pushed))
}
