//! The interrupted call stub, on x86_64. It begins with `push rbp; mov rbp, rsp` and ends with
//! `pop rbp; ret`. Blocks for other result types lie after the `ret` (cpu/x86/stubGenerator_x86_64.cpp,
//! generate_call_stub, JDK 11-25). The JavaCallWrapper is its first argument, and is in its frame from
//! `mov [rbp + slot], rdi` on. catch_exception runs in the same frame.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use crate::walk::cursor::{Cursor, Step};
use crate::walk::registers::Registers;
use crate::walk::sink::FrameSink;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

/// `push rbp`.
const PUSH_BYTES: u64 = 1;
const RET: u8 = 0xc3;
/// `mov [rbp + disp8], rdi`; the displacement follows.
const SAVE_WRAPPER: [u8; 3] = [0x48, 0x89, 0x7d];
/// The number of bytes from the stub's start within which the arguments are saved.
const SAVES_BYTES: usize = 64;

impl<M: Memory> Walk<'_, M> {
    /// Appends the call stub's frame, in which the thread was interrupted, and steps to the frame below.
    pub(in crate::walk) fn call_stub_step(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        registers: &Registers,
        anchor: &mut Option<Cursor>,
        sink: &mut FrameSink<'_>,
    ) -> Result<Step, WalkError> {
        sink.stub(cursor.pc);
        let (pc, sp, start) = (cursor.pc, cursor.sp, vm.stubs.call_stub.start);
        let native = |pc_slot: u64, fp: u64| -> Result<Cursor, WalkError> {
            let caller =
                Cursor { pc: self.load(pc_slot)?, sp: pc_slot.wrapping_add(8), fp, interrupted: false };
            self.check_progress(cursor, caller)
        };
        // The frame's RBP, and the frame's native caller.
        let (base, caller) = if pc == start {
            (None, native(sp, cursor.fp))
        } else if pc == start.wrapping_add(PUSH_BYTES) {
            (None, native(sp.wrapping_add(8), self.load(sp)?))
        } else if self.memory.load_u8(pc) == Some(RET) {
            // The popped RBP is still in memory: no handler may write to the 128 bytes below SP (psABI
            // 3.2.2).
            (Some(sp.wrapping_sub(8)), native(sp, cursor.fp))
        } else {
            (Some(cursor.fp), native(cursor.fp.wrapping_add(8), self.load(cursor.fp)?))
        };
        let slot = i64::from(vm.thread.entry_frame_call_wrapper);
        let wrapper = match base {
            Some(base) if self.is_wrapper_saved(start, pc) => self.slot(base, slot)?,
            _ => registers.rdi(),
        };
        self.called_from_native(vm, cursor, wrapper, caller, anchor)
    }

    fn is_wrapper_saved(&self, start: u64, pc: u64) -> bool {
        let mut code = [0_u8; SAVES_BYTES];
        if !self.memory.read_bytes(start, &mut code) {
            return true;
        }
        let save = code.windows(SAVE_WRAPPER.len()).position(|window| window == SAVE_WRAPPER);
        save.is_none_or(|at| pc.wrapping_sub(start) > at as u64)
    }
}
