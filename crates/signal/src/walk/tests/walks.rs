//! Whole walks: roots, ends, marks.

use otlpprof_core::record::FrameKind::{Compiled, Stub, Truncated, Unwalkable};
use otlpprof_core::stack_walker::StackWalker;

use super::arch::machine;
use super::vm_world::*;
use crate::walk::WalkError;

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

/// Regression: a compiled frame's return address outside of all code became a frame, and the walk went on
/// from the address in the frame pointer.
#[test]
fn a_compiled_frame_that_returns_to_no_code_is_the_last() {
    let mut world = World::new();
    let (_, return_pc) = compiled_caller(&mut world);
    let (callee, code) = world.compiled();
    let sp = CALLER_SP - 0x80;
    world.set(sp + 0x20, CALLER_SP - 16).set(sp + 0x28, 0x56);
    world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, return_pc);
    let frames = world.walk(code + 0x40, sp, 0, &[]);
    let mark = (Unwalkable, code + 0x40, WalkError::UnknownCode as i32);
    assert_eq!(frames, [(Compiled, callee, 7), mark]);
}

/// Regression: a thread that was interrupted at the instruction to which Java returns had no frame at all.
#[test]
fn the_call_stub_that_java_has_returned_to_is_a_frame() {
    let mut world = World::new();
    world.entry_frame(ENTRY_FP);
    let frames = world.walk(CALL_STUB_RETURN, CALLER_SP, ENTRY_FP, &[]);
    assert_eq!(frames, [(Stub, CALL_STUB_RETURN, 0)]);
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
    world.set(entry_wrapper_slot(inner_entry_fp), wrapper);
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
    // A compiled frame whose return address is in no code.
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

/// A walk decodes a return address once, and returns the same frames each time that it occurs.
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
    assert_eq!(frames.last().unwrap().0, Truncated);
}

/// Regression: a stack that ended exactly at the limit was marked as truncated although no frame was missing.
#[test]
fn a_stack_with_as_many_frames_as_the_limit_is_complete() {
    for walker in [StackWalker::Vm, StackWalker::No] {
        for callees in [60, 61, 62] {
            let mut world = World::new();
            world.walker = walker;
            let (root, return_pc) = compiled_caller(&mut world);
            let (recursive, code) = world.compiled();
            let top = CALLER_SP - callees * 0x30;
            for frame in 1..callees {
                world.set(CALLER_SP - frame * 0x30 - 8, code + 0x80);
            }
            world.set(CALLER_SP - 8, return_pc);
            let mut expected = vec![(Compiled, recursive, 7); callees as usize];
            expected.push((Compiled, root, 7));
            // The test's sink keeps 62 frames.
            if callees == 62 {
                expected[62] = (Truncated, 0, 0);
            }
            assert_eq!(world.walk(code + 0x40, top, 0, &[]), expected, "{walker:?}, {callees} callees");
        }
    }
}

/// Regression: the last instruction of a scope was taken for the next scope's, so that a method lost some of
/// its time to the method that was inlined next to it.
#[test]
fn the_last_instruction_of_a_scope_belongs_to_it_and_one_after_a_call_does_not() {
    // The first scope's last instruction, and an instruction of the second.
    for (offset, code, bci) in [
        (0x40, machine::NO_CALL, 3),
        (0x44, machine::NO_CALL, 7),
        // The first scope's last instruction is a call, which returns to 0x40.
        (0x40, machine::CALL, 7),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        world.first_scope_ends_at = Some(0x40);
        let (callee, start) = world.compiled_with(&[(0x40 - code.len(), code)]);
        world.set(CALLER_SP - 8, return_pc);
        let frames = world.walk(start + offset, CALLER_SP - 0x30, 0, &[]);
        assert_eq!(
            frames,
            [(Compiled, callee, bci), (Compiled, caller, 7)],
            "at {offset:#x} after {code:x?}"
        );
    }
}
