//! Frames that are being turned from compiled into interpreted ones.

use otlpprof_core::continuation::ContinuationLayout;
use otlpprof_core::record::FrameKind::{Compiled, Frozen, Interpreted, Stub, Unwalkable};

use crate::walk::WalkError;
use crate::walk::tests::little_vm;
use crate::walk::tests::vm_world::*;

const VFRAME_ARRAY: u64 = 0x61_0000;

impl World {
    /// Stores a vframeArray in the thread: `elements` (method, bytecode index), the youngest first, to be
    /// unpacked above `caller` (PC, SP, FP).
    pub(in crate::walk::tests) fn vframe_array(
        &mut self,
        owner: u64,
        elements: &[(u64, i32)],
        caller: (u64, u64, u64),
    ) {
        let (pc, sp, fp) = caller;
        let mut words = vec![owner, pc, fp, sp, elements.len() as u64];
        words.extend(elements.iter().flat_map(|&(method, bci)| [u64::from(bci as u32), method]));
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.memory.put(VFRAME_ARRAY, bytes).put_u64(THREAD + little_vm::VFRAME_ARRAY_HEAD, VFRAME_ARRAY);
    }
}

/// A blob that turns compiled frames into interpreter frames, with `nop`s as its code.
fn deoptimization_blob(world: &mut World, name: &str) -> u64 {
    let code = [0x90; 0x40];
    world.blob(&BlobSpec { name, code: &code, frame_bytes: 0x80, frame_complete: -1, method: 0 })
}

/// Regression: interpreter frames that had been pushed and not been filled in yet ended the walk with
/// bad_interpreter_frame.
#[test]
fn frames_that_are_being_unpacked_come_from_the_vframe_array() {
    for name in ["DeoptimizationBlob", "UncommonTrapBlob"] {
        for (stage, fp) in [("in the blob", 0x1234), ("frames pushed", STACK + 0x200)] {
            let mut world = World::new();
            let (caller, return_pc) = compiled_caller(&mut world);
            let (inner, outer) = (world.method().0, world.method().0);
            let blob = deoptimization_blob(&mut world, name);
            world.vframe_array(THREAD, &[(inner, 3), (outer, -1)], (return_pc, CALLER_SP, 0x1234));
            // The skeletal frames hold garbage.
            world.set(STACK + 0x108, DISPATCH).set(STACK + 0x208, DISPATCH).set(STACK + 0x200 - 24, 0x99);
            let frames = world.walk(blob + 8, STACK + 0x100, fp, &[]);
            let expected = [
                (Stub, blob + 8, 0),
                (Interpreted, inner, 3),
                (Interpreted, outer, 0),
                (Compiled, caller, 7),
            ];
            assert_eq!(frames, expected, "{name}, {stage}");
        }
    }
}

#[test]
fn a_vframe_array_of_another_thread_or_without_methods_is_not_believed() {
    let bad = WalkError::BadInterpreterFrame as i32;
    for (owner, is_method) in [(THREAD + 8, true), (THREAD, false)] {
        let mut world = World::new();
        let (_, return_pc) = compiled_caller(&mut world);
        let (method, _) = world.method();
        let blob = deoptimization_blob(&mut world, "DeoptimizationBlob");
        let method = if is_method { method } else { 0x99 };
        world.vframe_array(owner, &[(method, 3)], (return_pc, CALLER_SP, 0));
        let frames = world.walk(blob + 8, STACK + 0x100, 0, &[]);
        assert_eq!(frames, [(Stub, blob + 8, 0), (Unwalkable, blob + 8, bad)]);
    }
}

#[test]
fn frozen_frames_below_a_deoptimised_one_are_not_hidden() {
    for (return_address_is_there, expected) in [(true, Compiled), (false, Frozen)] {
        let mut world = World::new();
        let (caller, return_pc) = compiled_caller(&mut world);
        let (method, _) = world.method();
        let blob = deoptimization_blob(&mut world, "DeoptimizationBlob");
        world.layout.continuation = Some(ContinuationLayout { entry: 72, mounted: None, frozen: None });
        world.memory.put_u64(THREAD + 72, CALLER_SP);
        world.set(CALLER_SP - 8, if return_address_is_there { return_pc } else { DISPATCH });
        world.vframe_array(THREAD, &[(method, 3)], (return_pc, CALLER_SP, 0));
        let frames = world.walk(blob + 8, STACK + 0x100, 0, &[]);
        assert_eq!(frames[..2], [(Stub, blob + 8, 0), (Interpreted, method, 3)]);
        assert_eq!(frames[2].0, expected);
        if expected == Compiled {
            assert_eq!(frames[2].1, caller);
        }
    }
}
