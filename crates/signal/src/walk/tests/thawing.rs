//! Threads that are in `thaw`: their frames are in the chunk, or already on the stack.

use otlpprof_core::record::FrameKind::{Frozen, Interpreted, Stub};

use super::continuation::{
    CHUNK, CONTINUATION, CONTINUATION_KLASS, ENTRY, FRAME, INTERPRETED, PARENT, RETURNED, RETURNED_EARLY,
    SIZE, Scene, interpreted_on_top,
};
use crate::walk::tests::vm_world::*;

#[test]
fn a_thread_that_thaws_has_its_frames_in_the_chunk_until_they_are_on_the_stack() {
    let taken = SIZE - FRAME as u32;
    // The room that `prepare_thaw` asks for: two frames and four words, a multiple of two words.
    let room = ENTRY - (2 * FRAME as u64 + 4) * 8;
    let before = SIZE - 2 * FRAME as u32;
    // The label, the offset in the stub, SP, and the chunk's sp and maxThawingSize.
    for (what, offset, sp, chunk_sp, left) in
        [("at the start", 0, ENTRY - 8, before, 12), ("nothing taken", RETURNED_EARLY - 1, room, before, 12)]
    {
        let mut scene = Scene::new();
        let words = scene.usual_stack();
        scene.chunk(CHUNK, 0, chunk_sp, left, &words);
        let pc = CONT_THAW.start + offset;
        let [caller, enter] = scene.whole();
        assert_eq!(scene.walk_from(pc, sp, &[]), [(Stub, pc, 0), caller, enter], "{what}");
    }
    // In the VM, below the stub. A thaw first changes the chunk's stack pointer, then its size.
    let states =
        [("nothing", before, 12), ("one frame", taken, 6), ("one frame, its size not yet", taken, 12)];
    let emptied = [("all", SIZE, 0), ("all, their size not yet", SIZE, 12)];
    for (what, chunk_sp, left) in states.into_iter().chain(emptied) {
        for (returned, pushed, code) in
            [(RETURNED, 0, CONT_THAW), (RETURNED, 24, RETURN_BARRIER), (RETURNED_EARLY, 32, RETURN_BARRIER)]
        {
            let mut scene = Scene::new();
            let words = scene.usual_stack();
            scene.chunk(CHUNK, 0, chunk_sp, left, &words);
            let [caller, enter] = scene.whole();
            let expected = [(Stub, code.start + returned - 1, 0), caller, enter];
            let frames = scene.walk_in_thaw(room - pushed, code.start + returned);
            assert_eq!(frames, expected, "{what}, {returned:#x}");
        }
    }
}

/// An interpreter frame has a word of alignment, which is subtracted last.
#[test]
fn a_slow_thaw_is_followed_through_all_its_stages() {
    // The size of the interpreter frame counts from a word above its SP.
    let taken = (FRAME + INTERPRETED) as u32;
    let whole = FRAME as u32 + taken + 1;
    let caller_taken = SIZE - FRAME as u32;
    for (what, taken, left) in [
        ("nothing", 0, whole),
        ("the stack pointer", caller_taken, whole),
        ("the frames' distance", caller_taken, whole - taken),
        ("the alignment", caller_taken, whole - taken - 1),
        ("the stack pointer of all", SIZE, whole),
        ("the distance of all", SIZE, 1),
        ("all", SIZE, 0),
    ] {
        let mut scene = Scene::new();
        let (words, sp, method) = interpreted_on_top(&mut scene);
        let chunk_sp = if taken == 0 { sp as u32 } else { taken };
        scene.chunk(CHUNK, 0, chunk_sp, left, &words);
        let room = ENTRY - u64::from((whole + 4).next_multiple_of(2)) * 8;
        let [caller, enter] = scene.whole();
        let expected = [(Stub, CONT_THAW.start + RETURNED - 1, 0), (Interpreted, method, 3), caller, enter];
        assert_eq!(scene.walk_in_thaw(room, CONT_THAW.start + RETURNED), expected, "{what}");
    }
}

