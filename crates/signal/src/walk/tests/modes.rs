//! The results of each walker for one mixed stack: native code on top of Java, Java called by native code
//! called by Java.

use otlpprof_core::continuation::ContinuationLayout;
use otlpprof_core::method_ids::MethodIds;
use otlpprof_core::record::FrameKind;
use otlpprof_core::record::FrameKind::{
    Compiled, Java, MethodId, Native, NativeMethod, NoJavaFrame, Stub, Truncated, Unwalkable,
};
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::unwind_rule::{CfaRule, FpRule, UnwindRule};

use super::machine;
use super::native::{BASE, object, rule};
use super::vm_world::*;
use crate::call_trace::{CallFrame, CallTrace, CallTraceSource, RootMethods};
use crate::walk::WalkError;
use std::ffi::c_void;

const LEAF_SP: u64 = STACK + 0x100;
/// The Java frame that called the leaf, and its entry frame.
const INNER_SP: u64 = LEAF_SP + 0x10;
const INNER_ENTRY_FP: u64 = STACK + 0x300;
/// The native code between: the VM's helper, which has called the call stub, and the library, which has
/// called the VM.
const HELPER_SP: u64 = INNER_ENTRY_FP + 16;
const LIBRARY_SP: u64 = HELPER_SP + 0x40;
const OUTER_SP: u64 = LIBRARY_SP + 0x20;
/// Below the outer Java frame: its entry frame, and the thread's native entry.
const THREAD_ENTRY_SP: u64 = ENTRY_FP + 16;

/// Code of the single object: a leaf, the VM's helper, the library, the thread's entry, and code that cannot
/// be walked.
const LEAF: u64 = BASE + 0x10;
const HELPER: u64 = BASE + 0x120;
const LIBRARY: u64 = BASE + 0x220;
const THREAD_ENTRY: u64 = BASE + 0x320;
const LOST: u64 = BASE + 0x420;

const RULES: [UnwindRule; 5] = [
    rule(CfaRule::SpPlus(0x10), FpRule::Same),
    rule(CfaRule::SpPlus(0x40), FpRule::AtCfaPlus(-16)),
    rule(CfaRule::SpPlus(0x20), FpRule::Same),
    rule(CfaRule::EndOfStack, FpRule::Same),
    rule(CfaRule::Unsupported, FpRule::Same),
];

struct Scene {
    world: World,
    inner: u64,
    outer: u64,
    /// A return address into the inner Java frame's code.
    return_pc: u64,
}

/// leaf < inner < (helper < library) < outer < (thread entry). `helper` has called the inner entry frame.
fn scene(helper: u64) -> Scene {
    let mut world = World::new();
    world.objects = object(&RULES, 42);
    world.memory.put_u64(0x100, 42);
    let (inner, inner_code) = world.compiled();
    let (outer, outer_code) = world.compiled();
    let wrapper = STACK + 0x800;
    world.set(LEAF_SP + 8, inner_code + 0x80);
    world.set(INNER_SP + 0x20, INNER_ENTRY_FP).set(INNER_SP + 0x28, CALL_STUB_RETURN);
    world
        .set(entry_wrapper_slot(INNER_ENTRY_FP), wrapper)
        .set(INNER_ENTRY_FP, 0x77)
        .set(INNER_ENTRY_FP + 8, helper);
    world.set(wrapper, OUTER_SP).set(wrapper + 8, outer_code + 0x80).set(wrapper + 16, 0x66);
    world.set(HELPER_SP + 0x30, 0x66).set(HELPER_SP + 0x38, LIBRARY);
    world.set(LIBRARY_SP + 0x18, outer_code + 0x80);
    world.set(OUTER_SP + 0x20, ENTRY_FP).set(OUTER_SP + 0x28, CALL_STUB_RETURN);
    world.entry_frame(ENTRY_FP);
    world.set(ENTRY_FP, 0).set(ENTRY_FP + 8, THREAD_ENTRY).set(THREAD_ENTRY_SP, 0);
    // The leaf has been called with an anchor, as JNI functions are.
    world.memory.put_u64(THREAD, INNER_SP).put_u64(THREAD + 8, inner_code + 0x80).put_u64(THREAD + 16, 0);
    world.memory.put(THREAD + 24, 4_u32.to_le_bytes());
    Scene { world, inner, outer, return_pc: inner_code + 0x80 }
}

