//! Every kind of VM frame, and the stages of entering and leaving it.

use std::sync::{Arc, OnceLock};

use super::vm_world::*;
use crate::core::address::{ElfVaddr, LoadBias, RuntimeAddr};
use crate::core::object::{IdentityWord, LoadedObject, ObjectIndex, ObjectMap, TextRange};
use crate::core::record::FrameKind::{Compiled, Interpreted, Native, Stub, Unwalkable};
use crate::signal::walk::WalkError;

/// Stack addresses of the scenes below, leaf to root: a frame under test returns to `CALLER_SP`.
const CALLER_SP: u64 = STACK + 0x1000;
/// The caller's frame pointer, as its callee must hand it back.
const ENTRY_FP: u64 = STACK + 0x3000;

/// A compiled caller whose frame begins at `CALLER_SP` and which the entry frame called: returns its method and a
/// return address in it.
fn compiled_caller(world: &mut World) -> (u64, u64) {
    let (method, code) = world.compiled();
    world.set(CALLER_SP + 0x20, ENTRY_FP).set(CALLER_SP + 0x28, CALL_STUB_RETURN);
    world.entry_frame(ENTRY_FP);
    (method, code + 0x80)
}

#[test]
fn a_complete_compiled_frame_leads_to_its_caller_and_the_entry_frame_is_the_root() {
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    let (callee, code) = world.compiled();
    let sp = CALLER_SP - 0x30;
    world.set(sp + 0x20, 0x1234).set(sp + 0x28, return_pc);
    let frames = world.walk(code + 0x40, sp, 0, &[]);
    assert_eq!(frames, [(Compiled, callee, 7), (Compiled, caller, 7)]);
}

/// Regression: a thread that was interrupted just where Java returns to had no frame at all.
#[test]
fn the_call_stub_that_java_has_returned_to_is_a_frame() {
    let mut world = World::new();
    world.entry_frame(ENTRY_FP);
    let frames = world.walk(CALL_STUB_RETURN, CALLER_SP, ENTRY_FP, &[]);
    assert_eq!(frames, [(Stub, CALL_STUB_RETURN, 0)]);
}

