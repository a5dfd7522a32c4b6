//! The interrupted call stub, on aarch64. It begins with `stp x29, x30, [sp, -16]!; mov x29, sp` and ends
//! with `mov sp, x29; ldp x29, x30, [sp], 16; ret`. Blocks for other result types lie after the `ret`
//! (cpu/aarch64/stubGenerator_aarch64.cpp, generate_call_stub, JDK 11-25). The JavaCallWrapper is its first
//! argument: it is in the stub's frame from `stp x0, x1, [x29, -64]` on, and in x0 again when the stub
//! leaves. catch_exception runs in the same frame.

use otlpprof_core::a64_branch::INSTRUCTION_BYTES;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::instructions::{Around, Record};
use crate::walk::cursor::{Cursor, Step};
use crate::walk::registers::Registers;
use crate::walk::sink::FrameSink;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

const SAVE_WRAPPER: u32 = 0xa93c_07a0;
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
        let record = Around::read(self.memory, cursor.pc).record(0);
        let above_fp = cursor.fp.wrapping_sub(cursor.sp);
        let native = record.unwrap_or(Record::OnStack(above_fp));
        let native = self.caller_by_record(cursor, registers, native);
        let wrapper = if record.is_none() && self.is_wrapper_saved(vm.stubs.call_stub.start, cursor.pc) {
            self.slot(cursor.fp, i64::from(vm.thread.entry_frame_call_wrapper))?
        } else {
            registers.x0()
        };
        self.called_from_native(vm, cursor, wrapper, native, anchor)
    }

    fn is_wrapper_saved(&self, start: u64, pc: u64) -> bool {
        let mut code = [0_u8; SAVES_BYTES];
        if !self.memory.read_bytes(start, &mut code) {
            return true;
        }
        let (instructions, _) = code.as_chunks::<{ INSTRUCTION_BYTES as usize }>();
        let save = instructions.iter().position(|&code| u32::from_le_bytes(code) == SAVE_WRAPPER);
        save.is_none_or(|at| pc.wrapping_sub(start) > (at as u64).wrapping_mul(INSTRUCTION_BYTES))
    }
}
