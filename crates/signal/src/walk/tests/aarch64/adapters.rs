//! Interrupted adapters on aarch64.

use otlpprof_core::record::FrameKind::{Compiled, Stub};

use super::machine::*;
use crate::walk::tests::vm_world::*;

const FRAME_RECORD: [u32; 2] = [0xa9bf_7bfd, 0x9100_03fd];
const POP_RECORD: u32 = 0xa8c1_7bfd;
const BR_X8: u32 = 0xd61f_0100;

#[test]
fn an_adapter_takes_the_senders_sp_from_the_register_once_it_is_there() {
    for (set_sender_sp, register) in [(0x9100_03ed, 13), (0x9100_03f3, 19)] {
        let mut code = vec![NOP; 0x40];
        code[0x20..0x22].copy_from_slice(&FRAME_RECORD);
        code[0x28] = POP_RECORD;
        code[0x30] = set_sender_sp;
        // The label, the offset, SP below the caller's, the register's value, and x29 below the caller's SP
        // if it points to the record.
        for (stage, offset, below, sender_sp, record) in [
            ("at the barriers", 0x40, 0, 0x4242, None),
            ("at the patching's record", 0x80, 0, 0x4242, None),
            ("after its push", 0x84, 16, 0x4242, None),
            ("in the patching", 0x98, 0x100, 0x4242, Some(16)),
            ("at the save", 0xc0, 0, 0x4242, None),
            ("after it, with room for arguments", 0xc8, 0x20, CALLER_SP, None),
        ] {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let adapter = world.adapter(&bytes(&code));
            world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, return_pc);
            let fp = record.map_or(0x1234, |below| CALLER_SP - below);
            let registers = [(LR, return_pc), (register, sender_sp)];
            let frames = world.walk(adapter + offset, CALLER_SP - below, fp, &registers);
            assert_eq!(frames, [(Stub, adapter + offset, 0), (Compiled, caller, 7)], "{stage}, x{register}");
        }
    }
}

/// Regression: after the patching of the caller's call, SP with room for the arguments was taken for the
/// caller's.
#[test]
fn a_removed_record_does_not_determine_the_room_for_arguments() {
    for (set_sender_sp, register) in [(0x9100_03ed, 13), (0x9100_03f3, 19)] {
        // stp; mov x29, sp; bl; mov sp, x29; ldp; mov x19, sp; sub sp, sp, 32; str x0, [sp, 8];
        // ldr x8, [x12, 64]; br x8
        let code = [
            FRAME_RECORD[0],
            FRAME_RECORD[1],
            BL,
            0x9100_03bf,
            POP_RECORD,
            set_sender_sp,
            0xd100_83ff,
            0xf900_07e0,
            0xf940_2188,
            BR_X8,
        ];
        // SP below the caller's, whether the sender's SP is set, and whether x29 and x30 have the caller's
        // values.
        let stages = [
            (0, false, true),
            (16, false, false),
            (16, false, false),
            (16, false, false),
            (16, false, false),
            (0, false, true),
            (0, true, true),
            (0x20, true, true),
            (0x20, true, true),
            (0x20, true, true),
        ];
        for (number, (below, is_set, in_registers)) in (0..).zip(stages) {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let adapter = world.adapter(&bytes(&code));
            world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, return_pc);
            // x29 points to the record from the third instruction on, and x30 is the adapter's after the
            // call.
            let fp = if in_registers || number == 1 { 0x1234 } else { CALLER_SP - 16 };
            let lr = if number == 3 || number == 4 { adapter + 12 } else { return_pc };
            let sender_sp = if is_set { CALLER_SP } else { 0x4242 };
            let pc = adapter + 4 * number;
            let frames = world.walk(pc, CALLER_SP - below, fp, &[(LR, lr), (register, sender_sp)]);
            assert_eq!(frames, [(Stub, pc, 0), (Compiled, caller, 7)], "x{register}, instruction {number}");
        }
    }
}

