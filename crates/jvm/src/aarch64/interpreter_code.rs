//! Learns the stages of the interpreter's entries and exits from its instructions (aarch64).
//!
//! Sources: cpu/aarch64/templateInterpreterGenerator_aarch64.cpp (`generate_fixed_frame`,
//! `generate_normal_entry`, `generate_native_entry`, `generate_throw_exception`),
//! cpu/aarch64/interp_masm_aarch64.cpp (`remove_activation`), JDK 11-25.

use otlpprof_core::a64_branch::Branch;
use otlpprof_core::address::CodeRange;
use otlpprof_core::interpreter_code::ValueLocation::{AboveSp, InRegister};
use otlpprof_core::interpreter_code::{
    InterpreterEntry, InterpreterExit, ThrowStage, ThrownTo, ValueLocation,
};

/// `CodeEntryAlignment` of a VM that does not export it (11 and 17; cpu/aarch64/globals_aarch64.hpp).
pub(crate) const CODE_ENTRY_ALIGNMENT: u64 = 64;

/// `stp x29, x30, [sp, 80]; add x29, sp, 80`: saves the frame record of the fixed frame.
const FIXED_FRAME: [u32; 2] = [0xa905_7bfd, 0x9101_43fd];
/// `ldp x29, x30, [sp], 16`
const POP_RECORD: u32 = 0xa8c1_7bfd;
/// The register of the sender's stack pointer at a native method's exit. X9 is the register at every other
/// exit.
const X20: u32 = 20;
const X9: u32 = 9;
const INSTRUCTION_BYTES: usize = 4;
/// The most instructions between saving the frame record and saving the sender's stack pointer, in the fixed
/// frame.
pub(super) const FIXED_FRAME_INSTRUCTIONS: usize = 16;
/// The most instructions between loading the sender's stack pointer and restoring the frame record, at an
/// exit.
const BEFORE_EXIT_INSTRUCTIONS: usize = 96;
/// The most instructions between restoring the frame record and the jump that ends an exit.
const EXIT_INSTRUCTIONS: usize = 16;

/// `stp x0, x30, [sp, -16]!`: saves the exception and the return address.
const SAVE_EXCEPTION: u32 = 0xa9bf_7be0;
/// `stp x8, x12, [sp, -16]!` and `ldp x8, x12, [sp], 16`, which save and restore registers around a call.
const SAVE_FOR_CALL: u32 = 0xa9bf_33e8;
const RESTORE_AFTER_CALL: u32 = 0xa8c1_33e8;
/// `ldp x0, x30, [sp], 16`.
const RESTORE_EXCEPTION: u32 = 0xa8c1_7be0;
/// `br x1`: jumps to the exception handler.
const JUMP_TO_HANDLER: u32 = 0xd61f_0020;
const X30: ValueLocation = InRegister(30);
/// The most instructions between restoring the frame record and the jump to the exception handler.
const THROW_INSTRUCTIONS: usize = 48;

pub(super) fn instructions(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|&code| u32::from_le_bytes(code)).collect()
}

/// The register in `stp xzr, x, [sp, 64]`, which saves the sender's stack pointer in the fixed frame.
fn saved_sender_sp(code: u32) -> Option<u8> {
    (code & 0xffff_83ff == 0xa904_03ff).then_some((code >> 10 & 0x1f) as u8)
}

/// The register in `ldur x, [x29, -8]`, which loads the sender's stack pointer from the frame.
fn loaded_sender_sp(code: u32) -> Option<u32> {
    (code & 0xffff_ffe0 == 0xf85f_83a0).then_some(code & 0x1f)
}

/// Whether `code` is `ret` or `br`.
fn is_jump(code: u32) -> bool {
    matches!(Branch::of(code), Some(Branch::Return { .. } | Branch::RegisterJump { .. }))
}

/// The stages of the method entry with these instructions, and the register that holds the sender's stack
/// pointer. `generate_fixed_frame` saves the method before the frame record.
pub(crate) fn entry(code: CodeRange, bytes: &[u8]) -> Option<(InterpreterEntry, u8)> {
    let instructions = instructions(bytes);
    let links = 1 + instructions.windows(2).position(|window| window == FIXED_FRAME)?;
    let after = instructions[links..].iter().take(FIXED_FRAME_INSTRUCTIONS);
    let (distance, register) =
        after.enumerate().find_map(|(at, &code)| Some((at, saved_sender_sp(code)?)))?;
    let at = |index: usize| code.start + (index * INSTRUCTION_BYTES) as u64;
    let complete = at(links + distance + 1);
    let entry = InterpreterEntry {
        code,
        return_in_register: CodeRange::default(),
        push_fp: at(links),
        sender_sp_saved: complete,
        method_saved: complete,
    };
    Some((entry, register))
}

