//! A thread that is in `thaw`: what its chunk was before.
//!
//! The thread takes frames off the chunk, then copies them; what it has taken off is still there, below the chunk's
//! stack pointer. How much was taken follows from two things that do not change meanwhile: the room that the stub has
//! made on the stack is the chunk's `maxThawingSize` as it was, and that is a sum over the chunk's frames. So the frames
//! before are those with that sum. Source: runtime/continuationFreezeThaw.cpp (21 and 25), of which
//!
//! - a fast thaw sets `sp` and `maxThawingSize`, and copies all frames or one;
//! - a slow one (`finalize_thaw`) sets `sp`, then takes the distance of the frames from `maxThawingSize`, copies one to
//!   three, and at last (`finish_thaw`) takes off their words of alignment, or all that is left of an empty chunk; one that a
//!   collector has seen is put away then, and the room on the stack is all that tells of it.

use super::continuation::{
    Chunk, Frozen, FrozenFrame, MAX_CHUNK_WORDS, METADATA_BYTES, Next, frozen_layout, sized_caller,
};
use super::{Cursor, FrozenReason, MAX_STEPS, Walk};
use crate::core::continuation::{FrozenLayout, ThawStub};
use crate::core::memory::Memory;
use crate::core::vm_layout::VmLayout;

/// What `prepare_thaw` asks for beside the chunk's `maxThawingSize`, in words, and one word less where the stub
/// has aligned the stack (`thaw_size`).
const THAW_EXTRA_WORDS: [u64; 2] = [4, 5];
/// The stub aligns the stack to this.
const STACK_ALIGNMENT: u64 = 16;
/// An interpreter frame that has called has its outgoing arguments, and the callee's locals, below its own last
/// stack pointer; more are taken for garbage.
const MAX_OUTGOING_WORDS: u64 = 64;
/// Words of alignment of the frames that a slow thaw takes: three frames at most (`recurse_thaw_java_frame`).
const MAX_TAKEN_ALIGNMENTS: u64 = 3;
/// Frames that a slow thaw takes at most, and the runtime stub's of a preempted thread (`recurse_thaw`).
const MAX_THAWED_FRAMES: usize = 4;

