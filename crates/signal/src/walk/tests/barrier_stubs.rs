//! Compiled code in its stubs that call a collector's slow path, with registers saved on its frame.

use otlpprof_core::record::FrameKind::{Compiled, Native};
use otlpprof_core::unwind_rule::{CfaRule, FpRule};

use super::arch::machine;
use super::native::{BASE, object, rule};
use super::vm_world::*;

/// An address in the native code, which has a frame of two words.
const SLOW_PATH: u64 = BASE + 0x10;

/// The offset of a stub after the method's own code and its scopes, but before the stub section.
const BEFORE_STUBS: usize = 0x400;

/// A stub that saves [`BARRIER_SAVES`] bytes, calls, restores, and jumps back to the method's own code.
/// Another stub lies after it, whose exit must not be taken for this stub's.
pub(super) struct BarrierStub {
    pub(super) code: Vec<u8>,
    /// For each instruction its offset, and whether the registers lie on the frame before it runs.
    pub(super) stages: Vec<(usize, bool)>,
    /// The offset to which the call returns.
    pub(super) return_to: usize,
    /// The offsets of the jumps to the method's own code.
    pub(super) jumps: Vec<usize>,
}

/// The stub that C1 writes for a barrier of ZGC: its code, for each instruction its offset and the number of
/// bytes on the frame before it runs, and the offset of its jump to the method's own code.
pub(super) struct C1BarrierStub {
    pub(super) code: Vec<u8>,
    pub(super) stages: Vec<(usize, u64)>,
    pub(super) jump: usize,
}

/// Each stub at each of the two places where stubs can be.
fn stubs_by_place() -> impl Iterator<Item = (usize, BarrierStub)> {
    [STUBS, BEFORE_STUBS].into_iter().flat_map(|place| {
        machine::barrier_stubs().into_iter().map(move |mut stub| {
            for &jump in &stub.jumps {
                machine::move_jump(&mut stub.code[jump..], (STUBS - place) as i32);
            }
            (place, stub)
        })
    })
}

/// A method that is interrupted in its stub, at the offset `stub` of its code, and its caller.
fn world_where(stub: usize, code: &[u8]) -> (World, u64, u64, u64) {
    let mut world = World::new();
    let (caller, return_pc) = compiled_caller(&mut world);
    if stub < STUBS {
        world.scopes_end_at = Some(stub as i32 - 1);
    }
    let (callee, callee_code) = world.compiled_with(&[(stub, code)]);
    let sp = CALLER_SP - 0x30;
    // The slot that would hold the return address without the saved registers holds an address in the code
    // cache, too.
    world.set(sp + 0x20, 0x1234).set(sp + 0x28, return_pc).set(sp + 0x28 - BARRIER_SAVES, callee_code + 0x10);
    (world, callee, caller, callee_code)
}

/// Regression: in a stub before the stub section (ZGC, JDK 21) the saved registers were taken for a part of
/// the frame, since the last PcDesc, which has no scope, was taken for a scope's. So were those of the first
/// of two barriers in one stub (Shenandoah, JDK 27).
#[test]
fn registers_that_a_barrier_saves_are_no_part_of_the_frame() {
    for (stub, barrier) in stubs_by_place() {
        let BarrierStub { code, stages, .. } = barrier;
        for (offset, is_saved) in stages {
            let (mut world, callee, caller, callee_code) = world_where(stub, &code);
            let sp = CALLER_SP - 0x30 - if is_saved { BARRIER_SAVES } else { 0 };
            let frames = world.walk(callee_code + (stub + offset) as u64, sp, 0, &[]);
            let methods: Vec<_> = frames.iter().map(|frame| (frame.0, frame.1)).collect();
            assert_eq!(
                methods,
                [(Compiled, callee), (Compiled, caller)],
                "{stub:#x}, at {offset} of {code:x?}"
            );
        }
    }
}

/// Regression: in C1's stub for a load barrier of ZGC the arguments of the slow path, or the pushed rax
/// alone, were taken for a part of the frame. The stub lies in the stub section, or in front of other stubs
/// that have scopes.
#[test]
fn each_instruction_of_c1s_stub_for_a_load_barrier_leads_to_the_caller() {
    for place in [STUBS, BEFORE_STUBS] {
        for C1BarrierStub { mut code, stages, jump } in machine::c1_barrier_stubs() {
            machine::move_jump(&mut code[jump..], (STUBS - place) as i32);
            for (offset, bytes) in stages {
                let mut world = World::new();
                let (caller, return_pc) = compiled_caller(&mut world);
                let (callee, callee_code) = world.compiled_with(&[(place, &code)]);
                // The slot that would hold the return address, without the bytes on the frame.
                world.set(CALLER_SP - 8 - bytes, callee_code + 0x10);
                world.set(CALLER_SP - 16, 0x1234).set(CALLER_SP - 8, return_pc);
                let sp = CALLER_SP - 0x30 - bytes;
                let frames = world.walk(callee_code + (place + offset) as u64, sp, 0, &[]);
                let methods: Vec<_> = frames.iter().map(|frame| (frame.0, frame.1)).collect();
                let label = format!("{place:#x}, at {offset} of {code:x?}");
                assert_eq!(methods, [(Compiled, callee), (Compiled, caller)], "{label}");
            }
        }
    }
}

/// Regression: native code that compiled code calls from a barrier's stub led to a wrong caller, or to no
/// caller (ZGC).
#[test]
fn a_slow_path_is_called_from_below_the_registers_that_a_barrier_saves() {
    for (stub, BarrierStub { code, return_to, .. }) in stubs_by_place() {
        let (mut world, callee, caller, callee_code) = world_where(stub, &code);
        world.objects = object(&[rule(CfaRule::SpPlus(0x10), FpRule::Same)], 42);
        world.memory.put_u64(0x100, 42);
        let sp = CALLER_SP - 0x30 - BARRIER_SAVES;
        world.set(sp - 8, callee_code + (stub + return_to) as u64);
        let frames = world.walk(SLOW_PATH, sp - 16, 0, &[]);
        let methods: Vec<_> = frames.iter().map(|frame| (frame.0, frame.1)).collect();
        assert_eq!(methods, [(Native, SLOW_PATH), (Compiled, callee), (Compiled, caller)], "{stub:#x}");
    }
}
