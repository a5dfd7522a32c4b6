//! Compiled frames, interrupted at each of their stages, on aarch64.

use std::ops::Range;

use otlpprof_core::record::FrameKind::{self, Compiled};

use super::machine::*;
use crate::walk::tests::vm_world::*;

/// The signature in the bits above a return address.
const SIGNATURE: u64 = 0x5a7e << 48;

/// Checks each stage: the label, the offset in the code, SP below the caller's, and whether x30 and x29 are
/// the caller's. `exit` is the part that removes the frame, or the part in which another entry makes the
/// frame.
fn assert_stages(patches: &[(usize, &[u8])], exit: Range<u64>, stages: &[(&str, u64, u64, bool)]) {
    for &(stage, offset, below, in_registers) in stages {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled_with(patches);
        if !in_registers {
            // The signed record, on top of the caller's frame or, for a pushed one, at SP.
            world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, return_pc | SIGNATURE);
        }
        let (lr, fp) = if in_registers { (return_pc | SIGNATURE, 0x1234) } else { (0x4242, 0x4242) };
        let frames = world.walk(code + offset, CALLER_SP - below, fp, &[(LR, lr)]);
        let bci = bci_beside_scopes(offset, FRAME_COMPLETE, exit.clone());
        assert_eq!(frames, [(Compiled, method, bci), (Compiled, caller, 7)], "{stage}");
    }
}

#[test]
fn each_stage_of_a_small_frame_leads_to_the_caller() {
    assert_stages(
        &[],
        0x100..0x118,
        &[
            ("at sub", 0, 0, true),
            ("at stp", 4, 0x30, true),
            ("complete", 8, 0x30, false),
            ("in the middle", 0x40, 0x30, false),
            ("at ldp", 0x100, 0x30, false),
            ("at add", 0x104, 0x30, true),
            ("at the poll", 0x108, 0, true),
            ("at the poll's compare", 0x10c, 0, true),
            ("at the poll's branch", 0x110, 0, true),
            ("at ret", 0x114, 0, true),
            ("after ret", 0x118, 0x30, false),
        ],
    );
}

#[test]
fn each_stage_of_a_large_frame_leads_to_the_caller() {
    // stp x29, x30, [sp, -16]!; mov x8, 0x20; sub sp, sp, x8; and ldp x29, x30, [sp], 16; ret.
    let entry = bytes(&[0xa9bf_7bfd, 0xd280_0408, 0xcb28_63ff]);
    let exit = bytes(&[NOP, 0xa8c1_7bfd, NOP, RET]);
    assert_stages(
        &[(0, &entry), (0x100, &exit)],
        0x104..0x110,
        &[
            ("at stp", 0, 0, true),
            ("at mov", 4, 16, false),
            ("complete", 12, 0x30, false),
            ("at ldp", 0x104, 16, false),
            ("after ldp", 0x108, 0, true),
            ("at ret", 0x10c, 0, true),
        ],
    );
    // The blob's `frame_complete` belongs to a smaller frame.
    assert_stages(&[(0, &entry)], 8..12, &[("at sub", 8, 16, false)]);
}

#[test]
fn the_stub_of_a_return_poll_has_no_frame() {
    // adr x8, poll; str x8, [x28, 0x3b0]; adrp; add; br x8
    let stub = bytes(&[RET, 0x1000_0008, 0xf901_db88, 0x9000_0008, 0x9100_0108, 0xd61f_0100]);
    let stages = [4, 8, 12, 16, 20].map(|offset| ("in the stub", 0x200 + offset, 0, true));
    assert_stages(&[(0x200, &stub)], 0x204..0x218, &stages);
}