#[test]
fn each_instruction_of_a_compiled_entry_and_exit_leads_to_the_caller() {
    // Offset in the code, bytes still above the return address, whether RBP is saved there.
    let stages = [
        ("at push rbp", 0x00, 0, false),
        ("at sub rsp", 0x01, 8, true),
        ("after sub rsp", 0x05, 0x28, true),
        ("at add rsp", 0x100, 0x28, true),
        ("at pop rbp", 0x104, 8, true),
        ("at cmp rsp", 0x105, 0, false),
        ("at ja", 0x10c, 0, false),
        ("at ret", 0x112, 0, false),
    ];
    for (stage, offset, above, saved) in stages {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (callee, code) = world.compiled();
        let sp = CALLER_SP - 8 - above;
        world.set(CALLER_SP - 8, return_pc);
        if saved {
            world.set(CALLER_SP - 16, 0x1234);
        }
        let frames = world.walk(code + offset, sp, 0x1234, &[]);
        assert_eq!(frames, [(Compiled, callee, 7), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: a frame of RBP and return address alone was taken for absent at the entry barrier behind its push
/// (JDK 21 and 25).
#[test]
fn an_entry_barrier_behind_a_lone_push_keeps_the_frame() {
    // push rbp; cmp dword ptr [r15+0x20], 1; jne; nop…
    let mut code = vec![0x55, 0x41, 0x81, 0x7f, 0x20, 1, 0, 0, 0, 0x0f, 0x85, 0x55, 0x55, 0, 0];
    let frame_complete = code.len() as i32;
    code.resize(0x100, 0x90);
    for (stage, offset, is_pushed) in
        [("at push", 0, false), ("at cmp", 1, true), ("at jne", 9, true), ("behind", 15, true)]
    {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, _) = world.method();
        let spec = BlobSpec { name: "nmethod", code: &code, frame_bytes: 16, frame_complete, method };
        let start = world.blob(&spec);
        world.set(CALLER_SP - 8, return_pc).set(CALLER_SP - 16, 0x1234);
        let sp = CALLER_SP - if is_pushed { 16 } else { 8 };
        let frames = world.walk(start + offset, sp, 0x1234, &[]);
        assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: 25 polls with an 8-bit displacement, and the poll's stub takes the poll's address as an immediate (17
/// on); both were taken for the method's body, and the frame below for garbage.
#[test]
fn the_return_poll_and_its_stub_have_no_frame() {
    // add rsp, 0x20; pop rbp; cmp rsp, [r15+0x28]; ja; ret
    let exit: [u8; 16] = [0x48, 0x83, 0xc4, 0x20, 0x5d, 0x49, 0x3b, 0x67, 0x28, 0x0f, 0x87, 0, 1, 0, 0, 0xc3];
    // mov r10, imm64; mov [r15+0x538], r10; jmp
    let stub: [u8; 22] =
        [0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8, 0x4d, 0x89, 0x97, 0x38, 0x05, 0, 0, 0xe9, 0, 0, 0, 0x10];
    let stages = [
        ("at cmp rsp", 0x105),
        ("at ja", 0x109),
        ("at ret", 0x10f),
        ("at the stub's mov r10", 0x180),
        ("at its mov to the thread", 0x18a),
        ("at its jmp", 0x191),
    ];
    for (stage, offset) in stages {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled_with(&[(0x100, &exit), (0x180, &stub)]);
        world.set(CALLER_SP - 8, return_pc);
        let frames = world.walk(code + offset, CALLER_SP - 8, 0x1234, &[]);
        assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: the jump to the code that unwinds an exception was taken for the method's body, though the frame is
/// gone (all versions).
#[test]
fn a_jump_that_unwinds_has_no_frame_and_one_within_the_method_has() {
    // add rsp, 0x20; pop rbp; jmp
    let leaving =
        |distance: i32| [&[0x48, 0x83, 0xc4, 0x20, 0x5d, 0xe9][..], &distance.to_le_bytes()].concat();
    for (distance, is_gone) in [(0x10_0000, true), (-0x10_0000, true), (0x20, false), (-0x20, false)] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled_with(&[(0x100, &leaving(distance))]);
        world.set(CALLER_SP - 8, return_pc);
        let sp = CALLER_SP - if is_gone { 8 } else { 0x30 };
        let frames = world.walk(code + 0x105, sp, 0x1234, &[]);
        assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)], "{distance:#x}");
    }
    // The removal of a frame of another size is not this method's exit.
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    let other = [0x48, 0x83, 0xc4, 0x30, 0x5d, 0xe9, 0, 0, 0x10, 0];
    let (method, code) = world.compiled_with(&[(0x100, &other)]);
    world.set(CALLER_SP - 8, return_pc);
    let frames = world.walk(code + 0x105, CALLER_SP - 0x30, 0x1234, &[]);
    assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)]);
}

/// A blob that turns compiled frames into interpreter frames: `nop…`.
fn deoptimization_blob(world: &mut World, name: &str) -> u64 {
    let code = [0x90; 0x40];
    world.blob(&BlobSpec { name, code: &code, frame_bytes: 0x80, frame_complete: -1, method: 0 })
}

/// Regression: interpreter frames that were pushed and not filled yet ended the walk with bad_interpreter_frame.
#[test]
fn frames_that_are_being_unpacked_come_from_the_vframe_array() {
    for name in ["DeoptimizationBlob", "UncommonTrapBlob"] {
        for (stage, fp) in [("in the blob", 0x1234), ("frames pushed", STACK + 0x200)] {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let (inner, outer) = (world.method().0, world.method().0);
            let blob = deoptimization_blob(&mut world, name);
            world.vframe_array(THREAD, &[(inner, 3), (outer, -1)], (return_pc, CALLER_SP, 0x1234));
            // What the skeletal frames hold is garbage.
            world.set(STACK + 0x108, DISPATCH).set(STACK + 0x208, DISPATCH).set(STACK + 0x200 - 24, 0x99);
            let frames = world.walk(blob + 8, STACK + 0x100, fp, &[]);
            let expected = [
                (Stub, blob + 8, 0),
                (Interpreted, inner, 3),
                (Interpreted, outer, 0),
                (Compiled, caller, 7),
            ];
            assert_eq!(frames, expected, "{name}, {stage}");
        }
    }
}

#[test]
fn a_vframe_array_of_another_thread_or_without_methods_is_not_believed() {
    let bad = WalkError::BadInterpreterFrame as i32;
    for (owner, is_method) in [(THREAD + 8, true), (THREAD, false)] {
        let mut world = World::new();
        let (_, return_pc) = compiled_caller(&mut world);
        let (method, _) = world.method();
        let blob = deoptimization_blob(&mut world, "DeoptimizationBlob");
        let method = if is_method { method } else { 0x99 };
        world.vframe_array(owner, &[(method, 3)], (return_pc, CALLER_SP, 0));
        let frames = world.walk(blob + 8, STACK + 0x100, 0, &[]);
        assert_eq!(frames, [(Stub, blob + 8, 0), (Unwalkable, blob + 8, bad)]);
    }
}

#[test]
fn frozen_frames_below_a_deoptimised_one_are_not_hidden() {
    for (return_address_is_there, expected) in [(true, Compiled), (false, Unwalkable)] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, _) = world.method();
        let blob = deoptimization_blob(&mut world, "DeoptimizationBlob");
        world.layout.thread.cont_entry = Some(72);
        world.memory.put_u64(THREAD + 72, CALLER_SP);
        world.set(CALLER_SP - 8, if return_address_is_there { return_pc } else { DISPATCH });
        world.vframe_array(THREAD, &[(method, 3)], (return_pc, CALLER_SP, 0));
        let frames = world.walk(blob + 8, STACK + 0x100, 0, &[]);
        assert_eq!(frames[..2], [(Stub, blob + 8, 0), (Interpreted, method, 3)]);
        assert_eq!(frames[2].0, expected);
        if expected == Compiled {
            assert_eq!(frames[2].1, caller);
        }
    }
}

