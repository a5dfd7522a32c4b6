//! The call stub and the stub that passes exceptions on, interrupted at each of their stages, on aarch64.

use otlpprof_core::address::CodeRange;
use otlpprof_core::record::FrameKind::{Compiled, Stub};
use otlpprof_core::stack_walker::StackWalker;

use super::machine::*;
use crate::walk::tests::vm_world::*;

const X0: usize = 0;
const X19: usize = 19;
const STALE: u64 = 0x4242;

/// `stp x29, x30, [sp, -16]!; mov x29, sp; sub sp, sp, 0xe0; stp x0, x1, [x29, -64]; nop…; mov sp, x29;
/// ldp x29, x30, [sp], 16; ret; nop…`
fn call_stub(world: &mut World) -> u64 {
    let mut code = vec![0xa9bf_7bfd, 0x9100_03fd, 0xd103_83ff, 0xa93c_07a0];
    code.resize(0x10, NOP);
    code.extend([0x9100_03bf, 0xa8c1_7bfd, RET, NOP]);
    let code = bytes(&code);
    let start = world.frameless_blob("StubRoutines (1)", &code);
    world.layout.stubs.call_stub = CodeRange { start, end: start + code.len() as u64 };
    start
}

#[test]
fn the_call_stub_leads_to_the_java_frames_before_it_at_each_stage() {
    let base = STACK + 0x400;
    let wrapper = STACK + 0x500;
    // The offset, SP, x29, whether the wrapper is only in x0, and whether the return address is only in x30.
    for (offset, sp, fp, in_x0, in_lr) in [
        (0, base + 16, 0x1234, true, true),
        (4, base, 0x1234, true, false),
        (8, base, base, true, false),
        (12, base - 0xe0, base, true, false),
        (16, base - 0xe0, base, false, false),
        (0x20, base - 0xe0, base, false, false),
        (0x40, base - 0xe0, base, false, false),
        (0x44, base, base, true, false),
        (0x48, base + 16, 0x1234, true, true),
    ] {
        let mut world = World::new();
        let (outer, outer_pc) = compiled_caller(&mut world);
        let stub = call_stub(&mut world);
        world.set(base, 0x1234).set(base + 8, if in_lr { STALE } else { 0x5678 });
        world.set(entry_wrapper_slot(base), if in_x0 { STALE } else { wrapper });
        world.set(wrapper, CALLER_SP).set(wrapper + 8, outer_pc).set(wrapper + 16, 0);
        let registers = [(X0, if in_x0 { wrapper } else { STALE }), (LR, if in_lr { 0x5678 } else { STALE })];
        let frames = world.walk(stub + offset, sp, fp, &registers);
        assert_eq!(frames, [(Stub, stub + offset, 0), (Compiled, outer, 7)], "{offset:#x}");

        // Or to the native code that has called Java.
        world.walker = StackWalker::Vmx;
        let frames = world.walk(stub + offset, sp, fp, &registers);
        assert_eq!((frames[0].1, frames[1].1), (stub + offset, 0x5677), "{offset:#x}");
    }
}

#[test]
fn the_call_stub_of_a_threads_first_call_is_the_root() {
    let mut world = World::new();
    let stub = call_stub(&mut world);
    world.entry_frame(ENTRY_FP);
    assert_eq!(world.walk(stub + 0x20, ENTRY_FP - 0xe0, ENTRY_FP, &[]), [(Stub, stub + 0x20, 0)]);
}

#[test]
fn forward_exception_leads_to_the_frame_that_has_the_exception() {
    // mov x19, x30; nop; stp x8, x12, [sp, -16]!; blr x8; ldp x8, x12, [sp], 16; mov x30, x19; mov x19, x0;
    // mov x3, x30; nop; br x19
    let code = [
        0xaa1e_03f3,
        NOP,
        0xa9bf_33e8,
        0xd63f_0100,
        0xa8c1_33e8,
        0xaa13_03fe,
        0xaa00_03f3,
        0xaa1e_03e3,
        NOP,
        0xd61f_0260,
    ];
    // The instruction, whether a pair is pushed, and whether x30 has the address. If not, the instruction is
    // after the call.
    for (index, pushed, in_lr) in [
        (0, 0, true),
        (1, 0, true),
        (2, 0, true),
        (3, 16, true),
        (4, 16, false),
        (5, 0, false),
        (6, 0, true),
        (8, 0, true),
        (9, 0, true),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let code = bytes(&code);
        let start = world.frameless_blob("StubRoutines (1)", &code);
        world.layout.stubs.forward_exception = CodeRange { start, end: start + code.len() as u64 };
        world.set(CALLER_SP - 8, STALE).set(CALLER_SP - 16, STALE);
        let pc = start + 4 * index;
        let x19 = if in_lr { STALE } else { return_pc };
        let lr = if in_lr { return_pc } else { start + 16 };
        let frames = world.walk(pc, CALLER_SP - pushed, 0x1234, &[(X19, x19), (LR, lr)]);
        assert_eq!(frames, [(Stub, pc, 0), (Compiled, caller, 7)], "at {index}");
    }
}
