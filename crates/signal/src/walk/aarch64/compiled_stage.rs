//! An interrupted frame of a compiled method, on aarch64: determines whether the frame exists at the
//! instruction.
//!
//! The entry saves x29 and x30 in one instruction, and the exit restores both in one
//! ([`super::instructions`]). The return address is in x30 before the save and after the restore. The exit
//! ends with a poll, `ldr x8, [x28, x]; cmp sp, x8; b.hi stub; ret` (JDK 17 on) or
//! `ldr x8, [x28, x]; ldr wzr, [x8]; ret` (JDK 11), or, with an exception, in a jump (cpu/aarch64/aarch64.ad
//! MachPrologNode, MachEpilogNode and RethrowException, c1_LIRAssembler_aarch64.cpp).

use otlpprof_core::a64_branch::INSTRUCTION_BYTES;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::instructions::{
    Around, DROP_PAIR, RESTORE_AFTER_CALL, Record, has_pushed_record, pushed_record, saves_record,
};
use super::reserved_zone::is_after_check;
use super::string_stage::TABLE_BYTES;
use crate::walk::blob::Blob;
use crate::walk::compiled::Part;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

/// The most bytes between the making of the frame and `frame_complete`: barriers lie between.
const PROLOGUE_BYTES: usize = 256;

/// The state of the interrupted method's frame, which says where its caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::walk) enum Stage {
    /// The frame is complete.
    Complete,
    /// The frame is being made or removed. Has the place of its record.
    Moving(Record),
}

impl<M: Memory> Walk<'_, M> {
    /// The caller of the compiled method's frame that was interrupted at `cursor`.
    pub(in crate::walk) fn interrupted_compiled_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
        stage: Stage,
    ) -> Result<Cursor, WalkError> {
        if blob.frame_bytes == 0 {
            return self.frameless_method_caller(blob, cursor, registers);
        }
        if let Stage::Moving(record) = stage {
            return self.caller_by_record(cursor, registers, record);
        }
        let pushed = self
            .bytes_pushed_for_subtype_check(vm, cursor.pc)
            .wrapping_add(self.bytes_saved_at(vm, blob, cursor.pc));
        let whole = Cursor { sp: cursor.sp.wrapping_add(pushed), ..*cursor };
        let caller = self.sized_caller(&whole, blob.frame_bytes);
        // With a string search's table on top, the slot that was read lies in the table if the frame is
        // small, and holds no code address. In a larger frame that slot may hold an old code address.
        if blob.frame_bytes <= TABLE_BYTES as i64 && caller.is_ok_and(|caller| self.is_code(caller.pc)) {
            return caller;
        }
        self.caller_below_strings(vm, blob, cursor, registers).map_or(caller, Ok)
    }

    /// The part of the method that the interrupted instruction at `pc` is in, and the state of the frame
    /// there.
    pub(in crate::walk) fn interrupted_stage(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        pc: u64,
    ) -> Result<(Part, Stage), WalkError> {
        let around = Around::read(self.memory, pc);
        let record = around
            .record(blob.frame_bytes)
            .or_else(|| is_after_check(self.memory, &around, pc).then_some(Record::InRegisters(0)));
        let complete_at = blob.code_begin.wrapping_add_signed(self.frame_complete(vm, blob)?);
        if pc < complete_at {
            let is_saved = record.is_some() || self.is_saved(blob, pc, complete_at);
            let record = if is_saved { record } else { Some(Record::InRegisters(0)) };
            return Ok((Part::Entry, record.map_or(Stage::Complete, Stage::Moving)));
        }
        let part = match record.is_some() || around.begins_exit(blob.frame_bytes) {
            true => Part::Exit,
            false => Part::Body,
        };
        Ok((part, record.map_or(Stage::Complete, Stage::Moving)))
    }

    /// The cursor of a returned-to frame with SP at the point from which the frame's size counts. C2 pushes a
    /// pair with the return address before it calls native code: `adr x9, next; stp xzr, x9, [sp, -16]!;
    /// blr x8; next: add sp, sp, 16` (cpu/aarch64/aarch64.ad, aarch64_enc_java_to_runtime, JDK 11-25).
    /// `Continuation.doYield` pushes another pair when it calls the VM.
    pub(in crate::walk) fn without_call_words(&self, cursor: Cursor) -> Cursor {
        let breadcrumb = || self.memory.load_u64(cursor.sp.wrapping_add(8)) == Some(cursor.pc);
        let has_pair = || match self.memory.load_u32(cursor.pc) {
            Some(DROP_PAIR) => breadcrumb(),
            next => next == Some(RESTORE_AFTER_CALL),
        };
        if !cursor.interrupted && has_pair() {
            return Cursor { sp: cursor.sp.wrapping_add(16), ..cursor };
        }
        cursor
    }

    /// The caller of an interrupted method without a frame: a wrapper of a method handle intrinsic
    /// (`linkToStatic`). A collector's barrier in such a wrapper makes a record around its call
    /// (cpu/aarch64/sharedRuntime_aarch64.cpp, gen_special_dispatch; gc/*/*BarrierSetAssembler_aarch64.cpp,
    /// JDK 11-25).
    fn frameless_method_caller(
        &self,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let record = match has_pushed_record(self.memory, blob.code_begin, cursor.pc) {
            true => pushed_record(self.memory, cursor.pc, cursor.sp, cursor.fp),
            false => Record::InRegisters(0),
        };
        self.caller_by_record(cursor, registers, record)
    }

    /// The caller of a method without a frame that has called native code.
    pub(in crate::walk) fn frameless_caller_after_call(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Result<Cursor, WalkError> {
        if !has_pushed_record(self.memory, blob.code_begin, cursor.pc) {
            return Err(WalkError::NoFrameSize);
        }
        let pc = self.load_return_address(cursor.fp.wrapping_add(8))?;
        if !self.is_return_address(vm, pc) {
            return Err(WalkError::NoFrameSize);
        }
        let (sp, fp) = (cursor.fp.wrapping_add(16), self.load(cursor.fp)?);
        self.check_progress(cursor, Cursor { pc, sp, fp, interrupted: false })
    }

    /// The caller of the code that was interrupted at `cursor` and whose frame record is at `record`.
    pub(super) fn caller_by_record(
        &self,
        cursor: &Cursor,
        registers: &Registers,
        record: Record,
    ) -> Result<Cursor, WalkError> {
        match record {
            Record::InRegisters(above) => {
                let sp = cursor.sp.wrapping_add(above);
                let caller = Cursor { pc: registers.lr(), sp, fp: registers.fp(), interrupted: false };
                self.check_progress(cursor, caller)
            }
            Record::OnStack(above) => self.sized_caller(cursor, above.wrapping_add(16) as i64),
        }
    }

    /// Whether the method's entry has saved the record before `pc`: it has if no instruction from `pc` on
    /// saves it.
    fn is_saved(&self, blob: &Blob, pc: u64, complete_at: u64) -> bool {
        let mut code = [0_u8; PROLOGUE_BYTES];
        let length = (complete_at.wrapping_sub(pc) as usize).min(PROLOGUE_BYTES);
        let Some(code) = code.get_mut(..length) else { return false };
        if !self.memory.read_bytes(pc, code) {
            return false;
        }
        let (instructions, _) = code.as_chunks::<{ INSTRUCTION_BYTES as usize }>();
        !instructions.iter().any(|&code| saves_record(u32::from_le_bytes(code), blob.frame_bytes))
    }
}
