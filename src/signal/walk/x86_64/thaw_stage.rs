//! The stubs that thaw, on x86_64 (cpu/x86/stubGenerator_x86_64.cpp, generate_cont_thaw, 21 and 25): from when the
//! youngest thawed frame is to be found on the stack.
//!
//! | Stage | The youngest thawed frame's SP |
//! |---|---|
//! | `thaw` has returned, to `mov rbx, rax` | rax |
//! | to `mov rsp, rbx` | rbx |
//! | at `sub rsp, 16` | rsp |
//! | to `pop rbp` | rsp + 16 |
//! | at `ret` | rsp + 8 |
//! | cont_returnBarrierExc, in a call with rax pushed | rsp, aligned, and the frame's two words |

use crate::core::continuation::ThawStub;
use crate::core::memory::Memory;
use crate::signal::walk::Cursor;
use crate::signal::walk::registers::Registers;

/// `mov rsp, rbx`.
const TAKES_STACK_BYTES: u64 = 3;
/// That and `sub rsp, 16`.
const MAKES_SLOTS_BYTES: u64 = 7;
const RET: u8 = 0xc3;

/// The youngest thawed frame's stack pointer; `None` while it is not thawed yet.
pub(in crate::signal::walk) fn thawed_sp(
    memory: &impl Memory,
    stub: &ThawStub,
    cursor: &Cursor,
    interrupted: Option<&Registers>,
) -> Option<u64> {
    let pc = cursor.pc;
    let Some(registers) = interrupted else {
        // Called from behind the stack's change: only the exception's handler is looked up there, with rax pushed
        // and the stack aligned.
        let is_exception_lookup = pc > stub.takes_stack;
        return is_exception_lookup.then(|| cursor.sp.wrapping_add(24).next_multiple_of(16));
    };
    if stub.returned_early.contains(pc) || pc == stub.returned {
        return Some(registers.rax());
    }
    if pc > stub.returned && pc <= stub.takes_stack {
        return Some(registers.rbx());
    }
    match pc.wrapping_sub(stub.takes_stack) {
        _ if pc < stub.takes_stack => None,
        TAKES_STACK_BYTES => Some(cursor.sp),
        behind if behind >= MAKES_SLOTS_BYTES => {
            let is_popped = memory.load_u8(pc) == Some(RET);
            Some(cursor.sp.wrapping_add(if is_popped { 8 } else { 16 }))
        }
        _ => None,
    }
}
