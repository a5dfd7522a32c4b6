//! An interrupted stub without debug information, on x86_64.
//!
//! StubRoutines and most helpers begin with `push rbp; mov rbp, rsp` and end with `leave; ret` or
//! `pop rbp; ret`. Between these, RBP leads to the caller. Small leaf stubs have no frame and keep RBP.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::compiled_stage::is_pop_to_stack;
use crate::walk::blob::{Blob, BlobKind, StubKind};
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

/// The most bytes between SP and a stub's own frame pointer: stubs save registers, AVX-512's included.
pub(super) const MAX_STUB_FRAME: u64 = 16 * 1024;
/// The number of words above SP that are searched for the return address of a stub that pushes registers one
/// by one. C1's slow_subtype_check pushes eight in JDK 25 (c1_Runtime1_x86.cpp).
const MAX_PUSHED_WORDS: u64 = 10;

impl<M: Memory> Walk<'_, M> {
    /// The caller of an interrupted stub of a kind without a rule of its own.
    pub(super) fn interrupted_other_stub_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let (pc, sp, fp) = (cursor.pc, cursor.sp, registers.fp());
        let is_subtype_check = blob.kind == BlobKind::Stub(StubKind::SlowSubtypeCheck);
        let caller = |slot: u64, fp: u64| -> Result<Cursor, WalkError> {
            let pc = self.load(slot)?;
            let arguments = if is_subtype_check { self.bytes_below_subtype_check(pc) } else { 0 };
            let sp = slot.wrapping_add(8).wrapping_add(arguments);
            self.check_progress(cursor, Cursor { pc, sp, fp, interrupted: false })
        };
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
        // Compiled code may hold any value in RBP, for example the value of the entry frame, whose return
        // address is native. So the return address is checked.
        let is_frame = fp >= sp && fp.wrapping_sub(sp) <= MAX_STUB_FRAME;
        if is_frame && self.memory.load_u64(fp.wrapping_add(8)).is_some_and(|pc| self.is_java_code(vm, pc)) {
            return caller(fp.wrapping_add(8), self.load(fp)?);
        }
        let slot = pushed.next().ok_or(WalkError::NoFrameSize)?;
        caller(slot, fp)
    }
}
