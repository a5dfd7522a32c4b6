//! Learns the stages of the stubs that thaw frozen frames, from the stubs' instructions (x86_64).
//!
//! Sources: cpu/x86/stubGenerator_x86_64.cpp (`generate_cont_thaw`), cpu/x86/macroAssembler_x86.cpp
//! (`call_VM_leaf_base`), 21 and 25. The stub
//!
//! 1. calls `prepare_thaw`;
//! 2. makes room, by `sub rsp, rbx`;
//! 3. calls `thaw`, which returns the stack pointer of the youngest thawed frame;
//! 4. keeps that stack pointer, by `mov rbx, rax`, and switches to it, by `mov rsp, rbx; sub rsp, 16`.
//!
//! The stub contains each call twice: `call` for an aligned stack, and for a misaligned one
//! `sub rsp, 8; call; add rsp, 8; jmp end`.

use otlpprof_core::address::CodeRange;
use otlpprof_core::continuation::ThawStub;
use otlpprof_core::memory::Memory;

/// `sub rsp, rbx; and rsp, -16`.
const MAKE_ROOM: [&[u8]; 2] =
    [&[0x48, 0x2b, 0xe3, 0x48, 0x83, 0xe4, 0xf0], &[0x48, 0x29, 0xdc, 0x48, 0x83, 0xe4, 0xf0]];
/// `mov rsp, rbx; sub rsp, 16`.
const TAKE_STACK: [&[u8]; 2] =
    [&[0x48, 0x8b, 0xe3, 0x48, 0x83, 0xec, 0x10], &[0x48, 0x89, 0xdc, 0x48, 0x83, 0xec, 0x10]];
/// `mov rbx, rax`.
const KEEP: [&[u8]; 2] = [&[0x48, 0x8b, 0xd8], &[0x48, 0x89, 0xc3]];
/// `add rsp, 8` and the opcode of the jump after it.
const REALIGN: [&[u8]; 2] = [&[0x48, 0x83, 0xc4, 0x08, 0xeb], &[0x48, 0x83, 0xc4, 0x08, 0xe9]];
/// `push rax`, which saves the value that the method is returning.
const PUSH_RAX: u8 = 0x50;
/// The size of the saved value and of the floating-point register pushed after it (`push_d`), in bytes.
const RETURN_VALUES_BYTES: u64 = 24;
/// An upper bound of the length of such a stub.
const MAX_STUB_BYTES: u64 = 4096;

/// The stages of the stub at `code`; `None` if the instructions differ from the module's description.
pub(crate) fn learn(memory: &dyn Memory, code: CodeRange) -> Option<ThawStub> {
    let length = code.end.checked_sub(code.start).filter(|length| (1..MAX_STUB_BYTES).contains(length))?;
    let mut bytes = vec![0; length as usize];
    memory.read_bytes(code.start, &mut bytes).then_some(())?;
    let find = |from: usize, patterns: [&[u8]; 2]| {
        let positions = patterns.iter().filter_map(|&pattern| {
            bytes.get(from..)?.windows(pattern.len()).position(|window| window == pattern)
        });
        Some(from + positions.min()?)
    };
    let makes_room = find(0, MAKE_ROOM)?;
    let realigns = find(makes_room, REALIGN)?;
    let jump_bytes = if bytes[realigns + 4] == 0xeb { 2 } else { 5 };
    let keeps = find(realigns, KEEP)?;
    let takes_stack = find(keeps, TAKE_STACK)?;
    let pushes = bytes.get(makes_room + MAKE_ROOM[0].len()) == Some(&PUSH_RAX);
    let at = |offset: usize| code.start + offset as u64;
    Some(ThawStub {
        code,
        makes_room: at(makes_room),
        pushed_bytes: if pushes { RETURN_VALUES_BYTES } else { 0 },
        returned_early: CodeRange { start: at(realigns), end: at(realigns + 4 + jump_bytes) },
        returned: at(keeps),
        takes_stack: at(takes_stack),
    })
}