/// Regression: after the comparison with the limit of the stack's reserved zone, whose own jumps lie in
/// between, the frame was treated as still present (`ReentrantLock`, `ArrayBlockingQueue`).
#[test]
fn the_check_of_the_reserved_zone_before_the_return_poll_has_no_frame() {
    // ldp x29, x30, [sp, 32]; add sp, sp, 48; ldr x8, [x28, 0x5c0]; cmp sp, x8; b.lo poll; stp x29, x30, [sp,
    // -16]!; mov x29, sp; movz x8; movk; movk; mov x0, x28; blr x8; mov sp, x29; ldp x29, x30, [sp], 16; movz
    // x8; movk; movk; br x8; movz x0; movk; movk; dcps1
    let check = [
        0xa942_7bfd,
        0x9100_c3ff,
        0xf942_e388,
        0xeb28_63ff,
        0x5400_0243,
        0xa9bf_7bfd,
        0x9100_03fd,
        0xd296_3c08,
        0xf2a0_72c8,
        0xf2c0_0aa8,
        0xaa1c_03e0,
        0xd63f_0100,
        0x9100_03bf,
        0xa8c1_7bfd,
        0xd291_6008,
        0xf2a4_ae68,
        0xf2c0_0aa8,
        0xd61f_0100,
        0xd298_b900,
        0xf2a0_7a20,
        0xf2c0_0aa0,
        0xd4bb_d5c1,
    ];
    // poll: ldr x8, [x28, 40]; cmp sp, x8; b.hi; ret. On JDK 11: ldr x8, [x28, 40]; ldr wzr, [x8]; ret.
    for poll in [&[0xf940_1788, 0xeb28_63ff, 0x5400_07c8, RET][..], &[0xf940_1788, 0xb940_011f, RET]] {
        let at_poll = 0x100 + 4 * check.len() as u64;
        let polling = (0..poll.len() as u64).map(|number| ("at the poll", at_poll + 4 * number, 0, true));
        let comparing = [0x108, 0x10c, 0x110].map(|offset| ("at the comparison", offset, 0, true));
        let stages: Vec<_> = comparing.into_iter().chain(polling).collect();
        let code = [&check[..], poll].concat();
        assert_stages(&[(0x100, &bytes(&code))], 0x100..at_poll + 0x10, &stages);
    }
    // Without the comparison the poll is one in the method.
    let code = [&[NOP; 22][..], &[0xf940_1788, 0xeb28_63ff, 0x5400_07c8]].concat();
    assert_stages(&[(0x100, &bytes(&code))], 0..0, &[("a poll in a loop", 0x158, 0x30, false)]);
}

/// Regression: after the poll of a native method's wrapper, where no exception is pending, the frame was
/// taken for complete, since the poll's jump seemed to leave.
#[test]
fn the_return_of_a_native_methods_wrapper_has_no_frame() {
    // mov sp, x29; ldp x29, x30, [sp], 16; ldr x8, [x28, 40]; tbz w8, 0, next; adr x8, poll;
    // str x8, [x28, 0x540]; b; next: ldr x8, [x28, 8]; cbnz x8; ret
    let leave = [0x9100_03bf, 0xa8c1_7bfd];
    let poll = [0xf940_1788, 0x3600_0088, 0x10ff_ffe8, 0xf902_a388, 0x17ea_b5f7];
    let exit = [&leave[..], &poll, &[0xf940_0788, 0xb500_0048, RET]].concat();
    let after_pop = (2..exit.len() as u64).map(|number| ("after the pop", 0x100 + 4 * number, 0, true));
    let stages: Vec<_> = [("at ldp", 0x104, 16, false)].into_iter().chain(after_pop).collect();
    assert_stages(&[(0x100, &bytes(&exit))], 0x104..0x128, &stages);
}

/// C1 passes two classes to slow_subtype_check on the stack.
#[test]
fn pairs_pushed_by_compiled_code_are_not_part_of_its_frame() {
    // stp x4, x0, [sp, -16]!; bl; ldr x4, [sp], 16
    let check = bytes(&[0xa9bf_03e4, BL, 0xf841_07e4]);
    assert_stages(
        &[(0x60, &check)],
        0..0,
        &[
            ("at the push", 0x60, 0x30, false),
            ("at the call", 0x64, 0x40, false),
            ("at the pop", 0x68, 0x40, false),
            ("after the pop", 0x6c, 0x30, false),
        ],
    );
}

