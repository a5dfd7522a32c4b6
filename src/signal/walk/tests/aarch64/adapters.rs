//! Adapters on aarch64.

use super::machine::*;
use crate::core::record::FrameKind::{Compiled, Stub};
use crate::signal::walk::tests::vm_world::*;

const FRAME_RECORD: [u32; 2] = [0xa9bf_7bfd, 0x9100_03fd];

#[test]
fn an_adapter_takes_the_senders_sp_from_the_register_once_it_is_there() {
    for (set_sender_sp, register) in [(0x9100_03ed, 13), (0x9100_03f3, 19)] {
        let mut code = vec![NOP; 0x40];
        code[0x20..0x22].copy_from_slice(&FRAME_RECORD);
        code[0x30] = set_sender_sp;
        // Offset, SP below the caller's, the register's value, x29 below the caller's SP if it is a record's.
        for (stage, offset, below, sender_sp, record) in [
            ("at the barriers", 0x40, 0, 0x4242, None),
            ("at the patching's record", 0x80, 0, 0x4242, None),
            ("behind its push", 0x84, 16, 0x4242, None),
            ("in the patching", 0x98, 0x100, 0x4242, Some(16)),
            ("at the save", 0xc0, 0, 0x4242, None),
            ("behind it, with room for arguments", 0xc8, 0x20, CALLER_SP, None),
        ] {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let adapter = world.blob(&BlobSpec {
                name: "I2C/C2I adapters",
                code: &bytes(&code),
                frame_bytes: 0,
                frame_complete: -1,
                method: 0,
            });
            world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, return_pc);
            let fp = record.map_or(0x1234, |below| CALLER_SP - below);
            let registers = [(LR, return_pc), (register, sender_sp)];
            let frames = world.walk(adapter + offset, CALLER_SP - below, fp, &registers);
            assert_eq!(frames, [(Stub, adapter + offset, 0), (Compiled, caller, 7)], "{stage}, x{register}");
        }
    }
}

/// While C2I has its caller's call patched, x29 leads to its record.
#[test]
fn an_adapter_that_has_called_the_vm_is_left_by_its_record() {
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    let (vm_method, vm_code) = world.compiled();
    let adapter = world.blob(&BlobSpec {
        name: "I2C/C2I adapters",
        code: &bytes(&[NOP; 0x40]),
        frame_bytes: 0,
        frame_complete: -1,
        method: 0,
    });
    world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, return_pc);
    let sp = CALLER_SP - 0x200;
    world.set(sp - 8, adapter + 0x40).set(sp - 16, CALLER_SP - 16);
    let frames = world.walk(vm_code + 0x80, sp - 0x30, 0x1234, &[]);
    let expected = [(Compiled, vm_method, 7), (Stub, adapter + 0x3f, 0), (Compiled, caller, 7)];
    assert_eq!(frames, expected);
}
