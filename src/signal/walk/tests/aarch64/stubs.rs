//! Stubs on aarch64.

use super::machine::*;
use crate::core::record::FrameKind::{Compiled, Stub};
use crate::signal::walk::tests::vm_world::*;

fn stub(world: &mut World, name: &str, code: &[u32], frame_bytes: i32) -> u64 {
    let code = bytes(code);
    world.blob(&BlobSpec { name, code: &code, frame_bytes, frame_complete: -1, method: 0 })
}

#[test]
fn a_stub_with_a_frame_record_or_without_leads_to_the_caller() {
    let mut code = vec![0xa9bf_7bfd, 0x9100_03fd];
    code.resize(0x10, NOP);
    code.extend([0x9100_03bf, 0xa8c1_7bfd, RET]);
    // Offset, SP below the caller's, whether x29 and x30 still have what the caller's were; x30's else is the stub's.
    for (stage, offset, below, in_lr, has_fp) in [
        ("at the push", 0, 0, true, false),
        ("at mov x29, sp", 4, 16, true, false),
        ("inside, nothing called", 0x20, 0x40, true, true),
        ("inside, returned to", 0x20, 0x40, false, true),
        ("at the pop", 0x44, 16, false, true),
        ("at ret", 0x48, 0, true, false),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let stub = stub(&mut world, "StubRoutines (1)", &code, 0);
        world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, return_pc);
        let fp = if has_fp { CALLER_SP - 16 } else { 0x1234 };
        let lr = if in_lr { return_pc } else { stub + 0x1c };
        let frames = world.walk(stub + offset, CALLER_SP - below, fp, &[(LR, lr)]);
        assert_eq!(frames, [(Stub, stub + offset, 0), (Compiled, caller, 7)], "{stage}");
    }
}

#[test]
fn a_leaf_stub_leads_to_its_caller_whatever_it_has_pushed() {
    for pairs in [0, 1, 5] {
        let mut world = World::new();
        let (root, root_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled();
        let stub = stub(&mut world, "StubRoutines (1)", &[NOP; 0x20], 0);
        let sp = CALLER_SP - 0x30;
        world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, root_pc);
        let frames = world.walk(stub + 0x20, sp - 16 * pairs, 0x1234, &[(LR, code + 0x80)]);
        assert_eq!(frames, [(Stub, stub + 0x20, 0), (Compiled, method, 7), (Compiled, root, 7)], "{pairs}");
    }
}

#[test]
fn slow_subtype_check_leads_over_the_classes_that_its_caller_has_pushed() {
    // stp x0, x2, [sp, -32]!; stp x4, x5, [sp, 16]; nop; ldp x4, x5, [sp, 16]; ldp x0, x2, [sp], 32; ret
    let code = [0xa9be_0be0, 0xa901_17e4, NOP, 0xa941_17e4, 0xa8c2_0be0, RET];
    // The caller: stp x4, x0, [sp, -16]!; bl; ldr x4, [sp], 16.
    let call = bytes(&[0xa9bf_03e4, BL, 0xf841_07e4]);
    for (offset, pushed) in [(0, 0), (4, 32), (8, 32), (16, 32), (20, 0)] {
        let mut world = World::new();
        let (root, root_pc) = compiled_caller(&mut world);
        let (method, caller_code) = world.compiled_with(&[(0x60, &call)]);
        let stub = stub(&mut world, "slow_subtype_check Runtime1 stub", &code, -8);
        world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, root_pc);
        let sp = CALLER_SP - 0x30 - 16 - pushed;
        let frames = world.walk(stub + offset, sp, 0x1234, &[(LR, caller_code + 0x68)]);
        assert_eq!(
            frames,
            [(Stub, stub + offset, 0), (Compiled, method, 7), (Compiled, root, 7)],
            "{offset}"
        );
    }
}

#[test]
fn a_poll_leads_to_where_the_thread_has_polled_until_the_record_says_so() {
    const SAVED_PC: u64 = 0x80;
    // stp; mov x29, sp; nop; ldr x20, [x28, 0x80]; str x20, [x29, 8]; nop
    let code = [0xa9bf_7bfd, 0x9100_03fd, NOP, 0xf940_4394, 0xf900_07b4, NOP];
    for (offset, below, has_fp, is_corrected) in
        [(0, 0, false, false), (4, 16, false, false), (12, 0x40, true, false), (20, 0x40, true, true)]
    {
        let mut world = World::new();
        let (caller, polled) = compiled_caller(&mut world);
        let blob = stub(&mut world, "SafepointBlob", &code, 0);
        world.memory.put_u64(THREAD + SAVED_PC, if is_corrected { 0x4242 } else { polled });
        world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, if is_corrected { polled } else { 0x4242 });
        let fp = if has_fp { CALLER_SP - 16 } else { 0x1234 };
        let frames = world.walk(blob + offset, CALLER_SP - below, fp, &[(LR, 0x4242)]);
        assert_eq!(frames, [(Stub, blob + offset, 0), (Compiled, caller, 7)], "{offset}");
    }
}
