//! What each walker makes of one mixed stack: native code on top of Java, Java called by native code called by Java.

use super::native::{BASE, object, rule};
use super::vm_world::*;
use crate::core::record::FrameKind;
use crate::core::record::FrameKind::{Compiled, Native, NoJavaFrame, Stub, Unwalkable};
use crate::core::stack_walker::StackWalker;
use crate::core::unwind::{CfaRule, FpRule};
use crate::signal::walk::WalkError;

const LEAF_SP: u64 = STACK + 0x100;
/// The Java frame that the leaf has been called from, and its entry frame.
const INNER_SP: u64 = LEAF_SP + 0x10;
const INNER_ENTRY_FP: u64 = STACK + 0x300;
/// The native code between: the VM's, which has called the stub, and the library's, which has called the VM.
const HELPER_SP: u64 = INNER_ENTRY_FP + 16;
const LIBRARY_SP: u64 = HELPER_SP + 0x40;
const OUTER_SP: u64 = LIBRARY_SP + 0x20;
/// Below the outer Java frame: its entry frame, and the thread's native entry.
const THREAD_ENTRY_SP: u64 = ENTRY_FP + 16;

/// Code of the one object: a leaf, the VM's helper, the library, the thread's entry, and one that cannot be walked.
const LEAF: u64 = BASE + 0x10;
const HELPER: u64 = BASE + 0x120;
const LIBRARY: u64 = BASE + 0x220;
const THREAD_ENTRY: u64 = BASE + 0x320;
const LOST: u64 = BASE + 0x420;

struct Scene {
    world: World,
    inner: u64,
    outer: u64,
}

/// leaf < inner < (helper < library) < outer < (thread entry). The inner entry frame was called from `helper`.
fn scene(helper: u64) -> Scene {
    let mut world = World::new();
    world.objects = object(
        &[
            rule(CfaRule::SpPlus(0x10), FpRule::Same),
            rule(CfaRule::SpPlus(0x40), FpRule::AtCfaPlus(-16)),
            rule(CfaRule::SpPlus(0x20), FpRule::Same),
            rule(CfaRule::EndOfStack, FpRule::Same),
            rule(CfaRule::Unsupported, FpRule::Same),
        ],
        42,
    );
    world.memory.put_u64(0x100, 42);
    let (inner, inner_code) = world.compiled();
    let (outer, outer_code) = world.compiled();
    let wrapper = STACK + 0x800;
    world.set(LEAF_SP + 8, inner_code + 0x80);
    world.set(INNER_SP + 0x20, INNER_ENTRY_FP).set(INNER_SP + 0x28, CALL_STUB_RETURN);
    world.set(INNER_ENTRY_FP - 48, wrapper).set(INNER_ENTRY_FP, 0x77).set(INNER_ENTRY_FP + 8, helper);
    world.set(wrapper, OUTER_SP).set(wrapper + 8, outer_code + 0x80).set(wrapper + 16, 0x66);
    world.set(HELPER_SP + 0x30, 0x66).set(HELPER_SP + 0x38, LIBRARY);
    world.set(LIBRARY_SP + 0x18, outer_code + 0x80);
    world.set(OUTER_SP + 0x20, ENTRY_FP).set(OUTER_SP + 0x28, CALL_STUB_RETURN);
    world.entry_frame(ENTRY_FP);
    world.set(ENTRY_FP, 0).set(ENTRY_FP + 8, THREAD_ENTRY).set(THREAD_ENTRY_SP, 0);
    // The leaf has been called with an anchor, as JNI functions are.
    world.memory.put_u64(THREAD, INNER_SP).put_u64(THREAD + 8, inner_code + 0x80).put_u64(THREAD + 16, 0);
    world.memory.put(THREAD + 24, 4_u32.to_le_bytes());
    Scene { world, inner, outer }
}