/// Regression: the deoptimisation handler leaves its own address as the return address, and no call stands before it.
#[test]
fn a_deoptimisation_handler_is_a_return_address() {
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    let (method, code) = world.compiled();
    // push rbp; mov rbp, rsp; nop…: registers being saved.
    let mut blob_code = vec![0x55, 0x48, 0x8b, 0xec];
    blob_code.resize(0x40, 0x90);
    let blob = world.blob(&BlobSpec {
        name: "DeoptimizationBlob",
        code: &blob_code,
        frame_bytes: 0x80,
        frame_complete: -1,
        method: 0,
    });
    let sp = CALLER_SP - 0x30;
    world.set(CALLER_SP - 8, return_pc).set(sp + 16, code + 0x80);
    world.set(sp - 8, code - BLOB_HEADER + 0xe00).set(sp - 16, 0x1234);
    let frames = world.walk(blob + 8, sp - 0x20, sp - 16, &[]);
    assert_eq!(frames, [(Stub, blob + 8, 0), (Compiled, method, 7), (Compiled, caller, 7)]);
}

/// An interpreted frame at `fp`, called from `return_pc` with `sender_sp` and `sender_fp`.
fn interpreted_frame(world: &mut World, fp: u64, method: u64, bcp: u64, return_pc: u64, sender: (u64, u64)) {
    let (sender_sp, sender_fp) = sender;
    world.set(fp, sender_fp).set(fp + 8, return_pc).set(fp - 8, sender_sp);
    world.set(fp - 24, method).set(fp - 64, bcp);
}

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
    // PC, bytes between SP and the sender's SP, whether the return address is in rax, whether RBP is this frame's.
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

