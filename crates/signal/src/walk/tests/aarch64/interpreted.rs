//! Interpreter frames, and the stages of entering and leaving them, on aarch64.

use otlpprof_core::address::CodeRange;
use otlpprof_core::interpreter_code::{InterpreterCode, InterpreterEntry, InterpreterExit};
use otlpprof_core::record::FrameKind::{Compiled, Interpreted, Stub, Unwalkable};

use super::machine::*;
use crate::walk::WalkError;
use crate::walk::tests::frameless_entry_callers::*;
use crate::walk::tests::vm_world::*;

const X9: usize = 9;
const METHOD: usize = 12;
const X13: usize = 13;
const X19: usize = 19;
const X23: usize = 23;
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

const fn exit(start: u64, uses_alternate_registers: bool) -> InterpreterExit {
    InterpreterExit {
        return_on_stack: CodeRange { start, end: start },
        return_in_register: CodeRange { start, end: start + 12 },
        uses_alternate_registers,
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
    // The label, the PC, and whether x29 points to this frame.
    for (stage, pc, has_fp) in [
        ("at the start", ENTRY_STAGES.code.start, false),
        ("at add x29, sp, 80", ENTRY_STAGES.push_fp, false),
        ("after it", ENTRY_STAGES.push_fp + 4, true),
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
fn after_the_record_is_restored_the_frame_is_the_interpreters_callers() {
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

/// Regression: an interpreted caller's SP lies below the frames of its callees, and was rejected.
#[test]
fn an_interpreted_callers_stack_pointer_may_lie_below_the_callee() {
    let mut world = world();
    let callers = interpreted_callers(&mut world, DISPATCH, INTERPRETED_FP - 0x40);
    let frames = world.walk(DISPATCH, INTERPRETED_FP - 0x60, INTERPRETED_FP, &[]);
    assert_eq!(frames, callers);
}

/// A world with this code as an entry without a frame.
fn world_with_entry(code: &[u32], sender_sp_register: u8) -> World {
    let mut world = World::new();
    world.put_interpreter_code(FRAMELESS.code.start, &bytes(code));
    world.layout.stubs.interpreter_code.sender_sp_register = sender_sp_register;
    world
}

/// Regression: after the call of an entry without a frame (`Math.sin`) the walk read the method, which is in
/// no register any more, and the sender's SP, which is not in x13 any more (JDK 11 and 17).
#[test]
fn each_stage_of_an_entry_that_calls_leads_to_the_caller() {
    // ldr d0, [x20]; mov sp, x19; mov x23, x30; mov x8, 0; blr x8; br x23. And JDK 17's, with x13 and x19.
    let new = [0xfd40_0280, 0x9100_027f, 0xaa1e_03f7, 0xd280_0008, 0xd63f_0100, 0xd61f_02e0];
    let old = [0xfd40_0280, 0x9100_01bf, 0xaa1e_03f3, 0xd280_0008, 0xd63f_0100, 0xd61f_0260];
    for (code, sender_sp, kept, has_sender_sp) in [(new, X19, X23, true), (old, X13, X19, false)] {
        // The instruction, whether SP has the sender's value, and whether the call has returned.
        for (number, is_taken, has_called) in
            [(0, false, false), (1, false, false), (2, true, false), (4, true, false), (5, true, true)]
        {
            let mut world = world_with_entry(&code, sender_sp as u8);
            let (caller, return_pc) = compiled_caller(&mut world);
            let (method, _) = world.method();
            let pc = FRAMELESS.code.start + 4 * number;
            let sp = CALLER_SP - if is_taken { 0 } else { 0x20 };
            let lr = if has_called { pc } else { return_pc };
            let x12 = if has_called { 0x4242 } else { method };
            let sender = if has_called && !has_sender_sp { 0x4242 } else { CALLER_SP };
            let mut registers = vec![(LR, lr), (METHOD, x12), (sender_sp, sender)];
            if number > 2 {
                registers.push((kept, return_pc));
            }
            let frames = world.walk(pc, sp, ENTRY_FP, &registers);
            let expected = [(Interpreted, method, 0), (Compiled, caller, 7)];
            assert_eq!(frames, expected[usize::from(has_called)..], "instruction {number}, x{sender_sp}");
        }
    }
}

/// Regression: in a collector's barrier in an entry without a frame (`Reference.get`) x29 is the barrier's
/// own, and was taken for the caller's.
#[test]
fn each_stage_of_a_barrier_in_an_entry_leads_to_the_caller() {
    // [mov x19, x13;] ldr x0, [x20]; stp; mov x29, sp; bl; mov sp, x29; ldp; and sp, x19, -16; ret
    let new = [0xf940_0280, 0xa9bf_7bfd, 0x9100_03fd, BL, 0x9100_03bf, 0xa8c1_7bfd, 0x927c_ee7f, RET];
    let old = [&[0xaa0d_03f3][..], &new].concat();
    for (code, sender_sp, first) in [(&new[..], X19, 0), (&old, X13, 1)] {
        // The instruction of JDK 21's code, whether a record is pushed, whether x29 points to it, and whether
        // x30 has been changed.
        for (number, is_pushed, has_fp, has_called) in [
            (0, false, false, false),
            (1, false, false, false),
            (2, true, false, false),
            (3, true, true, false),
            (4, true, true, true),
            (5, true, true, true),
            (6, false, false, false),
            (7, false, false, false),
        ] {
            for is_interpreted in [false, true] {
                let mut world = world_with_entry(code, sender_sp as u8);
                let (root, root_pc) = compiled_caller(&mut world);
                let (method, _) = world.method();
                let (caller, caller_code) = world.method();
                let caller_fp = CALLER_SP - 0x20;
                let bcp = caller_code + 3;
                interpreted_frame(&mut world, caller_fp, caller, bcp, root_pc, (CALLER_SP, ENTRY_FP));
                let (return_pc, fp, sender) = match is_interpreted {
                    true => (DISPATCH, caller_fp, caller_fp - 0x60),
                    false => (root_pc, ENTRY_FP, CALLER_SP),
                };
                let pc = FRAMELESS.code.start + 4 * (first + number);
                // Arguments lie between the sender's SP and the entry's SP.
                let top = sender - 0x20;
                world.set(top - 16, fp).set(top - 8, return_pc);
                let sp = match number {
                    7 => sender,
                    _ if is_pushed => top - 16,
                    _ => top,
                };
                let own_fp = if has_fp { top - 16 } else { fp };
                let lr = if has_called { pc } else { return_pc };
                // x19 is preserved across the call, and the other registers are not.
                let over_call = |value| if number > 3 { 0x4242 } else { value };
                let registers =
                    [(LR, lr), (METHOD, over_call(method)), (X13, over_call(sender)), (X19, sender)];
                let frames = world.walk(pc, sp, own_fp, &registers);
                let mut expected = vec![(Interpreted, method, 0)];
                expected.drain(..usize::from(number > 3));
                if is_interpreted {
                    expected.push((Interpreted, caller, 3));
                }
                expected.push((Compiled, root, 7));
                assert_eq!(frames, expected, "instruction {number}, x{sender_sp}, {is_interpreted}");
            }
        }
    }
}

/// Regression: the record of such a barrier, from which the VM was called, was taken for an interpreter
/// frame.
#[test]
fn a_stub_that_a_frameless_entry_has_called_leads_to_the_entrys_caller() {
    // stp; mov x29, sp; bl; mov sp, x29; ldp; ret; and an entry that calls without a record.
    let with_record = [0xa9bf_7bfd, 0x9100_03fd, BL, 0x9100_03bf, 0xa8c1_7bfd, RET];
    let without = [NOP, NOP, BL, NOP, NOP, RET];
    for (code, has_record) in [(with_record, true), (without, false)] {
        let mut world = world_with_entry(&code, SENDER_SP_REGISTER);
        let (root, return_pc) = compiled_caller(&mut world);
        let (method, bytecodes) = world.method();
        let fp = CALLER_SP - 0x20;
        interpreted_frame(&mut world, fp, method, bytecodes + 3, return_pc, (CALLER_SP, 0x1234));
        let stub_code = bytes(&[RET]);
        let stub = world.frameless_blob("StubRoutines (1)", &stub_code);
        let record = fp - 0x80;
        world.set(record, fp).set(record + 8, DISPATCH);
        let own_fp = if has_record { record } else { fp };
        let frames = world.walk(stub, record, own_fp, &[(LR, FRAMELESS.code.start + 12)]);
        let expected = [(Stub, stub, 0), (Interpreted, method, 3), (Compiled, root, 7)];
        assert_eq!(frames, expected, "{has_record}");
    }
}

/// Regression: x29, which a barrier of Shenandoah in a bytecode points to a record of its own, was taken for
/// the interpreted method's.
#[test]
fn a_barrier_with_a_record_of_its_own_in_a_bytecode_leads_to_the_bytecodes_method() {
    // blr x8; mov sp, x29; ldp x29, x30, [sp], 16; br x9. And without the barrier's record.
    for (code, has_barrier) in [
        ([0xd63f_0100, 0x9100_03bf, 0xa8c1_7bfd, 0xd61f_0120], true),
        ([0xd63f_0100, 0x9100_03bf, 0xd61f_0120, 0xa8c1_7bfd], false),
    ] {
        let mut world = world();
        world.put_interpreter_code(DISPATCH, &bytes(&code));
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, bytecodes) = world.method();
        let fp = CALLER_SP - 0x20;
        interpreted_frame(&mut world, fp, method, bytecodes + 3, return_pc, (CALLER_SP, 0x1234));
        let stub = world.frameless_blob("StubRoutines (1)", &bytes(&[RET]));
        let record = fp - 0x80;
        world.set(record, fp).set(record + 8, DISPATCH + 0x40);
        let frames = world.walk(stub, record - 0x40, record, &[(LR, DISPATCH + 4)]);
        let mut expected = vec![(Stub, stub, 0), (Interpreted, method, 3), (Compiled, caller, 7)];
        if !has_barrier {
            expected.truncate(1);
            expected.push((Unwalkable, DISPATCH + 4, WalkError::BadInterpreterFrame as i32));
        }
        assert_eq!(frames, expected, "{has_barrier}");
    }
}

/// Regression: when an entry without a frame had called a stub, the walk did not look for its compiled
/// caller. x29, which leads past the caller, was taken for the frame of the entry's caller.
#[test]
fn a_stub_that_a_frameless_entry_has_called_leads_to_the_entrys_compiled_caller() {
    // ldr d0, [x20]; mov sp, x19; mov x23, x30; mov x8, 0; blr x8; br x23. And JDK 17's, with x13 and x19.
    let new = [0xfd40_0280, 0x9100_027f, 0xaa1e_03f7, 0xd280_0008, 0xd63f_0100, 0xd61f_02e0];
    let old = [0xfd40_0280, 0x9100_01bf, 0xaa1e_03f3, 0xd280_0008, 0xd63f_0100, 0xd61f_0260];
    // The stub's code, which uses the register in which the entry of JDK 17 keeps x30: stp x29, x30, [sp,
    // -16]!; mov x29, sp; stp x19, xzr, [sp, -16]!; nop; ldp x19, xzr, [sp], 16; ldp x29, x30, [sp], 16; ret.
    let stub_code = [0xa9bf_7bfd, 0x9100_03fd, 0xa9bf_7ff3, NOP, 0xa8c1_7ff3, 0xa8c1_7bfd, RET];
    for (code, sender_sp, kept) in [(new, X19, X23), (old, X13, X19)] {
        // The stub's instruction, SP below the sender's, whether x29 points to the stub's record, and whether
        // x19 has the stub's value.
        for (number, below, has_fp, has_x19) in [
            (0, 0, false, false),
            (1, 16, false, false),
            (2, 16, true, false),
            (3, 32, true, true),
            (4, 32, true, true),
            (5, 16, true, false),
            (6, 0, false, false),
        ] {
            let mut world = world_with_entry(&code, sender_sp as u8);
            let (Caller { pc: return_pc, sp: caller_sp, fp }, caller, callers) =
                called_by_compiled(&mut world);
            let stub = world.frameless_blob("StubRoutines (1)", &bytes(&stub_code));
            let returns_to = FRAMELESS.code.start + 20;
            world.set(caller_sp - 16, fp).set(caller_sp - 8, returns_to).set(caller_sp - 32, return_pc);
            let in_kept = if kept == X19 && has_x19 { 0x4242 } else { return_pc };
            let own_fp = if has_fp { caller_sp - 16 } else { fp };
            let pc = stub + 4 * number;
            let frames = world.walk(pc, caller_sp - below, own_fp, &[(LR, returns_to), (kept, in_kept)]);
            let expected = [&[(Stub, pc, 0), (Compiled, caller, 7)][..], &callers].concat();
            assert_eq!(frames, expected, "instruction {number}, x{kept}");
        }
    }
}

/// Regression: after a C function no known register had the return address. x29, which leads past the
/// compiled caller, was taken for the frame of the entry's caller.
#[test]
fn a_c_function_that_a_frameless_entry_has_called_leads_to_the_entrys_caller() {
    // ldr d0, [x20]; mov sp, x19; mov x23, x30; mov x8, 0; blr x8; br x23. And JDK 17's, with x13 and x19.
    let new = [0xfd40_0280, 0x9100_027f, 0xaa1e_03f7, 0xd280_0008, 0xd63f_0100, 0xd61f_02e0];
    let old = [0xfd40_0280, 0x9100_01bf, 0xaa1e_03f3, 0xd280_0008, 0xd63f_0100, 0xd61f_0260];
    let entry = FRAMELESS.code.start + 20;
    for (code, sender_sp, kept) in [(new, X19, X23), (old, X13, X19)] {
        for way in each_way_to_keep(kept) {
            for is_interpreted in [false, true] {
                let mut world = world_with_entry(&code, sender_sp as u8);
                let (caller, method, callers) = called_by_compiled(&mut world);
                let return_pc = if is_interpreted { DISPATCH } else { caller.pc };
                let (sp, kept_now) = call_functions(&mut world, way, (caller.sp, entry), return_pc);
                let frames = world.walk(INNER_PC, sp, caller.fp, &[(kept, kept_now), (LR, 0x4242)]);
                let expected = match way.2 {
                    None => vec![(Unwalkable, entry, WalkError::NoFrameSize as i32)],
                    Some(_) if is_interpreted => callers.to_vec(),
                    Some(_) => [&[(Compiled, method, 7)][..], &callers].concat(),
                };
                assert_eq!(frames, [&NATIVE_FRAMES[..], &expected].concat(), "{way:02x?}, x{kept}");
            }
        }
    }
}

/// Regression: in a C function that a collector's barrier in an entry had called, the walk did not look for
/// the compiled caller, and took the barrier's record for the record of an interpreter frame.
#[test]
fn a_c_function_that_a_barrier_in_an_entry_has_called_leads_to_the_entrys_caller() {
    // [mov x19, x13;] ldr x0, [x20]; stp; mov x29, sp; bl; mov sp, x29; ldp; and sp, x19, -16; ret
    let new = [0xf940_0280, 0xa9bf_7bfd, 0x9100_03fd, BL, 0x9100_03bf, 0xa8c1_7bfd, 0x927c_ee7f, RET];
    let old = [&[0xaa0d_03f3][..], &new].concat();
    // In the last case no place has the sender's SP: the old code without its first instruction.
    for (code, sender_sp, is_passed) in [(&new[..], X19, true), (&old, X13, true), (&new, X13, false)] {
        let entry = FRAMELESS.code.start + 4 * (code.len() as u64 - 4);
        for way in each_way_to_keep(X19) {
            for is_interpreted in [false, true] {
                let mut world = world_with_entry(code, sender_sp as u8);
                let (caller, method, callers) = called_by_compiled(&mut world);
                // Arguments lie between the caller's SP and the record, and the barrier has saved registers.
                let record = caller.sp - 0x30;
                let return_pc = if is_interpreted { DISPATCH } else { caller.pc };
                world.set(record, caller.fp).set(record + 8, return_pc);
                let (sp, x19) = call_functions(&mut world, way, (record - 0x40, entry), caller.sp);
                let frames = world.walk(INNER_PC, sp, record, &[(X19, x19), (LR, 0x4242)]);
                let expected = match way.2.filter(|_| is_passed) {
                    _ if is_interpreted => callers.to_vec(),
                    None => vec![(Unwalkable, entry, WalkError::NoFrameSize as i32)],
                    Some(_) => [&[(Compiled, method, 7)][..], &callers].concat(),
                };
                assert_eq!(frames, [&NATIVE_FRAMES[..], &expected].concat(), "{way:02x?}, x{sender_sp}");
            }
        }
    }
}

#[test]
fn a_removed_interpreter_frame_leads_to_the_frame_that_is_to_handle_the_exception() {
    const RETURN: u64 = INTERPRETER.start + 0x700;
    // ldp x8, x12, [sp], 16; mov x1, x0; ldp x0, x30, [sp], 16; mov x3, x30; br x1
    let leaves = bytes(&[0xa8c1_33e8, 0xaa00_03e1, 0xa8c1_7be0, 0xaa1e_03e3, 0xd61f_0020]);
    let mut world = World::new();
    world.put_interpreter_code(RETURN, &leaves);
    let (caller, return_pc) = compiled_caller(&mut world);
    let code = bytes(&[RET]);
    let name = "StubRoutines (1)";
    let stub = world.frameless_blob(name, &code);
    // The exception and the return address, with a pair for the call below.
    let sp = CALLER_SP - 32;
    world.set(sp + 16, 0x4242).set(sp + 24, return_pc);
    let frames = world.walk(stub, sp, ENTRY_FP, &[(LR, RETURN)]);
    assert_eq!(frames, [(Stub, stub, 0), (Compiled, caller, 7)]);
}
