//! Interpreter frames, and the stages of entering and leaving them, on aarch64.

use super::machine::*;
use crate::core::interpreter_code::{InterpreterCode, InterpreterEntry, InterpreterExit};
use crate::core::record::FrameKind::{Compiled, Interpreted};
use crate::core::vm_layout::CodeRange;
use crate::signal::walk::tests::vm_world::*;

const X9: usize = 9;
const METHOD: usize = 12;
const SENDER_SP: usize = SENDER_SP_REGISTER as usize;
const X20: usize = 20;
const BCP: usize = 22;

static ENTRY_STAGES: InterpreterEntry = InterpreterEntry {
    code: CodeRange { start: INTERPRETER.start, end: INTERPRETER.start + 0x100 },
    return_in_register: CodeRange { start: 0, end: 0 },
    push_fp: INTERPRETER.start + 0x40,
    sender_sp_saved: INTERPRETER.start + 0x60,
    method_saved: INTERPRETER.start + 0x60,
};
const EXIT_AT: u64 = INTERPRETER.start + 0x200;
static EXITS: [InterpreterExit; 2] = [exit(EXIT_AT, false), exit(EXIT_AT + 0x100, true)];

const fn exit(start: u64, native: bool) -> InterpreterExit {
    InterpreterExit {
        return_on_stack: CodeRange { start, end: start },
        return_in_register: CodeRange { start, end: start + 12 },
        native,
    }
}

fn world() -> World {
    let mut world = World::new();
    world.layout.stubs.interpreter_code = InterpreterCode {
        entries: std::slice::from_ref(&ENTRY_STAGES),
        exits: &EXITS,
        throws: &[],
        sender_sp_register: SENDER_SP_REGISTER,
    };
    world
}

#[test]
fn an_interpreted_frame_takes_its_bytecode_from_the_register_or_the_frame() {
    for (in_register, bci) in [(true, 5), (false, 3)] {
        let mut world = world();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, bytecodes) = world.method();
        let fp = CALLER_SP - 0x20;
        interpreted_frame(&mut world, fp, method, bytecodes + 3, return_pc, (CALLER_SP, 0x1234));
        let bcp = if in_register { bytecodes + 5 } else { 0x99 };
        let frames = world.walk(DISPATCH, fp - 0x60, fp, &[(BCP, bcp)]);
        assert_eq!(frames, [(Interpreted, method, bci), (Compiled, caller, 7)]);
    }
}

#[test]
fn each_stage_of_an_interpreter_entry_leads_to_the_caller() {
    // PC, whether x29 is this frame's.
    for (stage, pc, has_fp) in [
        ("at the start", ENTRY_STAGES.code.start, false),
        ("at add x29, sp, 80", ENTRY_STAGES.push_fp, false),
        ("behind it", ENTRY_STAGES.push_fp + 4, true),
        ("sender SP saved", ENTRY_STAGES.sender_sp_saved, true),
    ] {
        let mut world = world();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, bytecodes) = world.method();
        let frame = CALLER_SP - 0x20;
        let is_saved = pc >= ENTRY_STAGES.sender_sp_saved;
        let saved_sp = if is_saved { CALLER_SP } else { 0x4242 };
        interpreted_frame(&mut world, frame, method, bytecodes, return_pc, (saved_sp, 0x1234));
        let (lr, fp) = if has_fp { (0x4242, frame) } else { (return_pc, 0x1234) };
        let sender_sp = if is_saved { 0x4242 } else { CALLER_SP };
        let registers = [(METHOD, method), (SENDER_SP, sender_sp), (LR, lr)];
        let frames = world.walk(pc, frame - 80, fp, &registers);
        assert_eq!(frames, [(Interpreted, method, 0), (Compiled, caller, 7)], "{stage}");
    }
}

#[test]
fn behind_the_restored_record_the_interpreters_frame_is_the_callers() {
    for (start, register) in [(EXIT_AT, X9), (EXIT_AT + 0x100, X20)] {
        for offset in [0, 8] {
            let mut world = world();
            let (caller, return_pc) = compiled_caller(&mut world);
            let registers = [(LR, return_pc), (register, CALLER_SP)];
            let frames = world.walk(start + offset, CALLER_SP - 8, ENTRY_FP, &registers);
            assert_eq!(frames, [(Compiled, caller, 7)], "x{register} at {offset}");
        }
    }
}

/// Regression: an interpreted caller's SP lies below the frames of what it calls, and was refused.
#[test]
fn an_interpreted_callers_stack_pointer_may_lie_below_the_callee() {
    let mut world = world();
    let (root, return_pc) = compiled_caller(&mut world);
    let (outer, outer_code) = world.method();
    let (inner, inner_code) = world.method();
    let outer_fp = CALLER_SP - 0x20;
    let inner_fp = outer_fp - 0x100;
    interpreted_frame(&mut world, outer_fp, outer, outer_code + 3, return_pc, (CALLER_SP, 0x1234));
    interpreted_frame(&mut world, inner_fp, inner, inner_code + 2, DISPATCH, (inner_fp - 0x40, outer_fp));
    let frames = world.walk(DISPATCH, inner_fp - 0x60, inner_fp, &[]);
    assert_eq!(frames, [(Interpreted, inner, 2), (Interpreted, outer, 3), (Compiled, root, 7)]);
}