#[test]
fn a_stub_with_a_frame_of_its_own_or_without_leads_to_the_caller() {
    // push rbp; mov rbp, rsp; nop…; leave; ret
    let mut code = vec![0x55, 0x48, 0x8b, 0xec];
    code.resize(0x40, 0x90);
    code.extend([0xc9, 0xc3]);
    for (stage, offset, above, has_fp) in [
        ("at push", 0, 0, false),
        ("at mov", 1, 8, false),
        ("inside", 8, 0x48, true),
        ("at ret", 0x41, 0, false),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let stub = world.blob(&BlobSpec {
            name: "StubRoutines (1)",
            code: &code,
            frame_bytes: 0,
            frame_complete: -1,
            method: 0,
        });
        world.set(CALLER_SP - 8, return_pc).set(CALLER_SP - 16, 0x1234);
        let fp = if has_fp { CALLER_SP - 16 } else { 0x1234 };
        let frames = world.walk(stub + offset, CALLER_SP - 8 - above, fp, &[]);
        assert_eq!(frames, [(Stub, stub + offset, 0), (Compiled, caller, 7)], "{stage}");
    }
}

#[test]
fn an_entry_frame_leads_to_the_java_frames_before() {
    let mut world = World::new();
    let (outer, outer_pc) = compiled_caller(&mut world);
    let (inner, code) = world.compiled();
    let sp = STACK + 0x100;
    let inner_entry_fp = STACK + 0x400;
    let wrapper = STACK + 0x500;
    world.set(sp + 0x20, inner_entry_fp).set(sp + 0x28, CALL_STUB_RETURN);
    world.set(inner_entry_fp - 48, wrapper);
    world.set(wrapper, CALLER_SP).set(wrapper + 8, outer_pc).set(wrapper + 16, 0);
    let frames = world.walk(code + 0x40, sp, 0, &[]);
    assert_eq!(frames, [(Compiled, inner, 7), (Compiled, outer, 7)]);
}

#[test]
fn native_code_without_rules_goes_on_at_the_anchor_and_says_so() {
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    world.memory.put_u64(THREAD, CALLER_SP).put_u64(THREAD + 8, return_pc).put_u64(THREAD + 16, 0);
    let frames = world.walk(0xdead_0000, STACK + 0x10, 0, &[]);
    let kinds: Vec<_> = frames.iter().map(|frame| frame.0).collect();
    assert_eq!(kinds[1..], [Unwalkable, Compiled]);
    assert_eq!(frames[1].2, WalkError::NativeFramesLost as i32);
    assert_eq!(frames[2].1, caller);
}

#[test]
fn garbage_is_marked_and_never_hidden() {
    let mut world = World::new();
    let (_, code) = world.compiled();
    // A compiled frame that returns into nothing.
    let sp = STACK + 0x100;
    world.set(sp + 0x28, 0x4242_4242);
    let frames = world.walk(code + 0x40, sp, 0, &[]);
    assert_eq!(frames.last().unwrap().0, Unwalkable);
    // An interpreter frame without a method.
    let frames = world.walk(DISPATCH, STACK + 0x10, STACK + 0x100, &[]);
    assert_eq!(frames, [(Unwalkable, DISPATCH, WalkError::BadInterpreterFrame as i32)]);
    // A program counter between two blobs.
    let frames = world.walk(CODE + 0x8_0000, STACK + 0x10, 0, &[]);
    assert_eq!(frames, [(Unwalkable, CODE + 0x8_0000, WalkError::NoCodeBlob as i32)]);
}

