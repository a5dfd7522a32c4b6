//! Virtual threads: chunks of frozen frames, and the stubs that thaw them.

use otlpprof_core::address::CodeRange;
use otlpprof_core::continuation::*;
use otlpprof_core::interpreter_code::{ThrowStage, ThrownTo, ValueLocation};
use otlpprof_core::record::FrameKind::{Compiled, Frozen, Interpreted, NativeMethod, Stub, Unwalkable};
use otlpprof_core::vm_layout::InterpreterFrameLayout;

use super::corrupted::assert_ends;
use crate::walk::FrozenReason;
use crate::walk::registers::Registers;
use crate::walk::tests::machine;
use crate::walk::tests::vm_world::*;

/// The offset of `_cont_entry` in JavaThread.
pub(super) const ENTRY_FIELD: u64 = 72;
/// The ContinuationEntry, above all frames of the virtual thread.
pub(super) const ENTRY: u64 = STACK + 0x2000;
pub(super) const CONTINUATION: u64 = 0x62_0000;
pub(super) const CHUNK: u64 = 0x63_0000;
pub(super) const PARENT: u64 = 0x64_0000;
pub(super) const BAD_MASK: u64 = 0x65_0000;
pub(super) const PREEMPT: CodeRange = CodeRange { start: 0x1f_a200, end: 0x1f_a300 };
/// The number of words of a chunk's stack.
pub(super) const SIZE: u32 = 64;
pub(super) const HEADER: u64 = 48;
/// Class words of the continuation and its chunks.
pub(super) const CONTINUATION_KLASS: u32 = 0x11;
pub(super) const CHUNK_KLASS: u32 = 0x13;
/// The frame of [`World::compiled`], in words.
pub(super) const FRAME: usize = 6;
const MAKES_ROOM: u64 = 0x20;
pub(super) const RETURNED_EARLY: u64 = 0x40;
pub(super) const RETURNED: u64 = 0x50;
pub(super) const TAKES_STACK: u64 = 0x60;

fn stub(code: CodeRange, pushed_bytes: u64) -> ThawStub {
    ThawStub {
        code,
        makes_room: code.start + MAKES_ROOM,
        pushed_bytes,
        returned_early: CodeRange {
            start: code.start + RETURNED_EARLY,
            end: code.start + RETURNED_EARLY + 6,
        },
        returned: code.start + RETURNED,
        takes_stack: code.start + TAKES_STACK,
    }
}

/// A virtual thread on its carrier.
pub(super) struct Scene {
    pub(super) world: World,
    pub(super) frozen: FrozenLayout,
    /// Return addresses into `enter`, and (`caller_pc`) into a method that `enter` has called.
    pub(super) enter_pc: u64,
    caller: u64,
    pub(super) caller_pc: u64,
    /// The method and return address of the carrier's frame.
    carrier: u64,
    carrier_pc: u64,
}

impl Scene {
    pub(super) fn new() -> Self {
        let mut world = World::new();
        // The carrier's frame, at the entry's end, is the frame that the entry frame called.
        let (carrier, carrier_code) = world.compiled();
        let carrier_sp = ENTRY + 80;
        world.set(ENTRY + 64, 0x1234).set(ENTRY + 72, carrier_code + 0x80);
        world.set(carrier_sp + 0x20, ENTRY_FP).set(carrier_sp + 0x28, CALL_STUB_RETURN);
        world.entry_frame(ENTRY_FP);
        world.set(ENTRY + 16, CONTINUATION);
        world.memory.put_u64(THREAD + ENTRY_FIELD, ENTRY);
        let (enter, enter_code) = world.compiled();
        let (caller, caller_code) = world.compiled();
        world.memory.put(RETURN_BARRIER.start, vec![0x90; 0x100]).put(CONT_THAW.start, vec![0x90; 0x100]);
        let frozen = FrozenLayout {
            tail: 16,
            parent: 16,
            size: 24,
            sp: 28,
            bottom: 32,
            max_thawing_size: 36,
            pc: 0,
            stack: HEADER as u32,
            klass_word: KlassWord::Narrow,
            continuation_klasses: [u64::from(CONTINUATION_KLASS), 0x12],
            chunk_klass: u64::from(CHUNK_KLASS),
            references: References::Plain,
            forwarding: None,
            enter,
            enter_special: 0x7777_0000,
            do_yield: 0x7777_1000,
            thaw_stubs: [stub(CONT_THAW, 0), stub(RETURN_BARRIER, 24), ThawStub::default()],
            preempt_stub: PREEMPT,
        };
        let (enter_pc, caller_pc) = (enter_code + 0x80, caller_code + 0x80);
        let carrier_pc = carrier_code + 0x80;
        let mut scene = Self { world, frozen, enter_pc, caller, caller_pc, carrier, carrier_pc };
        scene.object(CONTINUATION, CONTINUATION_KLASS, CHUNK);
        // The whole chunk: `caller`, then `enter`.
        scene.chunk(CHUNK, 0, SIZE - 2 * FRAME as u32, 2 * FRAME as u32, &scene.usual_stack());
        scene
    }

