//! A thread that is inside of `thaw`: restores the state of its chunk before the thaw.
//!
//! The thread first takes frames off the chunk, then copies them. The frames that it has taken off remain in
//! memory, below the chunk's stack pointer. Two values that do not change meanwhile show how much was taken.
//! The room that the stub has made on the stack equals the chunk's `maxThawingSize` before the thaw, and
//! `maxThawingSize` is a sum over the chunk's frames. So the earlier frames are those with that sum. Source:
//! runtime/continuationFreezeThaw.cpp (JDK 21 and 25). There are two kinds of thaw:
//!
//! - A fast thaw sets `sp` and `maxThawingSize`, and copies all frames or one.
//! - A slow thaw (`finalize_thaw`) sets `sp`, then subtracts the distance of the frames from
//!   `maxThawingSize`, and copies one to three frames. At last (`finish_thaw`) it subtracts these frames'
//!   words of alignment or, if the chunk is empty, the whole rest. If a collector has seen an empty chunk,
//!   the thaw also unlinks the chunk from the continuation, and the room on the stack is the only trace of
//!   it.
//!
//! From JDK 24 on the stub's frame of a preempted thread comes on top of these numbers of frames.

use otlpprof_core::continuation::{FrozenLayout, ThawStub};
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::continuation::{
    Frozen, FrozenFrame, MAX_CHUNK_WORDS, METADATA_BYTES, Next, StackChunk, frozen_layout, sized_caller,
};
use super::cursor::{Cursor, MAX_STEPS};
use super::frozen_reason::FrozenReason;
use super::stack_walk::Walk;

/// The words that `prepare_thaw` adds to the chunk's `maxThawingSize`; the larger number applies where the
/// stub has aligned the stack (`thaw_size`).
const THAW_EXTRA_WORDS: [u64; 2] = [4, 5];
/// The alignment, in bytes, that the stub gives the stack.
const STACK_ALIGNMENT: u64 = 16;
/// The most words of outgoing arguments and callee's locals that an interpreter frame in a call has below its
/// own last stack pointer. More words are taken for garbage.
const MAX_OUTGOING_WORDS: u64 = 64;
/// The most words of alignment of the frames that a slow thaw takes: three frames at most
/// (`recurse_thaw_java_frame`).
const MAX_TAKEN_ALIGNMENTS: u64 = 3;
/// The most frames that a slow thaw takes, including the runtime stub's frame of a preempted thread
/// (`recurse_thaw`).
const MAX_THAWED_FRAMES: usize = 4;