/// Regression: at a C2I adapter's barriers r13 still was what an earlier call had left there, and passed for the
/// caller's SP (all versions).
#[test]
fn an_adapter_takes_the_senders_sp_from_r13_only_once_it_is_there() {
    // The barriers, then 21's and 17's way to save the sender's SP.
    let after_21 = [&[0x90; 0x100][..], &[0x4c, 0x8d, 0x6c, 0x24, 0x08], &[0x58, 0x90, 0x50]].concat();
    let after_17 = [&[0x90; 0x100][..], &[0x58, 0x4c, 0x8b, 0xec], &[0x90; 4]].concat();
    let stale = CALLER_SP + 0x40;
    // PC, bytes between SP and the caller's SP, whether the return address is in rax, r13.
    let stages = [
        ("21, at the barriers", &after_21, 0x20, 8, false, stale),
        ("21, at lea", &after_21, 0x100, 8, false, stale),
        ("21, after lea", &after_21, 0x105, 8, false, CALLER_SP),
        ("21, return address popped", &after_21, 0x106, 0x20, true, CALLER_SP),
        ("17, at the barriers", &after_17, 0x20, 8, false, stale),
        ("17, at pop", &after_17, 0x100, 8, false, stale),
        ("17, return address popped", &after_17, 0x101, 0, true, stale),
        ("17, sender's SP saved", &after_17, 0x104, 0x20, true, CALLER_SP),
    ];
    for (stage, code, offset, depth, in_rax, r13) in stages {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let spec = BlobSpec { name: "I2C/C2I adapters", code, frame_bytes: 0, frame_complete: -1, method: 0 };
        let adapter = world.blob(&spec);
        let sp = CALLER_SP - depth;
        world.set(sp, if in_rax { 0 } else { return_pc });
        let rax = if in_rax { return_pc } else { 0 };
        let frames = world.walk(adapter + offset, sp, 0x1234, &[(0, rax), (13, r13)]);
        assert_eq!(frames, [(Stub, adapter + offset, 0), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: behind `leave` a native method's wrapper looks for a pending exception, and in 25 polls; it was taken
/// to have its frame still.
#[test]
fn a_native_wrapper_behind_its_leave_has_no_frame() {
    // leave; test byte ptr [r15+0x28], 1; jz; mov r10, imm64; mov [r15+0x538], r10; jmp; cmp [r15+8], 0; jne; ret; jmp
    let exit: [u8; 47] = [
        0xc9, 0x41, 0xf6, 0x47, 0x28, 1, 0x74, 22, 0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8, 0x4d, 0x89, 0x97,
        0x38, 5, 0, 0, 0xe9, 0, 0, 0, 0x10, 0x49, 0x83, 0x7f, 8, 0, 0x0f, 0x85, 1, 0, 0, 0, 0xc3, 0xe9, 0, 0,
        0, 0x10,
    ];
    for (stage, offset) in [
        ("at test", 1),
        ("at jz", 6),
        ("at the poll's mov r10", 8),
        ("at its mov to the thread", 18),
        ("at its jmp", 25),
        ("at cmp", 30),
        ("at jne", 35),
        ("at ret", 41),
        ("at jmp", 42),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled_with(&[(0x100, &exit)]);
        world.set(CALLER_SP - 8, return_pc);
        let frames = world.walk(code + 0x100 + offset, CALLER_SP - 8, 0x1234, &[]);
        assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)], "{stage}");
    }
    // 17: leave; cmp qword ptr [r15+8], imm32; jne; ret
    let exit = [0xc9, 0x49, 0x81, 0x7f, 8, 0, 0, 0, 0, 0x0f, 0x85, 1, 0, 0, 0, 0xc3];
    for (stage, offset) in [("at cmp", 1), ("at jne", 9), ("at ret", 15)] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled_with(&[(0x100, &exit)]);
        world.set(CALLER_SP - 8, return_pc);
        let frames = world.walk(code + 0x100 + offset, CALLER_SP - 8, 0x1234, &[]);
        assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)], "17, {stage}");
    }
}