impl Scene {
    /// The kind and value of the frames that the walker finds.
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
    // Below the first entry there is no Java frame at which the walk could go on.
    scene.world.set(ENTRY_FP + 8, LOST);
    let frames = scene.world.walk(LEAF, LEAF_SP, 0x55, &[]);
    assert_eq!(frames.last(), Some(&(Unwalkable, LOST, WalkError::UnsupportedRule as i32)));
}

#[test]
fn no_has_java_frames_alone_from_the_anchor_and_from_the_registers() {
    let mut scene = scene(HELPER);
    let expected = [(Compiled, scene.inner), (Compiled, scene.outer)];
    assert_eq!(scene.walk(StackWalker::No), expected);
    // The thread is in Java state without an anchor, as in a call without notification of the VM.
    scene.world.memory.put_u64(THREAD, 0).put(THREAD + 24, 8_u32.to_le_bytes());
    assert_eq!(scene.walk(StackWalker::No), expected);
    // If there is an anchor, native code that cannot be walked does not matter.
    let (leaf, frames) = (INNER_SP, scene.world.java_thread);
    scene.world.memory.put_u64(frames, leaf).put(frames + 24, 4_u32.to_le_bytes());
    let frames = scene.world.walk(LOST, LEAF_SP, 0x55, &[]);
    let kinds: Vec<_> = frames.iter().map(|frame| (frame.0, frame.1)).collect();
    assert_eq!(kinds, expected);
}

#[test]
fn a_thread_without_java_frames_is_one_frame_where_native_ones_are_left_out() {
    let mut scene = scene(HELPER);
    // A Java thread that is in native code and has no Java frame.
    scene.world.memory.put_u64(THREAD, 0);
    assert_eq!(scene.walk(StackWalker::No), [(NoJavaFrame, 0)]);
    // A thread that is not a Java thread.
    scene.world.java_thread = 0;
    assert_eq!(scene.walk(StackWalker::No), [(NoJavaFrame, 0)]);
    // Java has just returned to the call stub, which is a frame of the VM.
    let mut returned = World::new();
    returned.walker = StackWalker::No;
    returned.entry_frame(ENTRY_FP);
    assert_eq!(returned.walk(CALL_STUB_RETURN, CALLER_SP, ENTRY_FP, &[]), [(NoJavaFrame, 0, 0)]);
}

/// Regression: the VM sets a thread's state before it calls Java (`JavaCalls::call_helper`). Stacks of
/// threads that were interrupted there were marked as broken at their root.
#[test]
fn a_thread_that_is_about_to_call_java_has_a_whole_stack() {
    let mut scene = scene(HELPER);
    let expected = [(Native, LEAF), (Native, LIBRARY - 1), (Native, THREAD_ENTRY - 1)];
    scene.world.set(LEAF_SP + 8, LIBRARY).set(INNER_SP + 0x18, THREAD_ENTRY);
    scene.world.memory.put_u64(THREAD, 0).put(THREAD + 24, 8_u32.to_le_bytes());
    scene.asks(no_java);
    let walkers = [StackWalker::Vm, StackWalker::Vmx, StackWalker::Dwarf, StackWalker::Fp];
    for walker in walkers {
        assert_eq!(scene.walk(walker), expected, "{walker:?}");
    }
    assert_eq!(scene.walk(StackWalker::No), [(NoJavaFrame, 0)]);
    // A return address of 0 and a chain of frame pointers may also be met where Java frames were passed over.
    scene.world.set(INNER_SP + 0x18, 0);
    for walker in walkers {
        let ended = scene.walk(walker);
        assert_eq!(ended[1..3], [expected[1], (Unwalkable, LIBRARY)], "{walker:?}");
    }
    const GENERATED: u64 = 0xdead_0000;
    scene.world.set(LEAF_SP, 0x55).set(LEAF_SP + 8, THREAD_ENTRY);
    for walker in walkers {
        scene.world.walker = walker;
        let frames = scene.world.walk(GENERATED, LEAF_SP, LEAF_SP, &[]);
        let guessed: Vec<_> = frames.iter().map(|frame| (frame.0, frame.1)).collect();
        assert_eq!(guessed[1..3], [expected[2], (Unwalkable, THREAD_ENTRY)], "{walker:?}");
    }
}

/// jmethodIDs: the addresses of the cells that hold the addresses of two methods.
const IDS: [u64; 2] = [0x5_0000, 0x5_0008];
const METHOD: [u64; 2] = [0x5_1000, 0x5_2000];

