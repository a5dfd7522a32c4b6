//! Every kind of VM frame, and the stages of entering and leaving it.

use super::vm_world::*;
use crate::core::record::FrameKind::{Compiled, Interpreted, Stub, Unwalkable};
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
