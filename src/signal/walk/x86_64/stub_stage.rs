//! An interrupted stub without debug information, on x86_64.
//!
//! StubRoutines and most helpers begin with `push rbp; mov rbp, rsp` and end with `leave; ret` or
//! `pop rbp; ret`. Between these, RBP leads to the caller. Small leaf stubs have no frame and keep RBP.

use super::bytes_to_return::End;
use super::compiled_stage::is_pop_to_stack;
use crate::core::address::RuntimeAddr;
use crate::core::memory::Memory;
use crate::core::vm_layout::VmLayout;
use crate::signal::walk::blob::{Blob, BlobKind};
use crate::signal::walk::registers::Registers;
use crate::signal::walk::{Cursor, Walk, WalkError};

/// The most bytes between SP and a stub's own frame pointer: stubs save registers, AVX-512's included.
const MAX_STUB_FRAME: u64 = 16 * 1024;
/// The number of words above SP that are searched for the return address of a stub that pushes registers one
/// by one. C1's slow_subtype_check pushes eight in JDK 25 (c1_Runtime1_x86.cpp).
const MAX_PUSHED_WORDS: u64 = 10;

impl<M: Memory> Walk<'_, M> {
    /// The caller of the stub that was interrupted at `cursor`.
    pub(in crate::signal::walk) fn interrupted_stub_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let (pc, sp, fp) = (cursor.pc, cursor.sp, registers.fp());
        let is_subtype_check = blob.kind == BlobKind::SlowSubtypeCheck;
        let caller = |slot: u64, fp: u64| -> Result<Cursor, WalkError> {
            let pc = self.load(slot)?;
            let arguments = if is_subtype_check { self.bytes_below_subtype_check(pc) } else { 0 };
            let sp = slot.wrapping_add(8).wrapping_add(arguments);
            self.check_progress(cursor, Cursor { pc, sp, fp, interrupted: false })
        };
        if vm.stubs.method_entry_barrier.contains(pc) {
            return self.entry_barrier_caller(cursor, fp);
        }
        if blob.kind == BlobKind::Vtable {
            return caller(sp, fp);
        }
        if blob.kind == BlobKind::MethodHandleEntry {
            return self.method_handle_entry_caller(vm, blob, cursor, registers);
        }
        if blob.kind == BlobKind::CollectorStub
            && let Some(caller) = self.collector_stub_caller(vm, blob, cursor)
        {
            return Ok(caller);
        }
        if blob.kind == BlobKind::Exception {
            return self.exception_blob_caller(blob, cursor, registers);
        }
        if blob.kind == BlobKind::Safepoint {
            return self.safepoint_blob_caller(blob, cursor, registers);
        }
        if let Some(caller) = self.jump_to_handler_caller(vm, cursor, registers) {
            return Ok(caller);
        }
        let mut code = [0_u8; 4];
        let _ = self.memory.read_bytes(pc, &mut code);
        match code {
            // ret; push rbp
            [0xc3, ..] | [0x55, ..] => return caller(sp, fp),
            _ if is_pop_to_stack(&code) => {
                let whole = Cursor { sp: sp.wrapping_add(8), ..*cursor };
                return self.sized_caller(&whole, blob.frame_bytes);
            }
            // mov rbp, rsp in both encodings, after a push; pop rbp
            [0x48, 0x8b, 0xec, _] | [0x48, 0x89, 0xe5, _] | [0x5d, ..] => {
                return caller(sp.wrapping_add(8), self.load(sp)?);
            }
            _ if vm.stubs.framed.is_some_and(|stubs| stubs.at(pc).is_some())
                && self.load(fp.wrapping_add(8)).is_ok_and(|pc| self.is_return_address(vm, pc)) =>
            {
                return caller(fp.wrapping_add(8), self.load(fp)?);
            }
            // Native code, or its wrapper, has called a small leaf stub (cache flush, safe fetch, CPU
            // features, the check of SSE's control register). RBP may hold any value.
            _ if !self.is_in_java(vm) => {
                let is_on_top = self.is_return_address(vm, self.load(sp)?);
                let below = if is_on_top { None } else { self.way_out_of_blob(vm, blob, cursor, registers) };
                return below.map_or_else(|| caller(sp, fp), Ok);
            }
            _ => {}
        }
        // A blob with a frame size (a runtime stub) has its complete frame after its entry. A stub with a
        // frame of its own has RBP right below its return address. Each guess is checked by the address that
        // it finds.
        let is_return =
            |slot: u64| self.memory.load_u64(slot).is_some_and(|pc| self.is_return_address(vm, pc));
        if blob.frame_bytes >= 16 && is_return(sp.wrapping_add_signed(blob.frame_bytes.wrapping_sub(8))) {
            return self.sized_caller(cursor, blob.frame_bytes);
        }
        // A stub without a frame has its return address on top. This is tried before RBP, which would lead
        // past the caller.
        if is_return(sp) {
            return caller(sp, fp);
        }
        let pushed = |word: u64| sp.wrapping_add(word.wrapping_mul(8));
        let mut pushed = (1..MAX_PUSHED_WORDS).map(pushed).filter(|&slot| is_return(slot));
        // A blob without a frame size does not change its caller's RBP.
        if blob.frame_bytes < 0
            && let Some(slot) = pushed.next()
        {
            return caller(slot, fp);
        }
        // Compiled code may hold any value in RBP, for example that of the entry frame, whose return address
        // is native. So the return address is checked.
        let is_frame = fp >= sp && fp.wrapping_sub(sp) <= MAX_STUB_FRAME;
        if is_frame && self.memory.load_u64(fp.wrapping_add(8)).is_some_and(|pc| self.is_java_code(vm, pc)) {
            return caller(fp.wrapping_add(8), self.load(fp)?);
        }
        let slot = pushed.next().ok_or(WalkError::NoFrameSize)?;
        caller(slot, fp)
    }

    /// The caller of a collector's stub that compiled code calls. The stub saves registers one by one, and
    /// calls out. Shenandoah's stub has a frame below the saved registers for its call
    /// (cpu/x86: gc/shenandoah/shenandoahBarrierSetAssembler_x86.cpp, generate_shenandoah_lrb;
    /// gc/z/zBarrierSetAssembler_x86.cpp, generate_load_barrier_stub; both in JDK 11 alone).
    pub(in crate::signal::walk) fn collector_stub_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Option<Cursor> {
        let fp_above = cursor.fp.wrapping_sub(cursor.sp);
        let above = self.bytes_until(self.code_of(vm, blob)?, cursor.pc, Some(fp_above), End::Ret)?;
        let slot = self.return_slot(vm, cursor.sp.wrapping_add(above))?;
        let has_frame = (cursor.sp..slot).contains(&cursor.fp);
        let fp = if has_frame { self.memory.load_u64(cursor.fp)? } else { cursor.fp };
        let caller =
            Cursor { pc: self.memory.load_u64(slot)?, sp: slot.wrapping_add(8), fp, interrupted: false };
        self.check_progress(cursor, caller).ok()
    }

    /// The caller of an interpreter's entry for a method handle intrinsic. These entries have no frame, and
    /// receive the sender's SP in r13. An entry with a trailing MemberName pops the return address and pushes
    /// it again: `pop rax; pop rbx; push rax`. A barrier in an entry saves registers
    /// (cpu/x86/methodHandles_x86.cpp, generate_method_handle_interpreter_entry, JDK 11-25).
    fn method_handle_entry_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let slot = self.return_slot_of_frameless(vm, blob, cursor).unwrap_or(cursor.sp);
        let on_stack = self.load(slot)?;
        let (pc, sp) = if self.is_return_address(vm, on_stack) {
            (on_stack, slot.wrapping_add(8))
        } else {
            (registers.rax(), cursor.sp)
        };
        if !self.is_return_address(vm, pc) {
            return Err(WalkError::NoFrameSize);
        }
        let sp = self.passed_sender_sp(sp, registers.r13()).unwrap_or(sp);
        Ok(Cursor { pc, sp, fp: registers.fp(), interrupted: false })
    }

    /// The caller of a leaf stub that native code has called, in a thread without Java frames. JNI's fast
    /// field getters and similar stubs keep the return address on top (cpu/x86/jniFastGetField_x86_64.cpp).
    pub(in crate::signal::walk) fn native_leaf_stub_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        _registers: Option<&Registers>,
    ) -> Result<Cursor, WalkError> {
        let pc = self.load(cursor.sp)?;
        if !cursor.interrupted
            || self.objects.find(RuntimeAddr(pc)).is_none()
            || !self.is_return_address(vm, pc)
        {
            return Err(WalkError::UnknownCode);
        }
        let caller = Cursor { pc, sp: cursor.sp.wrapping_add(8), fp: cursor.fp, interrupted: false };
        self.check_progress(cursor, caller)
    }

    /// The caller of `method_entry_barrier` (cpu/x86/stubGenerator_x86_64.cpp, generate_method_entry_barrier,
    /// JDK 17-25):
    ///
    /// ```text
    /// push -1; push rbp; mov rbp, rsp; …; leave; add rsp, 8; ret
    ///                                  …; leave; test rsp, [rsp]; mov rsp, [rsp]; jmp [rsp - 8]
    /// ```
    ///
    /// The return PC is in an nmethod whose frame is complete. Compiled code may hold any value in RBP, so
    /// only the instruction shows whether RBP is the stub's own.
    fn entry_barrier_caller(&self, cursor: &Cursor, fp: u64) -> Result<Cursor, WalkError> {
        let mut code = [0_u8; 5];
        let _ = self.memory.read_bytes(cursor.pc, &mut code);
        let (return_slot, fp) = match code {
            // push -1 (long and short form); ret; jmp [rsp - 8]
            [0x68, ..] | [0x6a, ..] | [0xc3, ..] | [0xff, 0x64, 0x24, 0xf8, _] => (cursor.sp, fp),
            // push rbp; add rsp, 8 with the ret after it
            [0x55, ..] | [0x48, 0x83, 0xc4, 0x08, 0xc3] => (cursor.sp.wrapping_add(8), fp),
            // mov rbp, rsp
            [0x48, 0x8b, 0xec, ..] | [0x48, 0x89, 0xe5, ..] => {
                (cursor.sp.wrapping_add(16), self.load(cursor.sp)?)
            }
            // test rsp, [rsp]; mov rsp, [rsp]
            [0x48, 0x85 | 0x8b, 0x24, 0x24, _] => (self.load(cursor.sp)?, fp),
            _ if fp >= cursor.sp && fp.wrapping_sub(cursor.sp) <= MAX_STUB_FRAME => {
                (self.entry_barrier_return_slot(fp)?, self.load(fp)?)
            }
            _ => return Err(WalkError::NoFrameSize),
        };
        let pc = self.load(return_slot)?;
        let caller = Cursor { pc, sp: return_slot.wrapping_add(8), fp, interrupted: false };
        self.check_progress(cursor, caller)
    }

    /// The slot with the address to which the entry barrier's stub with the frame pointer `fp` returns.
    /// Usually it is after the word that was pushed first. For a method that must not be entered any more,
    /// the VM has written the slot's address into that word; the stub then removes the method's frame with
    /// its own (cpu/x86/gc/shared/barrierSetNMethod_x86.cpp, deoptimize, JDK 17-25).
    pub(in crate::signal::walk) fn entry_barrier_return_slot(&self, fp: u64) -> Result<u64, WalkError> {
        let first = fp.wrapping_add(8);
        match self.load(first)? {
            u64::MAX => Ok(first.wrapping_add(8)),
            callers_sp => Ok(callers_sp),
        }
    }
}
