//! Interpreter frames, and the stages of entering and leaving them.

use otlpprof_core::record::FrameKind::{Compiled, Interpreted, Stub, Unwalkable};

use crate::walk::WalkError;
use crate::walk::tests::frameless_entry_callers::*;
use crate::walk::tests::vm_world::*;

#[test]
fn an_interpreted_frame_takes_its_bytecode_from_the_register_or_the_frame() {
    for (r13_is_bcp, bci) in [(true, 5), (false, 3)] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, bytecodes) = world.method();
        let fp = CALLER_SP - 0x20;
        interpreted_frame(&mut world, fp, method, bytecodes + 3, return_pc, (CALLER_SP, 0x1234));
        let r13 = if r13_is_bcp { bytecodes + 5 } else { 0x99 };
        let frames = world.walk(DISPATCH, fp - 0x60, fp, &[(13, r13)]);
        assert_eq!(frames, [(Interpreted, method, bci), (Compiled, caller, 7)]);
    }
}

#[test]
fn each_stage_of_an_interpreter_entry_leads_to_the_caller() {
    let push_fp = ENTRY.push_fp;
    // The label, the PC, the bytes between SP and the sender's SP, whether the return address is in rax, and
    // whether RBP points to this frame.
    let stages = [
        ("at the start", ENTRY.code.start, 8, false, false),
        ("return address popped", ENTRY.return_in_register.start, 0, true, false),
        ("at push rbp", push_fp, 8, false, false),
        ("at mov rbp, rsp", push_fp + 1, 16, false, false),
        ("after mov rbp, rsp", push_fp + 4, 16, false, true),
        ("sender SP saved", ENTRY.sender_sp_saved, 24, false, true),
    ];
    for (stage, pc, depth, in_rax, has_fp) in stages {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, _) = world.method();
        let sp = CALLER_SP - depth;
        world.set(CALLER_SP - 8, if in_rax { 0 } else { return_pc });
        world.set(CALLER_SP - 16, ENTRY_FP).set(CALLER_SP - 24, CALLER_SP);
        let fp = if has_fp { CALLER_SP - 16 } else { ENTRY_FP };
        let r13 = if pc >= ENTRY.sender_sp_saved { 0x99 } else { CALLER_SP };
        let frames = world.walk(pc, sp, fp, &[(0, return_pc), (3, method), (13, r13)]);
        assert_eq!(frames, [(Interpreted, method, 0), (Compiled, caller, 7)], "{stage}");
    }
}

