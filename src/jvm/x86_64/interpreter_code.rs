//! Learns the stages of the interpreter's entries and exits from its instructions (x86_64).
//!
//! Sources: cpu/x86/templateInterpreterGenerator_x86.cpp (`generate_fixed_frame`, `generate_normal_entry`,
//! `generate_native_entry`), cpu/x86/interp_masm_x86.cpp (`remove_activation`), JDK 11-25.

use crate::core::interpreter_code::{InterpreterEntry, InterpreterExit};
use crate::core::vm_layout::CodeRange;

/// `CodeEntryAlignment` where the VM does not tell it (11 and 17; cpu/x86/globals_x86.hpp).
pub(in crate::jvm) const CODE_ENTRY_ALIGNMENT: u64 = 32;

/// `push rax; push rbp; mov rbp, rsp; push r13`: the return address, then the fixed frame.
const FIXED_FRAME: &[u8] = &[0x50, 0x55, 0x48, 0x8b, 0xec, 0x41, 0x55];
/// `pop rax; lea r14, [rsp + rcx * 8 - 8]`: the return address away, the locals found. The first `pop rax` of an
/// entry is the stack-overflow exit's.
const POP_RETURN: &[u8] = &[0x58, 0x4c, 0x8d, 0x74, 0xcc, 0xf8];
/// r13.
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
/// How far after the pop the jump may stand.
const EXIT_BYTES: usize = 96;
/// How far after its beginning the fixed frame holds its method.
const FIXED_FRAME_BYTES: usize = 48;

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

/// The stages of the method entry with these instructions, and the register of the sender's stack pointer: r13.
pub(in crate::jvm) fn entry(code: CodeRange, bytes: &[u8]) -> Option<(InterpreterEntry, u8)> {
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

/// Adds the exits of the codelet that begins at `start`.
pub(in crate::jvm) fn find_exits(start: u64, bytes: &[u8], exits: &mut Vec<InterpreterExit>) {
    for (leave, _) in bytes.iter().enumerate().filter(|&(_, &byte)| byte == LEAVE) {
        let after_leave = leave + 1;
        let mut pop = after_leave;
        if bytes[pop..].starts_with(CLEAR_THREAD_FLAG) {
            pop += CLEAR_THREAD_FLAG_BYTES;
        }
        let Some(rest) = bytes.get(pop..) else { continue };
        let (native, pop_bytes, jump) = if rest.starts_with(POP_R13) {
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
            native,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::memory::RecordedMemory;
    use crate::core::vm_layout::{Codelet, CodeletKind};
    use crate::jvm::interpreter_code::learn;

    fn codelet(kind: CodeletKind, start: u64, bytes: &[u8]) -> Codelet {
        Codelet { code: CodeRange { start, end: start + bytes.len() as u64 }, kind }
    }

    #[test]
    fn learns_the_stages_of_an_entry() {
        // The stack-overflow exit's `pop rax; jmp`, the real one, a local zeroed, the fixed frame.
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
            assert_eq!(exit.native, is_native);
        }
    }
}
