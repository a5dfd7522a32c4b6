//! Virtual threads: the frames that are frozen on the heap, and the first frame of the carrier.
//!
//! A mounted virtual thread has its youngest frames on its carrier's stack, above the ContinuationEntry in
//! the frame of `Continuation.enterSpecial`. The older frames stay in StackChunks, the youngest chunk first,
//! until the frame that they called returns into cont_returnBarrier. Sources:
//! runtime/continuationFreezeThaw.cpp, oops/stackChunkOop.inline.hpp,
//! runtime/stackChunkFrameStream.inline.hpp (JDK 21 and 25).
//!
//! A chunk is an object: a collector may be moving it, and the thread itself may be halfway through filling
//! it. So no content of a chunk is accepted before classes, bounds, every frame and the oldest method have
//! been checked. If a check fails, a `[frozen: reason]` mark replaces all frozen frames.

use otlpprof_core::continuation::{ContinuationLayout, FrozenLayout, KlassWord, References, ThawStub};
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::arch;
use super::arch::interpreter_frame::sender_sp;
use super::blob::{Blob, BlobKind, StubKind};
use super::compiled::{Decoded, Part};
use super::cursor::{Cursor, MAX_STEPS};
use super::frozen_reason::FrozenReason;
use super::repeated::Repeated;
use super::sink::FrameSink;
use super::stack_walk::Walk;
use super::walk_error::WalkError;

/// The most chunks of one continuation, more than any has: each freeze that finds no room makes one.
const MAX_CHUNKS: usize = 1024;
/// The most words of a chunk's stack, which is no larger than a thread's stack.
pub(super) const MAX_CHUNK_WORDS: u64 = 1 << 24;
/// The bytes below a frame's stack pointer that belong to the frame: the saved frame pointer and the return
/// address (frame::metadata_words).
pub(super) const METADATA_BYTES: u64 = 16;

/// A chunk whose header has been checked. Addresses are run-time addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackChunk {
    pub(super) object: u64,
    /// The continuation through which the chunk was found.
    pub(super) continuation: u64,
    pub(super) stack: u64,
    /// The youngest frame's stack pointer.
    pub(super) top: u64,
    /// One past the oldest frame.
    pub(super) end: u64,
    /// One past the stack, the oldest frame's arguments included.
    pub(super) limit: u64,
}

impl StackChunk {
    pub(super) const fn is_empty(&self) -> bool {
        self.top == self.end
    }
}

/// A frame in a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrozenFrame {
    /// The end of the frame. The two words below hold the saved frame pointer and the return address.
    pub(super) sp: u64,
    /// The address from which the frame's own size counts.
    pub(super) unextended_sp: u64,
}

/// The caller of a frame in a chunk.
pub(super) enum Next {
    Caller(FrozenFrame),
    /// The frame was the oldest of its chunk. Has the frame's method.
    Last(u64),
}

impl Next {
    pub(super) const fn is_caller(&self) -> bool {
        matches!(self, Self::Caller(_))
    }
}

/// The layout of frozen frames, if it was recognised at start.
pub(super) fn frozen_layout(vm: &VmLayout) -> Option<&FrozenLayout> {
    vm.continuation.as_ref()?.frozen.as_ref()
}

pub(super) type Frozen<T> = Result<T, FrozenReason>;