fn answer(trace: *mut CallTrace, room: i32, frames: &[(i32, u64)]) {
    // SAFETY: the walker passes a trace with room for `room` frames.
    unsafe {
        for (index, &(bci, method_id)) in frames.iter().enumerate().take(room as usize) {
            (*trace).frames.add(index).write(CallFrame { bci, method_id });
        }
        (*trace).num_frames = frames.len().min(room as usize) as i32;
    }
}

/// A call trace of a native method called by a Java method.
unsafe extern "C" fn two_frames(trace: *mut CallTrace, room: i32, _: *mut c_void) {
    answer(trace, room, &[(5, IDS[0]), (-3, IDS[1])]);
}

unsafe extern "C" fn without_id(trace: *mut CallTrace, room: i32, _: *mut c_void) {
    answer(trace, room, &[(5, IDS[0]), (5, 0)]);
}

unsafe extern "C" fn collecting(trace: *mut CallTrace, _: i32, _: *mut c_void) {
    // SAFETY: the walker passes a valid trace. -2: a collection is under way.
    unsafe { (*trace).num_frames = -2 };
}

unsafe extern "C" fn no_java(trace: *mut CallTrace, room: i32, _: *mut c_void) {
    answer(trace, room, &[]);
}

unsafe extern "C" fn endless(trace: *mut CallTrace, room: i32, _: *mut c_void) {
    answer(trace, room, &[(5, IDS[0]); 1000]);
}

type Function = unsafe extern "C" fn(*mut CallTrace, i32, *mut c_void);

impl Scene {
    fn asks(&mut self, function: Function) -> &mut Self {
        let ids = if self.world.is_known { MethodIds::Cells } else { MethodIds::Opaque };
        let roots: &RootMethods = Box::leak(Box::default());
        roots.learn(METHOD[1]);
        // SAFETY: the functions of this file do not read the environment and the context.
        let source = unsafe { CallTraceSource::new(function, 0, std::ptr::null_mut(), ids, roots) };
        self.world.call_trace = Some(source);
        self.world.memory.put_u64(IDS[0], METHOD[0]).put_u64(IDS[1], METHOD[1]);
        self
    }

    /// Gives the rest of the object's code a rule that keeps frame pointers.
    fn keeps_frame_pointers(&mut self) -> &mut Self {
        let keeping = rule(CfaRule::FpPlus(16), FpRule::AtCfaPlus(-16));
        self.world.objects = object(&[&RULES[..], &[keeping; 11]].concat(), 42);
        self
    }

    fn walk_with_fp(&mut self, pc: u64, fp: u64) -> Vec<(FrameKind, u64)> {
        self.world.walker = StackWalker::Fp;
        self.world.walk(pc, LEAF_SP, fp, &[]).iter().map(|frame| (frame.0, frame.1)).collect()
    }

    fn vm_frames(&self) -> [(FrameKind, u64); 3] {
        [(Native, LEAF), (Compiled, self.inner), (Compiled, self.outer)]
    }
}

const ASKED: [(FrameKind, u64); 3] = [(Native, LEAF), (Java, METHOD[0]), (NativeMethod, METHOD[1])];

#[test]
fn dwarf_has_java_frames_from_async_get_call_trace() {
    let mut scene = scene(HELPER);
    assert_eq!(scene.asks(two_frames).walk(StackWalker::Dwarf), ASKED);
    let frames = scene.world.walk(LEAF, LEAF_SP, 0x55, &[]);
    assert_eq!((frames[1].2, frames[2].2), (5, -1));
}

#[test]
fn the_vms_structures_give_the_frames_that_async_get_call_trace_lacks() {
    let mut scene = scene(HELPER);
    let expected = scene.vm_frames();
    assert_eq!(scene.walk(StackWalker::Dwarf), expected, "a VM without it");
    assert_eq!(scene.asks(collecting).walk(StackWalker::Dwarf), expected);
    assert_eq!(scene.asks(without_id).walk(StackWalker::Dwarf), expected);
    assert_eq!(scene.asks(no_java).walk(StackWalker::Dwarf), expected);
    // A method that has been unloaded: its id leads to null.
    scene.asks(two_frames).world.memory.put_u64(IDS[1], 0);
    assert_eq!(scene.walk(StackWalker::Dwarf), expected);
}