    /// The method of the carrier's frame.
    pub(super) fn carrier(&self) -> u64 {
        self.carrier
    }

    /// The return address into that method.
    pub(super) fn carrier_pc(&self) -> u64 {
        self.carrier_pc
    }

    pub(super) fn usual_stack(&self) -> Vec<u64> {
        let mut words = vec![0; SIZE as usize];
        words[SIZE as usize - 2 * FRAME - 1] = self.caller_pc;
        words[SIZE as usize - FRAME - 1] = self.enter_pc;
        words
    }

    /// Puts an object into memory: mark word, class word, and a reference at offset 16.
    pub(super) fn object(&mut self, address: u64, klass: u32, reference: u64) {
        self.world.memory.put_u64(address, 1).put_u64(address + 8, u64::from(klass));
        self.world.memory.put_u64(address + 16, reference);
    }

    pub(super) fn chunk(&mut self, address: u64, parent: u64, sp: u32, max_thawing_size: u32, stack: &[u64]) {
        self.object(address, CHUNK_KLASS, parent);
        let mut bytes =
            [stack.len() as u32, sp, stack.len() as u32, max_thawing_size].map(u32::to_le_bytes).concat();
        bytes.extend(machine::coloured(CONTINUATION, 3).to_le_bytes());
        bytes.extend(stack.iter().flat_map(|word| word.to_le_bytes()));
        self.world.memory.put(address + 24, bytes);
    }

    /// Walks from a compiled leaf on the stack whose caller is frozen. Returns all frames but the leaf.
    pub(super) fn walk(&mut self) -> Vec<(otlpprof_core::record::FrameKind, u64, i32)> {
        let (leaf, code) = self.world.compiled();
        let sp = ENTRY - 0x30;
        self.world.set(ENTRY - 8, RETURN_BARRIER.start);
        let frames = self.walk_from(code + 0x80, sp, &[]);
        assert_eq!(frames[0], (Compiled, leaf, 7));
        frames[1..].to_vec()
    }

    /// The mark in place of the frozen frames, and the carrier's frame.
    pub(super) fn marked(&self, reason: FrozenReason) -> [(otlpprof_core::record::FrameKind, u64, i32); 2] {
        [(Frozen, RETURN_BARRIER.start, reason as i32), (Compiled, self.carrier, 7)]
    }

    pub(super) fn walk_from(
        &mut self,
        pc: u64,
        sp: u64,
        more: &[(usize, u64)],
    ) -> Vec<(otlpprof_core::record::FrameKind, u64, i32)> {
        self.publish_layout();
        self.world.walk(pc, sp, 0x1234, more)
    }

    /// Gives the continuations' layout to the walkers.
    pub(super) fn publish_layout(&mut self) {
        self.world.layout.continuation =
            Some(ContinuationLayout { entry: ENTRY_FIELD as u32, mounted: None, frozen: Some(self.frozen) });
    }

