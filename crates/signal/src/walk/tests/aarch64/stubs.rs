//! Interrupted stubs on aarch64.

use otlpprof_core::address::CodeRange;
use otlpprof_core::record::FrameKind::{Compiled, Native, Stub, Unwalkable};
use otlpprof_core::unwind_rule::{CfaRule, FpRule};

use super::machine::*;
use crate::walk::WalkError;
use crate::walk::tests::frameless_entry_callers::*;
use crate::walk::tests::native::{BASE, object, rule};
use crate::walk::tests::vm_world::*;

/// `stp x29, x30, [sp, -16]!; mov x29, sp` and `mov sp, x29; ldp x29, x30, [sp], 16`.
const ENTER: [u32; 2] = [0xa9bf_7bfd, 0x9100_03fd];
const LEAVE: [u32; 2] = [0x9100_03bf, 0xa8c1_7bfd];

fn stub(world: &mut World, name: &str, code: &[u32], frame_bytes: i32) -> u64 {
    let code = bytes(code);
    world.blob(&BlobSpec { name, code: &code, frame_bytes, frame_complete: -1, method: 0 })
}

#[test]
fn a_stub_with_a_frame_record_or_without_leads_to_the_caller() {
    let mut code = vec![0xa9bf_7bfd, 0x9100_03fd];
    code.resize(0x10, NOP);
    code.extend([0x9100_03bf, 0xa8c1_7bfd, RET]);
    // The label, the offset, SP below the caller's, whether x30 has the return address (else an address of
    // the stub), and whether x29 points to the record.
    for (stage, offset, below, in_lr, has_fp) in [
        ("at the push", 0, 0, true, false),
        ("at mov x29, sp", 4, 16, true, false),
        ("inside, nothing called", 0x20, 0x40, true, true),
        ("inside, returned to", 0x20, 0x40, false, true),
        ("at the pop", 0x44, 16, false, true),
        ("at ret", 0x48, 0, true, false),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let stub = stub(&mut world, "StubRoutines (1)", &code, 0);
        world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, return_pc);
        let fp = if has_fp { CALLER_SP - 16 } else { 0x1234 };
        let lr = if in_lr { return_pc } else { stub + 0x1c };
        let frames = world.walk(stub + offset, CALLER_SP - below, fp, &[(LR, lr)]);
        assert_eq!(frames, [(Stub, stub + offset, 0), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: a stub that looks for an exception's handler was not left while the VM searched, since no call
/// is before the place of the throw.
#[test]
fn a_stub_with_the_place_of_a_throw_in_its_record_leads_to_the_throwing_method() {
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    let code = [&ENTER[..], &[NOP; 8], &[BL, NOP]].concat();
    let stub = stub(&mut world, "handle_exception_nofpu Runtime1 stub", &code, 0);
    world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, return_pc + 4);
    let frames = world.walk(stub + 0x2c, CALLER_SP - 0x40, CALLER_SP - 16, &[(LR, stub + 0x2c)]);
    let frames: Vec<_> = frames.iter().map(|frame| (frame.0, frame.1)).collect();
    assert_eq!(frames, [(Stub, stub + 0x2c), (Compiled, caller)]);
}

#[test]
fn a_leaf_stub_leads_to_its_caller_whatever_it_has_pushed() {
    for pairs in [0, 1, 5] {
        let mut world = World::new();
        let (root, root_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled();
        let stub = stub(&mut world, "StubRoutines (1)", &[NOP; 0x20], 0);
        let sp = CALLER_SP - 0x30;
        world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, root_pc);
        let frames = world.walk(stub + 0x20, sp - 16 * pairs, 0x1234, &[(LR, code + 0x80)]);
        assert_eq!(frames, [(Stub, stub + 0x20, 0), (Compiled, method, 7), (Compiled, root, 7)], "{pairs}");
    }
}

/// Regression: where a jump followed the pop of the classes, they were counted twice, as if a barrier's stub
/// of the caller had saved them: four of five stacks with this stub ended there.
#[test]
fn slow_subtype_check_leads_over_the_classes_that_its_caller_has_pushed() {
    // stp x0, x2, [sp, -32]!; stp x4, x5, [sp, 16]; nop; ldp x4, x5, [sp, 16]; ldp x0, x2, [sp], 32; ret
    let code = [0xa9be_0be0, 0xa901_17e4, NOP, 0xa941_17e4, 0xa8c2_0be0, RET];
    // The caller: stp x4, x0, [sp, -16]!; bl; ldr x4, [sp], 16. The same with a jump after the test of the
    // result: cbz w4, …; b. And a caller that has pushed the arrays before the classes.
    let classes = [NOP, 0xa9bf_03e4, BL, 0xf841_07e4];
    let tested = [&classes[..], &[0x3400_0044, 0x1400_0003]].concat();
    let arrays = [0xa9bf_03e4, 0xa9bf_03e4, BL, 0xa8c1_03e4];
    for (call, passed) in [(bytes(&classes), 16), (bytes(&tested), 16), (bytes(&arrays), 32)] {
        for (offset, pushed) in [(0, 0), (4, 32), (8, 32), (16, 32), (20, 0)] {
            let mut world = World::new();
            let (root, root_pc) = compiled_caller(&mut world);
            let (method, caller_code) = world.compiled_with(&[(0x60, &call)]);
            let stub = stub(&mut world, "slow_subtype_check Runtime1 stub", &code, -8);
            world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, root_pc);
            let sp = CALLER_SP - 0x30 - passed - pushed;
            let frames = world.walk(stub + offset, sp, 0x1234, &[(LR, caller_code + 0x6c)]);
            let expected = [(Stub, stub + offset, 0), (Compiled, method, 7), (Compiled, root, 7)];
            assert_eq!(frames, expected, "{offset}, {passed}");
        }
    }
}

#[test]
fn a_poll_leads_to_where_the_thread_has_polled_until_the_record_says_so() {
    const SAVED_PC: u64 = 0x80;
    // stp; mov x29, sp; nop; ldr x20, [x28, 0x80]; str x20, [x29, 8]; nop
    let code = [0xa9bf_7bfd, 0x9100_03fd, NOP, 0xf940_4394, 0xf900_07b4, NOP];
    for (name, offset, below, has_fp, is_corrected) in [
        ("SafepointBlob", 0, 0, false, false),
        ("SafepointBlob", 4, 16, false, false),
        (SAFEPOINT_BY_KIND, 12, 0x40, true, false),
        (SAFEPOINT_BY_KIND, 20, 0x40, true, true),
    ] {
        let mut world = World::new();
        let (caller, polled) = compiled_caller(&mut world);
        let blob = stub(&mut world, name, &code, 0);
        world.memory.put_u64(THREAD + SAVED_PC, if is_corrected { 0x4242 } else { polled });
        world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, if is_corrected { polled } else { 0x4242 });
        let fp = if has_fp { CALLER_SP - 16 } else { 0x1234 };
        let frames = world.walk(blob + offset, CALLER_SP - below, fp, &[(LR, 0x4242)]);
        assert_eq!(frames, [(Stub, blob + offset, 0), (Compiled, caller, 7)], "{offset}");
    }
}

