//! Learns the stages of the interpreter's entries and exits from its instructions (x86_64).
//!
//! Sources: cpu/x86/templateInterpreterGenerator_x86.cpp (`generate_fixed_frame`, `generate_normal_entry`,
//! `generate_native_entry`, `generate_throw_exception`), cpu/x86/interp_masm_x86.cpp (`remove_activation`),
//! JDK 11-25.

use otlpprof_core::address::CodeRange;
use otlpprof_core::interpreter_code::ValueLocation::{AboveSp, InRegister};
use otlpprof_core::interpreter_code::{
    InterpreterEntry, InterpreterExit, ThrowStage, ThrownTo, ValueLocation,
};

/// `CodeEntryAlignment` of a VM that does not export it (11 and 17; cpu/x86/globals_x86.hpp).
pub(crate) const CODE_ENTRY_ALIGNMENT: u64 = 32;

/// `push rax; push rbp; mov rbp, rsp; push r13`: pushes the return address, then begins the fixed frame.
const FIXED_FRAME: &[u8] = &[0x50, 0x55, 0x48, 0x8b, 0xec, 0x41, 0x55];
/// `pop rax; lea r14, [rsp + rcx * 8 - 8]`: pops the return address and computes the address of the locals. A
/// lone `pop rax` does not identify the place, because an entry's stack-overflow exit has one earlier.
const POP_RETURN: &[u8] = &[0x58, 0x4c, 0x8d, 0x74, 0xcc, 0xf8];
/// The register r13.
const SENDER_SP_REGISTER: u8 = 13;
const PUSH_RBX: u8 = 0x53;
const LEAVE: u8 = 0xc9;
const POP_R13: &[u8] = &[0x41, 0x5d];
const POP_RDI: &[u8] = &[0x5f];
const JMP_R13: &[u8] = &[0x41, 0xff, 0xe5];
const JMP_RDI: &[u8] = &[0xff, 0xe7];
/// `mov byte ptr [r15 + disp32], 0`: 25 clears a flag of the thread between `leave` and the pop.
const CLEAR_THREAD_FLAG: &[u8] = &[0x41, 0xc6, 0x87];
const CLEAR_THREAD_FLAG_BYTES: usize = 8;
/// The most bytes between the pop of the return address and the jump that ends an exit.
const EXIT_BYTES: usize = 96;
/// The most bytes between the beginning of the fixed frame and the push of the method.
const FIXED_FRAME_BYTES: usize = 48;

/// Registers by their DWARF numbers.
const RDX: ValueLocation = InRegister(1);
const RBX: ValueLocation = InRegister(3);
const POP_RDX: u8 = 0x5a;
/// `mov rsp, rbx`.
const TAKE_SENDER_SP: &[u8] = &[0x48, 0x8b, 0xe3];
/// `push rax; push rdx`: saves the exception and the return address.
const SAVE_EXCEPTION: &[u8] = &[0x50, 0x52];
/// `sub rsp, 8` and `add rsp, 8`, which align SP around a call.
const ALIGN: &[u8] = &[0x48, 0x83, 0xec, 0x08];
const DROP_ALIGNMENT: &[u8] = &[0x48, 0x83, 0xc4, 0x08];
/// `mov rbx, rax; pop rdx; pop rax; jmp rbx`: jumps to the exception handler.
const JUMP_TO_HANDLER: &[u8] = &[0x48, 0x8b, 0xd8, POP_RDX, 0x58, 0xff, 0xe3];
/// The most bytes from the pop of the return address to the end of the jump to the exception handler.
const THROW_BYTES: usize = 160;

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

/// The stages of the method entry with these instructions, and the register that holds the sender's stack
/// pointer.
pub(crate) fn entry(code: CodeRange, bytes: &[u8]) -> Option<(InterpreterEntry, u8)> {
    let push_return = find(bytes, FIXED_FRAME)?;
    let pop_return = find(&bytes[..push_return], POP_RETURN)?;
    let sender_sp_saved = push_return + FIXED_FRAME.len();
    let rest = &bytes[sender_sp_saved..bytes.len().min(sender_sp_saved + FIXED_FRAME_BYTES)];
    let method_saved = sender_sp_saved + find(rest, &[PUSH_RBX])? + 1;
    let at = |offset: usize| code.start + offset as u64;
    let entry = InterpreterEntry {
        code,
        return_in_register: CodeRange { start: at(pop_return + 1), end: at(push_return + 1) },
        push_fp: at(push_return + 1),
        sender_sp_saved: at(sender_sp_saved),
        method_saved: at(method_saved),
    };
    Some((entry, SENDER_SP_REGISTER))
}