/// For an array copy that needs a type check, C1 has pushed the two arrays before the classes.
#[test]
fn the_arrays_below_the_classes_are_counted_too() {
    // stp x3, x0, [sp, -16]!; ldr w3, [x3, 8]; b.eq cont; stp x3, x0, [sp, -16]!; bl; ldp x3, x0, [sp], 16;
    // cbnz x3, cont; ldp x3, x0, [sp], 16; b; cont: ldp x3, x0, [sp], 16
    let (push, pop) = (0xa9bf_03e3, 0xa8c1_03e3);
    let copy =
        bytes(&[push, 0xb940_0863, 0x5400_00e0, push, BL, pop, 0xb500_0063, pop, 0x1400_0010, pop, NOP]);
    let below = [0x30, 0x40, 0x40, 0x40, 0x50, 0x50, 0x40, 0x40, 0x30, 0x40, 0x30];
    let stages: Vec<_> =
        (0..).zip(below).map(|(number, below)| ("in the copy", 0x60 + 4 * number, below, false)).collect();
    assert_stages(&[(0x60, &copy)], 0..0, &stages);
}

/// Regression: a string search has a table on the stack, and the walk took words of the table for the frame.
#[test]
fn the_table_of_a_search_in_a_string_is_not_the_frame() {
    // sub sp, sp, 256; mov x22, 8; mov x8, sp; nop; add sp, sp, 256; b; nop; add sp, sp, 256; b; nop
    let search = [
        0xd104_03ff,
        0xb27d_03f6,
        0x9100_03e8,
        NOP,
        0x9104_03ff,
        0x1400_0010,
        NOP,
        0x9104_03ff,
        0x1400_0010,
        NOP,
    ];
    let (own, with_table) = (0x30, 0x130);
    let sp_at = [own, with_table, with_table, with_table, with_table, own, with_table, with_table, own, own];
    for (number, below) in (0..).zip(sp_at) {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, code) = world.compiled_with(&[(0x60, &bytes(&search))]);
        world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, return_pc | SIGNATURE);
        // The words of the table are no addresses.
        for word in (CALLER_SP - 0x130..CALLER_SP - 0x30).step_by(8) {
            world.set(word, 0x1010_1010_1010_1010);
        }
        let frames = world.walk(code + 0x60 + 4 * number, CALLER_SP - below, 0x4242, &[]);
        assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)], "at instruction {number}");
    }
}

/// C2 leaves a pair with the return address on the stack while it calls native code.
#[test]
fn a_call_of_native_code_leaves_a_pair_on_the_frame() {
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    // blr x8; add sp, sp, 16
    let (method, code) = world.compiled_with(&[(0x60, &bytes(&[0xa9bf_27ff, 0xd63f_0100, 0x9100_43ff]))]);
    let next = code + 0x68;
    world.set(CALLER_SP - 0x40, 0).set(CALLER_SP - 0x38, next);
    world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, return_pc);
    for pc in [next, code + 0x64] {
        let frames = world.walk(pc, CALLER_SP - 0x40, 0x4242, &[]);
        assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)]);
    }
}

/// Regression: the pair that `Continuation.doYield` pushes for its call of the VM was taken for a part of its
/// frame.
#[test]
fn a_call_of_the_vm_leaves_another_pair_on_the_frame() {
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    // stp x8, x12, [sp, -16]!; blr x8; ldp x8, x12, [sp], 16
    let (method, code) = world.compiled_with(&[(0x60, &bytes(&[0xa9bf_33e8, 0xd63f_0100, 0xa8c1_33e8]))]);
    let (leaf, leaf_code) = world.compiled();
    world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, return_pc);
    let pair = CALLER_SP - 0x40;
    world.set(pair - 16, 0x1234).set(pair - 8, code + 0x68);
    let frames = world.walk(leaf_code + 0x80, pair - 0x30, 0x4242, &[]);
    assert_eq!(frames, [(Compiled, leaf, 7), (Compiled, method, 7), (Compiled, caller, 7)]);
}