#[test]
fn after_leave_the_interpreters_frame_is_the_callers() {
    for (stage, pc, in_register) in [
        ("after leave", EXIT.return_on_stack.start, false),
        ("after the pop", EXIT.return_in_register.start, true),
        ("at the jump", EXIT.return_in_register.end - 3, true),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        world.set(CALLER_SP - 8, if in_register { 0 } else { return_pc });
        let r13 = if in_register { return_pc } else { 0x99 };
        let sp = if in_register { CALLER_SP } else { CALLER_SP - 8 };
        let frames = world.walk(pc, sp, ENTRY_FP, &[(3, CALLER_SP), (13, r13)]);
        assert_eq!(frames, [(Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: at the end of an entry without a frame, and in a collector's barrier in it, the top of the
/// stack was taken for the return address (`Thread.currentThread` on JDK 21, `Reference.get` with
/// Shenandoah). This also happened before the barrier had saved all registers.
#[test]
fn each_stage_of_an_entry_without_a_frame_leads_to_the_caller() {
    // pushf; sub rsp, 8; sub rsp, 0x80; mov [rsp+0x60], rbx; mov rbx, [rsp+0x60]; add rsp, 0x80; add rsp, 8;
    // popf; pop rdi; mov rsp, r13; jmp rdi
    let code = [
        0x9c, 0x48, 0x83, 0xec, 8, 0x48, 0x81, 0xec, 0x80, 0, 0, 0, 0x48, 0x89, 0x5c, 0x24, 0x60, 0x48, 0x8b,
        0x5c, 0x24, 0x60, 0x48, 0x81, 0xc4, 0x80, 0, 0, 0, 0x48, 0x83, 0xc4, 8, 0x9d, 0x5f, 0x49, 0x8b, 0xe5,
        0xff, 0xe7,
    ];
    for (stage, offset, pushed, in_rdi) in [
        ("before the barrier", 0, Some(0), false),
        ("flags saved", 1, Some(8), false),
        ("at its second sub", 5, Some(16), false),
        ("in the barrier", 12, Some(0x90), false),
        ("at its last add", 29, Some(16), false),
        ("at popf", 33, Some(8), false),
        ("at pop", 34, Some(0), false),
        ("at mov rsp", 35, None, true),
        ("at jmp", 38, None, true),
    ] {
        for has_method in [true, false] {
            let mut world = World::new();
            world.put_interpreter_code(FRAMELESS.code.start, &code);
            let (caller, return_pc) = compiled_caller(&mut world);
            let (method, _) = world.method();
            let slot = CALLER_SP - 0x20;
            world.set(slot, if in_rdi { 0 } else { return_pc });
            let sp = pushed.map_or(slot + 8, |pushed| slot - pushed);
            let rbx = if has_method { method } else { 0x1234 };
            let rdi = if in_rdi { return_pc } else { 0 };
            let frames = world.walk(
                FRAMELESS.code.start + offset,
                sp,
                ENTRY_FP,
                &[(3, rbx), (5, rdi), (13, CALLER_SP)],
            );
            let expected = [(Interpreted, method, 0), (Compiled, caller, 7)];
            assert_eq!(frames, expected[usize::from(!has_method)..], "{stage}, {has_method}");
        }
    }
}

/// Code of entries that call a function, with the offset after the call, and the bytes below the return
/// address:
/// - `call; pop rax; mov rsp, r13; jmp rax`;
/// - the same code with SP aligned for the call: `sub rsp, 8; call; add rsp, 8; jmp`;
/// - code with the call in a barrier that saves registers: `push rcx; sub rsp, 0x150; …; call;
///   mov rcx, [rsp + 0x78]; vmovdqu64 zmm1, [rsp + 64]; add rsp, 0x150; pop rcx`;
/// - code with an instruction that is not known.
const CALLING: [(&[u8], u64, u64); 4] = [
    (&[0xe8, 0, 0, 0, 0, 0x58, 0x49, 0x8b, 0xe5, 0xff, 0xe0], 5, 0),
    (
        &[
            0x48, 0x83, 0xec, 8, 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 8, 0xe9, 5, 0, 0, 0, 0xe8, 0, 0, 0, 0,
            0x58, 0x49, 0x8b, 0xe5, 0xff, 0xe0,
        ],
        9,
        8,
    ),
    (
        &[
            0x51, 0x48, 0x81, 0xec, 0x50, 1, 0, 0, 0xe8, 0, 0, 0, 0, 0x48, 0x8b, 0x4c, 0x24, 0x78, 0x62,
            0xf1, 0xfe, 0x48, 0x6f, 0x4c, 0x24, 1, 0x48, 0x81, 0xc4, 0x50, 1, 0, 0, 0x59, 0x5f, 0x49, 0x8b,
            0xe5, 0xff, 0xe7,
        ],
        13,
        0x158,
    ),
    // The unknown instruction is hlt.
    (&[0xe8, 0, 0, 0, 0, 0xf4, 0x58, 0x49, 0x8b, 0xe5, 0xff, 0xe0], 5, 0),
];

/// Regression: the return address into an entry without a frame was taken for one into an interpreter frame.
#[test]
fn a_stub_that_a_frameless_entry_has_called_leads_to_the_entrys_caller() {
    for (number, (code, after_call, below)) in CALLING.into_iter().enumerate() {
        let mut world = World::new();
        world.put_interpreter_code(FRAMELESS.code.start, code);
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, bytecodes) = world.method();
        let fp = CALLER_SP - 0x20;
        interpreted_frame(&mut world, fp, method, bytecodes + 3, return_pc, (CALLER_SP, 0x1234));
        let stub = world.frameless_blob("StubRoutines (1)", &[0xc3]);
        let sp = fp - 0x200;
        world.set(sp, FRAMELESS.code.start + after_call).set(sp + 8 + below, DISPATCH);
        let frames = world.walk(stub, sp, fp, &[]);
        let mut expected = vec![(Stub, stub, 0), (Interpreted, method, 3), (Compiled, caller, 7)];
        if number == 3 {
            expected.truncate(1);
            expected.push((Unwalkable, stub, WalkError::NoFrameSize as i32));
        }
        assert_eq!(frames, expected, "{number}");
    }
}

/// Regression: when an entry without a frame had called a stub, the walk did not look for its compiled
/// caller. RBP, which leads past the caller, was taken for a frame of the entry.
#[test]
fn a_stub_that_a_frameless_entry_has_called_leads_to_the_entrys_compiled_caller() {
    // The room for one argument of two words in JDK 21 and in JDK 17. r13 has the value that the entry
    // received, or another one from a stub.
    for (room, is_kept) in [(16, true), (24, true), (16, false)] {
        for (code, after_call, below) in &CALLING[..3] {
            let mut world = World::new();
            world.put_interpreter_code(FRAMELESS.code.start, code);
            let (caller, method, expected) = called_by_compiled(&mut world);
            let stub = world.frameless_blob("StubRoutines (1)", &[0xc3]);
            let slot = caller.sp - room - 8;
            let sp = slot - 8 - below;
            world.set(slot, caller.pc).set(sp, FRAMELESS.code.start + after_call);
            let r13 = if is_kept { caller.sp } else { 0x4242 };
            let frames = world.walk(stub, sp, caller.fp, &[(13, r13)]);
            let mut expected = [&[(Stub, stub, 0), (Compiled, method, 7)][..], &expected].concat();
            if !is_kept {
                expected.truncate(1);
                expected.push((Unwalkable, stub, WalkError::NoFrameSize as i32));
            }
            assert_eq!(frames, expected, "{room} bytes of arguments, {below} below the return address");
        }
    }
}

/// Regression: in JDK 27 a barrier of Shenandoah in an entry without a frame has a frame of its own, whose
/// `leave` was not followed: the saved RBP was taken for the return address. One stack of twelve of a program
/// that reads weak references ended there.
#[test]
fn a_barrier_with_a_frame_of_its_own_leads_to_the_entrys_caller() {
    const R13: usize = 13;
    // push rbp; mov rbp, rsp; push rax; sub rsp, 0x140; mov [rsp], rcx; call; mov rcx, [rsp]; add rsp, 0x140;
    // vzeroupper; mov rbx, rax; pop rax; leave; mov rax, rbx; pop rdi; mov rsp, r13; jmp rdi
    let code = [
        0x55, 0x48, 0x8b, 0xec, 0x50, 0x48, 0x81, 0xec, 0x40, 1, 0, 0, 0x48, 0x89, 0x0c, 0x24, 0xe8, 0, 0, 0,
        0, 0x48, 0x8b, 0x0c, 0x24, 0x48, 0x81, 0xc4, 0x40, 1, 0, 0, 0xc5, 0xf8, 0x77, 0x48, 0x8b, 0xd8, 0x58,
        0xc9, 0x48, 0x8b, 0xc3, 0x5f, 0x49, 0x8b, 0xe5, 0xff, 0xe7,
    ];
    const AFTER_CALL: u64 = 21;
    for (stage, offset, pushed, has_fp) in [
        ("before the barrier", 0, 0, false),
        ("RBP saved", 1, 8, false),
        ("at push rax", 4, 8, true),
        ("at sub", 5, 16, true),
        ("registers saved", 12, 0x150, true),
        ("after the call", AFTER_CALL, 0x150, true),
        ("after add", 32, 16, true),
        ("at leave", 39, 8, true),
        ("after leave", 40, 0, false),
    ] {
        let mut world = World::new();
        world.put_interpreter_code(FRAMELESS.code.start, &code);
        // An interpreted caller, which only the RBP that the barrier has saved leads to.
        let (root, root_pc) = compiled_caller(&mut world);
        let (method, bytecodes) = world.method();
        let fp = CALLER_SP - 0x20;
        interpreted_frame(&mut world, fp, method, bytecodes + 3, root_pc, (CALLER_SP, 0x1234));
        let slot = fp - 0x60;
        world.set(slot, DISPATCH).set(slot - 8, fp);
        let (pc, sp) = (FRAMELESS.code.start + offset, slot - pushed);
        let rbp = if has_fp { slot - 8 } else { fp };
        let expected = [(Interpreted, method, 3), (Compiled, root, 7)];
        let frames = world.walk(pc, sp, rbp, &[(3, 0x1234), (R13, slot + 8)]);
        assert_eq!(frames, expected, "{stage}");
        if offset == AFTER_CALL {
            let stub = world.frameless_blob("StubRoutines (1)", &[0xc3]);
            world.set(sp - 8, pc);
            let frames = world.walk(stub, sp - 8, rbp, &[(R13, slot + 8)]);
            assert_eq!(frames, [&[(Stub, stub, 0)][..], &expected].concat());
        }
    }
}

/// Regression: RBP, which a barrier of Shenandoah in a bytecode points to a frame of its own in JDK 27, was
/// taken for the interpreted method's. One stack of five hundred of a program that enters methods by method
/// handles ended there.
#[test]
fn a_barrier_with_a_frame_of_its_own_in_a_bytecode_leads_to_the_bytecodes_method() {
    // push rbp; mov rbp, rsp; push rax; sub rsp, 0x40; call; add rsp, 0x40; pop rax; leave; mov rax, rbx;
    // jmp [r10 + 8 * rbx]
    let barrier = [
        0x55, 0x48, 0x8b, 0xec, 0x50, 0x48, 0x83, 0xec, 0x40, 0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 0x40, 0x58,
        0xc9, 0x48, 0x8b, 0xc3, 0x41, 0xff, 0x24, 0xda,
    ];
    // The same, where the frame belongs to the bytecode: call; mov rax, rbx; jmp [r10 + 8 * rbx]; leave
    let bytecode = [0xe8, 0, 0, 0, 0, 0x48, 0x8b, 0xc3, 0x41, 0xff, 0x24, 0xda, 0xc9];
    for (code, after_call, has_barrier) in [(&barrier[..], 14, true), (&bytecode[..], 5, false)] {
        let mut world = World::new();
        world.put_interpreter_code(DISPATCH, code);
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, bytecodes) = world.method();
        let fp = CALLER_SP - 0x20;
        interpreted_frame(&mut world, fp, method, bytecodes + 3, return_pc, (CALLER_SP, 0x1234));
        let stub = world.frameless_blob("StubRoutines (1)", &[0xc3]);
        let barrier_fp = fp - 0x80;
        let sp = barrier_fp - 0x50;
        world.set(barrier_fp, fp).set(sp, DISPATCH + after_call);
        let frames = world.walk(stub, sp, barrier_fp, &[]);
        let mut expected = vec![(Stub, stub, 0), (Interpreted, method, 3), (Compiled, caller, 7)];
        if !has_barrier {
            expected.truncate(1);
            let bad = WalkError::BadInterpreterFrame as i32;
            expected.push((Unwalkable, DISPATCH + after_call, bad));
        }
        assert_eq!(frames, expected, "{has_barrier}");
    }
}

/// Regression: after a C function no known register had the sender's SP. RBP, which leads past the compiled
/// caller, was taken for the frame of the entry's caller.
#[test]
fn a_c_function_that_a_frameless_entry_has_called_leads_to_the_entrys_caller() {
    const R13: usize = 13;
    for way in each_way_to_keep(R13) {
        for (code, after_call, below) in &CALLING[..3] {
            let mut world = World::new();
            world.put_interpreter_code(FRAMELESS.code.start, code);
            let (caller, method, callers) = called_by_compiled(&mut world);
            let slot = caller.sp - 0x18;
            let entry = FRAMELESS.code.start + after_call;
            let (sp, r13) = call_functions(&mut world, way, (slot - below, entry), caller.sp);
            world.set(slot, caller.pc);
            let frames = world.walk(INNER_PC, sp, caller.fp, &[(R13, r13)]);
            let expected = match way.2 {
                None => vec![(Unwalkable, entry, WalkError::NoFrameSize as i32)],
                Some(_) => [&[(Compiled, method, 7)][..], &callers].concat(),
            };
            assert_eq!(frames, [&NATIVE_FRAMES[..], &expected].concat(), "{way:02x?}, {below} bytes below");
            // An interpreted caller is found without the register.
            world.set(slot, DISPATCH);
            let frames = world.walk(INNER_PC, sp, caller.fp, &[]);
            assert_eq!(frames, [NATIVE_FRAMES, callers].concat());
        }
    }
}

/// Regression: while an exception's handler was looked up, the frame that the exception had removed was
/// treated as still present.
#[test]
fn a_removed_interpreter_frame_leads_to_the_frame_that_is_to_handle_the_exception() {
    const RETURN: u64 = INTERPRETER.start + 0x700;
    // call; add rsp, 8; jmp; call; mov rbx, rax; pop rdx; pop rax; jmp rbx
    let padded = [0x48, 0x83, 0xc4, 0x08, 0xe9, 3, 0, 0, 0, 0x41, 0xff, 0xd2];
    let leaves = [0x48, 0x8b, 0xd8, 0x5a, 0x58, 0xff, 0xe3];
    for (offset, padding) in [(0, 8), (padded.len() as u64, 0)] {
        let mut world = World::new();
        world.put_interpreter_code(RETURN, &[&padded[..], &leaves].concat());
        let (caller, return_pc) = compiled_caller(&mut world);
        let stub = world.frameless_blob("StubRoutines (1)", &[0xc3]);
        // The return address and the exception, with padding below.
        world.set(CALLER_SP - 8, 0x4242).set(CALLER_SP - 16, return_pc);
        let sp = CALLER_SP - 16 - padding;
        world.set(sp - 8, RETURN + offset);
        let frames = world.walk(stub, sp - 8, ENTRY_FP, &[]);
        assert_eq!(frames, [(Stub, stub, 0), (Compiled, caller, 7)], "{padding} bytes of padding");
    }
}
