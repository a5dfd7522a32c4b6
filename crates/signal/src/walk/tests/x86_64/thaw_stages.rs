//! The stubs that thaw, and the stubs that pass an exception on to a frozen frame, once the frame is on the
//! stack again.

use otlpprof_core::record::FrameKind::{Compiled, Stub};

use crate::walk::tests::continuation::*;
use crate::walk::tests::vm_world::{BlobSpec, CONT_THAW, DISPATCH, RETURN_BARRIER};

#[test]
fn thawed_frames_are_walked_from_the_register_that_has_their_stack_pointer() {
    let sp = ENTRY - 0x30;
    for (offset, rsp, more) in [
        (RETURNED_EARLY + 2, ENTRY - 0x200, &[(0, sp)][..]),
        (RETURNED, ENTRY - 0x200, &[(0, sp)]),
        (RETURNED + 3, ENTRY - 0x200, &[(3, sp)]),
        (TAKES_STACK, ENTRY - 0x200, &[(3, sp)]),
        (TAKES_STACK + 3, sp, &[]),
        (TAKES_STACK + 7, sp - 16, &[]),
    ] {
        let mut scene = Scene::new();
        let (thawed, code) = scene.world.compiled();
        scene.world.set(sp - 8, code + 0x80).set(ENTRY - 8, RETURN_BARRIER.start);
        // `pop rbp; ret`.
        scene.world.memory.put(CONT_THAW.start + TAKES_STACK + 7, vec![0x5d, 0xc3]);
        let pc = CONT_THAW.start + offset;
        let [caller, enter] = scene.whole();
        let expected = [(Stub, pc, 0), (Compiled, thawed, 7), caller, enter];
        assert_eq!(scene.walk_from(pc, rsp, more), expected, "{offset:#x}");
    }
}

/// Regression: stubs that pass an exception on did not accept the barrier as a return address.
#[test]
fn an_exception_is_passed_on_to_a_frozen_frame() {
    // `pop rdx; jmp rax`, with the address in rdx; and a stub without a frame, with the address still on the
    // stack.
    for (code, rdx, below) in [([0x5a, 0xff, 0xe0], RETURN_BARRIER.start, 0), ([0x90; 3], 0, 8)] {
        let mut scene = Scene::new();
        let code = [&[0x90; 0x40][..], &code, &[0x90; 8]].concat();
        let name = "unwind_exception Runtime1 stub";
        let stub =
            scene.world.blob(&BlobSpec { name, code: &code, frame_bytes: -8, frame_complete: -1, method: 0 });
        scene.world.set(ENTRY - 8, RETURN_BARRIER.start);
        let pc = stub + 0x41;
        let [caller, enter] = scene.whole();
        assert_eq!(
            scene.walk_from(pc, ENTRY - below, &[(1, rdx)]),
            [(Stub, pc, 0), caller, enter],
            "{rdx:#x}"
        );
    }
}

/// Regression: while cont_returnBarrierExc looked up the exception's handler, the walk looked for the thawed
/// frame in a wrong place.
#[test]
fn the_frame_that_an_exception_is_thrown_to_is_walked_at_each_stage() {
    let sp = ENTRY - 0x30;
    let start = TAKES_STACK + 7;
    let instructions: [(&[u8], u64); 13] = [
        (&[0x49, 0x8b, 0xff], 16),
        (&[0x48, 0x8b, 0x74, 0x24, 0x08], 16),
        (&[0x50], 16),
        (&[0xf7, 0xc4, 0x0f, 0, 0, 0], 24),
        (&[0x48, 0x83, 0xec, 0x08], 24),
        (&[0xe8, 0, 0, 0, 0], 32),
        (&[0x48, 0x83, 0xc4, 0x08], 32),
        (&[0xe8, 0, 0, 0, 0], 24),
        (&[0x48, 0x8b, 0xd8], 24),
        (&[0x58], 24),
        (&[0x5d], 16),
        (&[0x5a], 8),
        (&[0xff, 0xe3], 0),
    ];
    let code = instructions.map(|(code, _)| code).concat();
    let thrown = || {
        let mut scene = Scene::new();
        let (thawed, thawed_code) = scene.world.compiled();
        scene.world.set(sp - 8, thawed_code + 0x80).set(ENTRY - 8, RETURN_BARRIER.start);
        scene.world.memory.put(CONT_THAW.start + start, code.clone());
        (scene, thawed)
    };
    let mut offset = start;
    for (number, (code, pushed)) in instructions.into_iter().enumerate() {
        let (mut scene, thawed) = thrown();
        let pc = CONT_THAW.start + offset;
        let [caller, enter] = scene.whole();
        let expected = [(Stub, pc, 0), (Compiled, thawed, 7), caller, enter];
        // At the end RBX holds the handler's address.
        let rbx = if number > 8 { DISPATCH } else { sp };
        assert_eq!(scene.walk_from(pc, sp - pushed, &[(3, rbx)]), expected, "{code:x?}");
        if code[0] == 0xe8 {
            let (mut scene, thawed) = thrown();
            let returned = pc + 5;
            let expected = [(Stub, returned - 1, 0), (Compiled, thawed, 7), caller, enter];
            assert_eq!(scene.walk_in_thaw(sp - pushed, returned), expected, "{pushed}");
        }
        offset += code.len() as u64;
    }
}
