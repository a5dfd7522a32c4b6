//! The stubs that thaw, and the stubs that pass an exception on to a frozen frame, once the frame is on the
//! stack again, on aarch64.

use otlpprof_core::record::FrameKind::{Compiled, Stub};

use super::machine::*;
use crate::walk::tests::continuation::*;
use crate::walk::tests::vm_world::{BlobSpec, CONT_THAW, RETURN_BARRIER};

const X0: usize = 0;
const X3: usize = 3;
const X9: usize = 9;
const STALE: u64 = 0x4242;
/// `sub sp, x9, 16; mov x29, sp`
const TAKE_STACK: [u32; 2] = [0xd100_413f, 0x9100_03fd];
/// `mov sp, x29; ldp x29, x30, [sp], 16`
const LEAVE: [u32; 2] = [0x9100_03bf, 0xa8c1_7bfd];

/// A scene with this code from the instruction on by which the stub switches to the thawed frame's stack, and
/// with the thawed frame at `sp`. Returns the scene and the frame's method.
fn thawed(code: &[u32], sp: u64) -> (Scene, u64) {
    let mut scene = Scene::new();
    let (method, method_code) = scene.world.compiled();
    scene.world.set(sp - 8, method_code + 0x80).set(ENTRY - 8, RETURN_BARRIER.start);
    scene.world.memory.put(CONT_THAW.start + TAKES_STACK, bytes(code));
    (scene, method)
}

#[test]
fn thawed_frames_are_walked_from_the_register_that_has_their_stack_pointer() {
    let sp = ENTRY - 0x30;
    let room = ENTRY - 0x200;
    let code = [&TAKE_STACK[..], &LEAVE, &[RET, NOP]].concat();
    // The offset, SP, and the register with the frame's SP.
    for (offset, own_sp, register) in [
        (RETURNED - 4, room - 16, Some(X0)),
        (RETURNED, room, Some(X0)),
        (RETURNED + 4, room, Some(X9)),
        (TAKES_STACK, room, Some(X9)),
        (TAKES_STACK + 4, sp - 16, None),
        (TAKES_STACK + 8, sp - 16, None),
        (TAKES_STACK + 12, sp - 16, None),
        (TAKES_STACK + 16, sp, None),
    ] {
        let (mut scene, method) = thawed(&code, sp);
        let pc = CONT_THAW.start + offset;
        let [caller, enter] = scene.whole();
        let expected = [(Stub, pc, 0), (Compiled, method, 7), caller, enter];
        let registers = [X0, X9].map(|number| (number, if register == Some(number) { sp } else { STALE }));
        assert_eq!(scene.walk_from(pc, own_sp, &registers), expected, "{offset:#x}");
    }
}

#[test]
fn an_exception_is_passed_on_to_a_frozen_frame() {
    // The address in x3, after `mov x3, x30`, or still in x30.
    let jumps = [0xaa1e_03e3, NOP, 0xd61f_0020];
    for (code, x3, lr) in
        [(jumps, RETURN_BARRIER.start, STALE), (jumps, RETURN_BARRIER.start, RETURN_BARRIER.start)]
            .into_iter()
            .chain([([NOP; 3], STALE, RETURN_BARRIER.start)])
    {
        let mut scene = Scene::new();
        let code = bytes(&[&[NOP; 0x10][..], &code, &[NOP; 2]].concat());
        let name = "unwind_exception Runtime1 stub";
        let stub =
            scene.world.blob(&BlobSpec { name, code: &code, frame_bytes: -8, frame_complete: -1, method: 0 });
        let pc = stub + 0x44;
        let [caller, enter] = scene.whole();
        let frames = scene.walk_from(pc, ENTRY, &[(X3, x3), (LR, lr)]);
        assert_eq!(frames, [(Stub, pc, 0), caller, enter], "{x3:#x} {lr:#x}");
    }
}

#[test]
fn the_frame_that_an_exception_is_thrown_to_is_walked_at_each_stage() {
    let sp = ENTRY - 0x30;
    // The instruction, and the bytes below the frame's SP: sub sp, x9, 16; mov x29, sp; ldr x1, [x29, 8]; mov
    // x19, x0; stp x8, x12, [sp, -16]!; three moves to x8; blr x8; ldp x8, x12, [sp], 16; mov x1, x0; mov x0,
    // x19; leave; mov x3, x30; br x1
    let instructions = [
        (TAKE_STACK[0], 0x1d0),
        (TAKE_STACK[1], 16),
        (0xf940_07a1, 16),
        (0xaa00_03f3, 16),
        (0xa9bf_33e8, 16),
        (0xd280_0008, 32),
        (0xf2a0_0008, 32),
        (0xf2c0_0008, 32),
        (0xd63f_0100, 32),
        (0xa8c1_33e8, 32),
        (0xaa00_03e1, 16),
        (0xaa13_03e0, 16),
        (LEAVE[0], 16),
        (LEAVE[1], 16),
        (0xaa1e_03e3, 0),
        (0xd61f_0020, 0),
    ];
    let code = instructions.map(|(code, _)| code);
    for (number, (instruction, below)) in (0..).zip(instructions) {
        let (mut scene, method) = thawed(&code, sp);
        let pc = CONT_THAW.start + TAKES_STACK + 4 * number;
        let [caller, enter] = scene.whole();
        let expected = [(Stub, pc, 0), (Compiled, method, 7), caller, enter];
        let x9 = if number == 0 { sp } else { STALE };
        assert_eq!(scene.walk_from(pc, sp - below, &[(X9, x9)]), expected, "{number}: {instruction:#x}");
        if instruction == 0xd63f_0100 {
            let (mut scene, _) = thawed(&code, sp);
            let returned = pc + 4;
            let expected = [(Stub, returned - 1, 0), (Compiled, method, 7), caller, enter];
            assert_eq!(scene.walk_in_thaw(sp - below, returned), expected);
        }
    }
}