    /// Walks from a frame that the thawing stub has called, with the return address `returned` into the stub
    /// and the stub's stack pointer at `room`. Returns all frames but that one. Tests have no signal frame,
    /// so a compiled method with a frame stands for the VM's function.
    pub(super) fn walk_in_thaw(
        &mut self,
        room: u64,
        returned: u64,
    ) -> Vec<(otlpprof_core::record::FrameKind, u64, i32)> {
        let (leaf, code) = self.world.compiled();
        let sp = room - 0x30;
        self.world.set(sp + 0x28, returned);
        let frames = self.walk_from(code + 0x80, sp, &[]);
        assert_eq!(frames[0], (Compiled, leaf, 7));
        frames[1..].to_vec()
    }

    /// The frames of `caller` and `enter`, without the carrier's frames, which belong to another thread.
    pub(super) fn whole(&self) -> [(otlpprof_core::record::FrameKind, u64, i32); 2] {
        [(Compiled, self.caller, 7), (Compiled, self.frozen.enter, 7)]
    }
}

#[test]
fn frozen_frames_follow_those_on_the_stack() {
    let mut scene = Scene::new();
    let expected = scene.whole();
    assert_eq!(scene.walk(), expected);
}

/// Regression: when the interpreter had removed the oldest frame on the stack for an exception, the frame
/// pointer was trusted although it belongs to no frame.
#[test]
fn an_exception_is_thrown_to_frozen_frames() {
    const BEHIND: u64 = DISPATCH + 0x10;
    const RETURN: u8 = 3;
    const SENDER_SP: u8 = 5;
    let barrier = RETURN_BARRIER.start;
    for (what, return_address, sp) in [
        ("in registers", ValueLocation::InRegister(RETURN), ValueLocation::InRegister(SENDER_SP)),
        ("pushed with the exception", ValueLocation::AboveSp(0), ValueLocation::AboveSp(16)),
        ("and a pair more for a call", ValueLocation::AboveSp(16), ValueLocation::AboveSp(32)),
    ] {
        let mut scene = Scene::new();
        let stages = [
            ThrowStage { start: DISPATCH, caller: Some(ThrownTo { return_address, sp }) },
            ThrowStage { start: BEHIND, caller: None },
        ];
        scene.world.layout.stubs.interpreter_code.throws = stages.to_vec().leak();
        let expected = scene.whole();
        let top = if let ValueLocation::AboveSp(above) = sp { ENTRY - u64::from(above) } else { ENTRY - 8 };
        if let ValueLocation::AboveSp(above) = return_address {
            scene.world.set(top + u64::from(above), barrier);
        }
        let registers = [(usize::from(RETURN), barrier), (usize::from(SENDER_SP), ENTRY)];
        assert_eq!(scene.walk_from(BEHIND - 1, top, &registers), expected, "{what}");
        let frames = scene.walk_from(BEHIND, top, &registers);
        assert_eq!(frames[0].0, Unwalkable, "{what}");
    }
}

/// Regression: an oldest frame on the stack with more than 16 words of arguments was taken for a removed
/// frame's remains.
#[test]
fn the_oldest_frame_on_the_stack_may_have_many_arguments() {
    for (arguments, is_oldest) in [(20_u64, true), (0, false)] {
        let mut scene = Scene::new();
        scene.world.set(ENTRY + 32, arguments << 32 | 1);
        let (leaf, code) = scene.world.compiled();
        let sp = ENTRY - 20 * 8;
        scene.world.set(sp - 8, RETURN_BARRIER.start);
        let frames = scene.walk_from(code + 0x80, sp - 0x30, &[]);
        assert_eq!(frames[0], (Compiled, leaf, 7));
        assert_eq!(frames[1..] == scene.whole(), is_oldest, "{frames:?}");
    }
}

#[test]
fn older_chunks_follow_younger_ones_and_empty_ones_are_skipped() {
    let mut scene = Scene::new();
    let words = scene.usual_stack();
    // The youngest chunk is empty. The next chunk has only `caller`, whose own caller is in the oldest chunk.
    let (oldest, empty) = (PARENT + 0x1000, vec![0; SIZE as usize]);
    scene.chunk(CHUNK, PARENT, SIZE, 0, &empty);
    let mut one = empty.clone();
    one[SIZE as usize - FRAME - 1] = scene.caller_pc;
    scene.chunk(PARENT, oldest, SIZE - FRAME as u32, FRAME as u32, &one);
    scene.chunk(oldest, 0, SIZE - FRAME as u32, FRAME as u32, &words);
    let expected = scene.whole();
    assert_eq!(scene.walk(), expected);
}