/// Regression: on JDK 11 a trace through method handles ended at one of them without any sign.
#[test]
fn a_call_trace_that_ends_where_no_stack_does_is_not_believed() {
    let mut scene = scene(HELPER);
    scene.asks(two_frames).world.memory.put_u64(IDS[1], METHOD[1] + 0x100);
    let expected = scene.vm_frames();
    assert_eq!(scene.walk(StackWalker::Dwarf), expected);
    // The walk that replaced the trace has learnt at which methods stacks end.
    let roots = scene.world.call_trace.unwrap().roots;
    assert!(roots.knows(scene.outer) && !roots.knows(METHOD[1] + 0x100));
    (0..100).for_each(|method| roots.learn(0x100 + method));
    assert!(!roots.knows(scene.outer) && roots.knows(0x100 + 99));
}

#[test]
fn async_get_call_trace_is_not_asked_where_it_would_guess() {
    // The carrier of a virtual thread.
    let mut carrier = scene(HELPER);
    carrier.asks(two_frames).world.layout.continuation =
        Some(ContinuationLayout { entry: 128, mounted: None, frozen: None });
    carrier.world.memory.put_u64(THREAD + 128, 0);
    assert_eq!(carrier.walk(StackWalker::Dwarf), ASKED);
    carrier.world.memory.put_u64(THREAD + 128, STACK + 0x900);
    assert_eq!(carrier.walk(StackWalker::Dwarf), carrier.vm_frames());
    // In Java: at the first instruction, where the frame does not exist yet, and in the middle.
    let mut java = scene(HELPER);
    java.asks(two_frames).world.walker = StackWalker::Dwarf;
    java.world.memory.put_u64(THREAD, 0).put(THREAD + 24, 8_u32.to_le_bytes());
    let (method, code) = java.world.compiled();
    java.world.set(INNER_SP - 8, CALL_STUB_RETURN).set(INNER_SP - 0x10, ENTRY_FP);
    let at = |java: &mut Scene, pc, sp| {
        let frames = java.world.walk(pc, sp, ENTRY_FP, machine::CALLED_BY_CALL_STUB);
        frames.iter().map(|frame| (frame.0, frame.1)).collect::<Vec<_>>()
    };
    assert_eq!(at(&mut java, code, INNER_SP - machine::PUSHED_BY_CALL), [(Compiled, method)]);
    assert_eq!(at(&mut java, code + 0x40, INNER_SP - 0x30), ASKED[1..]);
    // A thread that is just being created.
    java.world.memory.put(THREAD + 24, 2_u32.to_le_bytes());
    assert_eq!(at(&mut java, code + 0x40, INNER_SP - 0x30), [(Compiled, method)]);
}

#[test]
fn a_call_trace_that_goes_on_beyond_the_limit_is_marked() {
    let mut scene = scene(HELPER);
    let frames = scene.asks(endless).walk(StackWalker::Dwarf);
    assert_eq!(frames.len(), 63);
    assert_eq!(frames[61..], [(Java, METHOD[0]), (Truncated, 0)]);
}

#[test]
fn fp_follows_frame_pointers_and_marks_skipped_frames_without_a_rule() {
    let mut scene = scene(HELPER);
    scene.asks(two_frames);
    // The interrupted frame has a rule, and needs no frame pointer.
    assert_eq!(scene.walk_with_fp(LEAF, 0x55), ASKED);
    const GENERATED: u64 = 0xdead_0000;
    let right = [(Native, GENERATED), ASKED[1], ASKED[2]];
    assert_eq!(scene.walk_with_fp(GENERATED, LEAF_SP), right);
    let lost = [right[0], (Unwalkable, GENERATED), right[1], right[2]];
    // The generated code has either left the register to its caller, whose frame is then missing, or changed
    // it.
    assert_eq!(scene.walk_with_fp(GENERATED, LIBRARY_SP + 0x10), lost);
    assert_eq!(scene.walk_with_fp(GENERATED, 0x55), lost);
}

/// Regression: with a library without frame pointers below a Java frame, nine tenths of its stacks were
/// marked.
#[test]
fn fp_goes_on_by_rules_where_frame_pointers_end_or_pass_over_java_frames() {
    let mut scene = scene(HELPER);
    scene.keeps_frame_pointers().asks(two_frames);
    // leaf < library < inner: the library has either left the register to its caller, or changed it.
    scene.world.set(LEAF_SP + 8, LIBRARY).set(LEAF_SP + 0x28, scene.return_pc);
    scene.world.memory.put_u64(THREAD, LEAF_SP + 0x30);
    let whole = [&ASKED[..1], &[(Native, LIBRARY - 1)], &ASKED[1..]].concat();
    for fp in [LIBRARY_SP + 0x10, 0x55] {
        assert_eq!(scene.walk_with_fp(LEAF, fp), whole, "{fp:#x}");
    }
}

