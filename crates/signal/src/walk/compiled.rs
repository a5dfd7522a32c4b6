//! Compiled methods: the methods that a program counter stands for (PcDesc, ScopeDesc), and the caller's
//! frame.
//!
//! Sources: code/pcDesc.hpp, code/scopeDesc.cpp, code/debugInfo.hpp, utilities/unsigned5.hpp (JDK 11-25).

use otlpprof_core::address::CodeRange;
use otlpprof_core::deoptimization_handler::{Interrupted, native as deoptimization_handler};
use otlpprof_core::memory::Memory;
use otlpprof_core::record::FrameKind;
use otlpprof_core::unsigned5;
use otlpprof_core::vm_layout::VmLayout;

use super::blob::Blob;
use super::cursor::Cursor;
use super::registers::Registers;
use super::sink::FrameSink;
use super::stack_walk::Walk;
use super::walk_error::WalkError;

/// Inlining depth beyond which a scope chain is taken for garbage (MaxInlineLevel is 15 by default).
const MAX_INLINE_DEPTH: usize = 512;

/// The scope offset of a PcDesc that has no scope (`DebugInformationRecorder::serialized_null`,
/// code/debugInfoRec.hpp). The last PcDesc, whose PC lies beyond the blob's content, has this offset
/// (`nmethod::copy_scopes_pcs`, code/nmethod.cpp, JDK 11 to 25).
const NO_SCOPE: i32 = 0;

/// The part of its method that an interrupted instruction belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The instruction makes the frame.
    Entry,
    /// The instruction belongs to the bytecodes of some scope.
    Body,
    /// The instruction removes the frame, or returns; or it makes the frame of another entry point after the
    /// first one.
    Exit,
}

impl Part {
    /// The bytecode index for an instruction outside of all scopes: the index of the first bytecode, or -1
    /// for none. An instruction that makes or removes the frame belongs to no inlined method and has no
    /// PcDesc of its own: the next PcDesc describes the code that happens to lie after.
    fn bci_outside_of_scopes(self) -> Option<i32> {
        match self {
            Self::Entry => Some(0),
            Self::Body => None,
            Self::Exit => Some(-1),
        }
    }
}

/// The source that decided which Java frames a compiled frame stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// Only the program counter.
    ByPc,
    /// The program counter and the stack: the frame is to be deoptimised.
    ByStack,
}