/// Regression: C2I pushes a pair while a collector is asked for the method's class, and pushes a record below
/// that pair. Both were not counted, and the walk looked for the caller's frame below its place.
#[test]
fn an_adapter_that_asks_for_the_methods_class_keeps_a_pair() {
    // stp x10, xzr, [sp, -16]!; stp; mov x29, sp; bl; mov sp, x29; ldp; ldp x10, xzr, [sp], 16; cbnz
    let code = [
        0xa9bf_7fea,
        FRAME_RECORD[0],
        FRAME_RECORD[1],
        BL,
        0x9100_03bf,
        POP_RECORD,
        0xa8c1_7fea,
        0xb500_0068,
    ];
    let below = [0, 16, 32, 32, 32, 32, 16, 0];
    for (number, below) in (0..).zip(below) {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let adapter = world.adapter(&bytes(&code));
        world.set(CALLER_SP - 32, 0x1234).set(CALLER_SP - 24, return_pc);
        let fp = if matches!(number, 3..=5) { CALLER_SP - 32 } else { 0x1234 };
        let lr = if matches!(number, 4 | 5) { adapter + 16 } else { return_pc };
        let pc = adapter + 4 * number;
        let frames = world.walk(pc, CALLER_SP - below, fp, &[(LR, lr)]);
        assert_eq!(frames, [(Stub, pc, 0), (Compiled, caller, 7)], "instruction {number}");
        if number == 4 {
            let (vm_method, vm_code) = world.compiled();
            let sp = CALLER_SP - below;
            world.set(sp - 16, fp).set(sp - 8, pc);
            let frames = world.walk(vm_code + 0x80, sp - 0x30, 0x1234, &[]);
            assert_eq!(frames, [(Compiled, vm_method, 7), (Stub, pc - 1, 0), (Compiled, caller, 7)]);
        }
    }
}

/// Regression: if the interpreted method and its caller were called by bytecodes of one kind, both return to
/// one place of the interpreter. The method's own record was then taken for the adapter's, and the method was
/// passed over.
#[test]
fn each_instruction_to_compiled_code_leads_to_the_interpreted_caller() {
    // sub x8, sp, 24; and sp, x8, -16; ldr x8, [x12, 64]; ldr x0, [x20, 16]; str x0, [sp, 8]; mov x9, x8;
    // str x12, [x28, 1000]; br x8
    let with_arguments =
        [0xd100_63e8, 0x927c_ed1f, 0xf940_2188, 0xf940_0a80, 0xf900_07e0, 0xaa08_03e9, 0xf901_f78c, BR_X8];
    let without = [0xf940_2188, 0xf940_0a80, BR_X8];
    for (code, moves_sp) in [(&with_arguments[..], 1), (&without[..], usize::MAX)] {
        for number in 0..code.len() {
            let mut world = World::new();
            let callers = interpreted_callers(&mut world, DISPATCH, INTERPRETED_FP + 0x20);
            // C2I, which lies after I2C, makes a record as well.
            let after = [&[NOP; 4][..], &FRAME_RECORD, &[NOP, POP_RECORD, 0x9100_03f3]].concat();
            let adapter = world.adapter(&bytes(&[code, &after].concat()));
            let sp = INTERPRETED_FP - 0x80 - if number > moves_sp { 0x20 } else { 0 };
            let pc = adapter + 4 * number as u64;
            let registers = [(LR, DISPATCH), (20, INTERPRETED_FP - 0x78), (19, INTERPRETED_FP - 0x80)];
            let frames = world.walk(pc, sp, INTERPRETED_FP, &registers);
            let expected = [&[(Stub, pc, 0)][..], &callers].concat();
            assert_eq!(frames, expected, "instruction {number} of {}", code.len());
        }
    }
}

/// While C2I has its caller's call patched, x29 points to its record.
///
/// Regression: adapters from an AOT cache, whose names tell only the types of their arguments, were taken for
/// stubs.
#[test]
fn an_adapter_that_has_called_the_vm_is_left_by_its_record() {
    for make in [World::adapter, World::adapter_of_aot_cache] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (vm_method, vm_code) = world.compiled();
        let adapter = make(&mut world, &bytes(&[NOP; 0x40]));
        world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, return_pc);
        let sp = CALLER_SP - 0x200;
        world.set(sp - 8, adapter + 0x40).set(sp - 16, CALLER_SP - 16);
        let frames = world.walk(vm_code + 0x80, sp - 0x30, 0x1234, &[]);
        let expected = [(Compiled, vm_method, 7), (Stub, adapter + 0x3f, 0), (Compiled, caller, 7)];
        assert_eq!(frames, expected);
    }
}