/// Appends the exits found in the codelet that begins at `start`.
pub(crate) fn find_exits(start: u64, bytes: &[u8], exits: &mut Vec<InterpreterExit>) {
    for (leave, _) in bytes.iter().enumerate().filter(|&(_, &byte)| byte == LEAVE) {
        let after_leave = leave + 1;
        let pop = pop_after_leave(bytes, leave);
        let Some(rest) = bytes.get(pop..) else { continue };
        let (uses_alternate_registers, pop_bytes, jump) = if rest.starts_with(POP_R13) {
            (false, POP_R13.len(), JMP_R13)
        } else if rest.starts_with(POP_RDI) {
            (true, POP_RDI.len(), JMP_RDI)
        } else {
            continue;
        };
        let after_pop = pop + pop_bytes;
        let window = &bytes[after_pop..bytes.len().min(after_pop + EXIT_BYTES)];
        let Some(jump_at) = find(window, jump) else { continue };
        let at = |offset: usize| start + offset as u64;
        exits.push(InterpreterExit {
            return_on_stack: CodeRange { start: at(after_leave), end: at(after_pop) },
            return_in_register: CodeRange { start: at(after_pop), end: at(after_pop + jump_at + jump.len()) },
            uses_alternate_registers,
        });
    }
}

/// The offset of the pop of the return address after the `leave` at `leave`, if there is such a pop.
fn pop_after_leave(bytes: &[u8], leave: usize) -> usize {
    let after_leave = leave + 1;
    let clears = bytes[after_leave..].starts_with(CLEAR_THREAD_FLAG);
    after_leave + if clears { CLEAR_THREAD_FLAG_BYTES } else { 0 }
}

