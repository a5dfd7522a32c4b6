//! The stubs that thaw, on x86_64 (cpu/x86/stubGenerator_x86_64.cpp, generate_cont_thaw, JDK 21 and 25):
//! finds the youngest thawed frame once it is on the stack.
//!
//! | Stage | The youngest thawed frame's SP |
//! |---|---|
//! | `thaw` has returned, to `mov rbx, rax` | rax |
//! | to `mov rsp, rbx` | rbx |
//! | at `sub rsp, 16` | rsp |
//! | to `pop rbp` | rsp + 16 |
//! | at `ret` | rsp + 8 |
//! | cont_returnBarrierExc, while the handler is looked up | rbx |
//! | in the call for that lookup | rsp, plus rax, which was pushed, and the frame's two words |
//! | after it, at `pop rax; pop rbp; pop rdx; jmp rbx` | rsp, plus the words still to be popped |

use otlpprof_core::continuation::ThawStub;
use otlpprof_core::memory::Memory;

use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;

/// `mov rsp, rbx`.
const TAKES_STACK_BYTES: u64 = 3;
/// `mov rsp, rbx; sub rsp, 16`.
const MAKES_SLOTS_BYTES: u64 = 7;
const RET: u8 = 0xc3;
const POP_RAX: u8 = 0x58;
const POP_RDX: u8 = 0x5a;
const POP_RBP: u8 = 0x5d;
/// `jmp rbx`.
const JUMP: [u8; 2] = [0xff, 0xe3];
/// `add rsp, 8`.
const REMOVES_ALIGNMENT: [u8; 4] = [0x48, 0x83, 0xc4, 0x08];

/// The stack pointer of the youngest thawed frame. `None` while no frame is thawed yet.
pub(in crate::walk) fn thawed_sp(
    memory: &impl Memory,
    stub: &ThawStub,
    cursor: &Cursor,
    interrupted: Option<&Registers>,
) -> Option<u64> {
    let pc = cursor.pc;
    let Some(registers) = interrupted else {
        // A call from after the change of RSP: only the lookup of the exception's handler is called there,
        // with rax pushed. The lookup has two calls; the one that aligns the stack has pushed one more word.
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
        after if after >= MAKES_SLOTS_BYTES => {
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