/// Regression: a preempted thread that posts its mount event was marked if a slow thaw had unlinked the
/// emptied chunk.
#[test]
fn a_preempted_thread_that_posts_its_mount_event_has_its_frames_on_the_stack() {
    let mut scene = Scene::new();
    let [caller, enter] = scene.whole();
    // `enter` is in the chunk after the one that has been unlinked.
    let mut words = vec![0; SIZE as usize];
    words[SIZE as usize - FRAME - 1] = scene.enter_pc;
    scene.object(CONTINUATION, CONTINUATION_KLASS, PARENT);
    scene.chunk(PARENT, 0, SIZE - FRAME as u32, FRAME as u32, &words);
    let room = ENTRY - (2 * FRAME as u64 + 4) * 8;
    let thawed = ENTRY - FRAME as u64 * 8;
    scene.world.set(thawed - 8, scene.caller_pc).set(ENTRY - 8, RETURN_BARRIER.start);
    let stub = (Stub, CONT_THAW.start + RETURNED - 1, 0);
    let anchor = scene.world.layout.thread;
    for (what, sp, expected) in [
        ("at the youngest frame", thawed, vec![stub, caller, enter]),
        ("at the entry, as while it freezes", ENTRY, vec![stub]),
    ] {
        scene.world.memory.put_u64(THREAD + u64::from(anchor.last_java_sp), sp);
        scene.world.memory.put_u64(THREAD + u64::from(anchor.last_java_pc), scene.caller_pc);
        let frames = scene.walk_in_thaw(room, CONT_THAW.start + RETURNED);
        assert_eq!(frames[..expected.len()], expected, "{what}");
        let is_marked = frames.iter().any(|&(kind, ..)| kind == Frozen);
        assert_eq!(is_marked, expected.len() == 1, "{what}: {frames:?}");
    }
}

/// Regression: a preempted thread was marked if a slow thaw had unlinked the emptied chunk and the thread had
/// posted its mount event. Only the room on the stack shows then where its frames are.
#[test]
fn frames_of_an_unlinked_chunk_begin_at_the_start_of_its_room() {
    for has_parent in [true, false] {
        let mut scene = Scene::new();
        let [caller, enter] = scene.whole();
        let mut words = vec![0; SIZE as usize];
        words[SIZE as usize - FRAME - 1] = scene.enter_pc;
        scene.chunk(PARENT, 0, SIZE - FRAME as u32, FRAME as u32, &words);
        scene.object(CONTINUATION, CONTINUATION_KLASS, if has_parent { PARENT } else { 0 });
        let (enter_special, code) = scene.world.compiled();
        scene.frozen.enter_special = enter_special;
        // Two frames were in the chunk that has been unlinked.
        let room = ENTRY - (2 * FRAME as u64 + 4) * 8;
        let youngest = ENTRY - 2 * FRAME as u64 * 8;
        let (older_pc, oldest_returns_to) =
            if has_parent { (scene.caller_pc, RETURN_BARRIER.start) } else { (scene.enter_pc, code + 0x80) };
        scene.world.set(youngest - 8, scene.caller_pc).set(youngest + FRAME as u64 * 8 - 8, older_pc);
        scene.world.set(ENTRY - 8, oldest_returns_to);
        let stub = (Stub, CONT_THAW.start + RETURNED - 1, 0);
        let expected = if has_parent { vec![stub, caller, caller, enter] } else { vec![stub, caller, enter] };
        let frames = scene.walk_in_thaw(room, CONT_THAW.start + RETURNED);
        assert_eq!(frames, expected, "{has_parent}");
        // The frames must lead to the entry.
        scene.world.set(ENTRY - 8, scene.caller_pc);
        let frames = scene.walk_in_thaw(room, CONT_THAW.start + RETURNED);
        assert_eq!((frames[0], frames[1].0), (stub, Frozen), "{frames:?}");
    }
}
