//! A virtual thread that has been frozen and leaves its stack: `Continuation.doYield`, from the instruction
//! on that switches to the carrier's stack.

use otlpprof_core::record::FrameKind::{Compiled, NativeMethod};

use super::continuation::{ENTRY, ENTRY_FIELD, Scene};
use super::machine::CONTINUATION_EXIT;
use crate::walk::tests::vm_world::*;

/// The code by which a continuation is left, and the values that differ from stage to stage.
pub(super) struct ContinuationExit {
    pub(super) code: &'static [u8],
    /// Offsets of instructions in the code.
    pub(super) after_taking: u64,
    pub(super) at_pop: u64,
    pub(super) at_return: u64,
    /// The distance of SP from the entry at the return.
    pub(super) sp_at_return: u64,
    /// The register with the return address at the return.
    pub(super) return_address: Option<usize>,
}

/// doYield with its exit at 0x80 of its code. Returns its method, and the start of its code.
fn do_yield(scene: &mut Scene) -> (u64, u64) {
    let method = scene.world.method().0;
    scene.frozen.do_yield = method;
    let mut code = vec![0; 0x80];
    code.extend(CONTINUATION_EXIT.code);
    let name = "native nmethod";
    let spec = BlobSpec { name, code: &code, frame_bytes: 0x10, frame_complete: 4, method };
    (method, scene.world.blob(&spec))
}

#[test]
fn until_the_entry_is_off_the_thread_the_frozen_frames_are_the_threads() {
    let mut scene = Scene::new();
    let (method, code) = do_yield(&mut scene);
    let [caller, enter] = scene.whole();
    let pc = code + 0x80 + CONTINUATION_EXIT.after_taking;
    assert_eq!(scene.walk_from(pc, ENTRY, &[]), [(NativeMethod, method, -1), caller, enter]);
}

#[test]
fn after_the_stack_change_the_carriers_frames_follow_at_each_stage() {
    let ContinuationExit { after_taking, at_pop, at_return, sp_at_return, return_address, .. } =
        CONTINUATION_EXIT;
    for (stage, offset, sp) in [
        ("after the change of the stack", after_taking, ENTRY),
        ("at the pop", at_pop, ENTRY + 64),
        ("at the return", at_return, ENTRY + sp_at_return),
    ] {
        let mut scene = Scene::new();
        let (method, code) = do_yield(&mut scene);
        scene.world.memory.put_u64(THREAD + ENTRY_FIELD, 0);
        let returns: Vec<_> = return_address
            .filter(|_| offset == at_return)
            .map(|lr| (lr, scene.carrier_pc()))
            .into_iter()
            .collect();
        let frames = scene.walk_from(code + 0x80 + offset, sp, &returns);
        assert_eq!(frames, [(NativeMethod, method, -1), (Compiled, scene.carrier(), 7)], "{stage}");
    }
}

/// Code after the return is not part of the exit, and code that loads SP from another field is no exit.
#[test]
fn other_code_is_on_the_virtual_threads_stack() {
    let mut scene = Scene::new();
    let (method, code) = do_yield(&mut scene);
    let (leaf, leaf_code) = scene.world.compiled();
    let sp = ENTRY - 0x40;
    scene.world.set(sp + 8, leaf_code + 0x80).set(ENTRY - 8, RETURN_BARRIER.start);
    let [caller, enter] = scene.whole();
    for offset in [0x40, 0x80 + CONTINUATION_EXIT.code.len() as u64] {
        let expected = [(NativeMethod, method, -1), (Compiled, leaf, 7), caller, enter];
        assert_eq!(scene.walk_from(code + offset, sp, &[]), expected, "{offset:#x}");
    }
}
