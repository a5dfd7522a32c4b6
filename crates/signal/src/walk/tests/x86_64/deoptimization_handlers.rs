//! Deoptimisation handlers on x86_64: code at a method's end that pushes its own address as the return
//! address.

use otlpprof_core::record::FrameKind::{Compiled, Stub};

use crate::walk::tests::vm_world::*;

/// Regression: the deoptimisation handler pushes its own address as the return address, and there is no call
/// before it.
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

/// Regression: a deoptimisation handler pushes a word, which shifted the frame. It also has no scope of its
/// own.
#[test]
fn a_deoptimisation_handler_stands_for_the_frame_that_it_leaves() {
    const R10: usize = 10;
    let call = [0xe8, 0, 0, 0, 0, 0x48, 0x83, 0x2c, 0x24, 5, 0xe9, 0, 0, 0, 0x10];
    let entered_late = [0xe8, 0, 1, 2, 0x10, 0xeb, 0xf9];
    // lea r10, [rip - 7]; push r10; jmp.
    let push = [0x4c, 0x8d, 0x15, 0xf9, 0xff, 0xff, 0xff, 0x41, 0x52, 0xe9, 0, 0, 0, 0x10];
    // The handler's code, the place of the entry in it, the place that is interrupted, and the place whose
    // address has been pushed by then.
    for (stage, handler, entry, offset, pushed) in [
        ("17, at call", &call[..], 0, 0, None),
        ("17, at sub", &call, 0, 5, Some(5)),
        ("17, at jmp", &call, 0, 10, Some(0)),
        ("21, at lea", &push, 0, 0, None),
        ("21, at push", &push, 0, 7, None),
        ("21, at jmp", &push, 0, 9, Some(0)),
        ("26, at jmp", &entered_late, 5, 5, None),
        ("26, at call", &entered_late, 5, 0, None),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        // The handler's entry is at offset 0xe00 of the blob.
        let begin = 0xe00 - entry;
        let (method, code) = world.compiled_with(&[((begin - BLOB_HEADER) as usize, handler)]);
        let sp = CALLER_SP - 0x30;
        // The frame keeps its own PC in the slot that the method's `orig_pc_offset` names.
        world.set(CALLER_SP - 8, return_pc).set(sp + 16, code + 0x80);
        let address_of = |place: u64| code - BLOB_HEADER + begin + place;
        let sp = match pushed {
            Some(place) => {
                world.set(sp - 8, address_of(place));
                sp - 8
            }
            None => sp,
        };
        let frames = world.walk(address_of(offset), sp, 0x1234, &[(R10, address_of(entry))]);
        assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)], "{stage}");
    }
}
