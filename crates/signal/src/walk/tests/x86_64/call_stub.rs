//! The call stub and the stub that passes exceptions on, interrupted at each of their stages.

use otlpprof_core::address::CodeRange;
use otlpprof_core::record::FrameKind::{Compiled, Stub};
use otlpprof_core::stack_walker::StackWalker;

use crate::walk::tests::vm_world::*;

const RDX: usize = 1;
const RDI: usize = 5;

/// `push rbp; mov rbp, rsp; sub rsp, 0x60; mov [rbp-0x30], rdi; nop…; add rsp, 0x60; pop rbp; ret; nop…`
fn call_stub(world: &mut World) -> u64 {
    let mut code = vec![0x55, 0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 0x60, 0x48, 0x89, 0x7d, 0xd0];
    code.resize(0x40, 0x90);
    code.extend([0x48, 0x83, 0xc4, 0x60, 0x5d, 0xc3, 0x90]);
    let start = world.frameless_blob("StubRoutines (1)", &code);
    world.layout.stubs.call_stub = CodeRange { start, end: start + code.len() as u64 };
    start
}

/// Regression: the call stub had no caller. A thread is in it both before and after the Java code.
#[test]
fn the_call_stub_leads_to_the_java_frames_before_it_at_each_stage() {
    let base = STACK + 0x400;
    let wrapper = STACK + 0x500;
    // The offset, SP, RBP, and whether the wrapper is only in RDI.
    for (offset, sp, fp, in_register) in [
        (0, base + 8, 0x1234, true),
        (1, base, 0x1234, true),
        (4, base, base, true),
        (8, base - 0x60, base, true),
        (12, base - 0x60, base, false),
        (0x20, base - 0x60, base, false),
        (0x44, base, base, false),
        (0x45, base + 8, 0x1234, false),
        (0x46, base - 0x60, base, false),
    ] {
        let mut world = World::new();
        let (outer, outer_pc) = compiled_caller(&mut world);
        let stub = call_stub(&mut world);
        world.set(base, 0x1234).set(base + 8, 0x5678);
        world.set(base - 48, if in_register { 0x4242 } else { wrapper });
        world.set(wrapper, CALLER_SP).set(wrapper + 8, outer_pc).set(wrapper + 16, 0);
        let rdi = if in_register { wrapper } else { 0x4242 };
        let frames = world.walk(stub + offset, sp, fp, &[(RDI, rdi)]);
        assert_eq!(frames, [(Stub, stub + offset, 0), (Compiled, outer, 7)], "{offset:#x}");

        // Or to the native code that has called Java.
        world.walker = StackWalker::Vmx;
        let frames = world.walk(stub + offset, sp, fp, &[(RDI, rdi)]);
        assert_eq!((frames[0].1, frames[1].1), (stub + offset, 0x5677), "{offset:#x}");
    }
}

#[test]
fn the_call_stub_of_a_threads_first_call_is_the_root() {
    let mut world = World::new();
    let stub = call_stub(&mut world);
    world.entry_frame(ENTRY_FP);
    assert_eq!(world.walk(stub + 0x20, ENTRY_FP - 0x60, ENTRY_FP, &[]), [(Stub, stub + 0x20, 0)]);
}

/// Regression: forward_exception had no caller.
#[test]
fn forward_exception_leads_to_the_frame_that_has_the_exception() {
    // mov rdi, [rsp]; test; jz; sub rsp, 8; call; add rsp, 8; jmp; call; pop rdx; mov…; jmp rbx
    let mut code = vec![0x48, 0x8b, 0x3c, 0x24, 0x90, 0x90];
    code.extend([0x48, 0x83, 0xec, 0x08, 0x41, 0xff, 0xd2, 0x48, 0x83, 0xc4, 0x08, 0xeb, 0x03]);
    code.extend([0x41, 0xff, 0xd2, 0x48, 0x8b, 0xd8, 0x5a, 0x90, 0x90, 0xff, 0xe3]);
    // The offset, the bytes below the return address, and whether that address is in RDX.
    for (offset, below, in_rdx) in [
        (0, 0, false),
        (6, 0, false),
        (10, 8, false),
        (13, 8, false),
        (17, 0, false),
        (22, 0, false),
        (25, 0, false),
        (26, 0, true),
        (28, 0, true),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let start = world.frameless_blob("StubRoutines (1)", &code);
        world.layout.stubs.forward_exception = CodeRange { start, end: start + code.len() as u64 };
        world.set(CALLER_SP - 8, if in_rdx { 0x4242 } else { return_pc }).set(CALLER_SP - 16, 0x4242);
        let sp = if in_rdx { CALLER_SP } else { CALLER_SP - 8 - below };
        let rdx = if in_rdx { return_pc } else { 0x4242 };
        let frames = world.walk(start + offset, sp, 0x1234, &[(RDX, rdx)]);
        assert_eq!(frames, [(Stub, start + offset, 0), (Compiled, caller, 7)], "at {offset}");
    }
}
