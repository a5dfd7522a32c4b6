//! Interrupted adapters on x86_64.

use otlpprof_core::record::FrameKind::{Compiled, Stub};

use super::machine::{BARRIER, BARRIER_RETURNED, barrier_stages};
use crate::walk::tests::vm_world::*;

/// Regression: at a C2I adapter's barriers r13 still had a value from an earlier call, which was taken for
/// the caller's SP (all versions).
#[test]
fn an_adapter_takes_the_senders_sp_from_r13_only_once_it_is_there() {
    // The barriers, then the instructions of JDK 21 and of JDK 17 that save the sender's SP.
    let after_21 = [&[0x90; 0x100][..], &[0x4c, 0x8d, 0x6c, 0x24, 0x08], &[0x58, 0x90, 0x50]].concat();
    let after_17 = [&[0x90; 0x100][..], &[0x58, 0x4c, 0x8b, 0xec], &[0x90; 4]].concat();
    let stale = CALLER_SP + 0x40;
    // The label, the code, the offset, the bytes between SP and the caller's SP, whether the return address
    // is in rax, and r13.
    let stages = [
        ("21, at the barriers", &after_21, 0x20, 8, false, stale),
        ("21, at lea", &after_21, 0x100, 8, false, stale),
        ("21, after lea", &after_21, 0x105, 8, false, CALLER_SP),
        ("21, return address popped", &after_21, 0x106, 0x20, true, CALLER_SP),
        ("17, at the barriers", &after_17, 0x20, 8, false, stale),
        ("17, at pop", &after_17, 0x100, 8, false, stale),
        ("17, return address popped", &after_17, 0x101, 0, true, stale),
        ("17, sender's SP saved", &after_17, 0x104, 0x20, true, CALLER_SP),
    ];
    for (stage, code, offset, depth, in_rax, r13) in stages {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let adapter = world.adapter(code);
        let sp = CALLER_SP - depth;
        world.set(sp, if in_rax { 0 } else { return_pc });
        let rax = if in_rax { return_pc } else { 0 };
        let frames = world.walk(adapter + offset, sp, 0x1234, &[(0, rax), (13, r13)]);
        assert_eq!(frames, [(Stub, adapter + offset, 0), (Compiled, caller, 7)], "{stage}");
    }
}

/// Regression: adapters from an AOT cache, whose names tell only the types of their arguments, were taken for
/// stubs. Their callers were passed over, or stood there twice.
#[test]
fn an_adapter_of_an_aot_cache_is_known_by_its_kind() {
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    let code = [&[0x90; 0x100][..], &[0x4c, 0x8d, 0x6c, 0x24, 0x08], &[0x58, 0x90, 0x50]].concat();
    let adapter = world.adapter_of_aot_cache(&code);
    // The return address has been popped.
    let pc = adapter + 0x106;
    let frames = world.walk(pc, CALLER_SP - 0x20, 0x1234, &[(0, return_pc), (13, CALLER_SP)]);
    assert_eq!(frames, [(Stub, pc, 0), (Compiled, caller, 7)]);
}

/// Regression: for a C2I adapter that has its caller's call patched, the walk went on at the address in rax,
/// whatever it was.
#[test]
fn an_adapter_that_has_its_caller_patched_keeps_its_sp_in_r13() {
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    let code = [&[0x90; 0x100][..], &[0x58, 0x4c, 0x8b, 0xec]].concat();
    let adapter = world.adapter(&code);
    world.set(CALLER_SP - 8, return_pc);
    let frames = world.walk(adapter + 0x20, CALLER_SP - 0xa08, 0x1234, &[(0, DISPATCH), (13, CALLER_SP - 8)]);
    assert_eq!(frames, [(Stub, adapter + 0x20, 0), (Compiled, caller, 7)]);
}

/// Regression: when a C2I adapter had called the VM to patch the call, the walk looked for its caller by RBP,
/// which is the caller's own. Callers were passed over, and others invented.
#[test]
fn an_adapter_that_has_called_the_vm_is_left_by_the_registers_that_it_has_saved() {
    // The size of FXSAVE's area, and of XSAVE's.
    for (padding, size) in [(0, 512), (8, 512), (0, 2688)] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (vm_method, vm_code) = world.compiled();
        // `vzeroupper; fxrstor64 [rsp]; add rsp, size`.
        let mut code = vec![0x90; 0x100];
        code[0x40..0x4b].copy_from_slice(&[0xc5, 0xf8, 0x77, 0x48, 0x0f, 0xae, 0x0c, 0x24, 0x48, 0x81, 0xc4]);
        code[0x4b..0x4f].copy_from_slice(&(size as u32).to_le_bytes());
        let adapter = world.adapter(&code);
        let sender = CALLER_SP - 8;
        let base = sender - padding - 144;
        let sp = base - size;
        world.set(sender, return_pc).set(base + 16, sender).set(base + 80, 0x1234).set(base + 120, return_pc);
        // RBP points to a frame, too, but not to the next one.
        world.set(CALLER_SP + 0x40, CALLER_SP + 0x80).set(CALLER_SP + 0x48, return_pc);
        world.set(sp - 8, adapter + 0x40).set(sp - 16, CALLER_SP + 0x40);
        let frames = world.walk(vm_code + 0x80, sp - 0x30, 0x1234, &[]);
        let expected = [(Compiled, vm_method, 7), (Stub, adapter + 0x3f, 0), (Compiled, caller, 7)];
        assert_eq!(frames, expected, "{padding} {size}");
    }
}