/// Regression: a method's own stub for a static call was taken for its body, at a stack that has one word more.
#[test]
fn a_static_calls_stub_belongs_to_the_call() {
    // mov rbx, imm64; jmp
    let stub: [u8; 15] = [0x48, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8, 0xe9, 0, 0, 0, 0x10];
    for (stage, offset) in [("at mov", 0x180), ("at jmp", 0x18a)] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled_with(&[(0x180, &stub)]);
        let sp = CALLER_SP - 0x30;
        world.set(CALLER_SP - 8, return_pc).set(sp - 8, code + 0x80);
        let frames = world.walk(code + offset, sp - 8, 0x1234, &[]);
        assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: C1's slow_subtype_check has pushed eight words in 25; RBP led past its caller.
#[test]
fn a_stub_without_a_frame_size_is_left_by_what_it_has_pushed() {
    let mut world = World::new();
    let (root, root_pc) = compiled_caller(&mut world);
    let (method, code) = world.compiled();
    let sp = CALLER_SP - 0x30;
    // The two arguments that C1 has pushed are below the frame.
    world.set(CALLER_SP - 8, root_pc).set(sp - 24, code + 0x80);
    for name in ["C1 Runtime slow_subtype_check_blob", "slow_subtype_check Runtime1 stub"] {
        let stub = world.blob(&BlobSpec {
            name,
            code: &[0x90; 0x40],
            frame_bytes: -8,
            frame_complete: -1,
            method: 0,
        });
        for words in [0, 1, 8] {
            // RBP is the caller's, and happens to point below a return address.
            let frames = world.walk(stub + 0x20, sp - 24 - 8 * words, CALLER_SP - 16, &[]);
            let expected = [(Stub, stub + 0x20, 0), (Compiled, method, 7), (Compiled, root, 7)];
            assert_eq!(frames, expected, "{name}, {words} words");
        }
    }
}

/// Regression: the second entry of a method that is compiled for on-stack replacement was taken for its body.
#[test]
fn the_entry_for_on_stack_replacement_has_no_frame_yet() {
    // mov [rsp-0x14000], eax; push rbp; sub rsp, 0x20
    let entry = [0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x20];
    for (stage, offset, depth) in
        [("at mov", 0, 8), ("at push", 7, 8), ("at sub", 8, 16), ("behind", 12, 0x30)]
    {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled_with(&[(0x180, &entry)]);
        world.set(CALLER_SP - 8, return_pc).set(CALLER_SP - 16, 0x1234);
        let frames = world.walk(code + 0x180 + offset, CALLER_SP - depth, 0x1234, &[]);
        assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: a deoptimisation handler pushes a word, which shifted the frame; and it has no scope of its own.
#[test]
fn a_deoptimisation_handler_stands_for_the_frame_that_it_leaves() {
    let call = [0xe8, 0, 0, 0, 0, 0x48, 0x83, 0x2c, 0x24, 5, 0xe9, 0, 0, 0, 0x10];
    let push = [0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8, 0x41, 0x52, 0xe9, 0, 0, 0, 0x10];
    for (stage, handler, offset, pushed) in [
        ("17, at call", &call[..], 0, 0),
        ("17, at sub", &call, 5, 8),
        ("17, at jmp", &call, 10, 8),
        ("21, at mov", &push, 0, 0),
        ("21, at push", &push, 10, 0),
        ("21, at jmp", &push, 12, 8),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        // The handler is at 0xe00 from the blob.
        let (method, code) = world.compiled_with(&[(0xe00 - BLOB_HEADER as usize, handler)]);
        let sp = CALLER_SP - 0x30;
        // The frame keeps its own PC at the slot that the method names.
        world.set(CALLER_SP - 8, return_pc).set(sp + 16, code + 0x80);
        let pc = code - BLOB_HEADER + 0xe00 + offset;
        let frames = world.walk(pc, sp - pushed, 0x1234, &[]);
        assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: a C2I adapter that has its caller's call patched was left by whatever rax held.
#[test]
fn an_adapter_that_has_its_caller_patched_keeps_its_sp_in_r13() {
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    let code = [&[0x90; 0x100][..], &[0x58, 0x4c, 0x8b, 0xec]].concat();
    let spec =
        BlobSpec { name: "I2C/C2I adapters", code: &code, frame_bytes: 0, frame_complete: -1, method: 0 };
    let adapter = world.blob(&spec);
    world.set(CALLER_SP - 8, return_pc);
    let frames = world.walk(adapter + 0x20, CALLER_SP - 0xa08, 0x1234, &[(0, DISPATCH), (13, CALLER_SP - 8)]);
    assert_eq!(frames, [(Stub, adapter + 0x20, 0), (Compiled, caller, 7)]);
}

/// Regression: a thread that the agent does not know yet was lost in the leaf stubs that JNI calls.
#[test]
fn a_leaf_stub_below_native_code_returns_by_the_top_of_the_stack() {
    const NATIVE: u64 = 0x40_0000;
    let identity = IdentityWord { address: RuntimeAddr(NATIVE), value: 42 };
    let object = LoadedObject {
        index: ObjectIndex(7),
        load_bias: LoadBias(NATIVE),
        build_id: None,
        identity,
        unwind: OnceLock::new(),
        text: ElfVaddr(0)..ElfVaddr(0x1000),
    };
    let (start, end) = (RuntimeAddr(NATIVE), RuntimeAddr(NATIVE + 0x1000));
    let mut world = World::new();
    world.java_thread = 0;
    world.objects = ObjectMap::new(vec![TextRange { start, end, object: Arc::new(object) }], 0);
    // call rax, behind which the return address is.
    world.memory.put_u64(NATIVE, 42).put(NATIVE + 0x80, [0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0]);
    let stub = world.blob(&BlobSpec {
        name: "jni_fast_GetLongField",
        code: &[0x90; 0x40],
        frame_bytes: 0,
        frame_complete: -1,
        method: 0,
    });
    world.set(STACK + 0x100, NATIVE + 0x87);
    let frames = world.walk(stub + 8, STACK + 0x100, 0, &[]);
    assert_eq!(frames[..2], [(Stub, stub + 8, 0), (Native, NATIVE + 0x86, 7)]);
    // What is no return address is not followed.
    world.set(STACK + 0x100, NATIVE + 0x20);
    let frames = world.walk(stub + 8, STACK + 0x100, 0, &[]);
    assert_eq!(frames, [(Stub, stub + 8, 0), (Unwalkable, stub + 8, WalkError::UnknownCode as i32)]);
}

/// Regression: while the return address is in a register, the walk went on at the caller's caller, by RBP.
#[test]
fn a_method_handles_entry_keeps_the_caller_while_the_return_address_is_in_a_register() {
    for (stage, on_stack, in_register, is_caller_found) in [
        ("at the start", DISPATCH, 0, true),
        ("return address popped", 0x99, DISPATCH, true),
        ("neither", 0x99, 0x99, false),
    ] {
        let mut world = World::new();
        let (root, return_pc) = compiled_caller(&mut world);
        let (method, bytecodes) = world.method();
        let entry = world.blob(&BlobSpec {
            name: "MethodHandles adapters",
            code: &[0x90; 0x40],
            frame_bytes: 0,
            frame_complete: -1,
            method: 0,
        });
        let fp = CALLER_SP - 0x20;
        interpreted_frame(&mut world, fp, method, bytecodes + 3, return_pc, (CALLER_SP, 0x1234));
        let sp = fp - 0x60;
        world.set(sp, on_stack);
        let frames = world.walk(entry + 8, sp, fp, &[(0, in_register)]);
        let expected = if is_caller_found {
            vec![(Stub, entry + 8, 0), (Interpreted, method, 3), (Compiled, root, 7)]
        } else {
            vec![(Stub, entry + 8, 0), (Unwalkable, entry + 8, WalkError::NoFrameSize as i32)]
        };
        assert_eq!(frames, expected, "{stage}");
    }
}

/// What a return address stands for is decoded once in a walk; the frames are the same each time.
#[test]
fn a_return_address_that_comes_again_stands_for_the_same_frames() {
    let mut world = World::new();
    let (root, return_pc) = compiled_caller(&mut world);
    let (ping, ping_code) = world.compiled();
    let (pong, pong_code) = world.compiled();
    let turns = 10;
    let mut expected = vec![(Compiled, ping, 7)];
    let first = CALLER_SP - (2 * turns + 1) * 0x30;
    for turn in 0..2 * turns {
        let (method, code) = if turn % 2 == 0 { (pong, pong_code) } else { (ping, ping_code) };
        world.set(first + turn * 0x30 + 0x28, code + 0x80);
        expected.push((Compiled, method, 7));
    }
    world.set(CALLER_SP - 8, return_pc);
    expected.push((Compiled, root, 7));
    assert_eq!(world.walk(ping_code + 0x40, first, 0, &[]), expected);
}

#[test]
fn endless_recursion_is_cut_at_the_limit() {
    let mut world = World::new();
    let (_, code) = world.compiled();
    for frame in 0..100 {
        let sp = STACK + 0x100 + frame * 0x30;
        world.set(sp + 0x28, code + 0x80);
    }
    let frames = world.walk(code + 0x40, STACK + 0x100, 0, &[]);
    assert_eq!(frames.len(), 63);
    assert_eq!(frames.last().unwrap().0, crate::core::record::FrameKind::Truncated);
}