impl<M: Memory> Walk<'_, M> {
    /// The chunk from which a thread takes frames in `thaw`, called by the stub at `cursor`, in its state
    /// before the thaw.
    pub(super) fn chunk_before_thaw(
        &self,
        vm: &VmLayout,
        layout: &FrozenLayout,
        stub: &ThawStub,
        cursor: &Cursor,
    ) -> Frozen<StackChunk> {
        if cursor.interrupted || cursor.pc <= stub.makes_room {
            return self.youngest_chunk(vm, layout);
        }
        let (entry, room_end) = self.thaw_room(vm, stub, cursor)?;
        let room = entry.wrapping_sub(room_end);
        let chunk = self.tail(vm, layout)?;
        let left = self.thawing_words_left(layout, &chunk).ok_or(FrozenReason::Unreadable)?;
        let mut steps = MAX_STEPS;
        let here = self.counted_frames(vm, layout, &chunk, &mut steps).ok_or(FrozenReason::BadFrame)?;
        let before = THAW_EXTRA_WORDS.map(|extra| (room / 8).wrapping_sub(extra));
        if before.contains(&here.thawing_words(&chunk)) {
            let is_whole = !chunk.is_empty() && left == here.thawing_words(&chunk);
            return if is_whole { Ok(chunk) } else { Err(FrozenReason::Thawing) };
        }
        let mut found = None;
        for before in before {
            for taken_alignments in 0..=MAX_TAKEN_ALIGNMENTS {
                let taken = TakenFrames { before, alignments: taken_alignments, left };
                let Some(top) = self.top_before(vm, layout, &chunk, &here, &taken, &mut steps) else {
                    continue;
                };
                if found.is_some_and(|found| found != top) {
                    return Err(FrozenReason::Thawing);
                }
                found = Some(top);
            }
        }
        found.filter(|_| steps != 0).map(|top| StackChunk { top, ..chunk }).ok_or(FrozenReason::Thawing)
    }

    /// The entry, and the far end of the room that the stub at `cursor` has made below the entry for thawed
    /// frames.
    fn thaw_room(&self, vm: &VmLayout, stub: &ThawStub, cursor: &Cursor) -> Frozen<(u64, u64)> {
        let (entry, _) = self.continuation_entry(vm).ok_or(FrozenReason::Unreadable)?;
        // The first of the stub's two calls has one more word on the stack.
        let alignment = if stub.returned_early.contains(cursor.pc) { 8 } else { 0 };
        let room_end = cursor.sp.wrapping_add(stub.pushed_bytes).wrapping_add(alignment);
        let is_room =
            room_end.is_multiple_of(STACK_ALIGNMENT) && entry.wrapping_sub(room_end) / 8 <= MAX_CHUNK_WORDS;
        if is_room { Ok((entry, room_end)) } else { Err(FrozenReason::Thawing) }
    }

    /// The youngest thawed frame of a thread that is in `thaw`, called by the stub at `cursor`, whose chunk
    /// has been unlinked. The frame begins at the start of the room, after the words that `prepare_thaw`
    /// adds, and leads to the entry. Frames with words of alignment may begin above that address, and are not
    /// found.
    pub(super) fn youngest_thawed_of_unlinked_chunk(
        &self,
        vm: &VmLayout,
        stub: &ThawStub,
        cursor: &Cursor,
    ) -> Option<Cursor> {
        let layout = frozen_layout(vm).filter(|_| !cursor.interrupted && cursor.pc > stub.makes_room)?;
        if !self.is_untouched(vm, layout) {
            return None;
        }
        let (entry, room_end) = self.thaw_room(vm, stub, cursor).ok()?;
        let [extra_words, _] = THAW_EXTRA_WORDS;
        let sp = room_end.wrapping_add(extra_words.wrapping_mul(8));
        let pc = self.load_return_address(sp.wrapping_sub(8)).ok()?;
        let youngest = Cursor { pc, sp, fp: self.load(sp.wrapping_sub(16)).ok()?, interrupted: false };
        let mut frame = youngest;
        for _ in 0..MAX_THAWED_FRAMES {
            let blob = self.blob_at(vm, frame.pc).ok()?;
            frame = self.sized_caller(&frame, blob.frame_bytes).ok().filter(|caller| caller.sp <= entry)?;
            let is_last = frame.pc == vm.stubs.cont_return_barrier.start
                || self
                    .blob_at(vm, frame.pc)
                    .is_ok_and(|blob| self.is_enter_special(vm, layout, &blob).unwrap_or(false));
            if is_last {
                return self.is_oldest_on_stack(vm, &frame).then_some(youngest);
            }
        }
        None
    }

    /// Whether the continuation has no chunk, or its first chunk is in the state in which a freeze leaves it.
    fn is_untouched(&self, vm: &VmLayout, layout: &FrozenLayout) -> bool {
        let chunk = match self.tail(vm, layout) {
            Ok(chunk) => chunk,
            Err(reason) => return reason == FrozenReason::Empty,
        };
        let mut steps = MAX_STEPS;
        let here = self.counted_frames(vm, layout, &chunk, &mut steps);
        here.is_some_and(|here| self.thawing_words_left(layout, &chunk) == Some(here.thawing_words(&chunk)))
    }

    /// The chunk's `maxThawingSize`.
    fn thawing_words_left(&self, layout: &FrozenLayout, chunk: &StackChunk) -> Option<u64> {
        let field = chunk.object.wrapping_add(u64::from(layout.max_thawing_size));
        self.memory.load_u32(field).map(u64::from)
    }

    /// Counts the chunk's frames as `maxThawingSize` does. `None` if they do not lead to its end.
    fn counted_frames(
        &self,
        vm: &VmLayout,
        layout: &FrozenLayout,
        chunk: &StackChunk,
        steps: &mut usize,
    ) -> Option<Frames> {
        let alignments = self.alignments(vm, layout, chunk, chunk.end, steps)?;
        let counts_from = self.counts_from(vm, chunk, chunk.top)?;
        Some(Frames { counts_from, alignments })
    }

    /// The address of the chunk's youngest frame before `taken`.
    fn top_before(
        &self,
        vm: &VmLayout,
        layout: &FrozenLayout,
        chunk: &StackChunk,
        here: &Frames,
        taken: &TakenFrames,
        steps: &mut usize,
    ) -> Option<u64> {
        let words = taken.before.checked_sub(here.alignments)?.checked_sub(taken.alignments)?;
        let counts_from = chunk.limit.checked_sub(words.checked_mul(8)?)?;
        let first = chunk.stack.wrapping_add(METADATA_BYTES);
        if !(first..chunk.top).contains(&counts_from) {
            return None;
        }
        let distance = here.counts_from.checked_sub(counts_from)? / 8;
        // The possible values of `maxThawingSize`: before any subtraction, between the two, and after both.
        let lefts = [
            taken.before,
            taken.before.wrapping_sub(distance),
            if chunk.is_empty() { 0 } else { here.thawing_words(chunk) },
        ];
        if !lefts.contains(&taken.left) {
            return None;
        }
        let tops = (0..MAX_OUTGOING_WORDS).map(|words| counts_from.wrapping_sub(words.wrapping_mul(8)));
        tops.take_while(|&top| top >= first).find(|&top| {
            let whole = StackChunk { top, ..*chunk };
            self.counts_from(vm, &whole, top) == Some(counts_from)
                && self.alignments(vm, layout, &whole, chunk.top, steps) == Some(taken.alignments)
        })
    }

    /// The stack pointer at which the chunk's frame at `sp` begins when its size is counted: the last SP of
    /// an interpreter frame, and `sp` for all other frames. `None` if there cannot be a frame at `sp`.
    fn counts_from(&self, vm: &VmLayout, chunk: &StackChunk, sp: u64) -> Option<u64> {
        if sp == chunk.end {
            return Some(sp);
        }
        let pc = self.memory.load_u64(sp.wrapping_sub(8))?;
        if !vm.stubs.interpreter.contains(pc) {
            return self.in_code_cache(pc).then_some(sp);
        }
        let fp = self.frozen_fp(chunk, sp).ok()?;
        let last_sp = self.slot(fp, vm.interpreter_frame.last_sp).ok()?;
        let counts_from = fp.wrapping_add(last_sp.wrapping_mul(8));
        (sp <= counts_from && counts_from < fp).then_some(counts_from)
    }

    /// The words of alignment that `maxThawingSize` counts for the frames from the chunk's top to `end`,
    /// where another frame begins or the chunk ends. Each interpreter frame counts one, and so does each
    /// other frame that an interpreter frame has called. `None` if the frames do not lead to `end`, or not
    /// within `steps`.
    fn alignments(
        &self,
        vm: &VmLayout,
        layout: &FrozenLayout,
        chunk: &StackChunk,
        end: u64,
        steps: &mut usize,
    ) -> Option<u64> {
        let mut frame = FrozenFrame { sp: chunk.top, unextended_sp: chunk.top };
        let mut alignments = 0_u64;
        loop {
            if frame.sp == end {
                return Some(alignments);
            }
            *steps = steps.checked_sub(1)?;
            let pc = if frame.sp == chunk.top {
                self.top_pc(vm, layout, chunk).ok()?
            } else {
                self.memory.load_u64(frame.sp.wrapping_sub(8))?
            };
            let is_interpreted = vm.stubs.interpreter.contains(pc);
            let next = if is_interpreted {
                self.frozen_interpreted_caller(vm, chunk, &frame).ok()?
            } else {
                let blob = self.blob_at(vm, pc).ok()?;
                let caller_sp = frame.unextended_sp.wrapping_add_signed(blob.frame_bytes);
                if caller_sp == chunk.end {
                    Next::Last(0)
                } else {
                    sized_caller(chunk, &frame, blob.frame_bytes, 0).ok().filter(Next::is_caller)?
                }
            };
            let caller = match next {
                Next::Caller(caller) => caller,
                Next::Last(_) => FrozenFrame { sp: chunk.end, unextended_sp: chunk.end },
            };
            if caller.sp <= frame.sp || caller.sp > end {
                return None;
            }
            let is_called_by_interpreted = caller.sp != chunk.end
                && vm.stubs.interpreter.contains(self.memory.load_u64(caller.sp.wrapping_sub(8))?);
            alignments = alignments.wrapping_add(u64::from(is_interpreted || is_called_by_interpreted));
            frame = caller;
        }
    }
}

/// A chunk's frames, as `maxThawingSize` counts them.
struct Frames {
    /// The stack pointer from which the youngest frame's size counts.
    counts_from: u64,
    alignments: u64,
}

impl Frames {
    /// The chunk's `maxThawingSize` with these frames: the words up to the chunk's very end, and the words of
    /// alignment.
    const fn thawing_words(&self, chunk: &StackChunk) -> u64 {
        if chunk.is_empty() {
            return 0;
        }
        (chunk.limit.wrapping_sub(self.counts_from) / 8).wrapping_add(self.alignments)
    }
}

/// A hypothesis about the frames that have been taken from a chunk.
struct TakenFrames {
    /// The chunk's `maxThawingSize` before the thaw.
    before: u64,
    /// The words of alignment of the frames that were taken.
    alignments: u64,
    /// The chunk's present `maxThawingSize`.
    left: u64,
}