#[test]
fn frozen_interpreter_frames_point_by_distances() {
    let mut scene = Scene::new();
    let (words, sp, method) = interpreted_on_top(&mut scene);
    // The frame size of the compiled caller counts from the address where its frame would end without the
    // arguments.
    scene.chunk(CHUNK, 0, sp as u32, 40, &words);
    let [caller, enter] = scene.whole();
    assert_eq!(scene.walk(), [(Interpreted, method, 3), caller, enter]);
}

/// A frozen frame that is to be deoptimised has the handler as its return address, and keeps its own PC in a
/// slot.
#[test]
fn a_frozen_frame_that_is_to_be_deoptimised_has_its_own_bytecode_index() {
    let mut scene = Scene::new();
    let top = SIZE as usize - 2 * FRAME;
    let mut words = scene.usual_stack();
    words[top - 1] = scene.caller_pc - 0x80 - BLOB_HEADER + 0xe00;
    // The slot that the method's `orig_pc_offset` names.
    words[top + 2] = scene.caller_pc;
    scene.chunk(CHUNK, 0, top as u32, 2 * FRAME as u32, &words);
    let expected = scene.whole();
    assert_eq!(scene.walk(), expected);
}

#[test]
fn inconsistent_continuations_are_marked_and_the_carrier_follows() {
    type Damage = fn(&mut Scene);
    let cases: &[(FrozenReason, Damage)] = &[
        (FrozenReason::WrongClass, |scene| scene.object(CONTINUATION, 0x99, CHUNK)),
        (FrozenReason::WrongClass, |scene| scene.frozen.chunk_klass = 0x99),
        (FrozenReason::Unreadable, |scene| scene.object(CONTINUATION, CONTINUATION_KLASS, 0x6f_0000)),
        (FrozenReason::Empty, |scene| scene.object(CONTINUATION, CONTINUATION_KLASS, 0)),
        (FrozenReason::Empty, |scene| scene.chunk(CHUNK, 0, SIZE, 0, &[0; SIZE as usize])),
        (FrozenReason::BadBounds, |scene| scene.chunk(CHUNK, 0, SIZE + 1, 0, &[0; SIZE as usize])),
        (FrozenReason::BadFrame, |scene| scene.chunk(CHUNK, 0, 8, 0, &[0; SIZE as usize])),
        (FrozenReason::NoEntry, |scene| scene.frozen.enter = 0x99),
        (FrozenReason::StaleReference, |scene| {
            scene.world.memory.put_u64(BAD_MASK, machine::bad_mask(2));
            scene.frozen.references = References::Coloured { bad_mask: BAD_MASK };
            scene.object(CONTINUATION, CONTINUATION_KLASS, machine::coloured(CHUNK, 3));
        }),
    ];
    for (reason, damage) in cases {
        let mut scene = Scene::new();
        damage(&mut scene);
        let expected = scene.marked(*reason);
        assert_eq!(scene.walk(), expected, "{reason:?}");
    }
    // The layout was not recognised.
    let mut scene = Scene::new();
    let (leaf, code) = scene.world.compiled();
    scene.world.set(ENTRY - 8, RETURN_BARRIER.start);
    scene.world.layout.continuation =
        Some(ContinuationLayout { entry: ENTRY_FIELD as u32, mounted: None, frozen: None });
    let frames = scene.world.walk(code + 0x80, ENTRY - 0x30, 0x1234, &[]);
    let mark = (Frozen, RETURN_BARRIER.start, FrozenReason::UnknownLayout as i32);
    assert_eq!(frames, [(Compiled, leaf, 7), mark, (Compiled, scene.carrier, 7)]);
}