/// Regression: words that looked like a frame in a library without frame pointers were taken for a frame, and
/// its callers were lost or left out.
#[test]
fn fp_trusts_frame_pointers_only_in_objects_that_keep_them() {
    let mut scene = scene(HELPER);
    scene.asks(two_frames);
    // leaf < library < library < inner; the register points to words left over on the stack.
    scene.world.set(LEAF_SP + 8, LIBRARY).set(LEAF_SP + 0x28, LIBRARY).set(LEAF_SP + 0x48, scene.return_pc);
    scene.world.set(LEAF_SP + 0x18, LEAF_SP + 0x40).set(LEAF_SP + 0x20, THREAD_ENTRY);
    scene.world.memory.put_u64(THREAD, LEAF_SP + 0x50);
    let called = (Native, LIBRARY - 1);
    let whole = [&ASKED[..1], &[called, called], &ASKED[1..]].concat();
    assert_eq!(scene.walk_with_fp(LEAF, LEAF_SP + 0x18), whole);
    // In an object that keeps frame pointers these words are a frame.
    let frames = scene.keeps_frame_pointers().walk_with_fp(LEAF, LEAF_SP + 0x18);
    assert_eq!(frames[..3], [ASKED[0], called, (Native, THREAD_ENTRY - 1)]);
}

#[test]
fn fp_goes_on_by_rules_to_the_threads_entry() {
    let mut scene = scene(HELPER);
    scene.keeps_frame_pointers().world.java_thread = 0;
    scene.world.set(LEAF_SP + 8, LIBRARY).set(INNER_SP + 0x18, LIBRARY).set(INNER_SP + 0x38, THREAD_ENTRY);
    let right = [LEAF, LIBRARY - 1, LIBRARY - 1, THREAD_ENTRY - 1].map(|pc| (Native, pc));
    assert_eq!(scene.walk_with_fp(LEAF, 0x55), right);
    scene.world.set(INNER_SP + 0x38, LOST);
    let lost = [right[0], right[1], right[2], (Native, LOST - 1), (Unwalkable, LOST)];
    assert_eq!(scene.walk_with_fp(LEAF, 0x55), lost);
}

/// Regression: when native code that Java had called without an anchor led to a return address of 0, the
/// stack was taken for a complete one without Java frames.
#[test]
fn a_thread_in_java_does_not_end_at_a_null_return_address() {
    let mut scene = scene(HELPER);
    scene.world.set(LEAF_SP + 8, 0);
    scene.world.memory.put_u64(THREAD, 0).put(THREAD + 24, 8_u32.to_le_bytes());
    let marked = [(Native, LEAF), (Unwalkable, LEAF)];
    for walker in [StackWalker::Vm, StackWalker::Vmx] {
        assert_eq!(scene.walk(walker), marked, "{}", walker.name());
    }
    for walker in [StackWalker::Dwarf, StackWalker::Fp] {
        assert_eq!(scene.walk(walker)[..2], marked, "{}", walker.name());
    }
    // For a thread in VM state that has not been in Java, the stack ends there.
    scene.world.memory.put(THREAD + 24, 6_u32.to_le_bytes());
    for walker in [StackWalker::Vm, StackWalker::Vmx, StackWalker::Dwarf, StackWalker::Fp] {
        assert_eq!(scene.walk(walker), marked[..1], "{}", walker.name());
    }
}

#[test]
fn without_a_layout_async_get_call_trace_is_all_there_is() {
    let mut scene = scene(HELPER);
    scene.world.is_known = false;
    scene.asks(two_frames);
    let ids = [(MethodId, IDS[0]), (MethodId, IDS[1])];
    assert_eq!(scene.walk(StackWalker::Dwarf), [&ASKED[..1], &ids].concat());
    assert_eq!(scene.walk(StackWalker::No), ids);
    let pc = scene.return_pc;
    assert_eq!(scene.asks(collecting).walk(StackWalker::Dwarf), [(Native, LEAF), (Unwalkable, LEAF)]);
    // The code is in no object, and is not Java code.
    let none = [(Native, LEAF), (Native, pc - 1), (Unwalkable, pc)];
    assert_eq!(scene.asks(no_java).walk(StackWalker::Dwarf), none);
    assert_eq!(scene.walk(StackWalker::No), [(NoJavaFrame, 0)]);
}
