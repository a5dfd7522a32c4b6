//! An interrupted stub without debug information, on aarch64.
//!
//! StubRoutines and most helpers begin with `stp x29, x30, [sp, -16]!; mov x29, sp`. Small leaf stubs have no
//! frame record and leave the return address in x30. Until a stub makes a call, x30 has the return address in
//! either case. So x30 shows whether the record at x29 is the stub's own: it is if the record has the same
//! return address.

use super::instructions::{
    Around, INSTRUCTION_BYTES, POP_RECORD, PUSH_RECORD, RET, Record, has_pushed_record, pushed_record,
};
use crate::core::address::RuntimeAddr;
use crate::core::memory::Memory;
use crate::core::vm_layout::VmLayout;
use crate::signal::walk::blob::{Blob, BlobKind};
use crate::signal::walk::registers::Registers;
use crate::signal::walk::{Cursor, Walk, WalkError};

/// The most bytes between SP and a stub's own frame record: stubs save registers, SVE's included.
const MAX_STUB_FRAME: u64 = 32 * 1024;
/// The most pairs that a leaf stub without a frame record may have pushed.
const MAX_PAIRS: u64 = 16;
/// The most instructions with a record in a stub that native code calls: `mov x29, sp`, loading the slow
/// function's address, the call.
const MAX_SLOW_CALL: u64 = 8;
/// The most instructions of a leaf stub that are read up to its return.
const MAX_LEAF_INSTRUCTIONS: u64 = 96;