impl<M: Memory> Walk<'_, M> {
    /// Appends the Java frames that the compiled frame at `cursor` stands for, leaf first. `part` is the part
    /// of the method where the frame was interrupted; a frame that has called other code is in its body.
    pub(super) fn compiled_frames(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        part: Part,
        sink: &mut FrameSink<'_>,
    ) -> Result<Decoded, WalkError> {
        let layout = &vm.nmethod;
        let method = self.load(blob.address.wrapping_add(u64::from(layout.method)))?;
        let level_at = blob.address.wrapping_add(u64::from(layout.comp_level));
        // A native method's wrapper has level 0 and no useful scopes.
        let level = self.memory.load_u8(level_at).filter(|level| (1..=4).contains(level)).unwrap_or(0);
        if level == 0 {
            sink.java(FrameKind::NativeMethod, 0, method, -1);
            return Ok(Decoded::ByPc);
        }
        if let Some(bci) = part.bci_outside_of_scopes() {
            sink.java(FrameKind::Compiled, level, method, bci);
            return Ok(Decoded::ByPc);
        }
        let pc = self.original_pc(vm, blob, cursor)?;
        let decoded = if pc == cursor.pc { Decoded::ByPc } else { Decoded::ByStack };
        let pc_offset = pc.wrapping_sub(blob.code_begin) as i32;
        // A call's PcDesc is at its return address, and the instruction there is no longer part of the call.
        let wanted = match cursor.interrupted && self.is_after_call(pc) {
            true => pc_offset.wrapping_add(1),
            false => pc_offset,
        };
        let scope = match self.pc_desc(vm, blob, wanted)? {
            Some(scope) => scope as u64,
            None => {
                sink.java(FrameKind::Compiled, level, method, -1);
                return Ok(decoded);
            }
        };
        self.scope_frames(vm, blob, scope, level, method, sink)?;
        Ok(decoded)
    }

    /// The PC that the debug information knows. A frame that is to be deoptimised returns to the
    /// deoptimisation handler, and keeps its original PC on the stack.
    fn original_pc(&self, vm: &VmLayout, blob: &Blob, cursor: &Cursor) -> Result<u64, WalkError> {
        let Some(layout) = &vm.nmethod.deoptimization else { return Ok(cursor.pc) };
        if cursor.interrupted || !self.is_deopt_handler(vm, blob, cursor.pc) {
            return Ok(cursor.pc);
        }
        let slot = self.load_i32(blob.address.wrapping_add(u64::from(layout.orig_pc_offset)))?;
        self.load(cursor.sp.wrapping_add_signed(i64::from(slot)))
    }

    /// Whether `pc` is the start of one of the method's deoptimisation handlers.
    pub(super) fn is_deopt_handler(&self, vm: &VmLayout, blob: &Blob, pc: u64) -> bool {
        let is_handler = |&part: &_| self.blob_part(blob.address, part).is_ok_and(|handler| handler == pc);
        vm.nmethod.deoptimization.as_ref().is_some_and(|layout| layout.handlers.iter().any(is_handler))
    }

    /// If a deoptimisation handler was interrupted, the frame in its state after the handler: returned to at
    /// the handler's entry.
    pub(super) fn deopt_handler_frame(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Option<Cursor> {
        let stubs = self.stubs(vm, blob)?;
        let stubs = CodeRange { start: stubs.begin, end: stubs.end };
        if !stubs.contains(cursor.pc) {
            return None;
        }
        let register = registers.by_dwarf_number(deoptimization_handler::REGISTER)?;
        let at = Interrupted { pc: cursor.pc, sp: cursor.sp, register };
        let left = deoptimization_handler::way_out(self.memory, stubs, at)?;
        let (pc, sp) = (left.return_address, left.sp);
        let frame = Cursor { pc, sp, fp: registers.fp(), interrupted: false };
        self.is_deopt_handler(vm, blob, pc).then_some(frame)
    }

    /// The scope offset of the first PcDesc at `wanted` or after it. A call's return address has a PcDesc of
    /// its own. A run of other instructions with one scope has its PcDesc at the last instruction
    /// (opto/output.cpp, NonSafepointEmitter; c1/c1_LIRAssembler.cpp, process_debug_info).
    fn pc_desc(&self, vm: &VmLayout, blob: &Blob, wanted: i32) -> Result<Option<i32>, WalkError> {
        let layout = &vm.nmethod;
        let begin = self.blob_part(blob.address, layout.scopes_pcs_begin)?;
        let end = self.blob_part(blob.address, layout.scopes_pcs_end)?;
        let size = u64::from(layout.pc_desc_size);
        let (mut low, mut high) = (0, end.saturating_sub(begin).checked_div(size).unwrap_or(0));
        let field = |index: u64, field: u32| {
            self.load_i32(begin.wrapping_add(index.wrapping_mul(size)).wrapping_add(u64::from(field)))
        };
        let count = high;
        while low < high {
            let middle = low.wrapping_add(high.wrapping_sub(low) >> 1);
            if field(middle, layout.pc_desc_pc_offset)? < wanted {
                low = middle.wrapping_add(1);
            } else {
                high = middle;
            }
        }
        if low >= count {
            return Ok(None);
        }
        let scope = field(low, layout.pc_desc_scope_decode_offset)?;
        Ok((scope > NO_SCOPE).then_some(scope))
    }

    /// Whether the method has a scope at `pc` or after it. True also if the PcDescs cannot be read.
    pub(super) fn has_scope(&self, vm: &VmLayout, blob: &Blob, pc: u64) -> bool {
        let pc_offset = pc.wrapping_sub(blob.code_begin) as i32;
        !matches!(self.pc_desc(vm, blob, pc_offset), Ok(None))
    }

    fn scope_frames(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        first_scope: u64,
        level: u8,
        method: u64,
        sink: &mut FrameSink<'_>,
    ) -> Result<(), WalkError> {
        let layout = &vm.nmethod;
        let scopes = self.blob_part(blob.address, layout.scopes_data_begin)?;
        let metadata = self.blob_part(blob.address, layout.metadata_begin)?;
        let mut scope = first_scope;
        for _ in 0..MAX_INLINE_DEPTH {
            let mut bytes = Bytes { memory: self.memory, at: scopes.wrapping_add(scope), word: 0, left: 0 };
            let mut next =
                || unsigned5::read(|| bytes.next(), layout.unsigned5_excluded).ok_or(WalkError::Unreadable);
            let (sender, method_index) = (next()?, next()?);
            // -1 is the entry, before the first bytecode. HotSpot's own traces give the entry the line of the
            // first bytecode (oops/method.cpp, line_number_from_bci).
            let bci = (next()? as i32).wrapping_sub(1).max(0);
            let scope_method = match u64::from(method_index).checked_sub(1) {
                Some(index) => self.load(metadata.wrapping_add(index.wrapping_mul(8)))?,
                None => 0,
            };
            if sender == 0 {
                // The outermost scope is the compiled method itself.
                sink.java(FrameKind::Compiled, level, method, bci);
                return Ok(());
            }
            sink.java(FrameKind::Inlined, level, scope_method, bci);
            scope = u64::from(sender);
        }
        Err(WalkError::TooManySteps)
    }

    /// The number of bytes that the method's own stubs have pushed onto its frame when the thread is at `pc`.
    ///
    /// C2 writes barrier stubs behind the method's own code, where no scope applies any more, and in front of
    /// the stub section (gc/z/c2/zBarrierSetC2.cpp, emit_stubs). C1 writes them among its other stubs, of
    /// which some have scopes (c1/c1_LIRAssembler.cpp, emit_stubs). Code with scopes can also be the method's
    /// own, so only C1's short stubs are looked for there.
    pub(super) fn bytes_saved_at(&self, vm: &VmLayout, blob: &Blob, pc: u64) -> u64 {
        let Some(stubs) = self.stubs(vm, blob) else { return 0 };
        let is_stub = pc >= stubs.begin || !self.has_scope(vm, blob, pc);
        if is_stub {
            self.bytes_saved_by_barrier(&stubs, pc)
        } else {
            self.bytes_saved_by_c1s_barrier(&stubs, pc)
        }
    }

    /// The caller of a complete frame: the frame size is fixed, and the frame pointer is saved below the
    /// return address.
    pub(super) fn sized_caller(&self, cursor: &Cursor, frame_bytes: i64) -> Result<Cursor, WalkError> {
        if frame_bytes < 16 {
            return Err(WalkError::NoFrameSize);
        }
        let sp = cursor.sp.wrapping_add_signed(frame_bytes);
        let pc = self.load_return_address(sp.wrapping_sub(8))?;
        let fp = self.load(sp.wrapping_sub(16))?;
        self.check_progress(cursor, Cursor { pc, sp, fp, interrupted: false })
    }
}

/// A byte reader. Eight bytes are loaded at once where that many can be read.
struct Bytes<'a, M> {
    memory: &'a M,
    at: u64,
    word: u64,
    left: u32,
}

impl<M: Memory> Bytes<'_, M> {
    fn next(&mut self) -> Option<u8> {
        if self.left == 0 {
            (self.word, self.left) = match self.memory.load_u64(self.at) {
                Some(word) => (u64::from_le(word), 8),
                None => (u64::from(self.memory.load_u8(self.at)?), 1),
            };
            self.at = self.at.wrapping_add(u64::from(self.left));
        }
        let byte = self.word as u8;
        self.word >>= 8;
        self.left = self.left.wrapping_sub(1);
        Some(byte)
    }
}