#[test]
fn references_and_class_words_are_read_as_the_collector_writes_them() {
    type Change = fn(&mut Scene);
    let changes: &[(&str, Change)] = &[
        ("compressed", |scene| {
            scene.frozen.references = References::Narrow { base: 0x60_0000, shift: 3 };
            scene.object(CONTINUATION, CONTINUATION_KLASS, (CHUNK - 0x60_0000) >> 3);
        }),
        ("coloured", |scene| {
            scene.world.memory.put_u64(BAD_MASK, machine::bad_mask(3));
            scene.frozen.references = References::Coloured { bad_mask: BAD_MASK };
            scene.object(CONTINUATION, CONTINUATION_KLASS, machine::coloured(CHUNK, 3) | 0x10);
        }),
        ("mapped", |scene| {
            scene.world.memory.put_u64(BAD_MASK, 1 << 42);
            scene.frozen.references = References::Mapped { bad_mask: BAD_MASK };
        }),
        ("compact header", |scene| {
            scene.frozen.klass_word = KlassWord::InMark(42);
            for (object, klass) in [(CONTINUATION, CONTINUATION_KLASS), (CHUNK, CHUNK_KLASS)] {
                scene.world.memory.put_u64(object, u64::from(klass) << 42 | 1);
            }
        }),
        ("moved", |scene| {
            scene.object(PARENT, 0x99, 0);
            scene.world.memory.put_u64(PARENT, CHUNK | 3);
            scene.object(CONTINUATION, CONTINUATION_KLASS, PARENT);
        }),
    ];
    for (what, change) in changes {
        let mut scene = Scene::new();
        change(&mut scene);
        let expected = scene.whole();
        assert_eq!(scene.walk(), expected, "{what}");
    }
}

/// The words that an interpreter's frame has below its FP; the last ones are the bytecode pointer and the
/// initial SP.
const BELOW_FP: usize = (1 - InterpreterFrameLayout::IN_SOURCES.bcp) as usize;
/// These words and those from FP on: the caller's FP, the return address and one local.
pub(super) const INTERPRETED: usize = BELOW_FP + 3;

/// The words of a chunk with an interpreted method's frame on top of `caller`, above a word of alignment.
/// Returns the words, the frame's SP in words, and the method.
pub(super) fn interpreted_on_top(scene: &mut Scene) -> (Vec<u64>, usize, u64) {
    let (method, bytecodes) = scene.world.method();
    let mut words = scene.usual_stack();
    let sp = SIZE as usize - 2 * FRAME - INTERPRETED - 1;
    let fp = sp + BELOW_FP + 2;
    let slots = InterpreterFrameLayout::IN_SOURCES;
    let slot = |words: i64| fp.wrapping_add_signed(words as isize);
    words[sp - 1] = DISPATCH;
    words[sp - 2] = (fp - (sp - 2)) as u64;
    words[fp + 1] = scene.caller_pc;
    words[slot(slots.sender_sp)] = 2;
    words[slot(slots.last_sp)] = (BELOW_FP as u64 + 1).wrapping_neg();
    words[slot(slots.method)] = method;
    words[slot(slots.locals)] = 2;
    words[slot(slots.bcp)] = bytecodes + 3;
    (words, sp, method)
}

/// A thread in native code keeps running while a collection moves the chunk.
#[test]
fn frozen_frames_are_not_read_while_a_collection_may_move_them() {
    let mut scene = Scene::new();
    scene.world.collections.begin();
    assert_eq!(scene.walk(), scene.marked(FrozenReason::Collecting));
    scene.world.collections.end();
    assert_eq!(scene.walk(), scene.whole());
}

/// Regression: while a thread thawed, the frames of a chunk were counted again and again, millions of times.
#[test]
fn a_chunk_of_many_small_frames_is_not_counted_without_end() {
    const WORDS: u32 = 1 << 20;
    let mut scene = Scene::new();
    let spec = BlobSpec {
        name: "nmethod",
        code: &[0x90; 0x100],
        frame_bytes: 16,
        frame_complete: 4,
        method: scene.caller,
    };
    let small = scene.world.blob(&spec) + 0x80;
    let mut words: Vec<u64> = (0..WORDS).map(|word| if word % 2 == 1 { small } else { 0 }).collect();
    words[WORDS as usize - FRAME - 1] = scene.enter_pc;
    // A quarter of the chunk's frames has been taken.
    let far = 0x1000_0000;
    scene.chunk(far, 0, WORDS / 4, WORDS / 4 * 3, &words);
    scene.object(CONTINUATION, CONTINUATION_KLASS, far);
    let room = ENTRY - (u64::from(WORDS) / 2 + 4) * 8;
    let (_, code) = scene.world.compiled();
    let sp = STACK + 0x200;
    scene.world.set(sp + 0x28, CONT_THAW.start + RETURNED);
    scene.world.memory.put_u64(THREAD + ENTRY_FIELD, ENTRY - room + sp + 0x30);
    let entry = ENTRY - room + sp + 0x30;
    scene.world.memory.put_u64(entry + 16, CONTINUATION).put_u64(entry + 32, 1);
    scene.world.memory.put_u64(entry + 64, 0).put_u64(entry + 72, 0);
    scene.publish_layout();
    let mut registers = Registers { pc: code + 0x80, ..Registers::default() };
    registers.general[machine::SP] = sp;
    let (memory, start) = scene.world.start(registers);
    assert_ends(memory, &start);
}