/// Regression: the word that an earlier call had left in the room for the arguments was taken for the return
/// address, which is in rax meanwhile.
#[test]
fn each_instruction_to_compiled_code_leads_to_the_interpreted_caller() {
    // The instructions, and their effects on the stack: popping the return address, making room, or pushing
    // the address again.
    let pop: (&[u8], _) = (&[0x58], Some((0, true)));
    let room: (&[u8], _) = (&[0x48, 0x83, 0xec, 0x18], Some((0x18, true)));
    let align: (&[u8], _) = (&[0x48, 0x83, 0xe4, 0xf0], Some((8, true)));
    let push: (&[u8], _) = (&[0x50], Some((8, false)));
    // mov r11, rsp; mov rax, r11; mov r11, [rbx + 0x40]; mov rsi, [rax + 8]; mov [rsp + 8], rsi;
    // mov [r15 + 0x3e8], rbx; jmp r11
    let keep: (&[u8], _) = (&[0x4c, 0x8b, 0xdc], None);
    let load: [(&[u8], _); 6] = [
        (&[0x49, 0x8b, 0xc3], None),
        (&[0x4c, 0x8b, 0x5b, 0x40], None),
        (&[0x48, 0x8b, 0x70, 0x08], None),
        (&[0x48, 0x89, 0x74, 0x24, 0x08], None),
        (&[0x49, 0x89, 0x9f, 0xe8, 3, 0, 0], None),
        (&[0x41, 0xff, 0xe3], None),
    ];
    let with_arguments = [&[pop, keep, room, align, push][..], &load].concat();
    let without = [&[pop, keep, align, push][..], &load].concat();
    for instructions in [with_arguments, without] {
        // C2I lies after: lea r13, [rsp + 8]; pop rax.
        let mut code: Vec<u8> = instructions.iter().flat_map(|(code, _)| code.to_vec()).collect();
        code.extend([0x4c, 0x8d, 0x6c, 0x24, 0x08, 0x58]);
        let sender_sp = CALLER_SP - 0x1a0;
        let (mut offset, mut sp, mut in_rax) = (0, sender_sp - 8, false);
        for (number, (bytes, change)) in instructions.iter().enumerate() {
            let mut world = World::new();
            let callers = interpreted_callers(&mut world, DISPATCH + 0x40, INTERPRETED_FP + 0x20);
            let (_, gone) = world.compiled();
            // An argument. Below it are return addresses of earlier calls.
            world.set(sender_sp, 0x4242);
            for word in 1..0x10 {
                world.set(sender_sp - 8 * word, gone + 0x80);
            }
            if !in_rax {
                world.set(sp, DISPATCH);
            }
            let adapter = world.adapter(&code);
            let rax = if in_rax { DISPATCH } else { 0x4242 };
            let frames = world.walk(adapter + offset, sp, INTERPRETED_FP, &[(0, rax), (13, sender_sp)]);
            let expected = [&[(Stub, adapter + offset, 0)][..], &callers].concat();
            assert_eq!(frames, expected, "instruction {number}, {bytes:x?}");
            offset += bytes.len() as u64;
            if let &Some((down, is_in_rax)) = change {
                sp = if number == 0 { sender_sp } else { sp - down };
                in_rax = is_in_rax;
            }
        }
    }
}

/// Regression: a barrier in a C2I adapter saves registers, and calls the collector for the class of some
/// methods. The word on top of the stack was taken for the return address, or no return address was found
/// (JDK 17 to 25).
#[test]
fn an_adapter_in_a_barrier_is_left_over_the_registers_that_the_barrier_saved() {
    for (number, (offset, saved)) in barrier_stages().into_iter().enumerate() {
        for is_called in [false, true] {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let (vm_method, vm_code) = world.compiled();
            // lea r13, [rsp + 8]; pop rax
            let code =
                [&BARRIER.concat()[..], &[0x4c, 0x8d, 0x6c, 0x24, 0x08, 0x58, 0x50, 0xff, 0xe1]].concat();
            let adapter = world.adapter(&code);
            let sp = CALLER_SP - 8 - saved;
            world.set(CALLER_SP - 8, return_pc);
            let expected = [(Stub, adapter + offset, 0), (Compiled, caller, 7)];
            if !is_called {
                let frames = world.walk(adapter + offset, sp, 0x1234, &[(0, 0x4242), (13, CALLER_SP + 0x40)]);
                assert_eq!(frames, expected, "instruction {number}");
            } else if offset == BARRIER_RETURNED {
                world.set(sp - 8, adapter + offset).set(sp - 16, 0x1234);
                let frames = world.walk(vm_code + 0x80, sp - 0x30, 0x1234, &[]);
                assert_eq!(frames[0], (Compiled, vm_method, 7));
                assert_eq!(frames[1..], [(Stub, adapter + offset - 1, 0), expected[1]]);
            }
        }
    }
}
