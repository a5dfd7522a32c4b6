//! Deoptimisation handlers on aarch64: code at a method's end that puts its own address into x30 as the
//! return address.

use otlpprof_core::record::FrameKind::{Compiled, Stub};

use super::machine::*;
use crate::walk::tests::vm_world::*;

/// The offset in the blob.
const HANDLER: u64 = 0xe00;
/// The slot in which the frame keeps its own PC, as the method's `orig_pc_offset` names it.
const ORIGINAL_PC: u64 = 16;

#[test]
fn a_deoptimisation_handler_is_a_return_address() {
    // enter; nop…: registers being saved.
    let code = bytes(&[&[0xa9bf_7bfd, 0x9100_03fd][..], &[NOP; 0x10]].concat());
    // The label, the offset, SP below the method's, whether x29 points to the record, and whether x30 still
    // is the handler.
    for (stage, offset, below, has_fp, in_lr) in [
        ("at the push", 0, 0, false, true),
        ("after it", 4, 16, false, true),
        ("inside", 0x20, 0x100, true, true),
        ("inside, returned to", 0x20, 0x100, true, false),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, method_code) = world.compiled();
        let name = "DeoptimizationBlob";
        let blob =
            world.blob(&BlobSpec { name, code: &code, frame_bytes: 0x80, frame_complete: -1, method: 0 });
        let handler = method_code - BLOB_HEADER + HANDLER;
        let sp = CALLER_SP - 0x30;
        world.set(CALLER_SP - 8, return_pc).set(sp + ORIGINAL_PC, method_code + 0x80);
        world.set(sp - 16, 0x1234).set(sp - 8, if below == 0 { 0x4242 } else { handler });
        let fp = if has_fp { sp - 16 } else { 0x1234 };
        let lr = if in_lr { handler } else { blob + 0x1c };
        let frames = world.walk(blob + offset, sp - below, fp, &[(LR, lr)]);
        let expected = [(Stub, blob + offset, 0), (Compiled, method, 7), (Compiled, caller, 7)];
        assert_eq!(frames, expected, "{stage}");
    }
}

#[test]
fn a_deoptimisation_handler_stands_for_the_frame_that_it_leaves() {
    // adr x30, itself; b. And if a branch does not reach the blob: adr; adrp x8; add x8, x8, 0; br x8.
    let near = [0x1000_001e, 0x1400_1000];
    let far = [0x1000_001e, 0x9000_0008, 0x9100_0108, 0xd61f_0100];
    for code in [&near[..], &far] {
        for number in 0..code.len() as u64 {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let (method, method_code) =
                world.compiled_with(&[((HANDLER - BLOB_HEADER) as usize, &bytes(code))]);
            let handler = method_code - BLOB_HEADER + HANDLER;
            let sp = CALLER_SP - 0x30;
            world.set(CALLER_SP - 8, return_pc).set(sp + ORIGINAL_PC, method_code + 0x80);
            let lr = if number == 0 { 0x4242 } else { handler };
            let frames = world.walk(handler + 4 * number, sp, 0x1234, &[(LR, lr)]);
            assert_eq!(
                frames,
                [(Compiled, method, 7), (Compiled, caller, 7)],
                "instruction {number} of {}",
                code.len()
            );
        }
    }
}

/// From 26 on the handler's entry follows the call that leaves.
#[test]
fn a_deoptimisation_handler_that_is_entered_after_its_call_stands_for_its_frame() {
    // bl; b, to the bl. The entry is the b.
    let code = [0x9400_0100, 0x17ff_ffff];
    for (stage, number, lr_is_entry) in
        [("at the call", 0, false), ("at the entry", 1, true), ("at the call again", 0, true)]
    {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let begin = HANDLER - 4;
        let (method, method_code) = world.compiled_with(&[((begin - BLOB_HEADER) as usize, &bytes(&code))]);
        let entry = method_code - BLOB_HEADER + HANDLER;
        let sp = CALLER_SP - 0x30;
        world.set(CALLER_SP - 8, return_pc).set(sp + ORIGINAL_PC, method_code + 0x80);
        let lr = if lr_is_entry { entry } else { 0x4242 };
        let frames = world.walk(entry - 4 + 4 * number, sp, 0x1234, &[(LR, lr)]);
        assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)], "{stage}");
    }
}