impl<M: Memory> Walk<'_, M> {
    /// The ContinuationEntry of the innermost continuation that is mounted on this thread.
    pub(super) fn continuation_entry<'v>(&self, vm: &'v VmLayout) -> Option<(u64, &'v ContinuationLayout)> {
        let layout = vm.continuation.as_ref().filter(|_| self.java_thread != 0)?;
        let entry = self.memory.load_u64(self.java_thread.wrapping_add(u64::from(layout.entry)))?;
        (entry != 0 && entry.is_multiple_of(8)).then_some((entry, layout))
    }

    /// The frame of `Continuation.run` on the carrier, which has mounted the innermost continuation. Beyond a
    /// barrier only the ContinuationEntry leads to this frame.
    pub(super) fn carrier_frame(&self, vm: &VmLayout) -> Result<Cursor, WalkError> {
        let (entry, _) = self.continuation_entry(vm).ok_or(WalkError::BadContinuationEntry)?;
        self.caller_of_entry(entry)
    }

    /// The caller of the frame that holds the ContinuationEntry at `entry`.
    pub(super) fn caller_of_entry(&self, entry: u64) -> Result<Cursor, WalkError> {
        let fp_slot = entry.wrapping_add(ContinuationLayout::ENTRY_BYTES);
        let sp = fp_slot.wrapping_add(METADATA_BYTES);
        let (fp, pc) = (self.load(fp_slot)?, self.load_return_address(fp_slot.wrapping_add(8))?);
        if sp <= fp_slot || sp > self.stack_high || !self.in_code_cache(pc) {
            return Err(WalkError::BadContinuationEntry);
        }
        Ok(Cursor { pc, sp, fp, interrupted: false })
    }

    /// The PC at which the youngest frozen frame of the mounted continuation continues. A frame on the stack
    /// that returns to this PC has been frozen, though the stack still has it.
    pub(super) fn frozen_top(&self, vm: &VmLayout) -> Option<u64> {
        let layout = frozen_layout(vm)?;
        let chunk = self.youngest_chunk(vm, layout).ok()?;
        self.top_pc(vm, layout, &chunk).ok()
    }

    /// Whether the youngest frozen frame is at an instruction that calls no Java method.
    pub(super) fn is_frozen_at_no_call(&self, vm: &VmLayout, layout: &FrozenLayout) -> bool {
        /// invokevirtual to invokedynamic. The bytecodes above the standard ones are HotSpot's own, and some
        /// of them are calls (interpreter/bytecodes.hpp).
        const CALLS: std::ops::RangeInclusive<u8> = 0xb6..=0xba;
        const LAST_STANDARD: u8 = 0xc9;
        let Ok(chunk) = self.youngest_chunk(vm, layout) else { return false };
        let Ok(pc) = self.top_pc(vm, layout, &chunk) else { return false };
        if let Some(codelet) = vm.stubs.codelet_at(pc) {
            let bytecode = || {
                let fp = self.frozen_fp(&chunk, chunk.top).ok()?;
                let bcp = self.slot(fp, vm.interpreter_frame.bcp).ok()?;
                self.memory.load_u8(bcp)
            };
            return codelet.kind.is_native_entry()
                || bytecode().is_some_and(|code| code <= LAST_STANDARD && !CALLS.contains(&code));
        }
        self.blob_at(vm, pc).is_ok_and(|blob| match blob.kind {
            BlobKind::Nmethod => self.is_native_wrapper(vm, &blob),
            BlobKind::Stub(StubKind::Other) => true,
            _ => false,
        })
    }

    /// Whether the nmethod is a native method's wrapper, which has no compilation level.
    pub(super) fn is_native_wrapper(&self, vm: &VmLayout, blob: &Blob) -> bool {
        let level = blob.address.wrapping_add(u64::from(vm.nmethod.comp_level));
        blob.kind == BlobKind::Nmethod && self.memory.load_u8(level) == Some(0)
    }

    /// Appends all frozen frames of the mounted continuation or, if that fails, none of them. `thawing` has
    /// the stub and its frame if the thread is in the VM to thaw.
    pub(super) fn frozen_frames(
        &self,
        vm: &VmLayout,
        thawing: Option<(&ThawStub, &Cursor)>,
        repeated: &mut Repeated,
        sink: &mut FrameSink<'_>,
    ) -> Frozen<()> {
        let first = sink.len();
        let are_moved = frozen_layout(vm).is_some_and(|layout| layout.references.are_moved_in_pauses());
        let collections = self.collections.so_far();
        let result = match collections {
            None if are_moved => Err(FrozenReason::Collecting),
            _ => self.all_frozen_frames(vm, thawing, repeated, sink),
        };
        let is_whole = !are_moved || collections.is_some_and(|so_far| self.collections.are_still(so_far));
        let result = if is_whole { result } else { Err(FrozenReason::Collecting) };
        if result.is_err() {
            sink.cut(first);
            *repeated = Repeated::default();
        }
        result
    }

    fn all_frozen_frames(
        &self,
        vm: &VmLayout,
        thawing: Option<(&ThawStub, &Cursor)>,
        repeated: &mut Repeated,
        sink: &mut FrameSink<'_>,
    ) -> Frozen<()> {
        let layout = frozen_layout(vm).ok_or(FrozenReason::UnknownLayout)?;
        let mut chunk = match thawing {
            Some((stub, cursor)) => self.chunk_before_thaw(vm, layout, stub, cursor)?,
            None => self.youngest_chunk(vm, layout)?,
        };
        let mut oldest = 0;
        let mut steps = MAX_STEPS;
        for _ in 0..MAX_CHUNKS {
            if !chunk.is_empty() {
                oldest = self.chunk_frames(vm, layout, &chunk, &mut steps, repeated, sink)?;
            }
            if steps == 0 && sink.is_full() {
                let is_sure = self.are_pages_retained(layout);
                return if is_sure { Ok(()) } else { Err(FrozenReason::StaleReference) };
            }
            match self.chunk_in(layout, chunk.object, layout.parent, chunk.continuation)? {
                None if oldest == layout.enter && self.are_pages_retained(layout) => return Ok(()),
                None if oldest == layout.enter => return Err(FrozenReason::StaleReference),
                None => return Err(FrozenReason::NoEntry),
                Some(parent) => chunk = parent,
            }
        }
        Err(FrozenReason::BadBounds)
    }

    /// The youngest chunk that has frames.
    pub(super) fn youngest_chunk(&self, vm: &VmLayout, layout: &FrozenLayout) -> Frozen<StackChunk> {
        let mut chunk = self.tail(vm, layout)?;
        for _ in 0..MAX_CHUNKS {
            if !chunk.is_empty() {
                return Ok(chunk);
            }
            let parent = self.chunk_in(layout, chunk.object, layout.parent, chunk.continuation)?;
            chunk = parent.ok_or(FrozenReason::Empty)?;
        }
        Err(FrozenReason::BadBounds)
    }

    /// The continuation's youngest chunk, empty or not.
    pub(super) fn tail(&self, vm: &VmLayout, layout: &FrozenLayout) -> Frozen<StackChunk> {
        let (entry, _) = self.continuation_entry(vm).ok_or(FrozenReason::Unreadable)?;
        let address = entry.wrapping_add(ContinuationLayout::ENTRY_CONTINUATION);
        let continuation = self.memory.load_u64(address).ok_or(FrozenReason::Unreadable)?;
        let continuation = self.object(layout, continuation, &layout.continuation_klasses)?;
        self.chunk_in(layout, continuation, layout.tail, continuation)?.ok_or(FrozenReason::Empty)
    }

    /// The chunk that a field of `object` refers to, if any.
    fn chunk_in(
        &self,
        layout: &FrozenLayout,
        object: u64,
        field: u32,
        continuation: u64,
    ) -> Frozen<Option<StackChunk>> {
        match self.reference(layout, object.wrapping_add(u64::from(field)))? {
            0 => Ok(None),
            address => self.chunk(layout, address, continuation).map(Some),
        }
    }

    /// Checks the header of the chunk at `object`.
    fn chunk(&self, layout: &FrozenLayout, object: u64, continuation: u64) -> Frozen<StackChunk> {
        let object = self.object(layout, object, &[layout.chunk_klass])?;
        let field = |field: u32| {
            let value = self.memory.load_u32(object.wrapping_add(u64::from(field)));
            value.map(u64::from).ok_or(FrozenReason::Unreadable)
        };
        let (size, sp, bottom) = (field(layout.size)?, field(layout.sp)?, field(layout.bottom)?);
        if !(sp <= bottom && bottom <= size && size <= MAX_CHUNK_WORDS) {
            return Err(FrozenReason::BadBounds);
        }
        let stack = object.wrapping_add(u64::from(layout.stack));
        let at = |words: u64| stack.wrapping_add(words.wrapping_mul(8));
        Ok(StackChunk { object, continuation, stack, top: at(sp), end: at(bottom), limit: at(size) })
    }

    /// The current address of the object at `address`, which may have been moved, if the object is of one of
    /// `klasses`.
    pub(super) fn object(&self, layout: &FrozenLayout, address: u64, klasses: &[u64]) -> Frozen<u64> {
        /// The mark word's lock bits of an object that has been moved. The other bits are its new address
        /// (oops/markWord.hpp).
        const MOVED: u64 = 3;
        if address == 0 || !address.is_multiple_of(8) {
            return Err(FrozenReason::WrongClass);
        }
        let mark = self.memory.load_u64(address).ok_or(FrozenReason::Unreadable)?;
        let address = if mark & MOVED == MOVED { mark & !MOVED } else { address };
        let after = address.wrapping_add(8);
        let word = match layout.klass_word {
            KlassWord::InMark(shift) => self.memory.load_u64(address).map(|mark| mark.wrapping_shr(shift)),
            KlassWord::Narrow => self.memory.load_u32(after).map(u64::from),
            KlassWord::Wide => self.memory.load_u64(after),
        };
        let word = word.ok_or(FrozenReason::Unreadable)?;
        if klasses.contains(&word) { Ok(address) } else { Err(FrozenReason::WrongClass) }
    }

    /// The object that the field at `address` refers to; 0 for none.
    pub(super) fn reference(&self, layout: &FrozenLayout, address: u64) -> Frozen<u64> {
        if let References::Narrow { base, shift } = layout.references {
            let narrow = self.memory.load_u32(address).map(u64::from).ok_or(FrozenReason::Unreadable)?;
            return Ok(if narrow == 0 { 0 } else { base.wrapping_add(narrow.wrapping_shl(shift)) });
        }
        let value = self.memory.load_u64(address).ok_or(FrozenReason::Unreadable)?;
        let (bad_mask, address) = match layout.references {
            _ if value == 0 => return Ok(0),
            References::Plain | References::Narrow { .. } => return Ok(value),
            References::Mapped { bad_mask } => (bad_mask, value),
            References::Coloured { bad_mask } => {
                let address = arch::coloured_reference::address_of(value);
                match address.ok_or(FrozenReason::StaleReference)? {
                    // A null reference, whatever its colour.
                    0 => return Ok(0),
                    address => (bad_mask, address),
                }
            }
        };
        if self.is_stale(value, bad_mask)? { self.relocated(layout, value, address) } else { Ok(address) }
    }

    /// The PC at which the chunk's youngest frame continues. A freeze that is about to write frames below
    /// that frame has already replaced its return address by the barrier's; the chunk's `pc` field has the PC
    /// then.
    pub(super) fn top_pc(&self, vm: &VmLayout, layout: &FrozenLayout, chunk: &StackChunk) -> Frozen<u64> {
        let mut pc = self.frozen_return_address(chunk.top)?;
        if pc == vm.stubs.cont_return_barrier.start {
            pc = self.frozen_word(chunk.object.wrapping_add(u64::from(layout.pc)))?;
        }
        if self.are_pages_retained(layout) { Ok(pc) } else { Err(FrozenReason::StaleReference) }
    }

    /// Appends the frames of one chunk. Returns the method of the oldest frame.
    fn chunk_frames(
        &self,
        vm: &VmLayout,
        layout: &FrozenLayout,
        chunk: &StackChunk,
        steps: &mut usize,
        repeated: &mut Repeated,
        sink: &mut FrameSink<'_>,
    ) -> Frozen<u64> {
        let mut frame = FrozenFrame { sp: chunk.top, unextended_sp: chunk.top };
        let mut pc = self.top_pc(vm, layout, chunk)?;
        // Each frame is at least as large as its metadata.
        let most = chunk.end.wrapping_sub(chunk.top) / METADATA_BYTES;
        for _ in 0..=most {
            *steps = match steps.checked_sub(1) {
                Some(left) => left,
                None if sink.is_full() => return Ok(0),
                None => return Err(FrozenReason::BadBounds),
            };
            match self.frozen_frame(vm, chunk, &frame, pc, repeated, sink)? {
                Next::Last(method) => return Ok(method),
                Next::Caller(caller) => {
                    let grows = caller.sp > frame.sp && caller.sp < chunk.end;
                    if !grows || !caller.sp.is_multiple_of(8) {
                        return Err(FrozenReason::BadFrame);
                    }
                    pc = self.frozen_return_address(caller.sp)?;
                    frame = caller;
                }
            }
        }
        Err(FrozenReason::BadFrame)
    }

    /// The PC at which the frame at `sp` continues.
    pub(super) fn frozen_return_address(&self, sp: u64) -> Frozen<u64> {
        self.load_return_address(sp.wrapping_sub(8)).map_err(|_| FrozenReason::Unreadable)
    }

    fn frozen_word(&self, address: u64) -> Frozen<u64> {
        self.memory.load_u64(address).ok_or(FrozenReason::Unreadable)
    }

    /// Appends one frozen frame and finds its caller.
    fn frozen_frame(
        &self,
        vm: &VmLayout,
        chunk: &StackChunk,
        frame: &FrozenFrame,
        pc: u64,
        repeated: &mut Repeated,
        sink: &mut FrameSink<'_>,
    ) -> Frozen<Next> {
        if vm.stubs.interpreter.contains(pc) {
            return self.frozen_interpreted_frame(vm, chunk, frame, sink);
        }
        let bad = FrozenReason::BadFrame;
        let cursor = Cursor { pc, sp: frame.unextended_sp, fp: 0, interrupted: false };
        if let Some((frames, frame_bytes)) = repeated.get(pc)
            && let Next::Caller(caller) = sized_caller(chunk, frame, frame_bytes, 0)?
        {
            sink.repeat(frames);
            return Ok(Next::Caller(caller));
        }
        let blob = self.blob_at(vm, pc).map_err(|_| bad)?;
        if pc < blob.code_begin || blob.frame_bytes < METADATA_BYTES as i64 {
            return Err(bad);
        }
        let mut method = 0;
        match blob.kind {
            BlobKind::Nmethod => {
                method = self.nmethod_method(vm, &blob).map_err(|_| bad)?;
                let first = sink.len();
                let decoded = self.compiled_frames(vm, &blob, &cursor, Part::Body, sink).map_err(|_| bad)?;
                if decoded == Decoded::ByPc && !sink.is_full() {
                    repeated.put(pc, first..sink.len(), blob.frame_bytes);
                }
            }
            // The thread was frozen in a call that compiled code makes for a monitor (JDK 24 on).
            BlobKind::Stub(StubKind::Other) if frame.sp == chunk.top => sink.stub(cursor.lookup_pc()),
            _ => return Err(bad),
        }
        sized_caller(chunk, frame, blob.frame_bytes, method)
    }

    fn nmethod_method(&self, vm: &VmLayout, blob: &Blob) -> Result<u64, WalkError> {
        self.load(blob.address.wrapping_add(u64::from(vm.nmethod.method)))
    }

    /// Appends a frozen interpreter frame and finds its caller. In a chunk, an interpreter frame's pointers
    /// into the stack are distances in words from its frame pointer. The frame pointer that its callee has
    /// saved is a distance from the slot that holds it.
    fn frozen_interpreted_frame(
        &self,
        vm: &VmLayout,
        chunk: &StackChunk,
        frame: &FrozenFrame,
        sink: &mut FrameSink<'_>,
    ) -> Frozen<Next> {
        let fp = self.frozen_fp(chunk, frame.sp)?;
        let slot = |index: i64| self.frozen_word(fp.wrapping_add_signed(index.wrapping_mul(8)));
        let method = slot(vm.interpreter_frame.method)?;
        let bytecodes = self.bytecodes(vm, method).map_err(|_| FrozenReason::BadFrame)?;
        sink.java(bytecodes.kind(), 0, method, bytecodes.index_of(slot(vm.interpreter_frame.bcp)?));
        match self.frozen_interpreted_caller(vm, chunk, frame)? {
            Next::Last(_) => Ok(Next::Last(method)),
            caller => Ok(caller),
        }
    }

    /// The frame pointer of the interpreter frame at `sp`.
    pub(super) fn frozen_fp(&self, chunk: &StackChunk, sp: u64) -> Frozen<u64> {
        let slot = sp.wrapping_sub(METADATA_BYTES);
        let fp = slot.wrapping_add(self.frozen_word(slot)?.wrapping_mul(8));
        if sp <= fp && fp < chunk.limit { Ok(fp) } else { Err(FrozenReason::BadFrame) }
    }

    pub(super) fn frozen_interpreted_caller(
        &self,
        vm: &VmLayout,
        chunk: &StackChunk,
        frame: &FrozenFrame,
    ) -> Frozen<Next> {
        let bad = FrozenReason::BadFrame;
        let fp = self.frozen_fp(chunk, frame.sp)?;
        let pointer = |index: i64| {
            let words = self.frozen_word(fp.wrapping_add_signed(index.wrapping_mul(8)))?;
            Ok(fp.wrapping_add(words.wrapping_mul(8)))
        };
        let first_local = pointer(vm.interpreter_frame.locals)?;
        if !(fp < first_local && first_local < chunk.limit) {
            return Err(bad);
        }
        if first_local.wrapping_add(8) >= chunk.end {
            return Ok(Next::Last(0));
        }
        let sp = fp.wrapping_add(METADATA_BYTES);
        let unextended_sp = sender_sp(fp, pointer(vm.interpreter_frame.sender_sp)?);
        if unextended_sp < sp || unextended_sp >= chunk.end {
            return Err(bad);
        }
        Ok(Next::Caller(FrozenFrame { sp, unextended_sp }))
    }
}

/// The caller of a frozen frame of `frame_bytes` bytes, if the chunk has the caller.
pub(super) fn sized_caller(
    chunk: &StackChunk,
    frame: &FrozenFrame,
    frame_bytes: i64,
    method: u64,
) -> Frozen<Next> {
    let sp = frame.unextended_sp.wrapping_add_signed(frame_bytes);
    if sp <= frame.sp || sp > chunk.limit {
        return Err(FrozenReason::BadFrame);
    }
    if sp.wrapping_add(METADATA_BYTES) >= chunk.end {
        return Ok(Next::Last(method));
    }
    Ok(Next::Caller(FrozenFrame { sp, unextended_sp: sp }))
}