/// A slow thaw unlinks an emptied chunk from the continuation at its very end. An older chunk is the youngest
/// one then.
#[test]
fn a_chunk_that_is_no_longer_the_youngest_is_marked() {
    let mut scene = Scene::new();
    let room = ENTRY - (3 * FRAME as u64 + 4) * 8;
    let mark = (Frozen, CONT_THAW.start + RETURNED, FrozenReason::Thawing as i32);
    let expected = [(Stub, CONT_THAW.start + RETURNED - 1, 0), mark, (Compiled, scene.carrier, 7)];
    assert_eq!(scene.walk_in_thaw(room, CONT_THAW.start + RETURNED), expected);
}

/// Words of an earlier freeze below the chunk's frames can look like a frame that has just been taken.
#[test]
fn a_thaw_of_which_two_frames_could_be_the_first_is_marked() {
    let mut scene = Scene::new();
    let mut words = scene.usual_stack();
    let code = [0x90; 0x100];
    let spec = BlobSpec {
        name: "nmethod",
        code: &code,
        frame_bytes: FRAME as i32 * 8 - 8,
        frame_complete: 4,
        method: scene.caller,
    };
    let shorter = scene.world.blob(&spec) + 0x80;
    let top = SIZE as usize - 3 * FRAME;
    words[top - 1] = scene.caller_pc;
    words[top] = shorter;
    scene.chunk(CHUNK, 0, SIZE - 2 * FRAME as u32, 12, &words);
    let room = ENTRY - (3 * FRAME as u64 + 4) * 8;
    let mark = (Frozen, CONT_THAW.start + RETURNED, FrozenReason::Thawing as i32);
    let frames = scene.walk_in_thaw(room, CONT_THAW.start + RETURNED);
    assert_eq!(frames[1], mark);
}

/// While `doYield` freezes, the stack still has the frames that are in the chunk already.
#[test]
fn frames_that_have_been_frozen_are_not_walked_twice() {
    for is_frozen in [false, true] {
        let mut scene = Scene::new();
        let yield_method = scene.world.method().0;
        scene.frozen.do_yield = yield_method;
        let code = [0x90; 0x100];
        let spec = BlobSpec {
            name: "native nmethod",
            code: &code,
            frame_bytes: 0x10,
            frame_complete: 4,
            method: yield_method,
        };
        let yields = scene.world.blob(&spec);
        let (leaf, leaf_code) = scene.world.compiled();
        // On the stack: doYield, its caller, and the frames that the barrier hides.
        let sp = ENTRY - 0x40;
        scene.world.set(sp + 8, leaf_code + 0x80).set(ENTRY - 8, RETURN_BARRIER.start);
        if is_frozen {
            let mut words = scene.usual_stack();
            let top = SIZE as usize - 3 * FRAME;
            words[top - 1] = leaf_code + 0x80;
            scene.chunk(CHUNK, 0, top as u32, 18, &words);
        }
        let [caller, enter] = scene.whole();
        let expected = [(NativeMethod, yield_method, -1), (Compiled, leaf, 7), caller, enter];
        assert_eq!(scene.walk_from(yields + 0x40, sp, &[]), expected, "{is_frozen}");
    }
}