impl Scene {
    /// Kind and value of what the walker finds.
    fn walk(&mut self, walker: StackWalker) -> Vec<(FrameKind, u64)> {
        self.world.walker = walker;
        self.world.walk(LEAF, LEAF_SP, 0x55, &[]).iter().map(|frame| (frame.0, frame.1)).collect()
    }
}

#[test]
fn vm_has_native_frames_on_top_alone() {
    let mut scene = scene(HELPER);
    let expected = [(Native, LEAF), (Compiled, scene.inner), (Compiled, scene.outer)];
    assert_eq!(scene.walk(StackWalker::Vm), expected);
}

#[test]
fn vmx_has_them_between_java_frames_and_down_to_the_threads_entry() {
    let mut scene = scene(HELPER);
    let call_stub = (Stub, CALL_STUB_RETURN - 1);
    let expected = [
        (Native, LEAF),
        (Compiled, scene.inner),
        call_stub,
        (Native, HELPER - 1),
        (Native, LIBRARY - 1),
        (Compiled, scene.outer),
        call_stub,
        (Native, THREAD_ENTRY - 1),
    ];
    assert_eq!(scene.walk(StackWalker::Vmx), expected);
}

#[test]
fn vmx_goes_on_at_the_call_wrappers_anchor_where_native_code_cannot_be_walked() {
    let mut scene = scene(LOST);
    let call_stub = (Stub, CALL_STUB_RETURN - 1);
    let expected = [
        (Native, LEAF),
        (Compiled, scene.inner),
        call_stub,
        (Native, LOST - 1),
        (Unwalkable, LOST),
        (Compiled, scene.outer),
        call_stub,
        (Native, THREAD_ENTRY - 1),
    ];
    assert_eq!(scene.walk(StackWalker::Vmx), expected);
    // Below the first entry there is no Java to go on at.
    scene.world.set(ENTRY_FP + 8, LOST);
    let frames = scene.world.walk(LEAF, LEAF_SP, 0x55, &[]);
    assert_eq!(frames.last(), Some(&(Unwalkable, LOST, WalkError::UnsupportedRule as i32)));
}

#[test]
fn no_has_java_frames_alone_from_the_anchor_and_from_the_registers() {
    let mut scene = scene(HELPER);
    let expected = [(Compiled, scene.inner), (Compiled, scene.outer)];
    assert_eq!(scene.walk(StackWalker::No), expected);
    // In Java without an anchor, as in a call that the VM does not hear of.
    scene.world.memory.put_u64(THREAD, 0).put(THREAD + 24, 8_u32.to_le_bytes());
    assert_eq!(scene.walk(StackWalker::No), expected);
    // Native code that cannot be walked does not matter where there is an anchor.
    let (leaf, frames) = (INNER_SP, scene.world.java_thread);
    scene.world.memory.put_u64(frames, leaf).put(frames + 24, 4_u32.to_le_bytes());
    let frames = scene.world.walk(LOST, LEAF_SP, 0x55, &[]);
    let kinds: Vec<_> = frames.iter().map(|frame| (frame.0, frame.1)).collect();
    assert_eq!(kinds, expected);
}

#[test]
fn a_thread_without_java_frames_is_one_frame_where_native_ones_are_left_out() {
    let mut scene = scene(HELPER);
    // A Java thread in native code that has no Java frame.
    scene.world.memory.put_u64(THREAD, 0);
    assert_eq!(scene.walk(StackWalker::No), [(NoJavaFrame, 0)]);
    // No Java thread at all.
    scene.world.java_thread = 0;
    assert_eq!(scene.walk(StackWalker::No), [(NoJavaFrame, 0)]);
    // Java has just returned to the call stub, which is a frame of the VM's.
    let mut returned = World::new();
    returned.walker = StackWalker::No;
    returned.entry_frame(ENTRY_FP);
    assert_eq!(returned.walk(CALL_STUB_RETURN, CALLER_SP, ENTRY_FP, &[]), [(NoJavaFrame, 0, 0)]);
}