/// Regression: a wrapper of a method handle intrinsic has no frame but the record around its barrier's call.
/// x30, which that call has changed, was taken for the return address, and after the call the caller was not
/// found.
#[test]
fn a_method_handles_wrapper_is_left_by_its_barriers_record() {
    // stp x29, x30, [sp, -16]!; mov x29, sp; stp x0, x1, [sp, -16]!; bl; ldp x0, x1, [sp], 16; mov sp, x29;
    // ldp x29, x30, [sp], 16; ldr x8, [x12, 64]; br x8
    let code = [
        0xa9bf_7bfd,
        0x9100_03fd,
        0xa9bf_07e0,
        BL,
        0xa8c1_07e0,
        0x9100_03bf,
        0xa8c1_7bfd,
        0xf940_2188,
        0xd61f_0100,
    ];
    // SP below the caller's, whether x29 points to the record, and whether x30 has the caller's value.
    let stages = [
        (0, false, true),
        (16, false, true),
        (16, true, true),
        (32, true, true),
        (32, true, false),
        (16, true, false),
        (16, true, false),
        (0, false, true),
        (0, false, true),
    ];
    for (number, (below, has_fp, has_lr)) in (0..).zip(stages) {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (vm_method, vm_code) = world.compiled();
        let (method, _) = world.method();
        let code = bytes(&code);
        let (name, frame_complete) = ("native nmethod", code.len() as i32);
        let start = world.blob(&BlobSpec { name, code: &code, frame_bytes: 0, frame_complete, method });
        let record = CALLER_SP - 16;
        if below > 0 {
            world.set(record, 0x1234).set(record + 8, return_pc);
        }
        let (pc, sp) = (start + 4 * number, CALLER_SP - below);
        let fp = if has_fp { record } else { 0x1234 };
        let lr = if has_lr { return_pc } else { start + 16 };
        let methods = |frames: Vec<(FrameKind, u64, i32)>| -> Vec<u64> {
            frames.into_iter().map(|frame| frame.1).collect()
        };
        assert_eq!(methods(world.walk(pc, sp, fp, &[(LR, lr)])), [method, caller], "instruction {number}");
        if !has_lr && number == 4 {
            world.set(sp - 16, record).set(sp - 8, pc);
            let frames = world.walk(vm_code + 0x80, sp - 0x30, 0x4242, &[]);
            assert_eq!(methods(frames), [vm_method, method, caller]);
        }
    }
}

#[test]
fn a_stub_of_a_call_stands_for_the_call() {
    // isb; mov x12, method; mov x8, entry; br x8. And the stub for far targets: ldr x8, target; br x8.
    let to_interpreter = bytes(&[
        0xd503_3fdf,
        0xd280_000c,
        0xf2a0_000c,
        0xf2c0_000c,
        0xd280_0008,
        0xf2a0_0008,
        0xf2c0_0008,
        0xd61f_0100,
    ]);
    let trampoline = bytes(&[0x5800_0048, 0xd61f_0100]);
    for (stub, offsets) in [(&to_interpreter, &[0_u64, 4, 12, 16, 28][..]), (&trampoline, &[0, 4])] {
        for &offset in offsets {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let (method, code) = world.compiled_with(&[(0x300, stub)]);
            world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, return_pc);
            let frames = world.walk(code + 0x300 + offset, CALLER_SP - 0x30, 0x4242, &[(LR, code + 0x80)]);
            assert_eq!(frames, [(Compiled, method, 7), (Compiled, caller, 7)], "at {offset}");
        }
    }
}
