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
//! | cont_returnBarrierExc, while the handler is looked up | rbx |
//! | in the call for that | rsp, with rax pushed, and the frame's two words |
//! | behind it, at `pop rax; pop rbp; pop rdx; jmp rbx` | rsp, and what is still to be popped |

use crate::core::continuation::ThawStub;
use crate::core::memory::Memory;
use crate::signal::walk::Cursor;
use crate::signal::walk::registers::Registers;

/// `mov rsp, rbx`.
const TAKES_STACK_BYTES: u64 = 3;
/// That and `sub rsp, 16`.
const MAKES_SLOTS_BYTES: u64 = 7;
const RET: u8 = 0xc3;
const POP_RAX: u8 = 0x58;
const POP_RDX: u8 = 0x5a;
const POP_RBP: u8 = 0x5d;
/// `jmp rbx`.
const JUMP: [u8; 2] = [0xff, 0xe3];
/// `add rsp, 8`.
const REMOVES_ALIGNMENT: [u8; 4] = [0x48, 0x83, 0xc4, 0x08];

/// The youngest thawed frame's stack pointer; `None` while it is not thawed yet.
pub(in crate::signal::walk) fn thawed_sp(
    memory: &impl Memory,
    stub: &ThawStub,
    cursor: &Cursor,
    interrupted: Option<&Registers>,
) -> Option<u64> {
    let pc = cursor.pc;
    let Some(registers) = interrupted else {
        // Called from behind the stack's change: only the exception's handler is looked up there, with rax pushed, and
        // where the stack has to be aligned for the call, by one of two, a word more.
        let mut code = [0_u8; 4];
        let is_aligned = memory.read_bytes(pc, &mut code) && code == REMOVES_ALIGNMENT;
        let pushed = if is_aligned { 32 } else { 24 };
        return (pc > stub.takes_stack).then(|| cursor.sp.wrapping_add(pushed));
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
            let mut code = [0_u8; 3];
            let _ = memory.read_bytes(pc, &mut code);
            let left = match code {
                [POP_RAX, POP_RBP, POP_RDX] => 24,
                [POP_RBP, ..] => 16,
                [RET, ..] | [POP_RDX, ..] => 8,
                [jump, to, _] if [jump, to] == JUMP => 0,
                _ => return Some(registers.rbx()),
            };
            Some(cursor.sp.wrapping_add(left))
        }
        _ => None,
    }
}