#[test]
fn vtable_and_itable_stubs_have_the_return_address_in_x30() {
    // ldr w16, [x1, 8]; nop…; ldr x8, [x12, 64]; br x8
    let code = [&[0xb940_0830][..], &[NOP; 0x10], &[0xf940_2188, 0xd61f_0100]].concat();
    for (stage, offset) in [("first", 0), ("inside", 0x20), ("at br", 0x48)] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (_, gone) = world.compiled();
        let stub = stub(&mut world, "vtable chunks", &code, 0);
        // x29 has the caller's value, and points to an older frame. The call has been patched meanwhile, so
        // the return address is not after a call.
        world.set(CALLER_SP + 0x40, 0x1234).set(CALLER_SP + 0x48, gone + 0x80);
        let registers = [(LR, return_pc + 4)];
        let frames = world.walk(stub + offset, CALLER_SP, CALLER_SP + 0x40, &registers);
        assert_eq!(frames, [(Stub, stub + offset, 0), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: in a collector's barrier x29 is the barrier's own, which is no interpreter frame, and x30 has
/// been changed. Regression: when an adapter had made room for arguments, the walk looked for the caller's
/// frame below its place.
#[test]
fn a_method_handles_entry_leads_to_the_caller() {
    // ldr x12, [x20], 8; enter; bl; leave; ldr x8, [x12, 64]; br x8; followed by another entry
    let code = [0xf840_868c, ENTER[0], ENTER[1], BL, LEAVE[0], LEAVE[1], 0xf940_2188, 0xd61f_0100, NOP];
    // The instruction, whether a record is pushed, whether x29 points to it, and whether x30 is the
    // barrier's.
    for (number, is_pushed, has_fp, has_called) in [
        (0, false, false, false),
        (1, false, false, false),
        (2, true, false, false),
        (3, true, true, false),
        (4, true, true, true),
        (5, true, true, true),
        (6, false, false, false),
        (7, false, false, false),
        (8, false, false, false),
    ] {
        for is_interpreted in [true, false] {
            let mut world = World::new();
            let (frames, return_pc, callers_fp, sender_sp) = if is_interpreted {
                let callers = interpreted_callers(&mut world, DISPATCH, INTERPRETED_FP + 0x20);
                (callers.to_vec(), DISPATCH, INTERPRETED_FP, INTERPRETED_FP - 0x60)
            } else {
                let (caller, return_pc) = compiled_caller(&mut world);
                (vec![(Compiled, caller, 7)], return_pc, 0x1234, CALLER_SP)
            };
            let entry = stub(&mut world, "MethodHandles adapters", &code, 0);
            let top = if is_interpreted { sender_sp } else { sender_sp - 0x20 };
            if is_pushed {
                world.set(top - 16, callers_fp).set(top - 8, return_pc);
            }
            let sp = if is_pushed { top - 16 } else { top };
            let fp = if has_fp { top - 16 } else { callers_fp };
            let lr = if has_called { entry + 16 } else { return_pc };
            let pc = entry + 4 * number;
            let registers = [(LR, lr), (usize::from(SENDER_SP_REGISTER), sender_sp)];
            let expected = [&[(Stub, pc, 0)][..], &frames].concat();
            assert_eq!(
                world.walk(pc, sp, fp, &registers),
                expected,
                "instruction {number}, {is_interpreted}"
            );
        }
    }
}

/// Regression: the walk looked for a compiled caller's frame right above the record, but its SP is above the
/// arguments.
#[test]
fn a_c_function_that_a_method_handles_entry_has_called_leads_to_the_entrys_caller() {
    const X13: u8 = 13;
    const X19: u8 = 19;
    let code = [0xf840_868c, ENTER[0], ENTER[1], BL, LEAVE[0], LEAVE[1], 0xf940_2188, 0xd61f_0100];
    for sender_sp_register in [X19, X13] {
        for way in each_way_to_keep(X19.into()) {
            for is_interpreted in [false, true] {
                let mut world = World::new();
                world.layout.stubs.interpreter_code.sender_sp_register = sender_sp_register;
                let (caller, method, callers) = called_by_compiled(&mut world);
                let pc = stub(&mut world, "MethodHandles adapters", &code, 0) + 16;
                // Arguments lie between the caller's SP and the record, and the barrier has saved registers.
                let record = caller.sp - 0x30;
                let return_pc = if is_interpreted { DISPATCH } else { caller.pc };
                world.set(record, caller.fp).set(record + 8, return_pc);
                let (sp, x19) = call_functions(&mut world, way, (record - 0x40, pc), caller.sp);
                let registers = [(usize::from(X19), x19), (LR, 0x4242)];
                let frames = world.walk(INNER_PC, sp, record, &registers);
                let expected = match way.2.filter(|_| sender_sp_register == X19) {
                    _ if is_interpreted => callers.to_vec(),
                    None => vec![(Unwalkable, pc, WalkError::NoFrameSize as i32)],
                    Some(_) => [&[(Compiled, method, 7)][..], &callers].concat(),
                };
                let entry = [&NATIVE_FRAMES[..], &[(Stub, pc - 1, 0)]].concat();
                assert_eq!(frames, [&entry[..], &expected].concat(), "{way:02x?}, x{sender_sp_register}");
            }
        }
    }
}

/// The entry barrier's stub. It sets the thread's last frame for the VM, makes its own frame and four words
/// for the VM's answer, calls the VM, and leaves in one of two ways.
fn entry_barrier(world: &mut World) -> u64 {
    // mov x8, sp; str x8, [x28, 0x80]; enter; add x9, sp, 8; sub sp, sp, 32; stp x0, x1, [sp, -32]!; bl;
    // ldp x0, x1, [sp], 32; cbnz x8, 12; leave; ret; ldp x8, x29, [sp]; ldp x30, x9, [sp, 16];
    // mov sp, x8; br x9
    let code = [
        0x9100_03e8,
        0xf900_4388,
        ENTER[0],
        ENTER[1],
        0x9100_23e9,
        0xd100_83ff,
        0xa9be_07e0,
        BL,
        0xa8c2_07e0,
        0xb500_0088,
        LEAVE[0],
        LEAVE[1],
        RET,
        0xa940_77e8,
        0xa941_27fe,
        0x9100_011f,
        0xd61f_0120,
    ];
    let start = stub(world, "StubRoutines (2)", &code, 0);
    world.layout.stubs.method_entry_barrier = CodeRange { start, end: start + 4 * code.len() as u64 };
    start
}

/// The method's x29 may also point to an older frame, little above the stub's SP.
#[test]
fn the_entry_barriers_stub_leads_to_the_method_that_has_called_it() {
    // The instruction, SP below the method's, whether x29 points to the record, and whether x30 is the
    // stub's.
    for (number, below, has_fp, has_called) in [
        (0, 0, false, false),
        (2, 0, false, false),
        (3, 16, false, false),
        (4, 16, true, false),
        (6, 48, true, false),
        (7, 80, true, false),
        (8, 80, true, true),
        (9, 48, true, true),
        (10, 48, true, true),
        (11, 16, true, true),
        (12, 0, false, false),
    ] {
        for methods_fp in [0x1234, CALLER_SP + 0x40] {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let (_, gone) = world.compiled();
            let barrier = entry_barrier(&mut world);
            world.memory.put(CALL_STUB_RETURN - 4, CALL);
            // Return addresses of older calls lie below the record. The word above the address in the
            // method's x29 is one, too.
            for word in 3..0x14 {
                world.set(CALLER_SP - 8 * word, gone + 0x80);
            }
            world.set(CALLER_SP - 16, methods_fp).set(CALLER_SP - 8, return_pc);
            world.set(CALLER_SP + 0x48, gone + 0x80);
            let fp = if has_fp { CALLER_SP - 16 } else { methods_fp };
            let lr = if has_called { barrier + 32 } else { return_pc };
            let pc = barrier + 4 * number;
            let frames = world.walk(pc, CALLER_SP - below, fp, &[(LR, lr)]);
            assert_eq!(
                frames,
                [(Stub, pc, 0), (Compiled, caller, 7)],
                "instruction {number}, x29 {methods_fp:#x}"
            );
        }
    }
}

/// Regression: when the caller was about to resolve a method again, x29 and then x30 were taken for the
/// stub's own, and the caller was passed over or not found.
#[test]
fn the_entry_barriers_stub_leads_past_a_method_that_is_resolved_again() {
    // The instruction, whether x29 is the caller's already, whether x30 has the return address, and whether
    // SP has the caller's value.
    for (number, has_fp, in_lr, is_left) in
        [(13, false, false, false), (14, true, false, false), (15, true, true, false), (16, true, true, true)]
    {
        for callers_fp in [0x1234, CALLER_SP + 0x40] {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let (_, gone) = world.compiled();
            let barrier = entry_barrier(&mut world);
            let own_fp = CALLER_SP - 0x210;
            let answer = own_fp - 32;
            world.set(own_fp, 0x1234).set(own_fp + 8, gone + 0x80);
            world.set(answer, CALLER_SP).set(answer + 8, callers_fp);
            world.set(answer + 16, return_pc).set(answer + 24, 0x5678);
            world.set(CALLER_SP + 0x48, gone + 0x80);
            let sp = if is_left { CALLER_SP } else { answer };
            let fp = if has_fp { callers_fp } else { own_fp };
            let lr = if in_lr { return_pc } else { barrier + 32 };
            let pc = barrier + 4 * number;
            let frames = world.walk(pc, sp, fp, &[(LR, lr)]);
            assert_eq!(
                frames,
                [(Stub, pc, 0), (Compiled, caller, 7)],
                "instruction {number}, x29 {callers_fp:#x}"
            );
        }
    }
}

/// Regression: when JNI's fast getters call the slow ones, SP below their record was taken for the caller's.
#[test]
fn a_leaf_stub_below_native_code_returns_by_x30_or_its_record() {
    // nop…; ret; enter; nop; blr x8; leave; ret
    let code = [&[NOP; 4][..], &[RET], &ENTER, &[NOP, 0xd63f_0100], &LEAVE, &[RET]].concat();
    // The instruction, whether a record is pushed, whether x29 points to it, and whether x30 leads into the
    // stub.
    for (number, is_pushed, has_fp, has_called) in [
        (0, false, false, false),
        (4, false, false, false),
        (5, false, false, false),
        (6, true, false, false),
        (7, true, true, false),
        (8, true, true, false),
        (9, true, true, true),
        (10, true, true, true),
        (11, false, false, false),
    ] {
        let mut world = World::new();
        world.java_thread = 0;
        // A rule for a frame of two words, and the rule at the end of the stack.
        let end = rule(CfaRule::EndOfStack, FpRule::Same);
        world.objects = object(&[rule(CfaRule::SpPlus(0x10), FpRule::Same), end], 42);
        world.memory.put_u64(0x100, 42).put(BASE + 0x7c, CALL);
        let stub = stub(&mut world, "jni_fast_GetLongField", &code, 0);
        let caller_sp = STACK + 0x100;
        world.set(caller_sp + 8, BASE + 0x180);
        if is_pushed {
            world.set(caller_sp - 16, 0x1234).set(caller_sp - 8, BASE + 0x80);
        }
        let sp = caller_sp - if is_pushed { 16 } else { 0 };
        let fp = if has_fp { caller_sp - 16 } else { 0x1234 };
        let lr = if has_called { stub + 0x24 } else { BASE + 0x80 };
        let pc = stub + 4 * number;
        let frames = world.walk(pc, sp, fp, &[(LR, lr)]);
        let expected = [(Stub, pc, 0), (Native, BASE + 0x7f, 3), (Native, BASE + 0x17f, 3)];
        assert_eq!(frames, expected, "instruction {number}");
    }
    // A register value that is no return address is not followed.
    let mut world = World::new();
    world.java_thread = 0;
    world.objects = object(&[rule(CfaRule::EndOfStack, FpRule::Same)], 42);
    world.memory.put_u64(0x100, 42);
    let stub = stub(&mut world, "jni_fast_GetLongField", &code, 0);
    let frames = world.walk(stub, STACK + 0x100, 0, &[(LR, BASE + 0x20)]);
    assert_eq!(frames, [(Stub, stub, 0), (Unwalkable, stub, WalkError::UnknownCode as i32)]);
}
