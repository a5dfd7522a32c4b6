//! Stubs that pass an exception on, interrupted at each of their stages, on aarch64.

use otlpprof_core::record::FrameKind::{Compiled, Native, Stub};
use otlpprof_core::unwind_rule::{CfaRule, FpRule};

use super::machine::*;
use crate::walk::tests::native::{BASE, object, rule};
use crate::walk::tests::vm_world::*;

const X3: usize = 3;
const STALE: u64 = 0x4242;

/// The place of the address at which the frame was left.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Left {
    InX3,
    OnStack,
    InLr,
}

#[test]
fn an_exception_blob_leads_to_the_frame_whose_exception_it_has() {
    use Left::{InLr, InX3, OnStack};
    // `ldp x29, x3, [sp], 16` of JDK 21 and 25, `ldp x29, x30, [sp], 16` of JDK 11 and 17.
    for (pop, after) in [(0xa8c1_0ffd, InX3), (0xa8c1_7bfd, InLr)] {
        // stp x29, x30, [sp, -16]!; nop…; the pop; nop; br x8
        let mut code = vec![0xa9bf_7bfd];
        code.resize(0x10, NOP);
        code.extend([pop, NOP, 0xd61f_0100]);
        for (stage, offset, below, left) in [
            ("at the push", 0, 0, InX3),
            ("after it", 4, 16, OnStack),
            ("inside", 0x20, 16, OnStack),
            ("at the pop", 0x40, 16, OnStack),
            ("after it", 0x44, 0, after),
            ("at br", 0x48, 0, after),
        ] {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let code = bytes(&code);
            let name = "ExceptionBlob";
            let blob =
                world.blob(&BlobSpec { name, code: &code, frame_bytes: 16, frame_complete: -1, method: 0 });
            let value = |place| if left == place { return_pc } else { STALE };
            world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, value(OnStack));
            let registers = [(X3, value(InX3)), (LR, value(InLr))];
            let frames = world.walk(blob + offset, CALLER_SP - below, 0x1234, &registers);
            assert_eq!(frames, [(Stub, blob + offset, 0), (Compiled, caller, 7)], "{pop:#x} {stage}");
        }
    }
}

#[test]
fn a_stub_that_jumps_to_a_handler_leads_to_the_handlers_frame() {
    // From after `mov x3, x30` or `mov x3, x19` up to the jump.
    for (moves, jump) in [(0xaa1e_03e3, 0xd61f_0020), (0xaa13_03e3, 0xd61f_0260)] {
        for after in 1..4 {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let mut code = vec![NOP; 0x10];
            code.extend([moves, NOP, NOP, jump]);
            let code = bytes(&code);
            let name = "rethrow_stub";
            let stub =
                world.blob(&BlobSpec { name, code: &code, frame_bytes: 16, frame_complete: -1, method: 0 });
            world.set(CALLER_SP, STALE).set(CALLER_SP + 8, STALE);
            let pc = stub + 0x40 + 4 * after;
            let frames = world.walk(pc, CALLER_SP, 0x1234, &[(X3, return_pc), (LR, STALE)]);
            assert_eq!(frames, [(Stub, pc, 0), (Compiled, caller, 7)], "{moves:#x} {after}");
        }
    }
}

/// C1's handle_exception_from_callee replaces its return address by the handler, and returns to that.
#[test]
fn a_stub_that_returns_to_a_handler_leads_to_the_handlers_frame() {
    // str x0, [x29, 8]; mov sp, x29; ldp x29, x30, [sp], 16; ret
    let exit = [0xf900_07a0, 0x9100_03bf, 0xa8c1_7bfd, RET];
    for (index, below, in_lr) in [(1, 0x40, false), (2, 16, false), (3, 0, true)] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let code = bytes(&[&[NOP; 0x10][..], &exit].concat());
        let name = "handle_exception_from_callee Runtime1 stub";
        let stub =
            world.blob(&BlobSpec { name, code: &code, frame_bytes: 0x40, frame_complete: -1, method: 0 });
        world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, if in_lr { STALE } else { return_pc });
        let pc = stub + 0x40 + 4 * index;
        let fp = if in_lr { 0x1234 } else { CALLER_SP - 16 };
        let lr = if in_lr { return_pc } else { stub + 0x20 };
        let frames = world.walk(pc, CALLER_SP - below, fp, &[(LR, lr)]);
        assert_eq!(frames, [(Stub, pc, 0), (Compiled, caller, 7)], "at {index}");
    }
}

/// C1's unwind_exception has called the VM: it has no frame size, and has pushed pairs.
#[test]
fn a_stub_without_frame_size_that_has_called_out_leads_to_its_caller() {
    for pairs in [0, 1] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let code = bytes(&[BL; 0x20]);
        let name = "C1 Runtime unwind_exception_blob";
        let stub =
            world.blob(&BlobSpec { name, code: &code, frame_bytes: -8, frame_complete: -1, method: 0 });
        world.objects = object(&[rule(CfaRule::SpPlus(0x10), FpRule::Same)], 42);
        world.memory.put_u64(0x100, 42).put_u64(THREAD, 0).put(THREAD + 24, 8_u32.to_le_bytes());
        // From SP on: the frame of the VM's function with the stub's return address, pairs that the stub has
        // pushed, and x30 with the exception.
        let sp = CALLER_SP - 0x20 - 16 * pairs;
        world.set(sp + 8, stub + 4);
        for slot in (sp + 0x10..CALLER_SP).step_by(8) {
            world.set(slot, STALE);
        }
        world.set(CALLER_SP - 16, return_pc);
        let frames = world.walk(BASE + 0x10, sp, ENTRY_FP, &[(LR, STALE)]);
        let expected = [(Native, BASE + 0x10, 3), (Stub, stub + 3, 0), (Compiled, caller, 7)];
        assert_eq!(frames, expected, "{pairs}");
    }
}