impl<M: Memory> Walk<'_, M> {
    /// The chunk that a thread that is in `thaw`, called by the stub at `cursor`, was about to take frames out of, as
    /// it was before.
    pub(super) fn chunk_before_thaw(
        &self,
        vm: &VmLayout,
        layout: &FrozenLayout,
        stub: &ThawStub,
        cursor: &Cursor,
    ) -> Frozen<Chunk> {
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
                let taken = Taken { before, alignments: taken_alignments, left };
                let Some(top) = self.top_before(vm, layout, &chunk, &here, &taken, &mut steps) else {
                    continue;
                };
                if found.is_some_and(|found| found != top) {
                    return Err(FrozenReason::Thawing);
                }
                found = Some(top);
            }
        }
        found.filter(|_| steps != 0).map(|top| Chunk { top, ..chunk }).ok_or(FrozenReason::Thawing)
    }

    /// The entry, and the other end of the room that the stub at `cursor` has made below it for thawed frames.
    fn thaw_room(&self, vm: &VmLayout, stub: &ThawStub, cursor: &Cursor) -> Frozen<(u64, u64)> {
        let (entry, _) = self.continuation_entry(vm).ok_or(FrozenReason::Unreadable)?;
        // Of the two calls the first has one more word on the stack.
        let alignment = if stub.returned_early.contains(cursor.pc) { 8 } else { 0 };
        let room_end = cursor.sp.wrapping_add(stub.pushed_bytes).wrapping_add(alignment);
        let is_room =
            room_end.is_multiple_of(STACK_ALIGNMENT) && entry.wrapping_sub(room_end) / 8 <= MAX_CHUNK_WORDS;
        if is_room { Ok((entry, room_end)) } else { Err(FrozenReason::Thawing) }
    }

    /// The youngest thawed frame of a thread that is in `thaw`, called by the stub at `cursor`, whose chunk has been put
    /// away: it begins where the room does, behind what `prepare_thaw` asks for in addition, and leads to the entry. Frames
    /// with words of alignment may begin above that, and are not found.
    pub(super) fn thawed_of_chunk_put_away(
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
                    .is_ok_and(|blob| self.is_of_enter_special(vm, layout, &blob).unwrap_or(false));
            if is_last {
                return self.is_oldest_on_stack(vm, &frame).then_some(youngest);
            }
        }
        None
    }

    /// Whether the continuation has no chunk, or its first is as a freeze leaves it.
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
    fn thawing_words_left(&self, layout: &FrozenLayout, chunk: &Chunk) -> Option<u64> {
        let field = chunk.object.wrapping_add(u64::from(layout.max_thawing_size));
        self.memory.load_u32(field).map(u64::from)
    }

    /// The chunk's frames, as they are counted there; `None` if they do not lead to its end.
    fn counted_frames(
        &self,
        vm: &VmLayout,
        layout: &FrozenLayout,
        chunk: &Chunk,
        steps: &mut usize,
    ) -> Option<Frames> {
        let alignments = self.alignments(vm, layout, chunk, chunk.end, steps)?;
        let counts_from = self.counts_from(vm, chunk, chunk.top)?;
        Some(Frames { counts_from, alignments })
    }

    /// Where the chunk's youngest frame was before `taken`.
    fn top_before(
        &self,
        vm: &VmLayout,
        layout: &FrozenLayout,
        chunk: &Chunk,
        here: &Frames,
        taken: &Taken,
        steps: &mut usize,
    ) -> Option<u64> {
        let words = taken.before.checked_sub(here.alignments)?.checked_sub(taken.alignments)?;
        let counts_from = chunk.limit.checked_sub(words.checked_mul(8)?)?;
        let first = chunk.stack.wrapping_add(METADATA_BYTES);
        if !(first..chunk.top).contains(&counts_from) {
            return None;
        }
        let distance = here.counts_from.checked_sub(counts_from)? / 8;
        // Before anything was taken from it, in between, and behind all.
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
            let whole = Chunk { top, ..*chunk };
            self.counts_from(vm, &whole, top) == Some(counts_from)
                && self.alignments(vm, layout, &whole, chunk.top, steps) == Some(taken.alignments)
        })
    }

    /// The stack pointer that the size of the chunk's frame at `sp` counts from: an interpreter frame keeps it as its
    /// last one. `None` if that cannot be a frame.
    fn counts_from(&self, vm: &VmLayout, chunk: &Chunk, sp: u64) -> Option<u64> {
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

    /// The words of alignment that `maxThawingSize` counts for the frames from the chunk's top to `end`, where another
    /// begins or the chunk ends: one for each interpreter frame, and for each other frame that one has called. `None` if
    /// frames do not lead there, or by too many `steps`.
    fn alignments(
        &self,
        vm: &VmLayout,
        layout: &FrozenLayout,
        chunk: &Chunk,
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
    /// The stack pointer that the youngest counts from.
    counts_from: u64,
    alignments: u64,
}

impl Frames {
    /// What the chunk's `maxThawingSize` is with these frames: its words to its very end, and those of alignment.
    const fn thawing_words(&self, chunk: &Chunk) -> u64 {
        if chunk.is_empty() {
            return 0;
        }
        (chunk.limit.wrapping_sub(self.counts_from) / 8).wrapping_add(self.alignments)
    }
}

/// What is supposed to have been taken from a chunk.
struct Taken {
    /// The chunk's `maxThawingSize` before.
    before: u64,
    /// Words of alignment of the frames that were taken.
    alignments: u64,
    /// The chunk's `maxThawingSize` by now.
    left: u64,
}