/// Appends the stages in which the codelet that begins at `start` throws an exception to the caller, after
/// its frame has been removed: `leave; pop rdx; mov rsp, rbx`, later `push rax; push rdx`, later
/// `sub rsp, 8; call; add rsp, 8`, and at last `mov rbx, rax; pop rdx; pop rax; jmp rbx`.
pub(crate) fn find_throws(start: u64, bytes: &[u8], throws: &mut Vec<ThrowStage>) {
    for (leave, _) in bytes.iter().enumerate().filter(|&(_, &byte)| byte == LEAVE) {
        let pop = pop_after_leave(bytes, leave);
        let popped = pop + 1;
        if bytes.get(pop) != Some(&POP_RDX) || !bytes[popped..].starts_with(TAKE_SENDER_SP) {
            continue;
        }
        let sp_taken = popped + TAKE_SENDER_SP.len();
        let code = &bytes[..bytes.len().min(popped + THROW_BYTES)];
        let after = |from: usize, pattern: &[u8]| Some(from + find(&code[from..], pattern)? + pattern.len());
        let Some(saved) = after(sp_taken, SAVE_EXCEPTION) else { continue };
        let Some(aligned) = after(saved, ALIGN) else { continue };
        let Some(dropped) = after(aligned, DROP_ALIGNMENT) else { continue };
        let Some(jumped) = after(dropped, JUMP_TO_HANDLER) else { continue };
        let stages = [
            (leave + 1, AboveSp(0), RBX),
            (popped, RDX, RBX),
            (sp_taken, RDX, AboveSp(0)),
            (saved - 1, RDX, AboveSp(8)),
            (saved, AboveSp(0), AboveSp(16)),
            (aligned, AboveSp(8), AboveSp(24)),
            (dropped, AboveSp(0), AboveSp(16)),
            // At `pop rax`, and at the jump.
            (jumped - 3, RDX, AboveSp(8)),
            (jumped - 2, RDX, AboveSp(0)),
        ];
        let at = |offset: usize| start + offset as u64;
        throws.extend(stages.map(|(offset, return_address, sp)| ThrowStage {
            start: at(offset),
            caller: Some(ThrownTo { return_address, sp }),
        }));
        throws.push(ThrowStage { start: at(jumped), caller: None });
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_core::memory::RecordedMemory;
    use otlpprof_core::vm_layout::{Codelet, CodeletKind};

    use super::*;
    use crate::interpreter_code::learn;

    fn codelet(kind: CodeletKind, start: u64, bytes: &[u8]) -> Codelet {
        Codelet { code: CodeRange { start, end: start + bytes.len() as u64 }, kind }
    }

    #[test]
    fn learns_the_stages_of_an_entry() {
        // The stack-overflow exit's `pop rax; jmp`, then the real pop, the zeroing of a local, and the fixed
        // frame.
        let bytes = [
            &[0x58, 0xff, 0xe0][..],
            POP_RETURN,
            &[0x6a, 0x00],
            FIXED_FRAME,
            &[0x6a, 0x00, 0x4c, 0x8b, 0x6b, 0x08, 0x4d, 0x8d, 0x6d, 0x38, 0x53, 0x90],
        ]
        .concat();
        let codelets = [codelet(CodeletKind::MethodEntry, 0x1000, &bytes)];
        let mut memory = RecordedMemory::default();
        memory.put(0x1000, bytes);
        let entry = learn(&memory, &codelets).entries[0];
        assert_eq!(entry.return_in_register, CodeRange { start: 0x1004, end: 0x100c });
        assert_eq!(entry.push_fp, 0x100c);
        assert_eq!(entry.sender_sp_saved, 0x1012);
        assert_eq!(entry.method_saved, 0x101d);
    }

    #[test]
    fn learns_the_stages_of_throwing_an_exception() {
        // leave; pop rdx; mov rsp, rbx; a load; push rax; push rdx; mov rsi, rdx; test esp, 15; jz; sub;
        // call; add; jmp; call; mov rbx, rax; pop rdx; pop rax; jmp rbx
        let code = [
            &[0x90, 0xc9, 0x5a, 0x48, 0x8b, 0xe3, 0x49, 0x8b, 0x87, 0xf0, 3, 0, 0, 0x50, 0x52][..],
            &[0x48, 0x8b, 0xf2, 0x40, 0xf6, 0xc4, 0x0f, 0x74, 14, 0x48, 0x83, 0xec, 8, 0xe8, 1, 2, 3, 4],
            &[0x48, 0x83, 0xc4, 8, 0xeb, 5, 0xe8, 1, 2, 3, 4, 0x48, 0x8b, 0xd8, 0x5a, 0x58, 0xff, 0xe3, 0x90],
        ]
        .concat();
        let codelets = [codelet(CodeletKind::Other, 0x1000, &code)];
        let mut memory = RecordedMemory::default();
        memory.put(0x1000, code);
        let code = learn(&memory, &codelets);
        for (what, offset, caller) in [
            ("at leave", 1, None),
            ("at the pop", 2, Some((AboveSp(0), RBX))),
            ("before the sender's SP is taken", 3, Some((RDX, RBX))),
            ("after", 6, Some((RDX, AboveSp(0)))),
            ("at the first push", 13, Some((RDX, AboveSp(0)))),
            ("at the second push", 14, Some((RDX, AboveSp(8)))),
            ("after", 15, Some((AboveSp(0), AboveSp(16)))),
            ("at the aligned call", 28, Some((AboveSp(8), AboveSp(24)))),
            ("after the alignment", 37, Some((AboveSp(0), AboveSp(16)))),
            ("at the pop of the return address", 47, Some((AboveSp(0), AboveSp(16)))),
            ("at the pop of the exception", 48, Some((RDX, AboveSp(8)))),
            ("at the jump", 49, Some((RDX, AboveSp(0)))),
            ("after the jump", 51, None),
        ] {
            let expected = caller.map(|(return_address, sp)| ThrownTo { return_address, sp });
            assert_eq!(code.thrown_to_at(0x1000 + offset), expected, "{what}");
        }
        assert!(code.exits.is_empty());
    }

    #[test]
    fn learns_the_exits_of_each_version() {
        let jdk_17: &[u8] = &[0x90, 0xc9, 0x41, 0x5d, 0x48, 0x8b, 0xe3, 0x41, 0xff, 0xe5];
        let jdk_25: &[u8] =
            &[0xc9, 0x41, 0xc6, 0x87, 1, 2, 0, 0, 0, 0x41, 0x5d, 0x48, 0x8b, 0xe3, 0x41, 0xff, 0xe5];
        let native: &[u8] = &[0xc9, 0x5f, 0x49, 0x8b, 0xe3, 0xff, 0xe7];
        for (bytes, on_stack, in_register, is_native) in [
            (jdk_17, (2, 4), (4, 10), false),
            (jdk_25, (1, 11), (11, 17), false),
            (native, (1, 2), (2, 7), true),
        ] {
            let codelets = [codelet(CodeletKind::Return, 0, bytes)];
            let mut memory = RecordedMemory::default();
            memory.put(0, bytes);
            let exit = learn(&memory, &codelets).exits[0];
            assert_eq!((exit.return_on_stack.start, exit.return_on_stack.end), on_stack);
            assert_eq!((exit.return_in_register.start, exit.return_in_register.end), in_register);
            assert_eq!(exit.uses_alternate_registers, is_native);
        }
    }
}
