//! Stubs that pass an exception on, interrupted at each of their stages.

use otlpprof_core::record::FrameKind::{Compiled, Native, Stub};
use otlpprof_core::unwind_rule::{CfaRule, FpRule};

use crate::walk::tests::native::{BASE, object, rule};
use crate::walk::tests::vm_world::*;

const RDX: usize = 1;
const RCX: usize = 2;
const STALE: u64 = 0x4242;

/// Regression: the word on top of the stack in an ExceptionBlob, which is padding, was taken for a return
/// address.
#[test]
fn an_exception_blob_leads_to_the_frame_whose_exception_it_has() {
    // push rdx; sub rsp, 8; nop…; add rsp, 8; pop rdx; nop…; jmp r8
    let mut code = vec![0x52, 0x48, 0x83, 0xec, 0x08];
    code.resize(0x40, 0x90);
    code.extend([0x48, 0x83, 0xc4, 0x08, 0x5a, 0x90, 0x41, 0xff, 0xe0]);
    for (stage, offset, below, in_rdx) in [
        ("at push", 0, 0, true),
        ("at sub", 1, 8, false),
        ("inside", 0x20, 16, false),
        ("at add", 0x40, 16, false),
        ("at pop", 0x44, 8, false),
        ("after pop", 0x45, 0, true),
        ("at jmp", 0x46, 0, true),
    ] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let spec =
            BlobSpec { name: "ExceptionBlob", code: &code, frame_bytes: 16, frame_complete: -1, method: 0 };
        let blob = world.blob(&spec);
        // Return addresses of older calls.
        world.set(CALLER_SP - 8, return_pc + 1).set(CALLER_SP - 16, return_pc + 1);
        if !in_rdx {
            world.set(CALLER_SP - 8, return_pc);
        }
        let rdx = if in_rdx { return_pc } else { STALE };
        let frames = world.walk(blob + offset, CALLER_SP - below, 0x1234, &[(RDX, rdx)]);
        assert_eq!(frames, [(Stub, blob + offset, 0), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: after the `pop` of the return address, a word left over on the stack was taken for the return
/// address.
#[test]
fn a_stub_that_jumps_to_a_handler_leads_to_the_handlers_frame() {
    // The label, the code up to the interruption, the code from there on, the register with the frame's PC,
    // and the bytes below the frame.
    type Stage<'a> = (&'a str, &'a [u8], &'a [u8], Option<usize>, u64);
    let stages: [Stage<'_>; 5] = [
        ("pop rdx; jmp rax", &[0x5a], &[0xff, 0xe0], Some(RDX), 0),
        ("pop rdx; jmp r10", &[0x5a], &[0x41, 0xff, 0xe2], Some(RDX), 0),
        ("pop rcx; jmp rcx", &[0x59], &[0xff, 0xe1], Some(RCX), 0),
        ("leave; pop rcx; jmp rcx", &[0xc9], &[0x59, 0xff, 0xe1], None, 8),
        // The return address is copied to the top of the stack by a push and a pop.
        ("push [rsp + 16]; pop [rsp]", &[0xff, 0x74, 0x24, 0x10], &[0x48, 0x8f, 0x04, 0x24], None, 24),
    ];
    for (stage, before, after, register, below) in stages {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let code = [&[0x90; 0x40][..], before, after, &[0x90; 8]].concat();
        let spec =
            BlobSpec { name: "rethrow_stub", code: &code, frame_bytes: 16, frame_complete: -1, method: 0 };
        let stub = world.blob(&spec);
        world.set(CALLER_SP, STALE).set(CALLER_SP - 8, if register.is_none() { return_pc } else { STALE });
        let pc = stub + 0x40 + before.len() as u64;
        let registers: Vec<_> = register.map(|number| (number, return_pc)).into_iter().collect();
        let frames = world.walk(pc, CALLER_SP - below, 0x1234, &registers);
        assert_eq!(frames, [(Stub, pc, 0), (Compiled, caller, 7)], "{stage}");
    }
}

/// C1's unwind_exception has called the VM: it has no frame size, has aligned SP, and RBP has its caller's
/// value.
#[test]
fn a_stub_without_frame_size_that_has_called_out_leads_to_its_caller() {
    for padding in [0, 1] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let code = [0xe8, 0, 0, 0, 0].repeat(0x20);
        let spec = BlobSpec {
            name: "C1 Runtime unwind_exception_blob",
            code: &code,
            frame_bytes: -8,
            frame_complete: -1,
            method: 0,
        };
        let stub = world.blob(&spec);
        world.objects = object(&[rule(CfaRule::SpPlus(0x10), FpRule::Same)], 42);
        world.memory.put_u64(0x100, 42).put_u64(THREAD, 0).put(THREAD + 24, 8_u32.to_le_bytes());
        // From SP on: the frame of the VM's function, the stub's return address, the words that the stub has
        // pushed, and the return address into its caller.
        let sp = CALLER_SP - 0x20 - 16 * padding;
        world.set(sp + 8, stub + 5).set(CALLER_SP - 8, return_pc);
        for slot in (sp + 0x10..CALLER_SP - 8).step_by(8) {
            world.set(slot, STALE);
        }
        let frames = world.walk(BASE + 0x10, sp, ENTRY_FP, &[]);
        assert_eq!(
            frames,
            [(Native, BASE + 0x10, 3), (Stub, stub + 4, 0), (Compiled, caller, 7)],
            "{padding}"
        );
    }
}