/// Regression: a native method that had frozen its thread looked like a preempted one after its frames had
/// been appended. The carrier's frame below was taken for one of the frozen frames, which were then appended
/// again.
#[test]
fn frames_that_native_code_has_frozen_appear_once() {
    let mut scene = Scene::new();
    let (method, _) = scene.world.method();
    let spec = BlobSpec {
        name: "native nmethod",
        code: &[0x90; 0x100],
        frame_bytes: 0x10,
        frame_complete: 4,
        method,
    };
    let native_pc = scene.world.blob(&spec) + 0x40;
    scene.frozen.enter = 0x99;
    let mut words = scene.usual_stack();
    let top = SIZE as usize - 2 * FRAME - 2;
    words[top - 1] = native_pc;
    scene.chunk(CHUNK, 0, top as u32, 14, &words);
    // The native code has been called with an anchor.
    scene.world.memory.put_u64(THREAD, ENTRY - 0x40).put_u64(THREAD + 8, native_pc).put_u64(THREAD + 16, 0);
    let frames = scene.walk_from(0xdead_0000, ENTRY - 0x80, &[]);
    let mark = (Frozen, native_pc, FrozenReason::NoEntry as i32);
    assert_eq!(frames[2..], [mark, (Compiled, scene.carrier, 7)]);
}

#[test]
fn a_preempted_thread_is_in_its_chunk() {
    let mut scene = Scene::new();
    scene.world.memory.put(PREEMPT.start, vec![0x90; 0x100]);
    let [caller, enter] = scene.whole();
    let pc = PREEMPT.start + 4;
    assert_eq!(scene.walk_from(pc, ENTRY - 0x300, &[]), [(Stub, pc, 0), caller, enter]);
}

/// Also without frozen frames the walk ends at the continuation's entry.
#[test]
fn a_virtual_threads_stack_ends_where_the_carriers_begins() {
    let mut scene = Scene::new();
    let method = scene.world.method().0;
    scene.frozen.enter_special = method;
    let spec = BlobSpec {
        name: "native nmethod",
        code: &[0x90; 0x100],
        frame_bytes: 0x50,
        frame_complete: 4,
        method,
    };
    let special = scene.world.blob(&spec);
    let sp = ENTRY - 0x30;
    scene.world.set(ENTRY - 8, special + 0x80);
    let enter = (Compiled, scene.frozen.enter, 7);
    assert_eq!(scene.walk_from(scene.enter_pc, sp, &[]), [enter]);
    // If the thread is interrupted in enterSpecial itself, the carrier is running.
    let carrier = (Compiled, scene.carrier, 7);
    assert_eq!(scene.walk_from(special + 0x80, ENTRY, &[]), [(NativeMethod, method, -1), carrier]);
}

/// Regression: a thread that was interrupted while `enterSpecial` was about to fill the entry that it had
/// linked had the frames of the virtual thread that was preempted on this carrier before.
#[test]
fn an_entry_that_is_not_filled_yet_does_not_lead_to_another_threads_frames() {
    let mut scene = Scene::new();
    let code = [0x90; 0x100];
    let spec =
        |name, frame_bytes, method| BlobSpec { name, code: &code, frame_bytes, frame_complete: 4, method };
    let method = scene.world.method().0;
    scene.frozen.enter_special = method;
    let special = scene.world.blob(&spec("native nmethod", 0x50, method));
    let monitor_pc = scene.world.blob(&spec("C2 Runtime complete_monitor_locking", 0x30, 0)) + 0x40;
    let mut words = scene.usual_stack();
    let top = SIZE as usize - 3 * FRAME;
    words[top - 1] = monitor_pc;
    scene.chunk(CHUNK, 0, top as u32, 3 * FRAME as u32, &words);
    let [caller, enter] = scene.whole();
    let mut walk =
        |continuation| scene.walk_from(special + 0x80, ENTRY, &[(machine::JAVA_ARGUMENT, continuation)]);
    assert_eq!(walk(CONTINUATION), [(Stub, monitor_pc - 1, 0), caller, enter], "the entry's own");
    let frames = walk(CONTINUATION + 0x40);
    assert_eq!(frames, [(NativeMethod, method, -1), (Compiled, scene.carrier, 7)], "another thread's");
}