/// Appends the exits found in the codelet that begins at `start`.
pub(crate) fn find_exits(start: u64, bytes: &[u8], exits: &mut Vec<InterpreterExit>) {
    let instructions = instructions(bytes);
    let at = |index: usize| start + (index * INSTRUCTION_BYTES) as u64;
    for (pop, _) in instructions.iter().enumerate().filter(|&(_, &code)| code == POP_RECORD) {
        let before = &instructions[pop.saturating_sub(BEFORE_EXIT_INSTRUCTIONS)..pop];
        let uses_alternate_registers = match before.iter().rev().find_map(|&code| loaded_sender_sp(code)) {
            Some(X20) => true,
            Some(X9) => false,
            _ => continue,
        };
        let after = instructions[pop + 1..].iter().take(EXIT_INSTRUCTIONS);
        let Some(jump) = after.into_iter().position(|&code| is_jump(code)) else { continue };
        let restored = at(pop + 1);
        exits.push(InterpreterExit {
            return_on_stack: CodeRange { start: restored, end: restored },
            return_in_register: CodeRange { start: restored, end: at(pop + jump + 2) },
            uses_alternate_registers,
        });
    }
}

/// Appends the stages in which the codelet that begins at `start` throws an exception to the caller, after
/// its frame has been removed: `ldp x29, x30, [sp], 16`; `stp x0, x30, [sp, -16]!`;
/// `stp x8, x12, [sp, -16]!`; `blr`; `ldp x8, x12, [sp], 16`; `ldp x0, x30, [sp], 16`; `br x1`. Other
/// instructions, but no jumps, may stand in between.
pub(crate) fn find_throws(start: u64, bytes: &[u8], throws: &mut Vec<ThrowStage>) {
    let instructions = instructions(bytes);
    for (pop, _) in instructions.iter().enumerate().filter(|&(_, &code)| code == POP_RECORD) {
        let before = &instructions[pop.saturating_sub(BEFORE_EXIT_INSTRUCTIONS)..pop];
        let sender_sp = match before.iter().rev().find_map(|&code| loaded_sender_sp(code)) {
            Some(register @ (X9 | X20)) => InRegister(register as u8),
            _ => continue,
        };
        let restored = pop + 1;
        let code = &instructions[..instructions.len().min(restored + THROW_INSTRUCTIONS)];
        let after = |from: usize, wanted: u32| {
            let found = code[from..].iter().position(|&code| code == wanted || is_jump(code))?;
            (code[from + found] == wanted).then_some(from + found + 1)
        };
        let Some(saved) = after(restored, SAVE_EXCEPTION) else { continue };
        let Some(calls) = after(saved, SAVE_FOR_CALL) else { continue };
        let Some(called) = after(calls, RESTORE_AFTER_CALL) else { continue };
        let Some(taken) = after(called, RESTORE_EXCEPTION) else { continue };
        let Some(jumped) = after(taken, JUMP_TO_HANDLER) else { continue };
        let stages = [
            (restored, X30, sender_sp),
            (saved, AboveSp(8), AboveSp(16)),
            (calls, AboveSp(24), AboveSp(32)),
            (called, AboveSp(8), AboveSp(16)),
            (taken, X30, AboveSp(0)),
        ];
        let at = |index: usize| start + (index * INSTRUCTION_BYTES) as u64;
        throws.extend(stages.map(|(index, return_address, sp)| ThrowStage {
            start: at(index),
            caller: Some(ThrownTo { return_address, sp }),
        }));
        throws.push(ThrowStage { start: at(jumped), caller: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(code: &[u32]) -> Vec<u8> {
        code.iter().flat_map(|code| code.to_le_bytes()).collect()
    }

    #[test]
    fn learns_the_stages_of_each_versions_entry() {
        // The instructions from saving bcp on. 17 keeps the sender's stack pointer in x13. 21 keeps it in x19
        // and has more instructions in between.
        let jdk_17 = [0xa9bf_5bf4, 0xa903_3188, 0xa905_7bfd, 0x9101_43fd, 0xa904_37ff, 0xf940_0588];
        let jdk_21 = [
            0xa9ba_5bf4,
            0xa903_3188,
            0xa905_7bfd,
            0x9101_43fd,
            0xf940_059a,
            0xf940_075a,
            0xf940_0b5a,
            0xcb1d_0308,
            0xd343_fd08,
            0xa901_6be8,
            0xa904_4fff,
            0xf940_058a,
        ];
        for (code, links, complete, register) in [(&jdk_17[..], 3, 5, 13), (&jdk_21[..], 3, 11, 19)] {
            let range = CodeRange { start: 0x1000, end: 0x1000 + 4 * code.len() as u64 };
            let (entry, found) = entry(range, &bytes(code)).unwrap();
            assert_eq!(entry.push_fp, 0x1000 + 4 * links);
            assert_eq!(
                (entry.sender_sp_saved, entry.method_saved),
                (0x1000 + 4 * complete, 0x1000 + 4 * complete)
            );
            assert_eq!(found, register);
        }
        assert!(entry(CodeRange::default(), &bytes(&jdk_21[3..])).is_none());
    }

    #[test]
    fn learns_the_exits_of_each_version() {
        let jdk_17: &[u32] = &[0xf85f_83a9, 0xaa09_03f4, 0x9100_03bf, 0xa8c1_7bfd, 0x927c_ee9f, 0xd65f_03c0];
        let jdk_25: &[u32] =
            &[0xf85f_83a9, 0x9100_03bf, 0xa8c1_7bfd, 0x390f_1b9f, 0xaa09_03f4, 0x927c_ee9f, 0xd65f_03c0];
        let exception: &[u32] =
            &[0xf85f_83b4, 0x9100_03bf, 0xa8c1_7bfd, 0x927c_ee9f, 0xf940_7668, 0xd61f_0100];
        for (code, restored, end, is_alternate) in
            [(jdk_17, 4, 6, false), (jdk_25, 3, 7, false), (exception, 3, 6, true)]
        {
            let mut exits = Vec::new();
            find_exits(0, &bytes(code), &mut exits);
            let [exit] = exits[..] else { panic!("{} exits", exits.len()) };
            assert_eq!(exit.return_in_register, CodeRange { start: 4 * restored, end: 4 * end });
            assert_eq!(exit.return_on_stack, CodeRange { start: 4 * restored, end: 4 * restored });
            assert_eq!(exit.uses_alternate_registers, is_alternate);
        }
    }

    #[test]
    fn learns_the_stages_of_throwing_an_exception() {
        // ldur x9; mov sp, x29; ldp; and sp; stp x0; mov x1, x30; stp x8; mov x8; blr x8; ldp x8; mov x1, x0;
        // ldp x0; mov x3, x30; br x1
        let code: &[u32] = &[
            0xf85f_83a9,
            0x9100_03bf,
            POP_RECORD,
            0x927c_ee9f,
            SAVE_EXCEPTION,
            0xaa1e_03e1,
            SAVE_FOR_CALL,
            0xd280_0008,
            0xd63f_0100,
            RESTORE_AFTER_CALL,
            0xaa00_03e1,
            RESTORE_EXCEPTION,
            0xaa1e_03e3,
            JUMP_TO_HANDLER,
        ];
        let mut throws = Vec::new();
        find_throws(0x1000, &bytes(code), &mut throws);
        let stage = |index: u64, caller: Option<(ValueLocation, ValueLocation)>| ThrowStage {
            start: 0x1000 + 4 * index,
            caller: caller.map(|(return_address, sp)| ThrownTo { return_address, sp }),
        };
        assert_eq!(
            throws,
            [
                stage(3, Some((X30, InRegister(9)))),
                stage(5, Some((AboveSp(8), AboveSp(16)))),
                stage(7, Some((AboveSp(24), AboveSp(32)))),
                stage(10, Some((AboveSp(8), AboveSp(16)))),
                stage(12, Some((X30, AboveSp(0)))),
                stage(14, None),
            ]
        );
        // A return in between ends the search.
        throws.clear();
        find_throws(0, &bytes(&[&code[..4], &[0xd65f_03c0], &code[4..]].concat()), &mut throws);
        assert!(throws.is_empty());
    }

    #[test]
    fn a_record_that_is_restored_around_a_call_is_no_exit() {
        let mut exits = Vec::new();
        find_exits(0, &bytes(&[0x9100_03bf, 0xa8c1_7bfd, 0xd65f_03c0]), &mut exits);
        assert!(exits.is_empty());
    }
}