impl<M: Memory> Walk<'_, M> {
    /// The slot with the address to which the entry barrier's stub returns: in the frame record at `fp`.
    pub(in crate::signal::walk) fn entry_barrier_return_slot(&self, fp: u64) -> Result<u64, WalkError> {
        Ok(fp.wrapping_add(8))
    }

    /// Always `None`: a collector's stub that compiled code calls makes a frame record before it calls out,
    /// as other stubs do.
    pub(in crate::signal::walk) fn collector_stub_caller(
        &self,
        _vm: &VmLayout,
        _blob: &Blob,
        _cursor: &Cursor,
    ) -> Option<Cursor> {
        None
    }

    /// The caller of the stub that was interrupted at `cursor`.
    pub(in crate::signal::walk) fn interrupted_stub_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let (sp, fp, lr) = (cursor.sp, registers.fp(), registers.lr());
        let leaf = |sp: u64| Ok(Cursor { pc: lr, sp, fp, interrupted: false });
        let own_record = || {
            let begin = blob.code_begin;
            has_pushed_record(self.memory, begin, cursor.pc)
                .then(|| pushed_record(self.memory, cursor.pc, sp, fp))
        };
        match blob.kind {
            BlobKind::Vtable => return leaf(sp),
            // An entry with a trailing MemberName may call a collector's barrier to load the MemberName's
            // target. All entries receive the sender's SP in a register.
            BlobKind::MethodHandleEntry => {
                let caller = own_record()
                    .map_or_else(|| leaf(sp), |record| self.caller_by_record(cursor, registers, record))?;
                let passed = registers.by_dwarf_number(vm.stubs.interpreter_code.sender_sp_register);
                let sp = passed.and_then(|passed| self.passed_sender_sp(caller.sp, passed));
                return Ok(Cursor { sp: sp.unwrap_or(caller.sp), ..caller });
            }
            BlobKind::SlowSubtypeCheck => {
                return leaf(self.sp_at_return(cursor)?.wrapping_add(self.bytes_below_subtype_check(lr)));
            }
            BlobKind::Safepoint => return self.safepoint_blob_caller(blob, cursor, registers),
            BlobKind::Exception => return self.exception_blob_caller(blob, cursor, registers),
            _ => {}
        }
        if let Some(caller) = self.jump_to_handler_caller(vm, cursor, registers) {
            return Ok(caller);
        }
        if vm.stubs.method_entry_barrier.contains(cursor.pc)
            && let Some(caller) = self.resolved_again_caller(cursor, registers)
        {
            return caller;
        }
        if let Some(record) = Around::read(self.memory, cursor.pc).record(blob.frame_bytes) {
            return self.caller_by_record(cursor, registers, record);
        }
        let by_record = |above: u64| self.caller_by_record(cursor, registers, Record::OnStack(above));
        let return_at = |slot: u64| self.load_return_address(slot).ok();
        let above_fp =
            Some(fp.wrapping_sub(sp)).filter(|&above| above <= MAX_STUB_FRAME && fp.is_multiple_of(8));
        let sized = u64::try_from(blob.frame_bytes).ok().and_then(|bytes| bytes.checked_sub(16));
        let places = [sized, above_fp];
        let mut records = places.into_iter().flatten();
        let saved = |above: u64| return_at(sp.wrapping_add(above).wrapping_add(8));
        if !self.is_return_address(vm, lr) {
            // The stub has called out, or uses x30 for another value.
            let is_saved = |&above: &u64| saved(above).is_some_and(|pc| self.is_return_address(vm, pc));
            let record = records.find(is_saved).ok_or(WalkError::NoFrameSize)?;
            return by_record(record);
        }
        if let Some(record) = records.find(|&above| saved(above) == Some(lr)) {
            return by_record(record);
        }
        leaf(self.sp_without_pushes(vm, sp, lr))
    }

    /// The caller of a method that may no longer be entered, if the entry barrier's stub is about to have the
    /// method resolved again. The stub takes the frame that the VM has stored below its record,
    /// `ldp x8, x29, [sp]; ldp x30, x9, [sp, 16]; mov sp, x8; br x9`, and thereby removes the method's frame
    /// with its own (cpu/aarch64/stubGenerator_aarch64.cpp, generate_method_entry_barrier;
    /// gc/shared/barrierSetNMethod_aarch64.cpp, BarrierSetNMethod::deoptimize; JDK 17-25).
    fn resolved_again_caller(
        &self,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Option<Result<Cursor, WalkError>> {
        const TAKES_FRAME: [u32; 4] = [0xa940_77e8, 0xa941_27fe, 0x9100_011f, 0xd61f_0120];
        let code = self.memory.load_u32(cursor.pc)?;
        let stage = TAKES_FRAME.iter().position(|&instruction| instruction == code)?;
        let before = self.memory.load_u32(cursor.pc.wrapping_sub(INSTRUCTION_BYTES))?;
        if stage.checked_sub(1).and_then(|previous| TAKES_FRAME.get(previous)).is_some_and(|&at| at != before)
        {
            return None;
        }
        if stage == TAKES_FRAME.len().wrapping_sub(1) {
            let (pc, sp, fp) = (registers.lr(), cursor.sp, registers.fp());
            return Some(Ok(Cursor { pc, sp, fp, interrupted: false }));
        }
        let put = |word: u64| self.load(cursor.sp.wrapping_add(word.wrapping_mul(8)));
        let caller = || {
            let pc = self.load_return_address(cursor.sp.wrapping_add(16))?;
            let caller = Cursor { pc, sp: put(0)?, fp: put(1)?, interrupted: false };
            self.check_progress(cursor, caller)
        };
        Some(caller())
    }

    /// SP when the leaf stub at `cursor` returns: the registers that it has pushed are popped by then.
    fn sp_at_return(&self, cursor: &Cursor) -> Result<u64, WalkError> {
        let mut sp = cursor.sp;
        for index in 0..MAX_LEAF_INSTRUCTIONS {
            let address = cursor.pc.wrapping_add(index.wrapping_mul(INSTRUCTION_BYTES));
            let code = self.memory.load_u32(address).ok_or(WalkError::Unreadable)?;
            if code == RET {
                return Ok(sp);
            }
            sp = sp.wrapping_add_signed(sp_change(code));
        }
        Err(WalkError::NoFrameSize)
    }

    /// The stack pointer of the frame to which a leaf stub returns at `lr`. The stub has pushed pairs of
    /// registers on top of that frame. A compiled caller is recognised by its own return address.
    fn sp_without_pushes(&self, vm: &VmLayout, sp: u64, lr: u64) -> u64 {
        let Ok(blob) = self.blob_at(vm, lr) else { return sp };
        if blob.kind != BlobKind::Nmethod || vm.stubs.interpreter.contains(lr) {
            return sp;
        }
        let is_frame = |&sp: &u64| {
            let slot = sp.wrapping_add_signed(blob.frame_bytes).wrapping_sub(8);
            self.load_return_address(slot).is_ok_and(|pc| {
                pc == vm.stubs.cont_return_barrier.start
                    || self.in_code_cache(pc) && self.is_return_address(vm, pc)
            })
        };
        let above = (0..=MAX_PAIRS).map(|pair| sp.wrapping_add(pair.wrapping_mul(16)));
        above.into_iter().find(is_frame).unwrap_or(sp)
    }

    /// The caller of a leaf stub that native code has called, in a thread without Java frames. JNI's fast
    /// field getters and similar stubs leave the return address in x30, and x29 unchanged. If the fast path
    /// fails, they make a record and call the slow function (cpu/aarch64/jniFastGetField_aarch64.cpp).
    pub(in crate::signal::walk) fn native_leaf_stub_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        registers: Option<&Registers>,
    ) -> Result<Cursor, WalkError> {
        let registers = registers.filter(|_| cursor.interrupted).ok_or(WalkError::UnknownCode)?;
        let begin = cursor.pc.wrapping_sub(MAX_SLOW_CALL.wrapping_mul(INSTRUCTION_BYTES));
        let caller = if has_pushed_record(self.memory, begin, cursor.pc) {
            let record = pushed_record(self.memory, cursor.pc, cursor.sp, cursor.fp);
            self.caller_by_record(cursor, registers, record)?
        } else {
            Cursor { pc: registers.lr(), sp: cursor.sp, fp: cursor.fp, interrupted: false }
        };
        if self.objects.find(RuntimeAddr(caller.pc)).is_none() || !self.is_return_address(vm, caller.pc) {
            return Err(WalkError::UnknownCode);
        }
        Ok(caller)
    }
}

/// The number of bytes that an instruction adds to SP by pushing or popping registers: `stp`, `ldp`, `str`,
/// `ldr` with write-back.
fn sp_change(code: u32) -> i64 {
    const SP: u32 = 31;
    if code >> 5 & 0x1f != SP || matches!(code, PUSH_RECORD | POP_RECORD) {
        return 0;
    }
    // stp and ldp: a signed 7-bit immediate, in words; post-indexed or pre-indexed.
    if matches!(code & 0xffc0_0000, 0xa880_0000 | 0xa8c0_0000 | 0xa980_0000 | 0xa9c0_0000) {
        return i64::from((code << 10) as i32 >> 25).wrapping_mul(8);
    }
    // str and ldr: a signed 9-bit immediate, in bytes.
    if matches!(code & 0xffe0_0400, 0xf800_0400 | 0xf840_0400) {
        return i64::from((code << 11) as i32 >> 23);
    }
    0
}
