//! The stub of the entry barrier, which compiled methods call once their frame is complete, on aarch64.

use otlpprof_core::a64_branch::INSTRUCTION_BYTES;
use otlpprof_core::memory::Memory;

use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

impl<M: Memory> Walk<'_, M> {
    /// The caller of a method that may no longer be entered, if the entry barrier's stub is about to have the
    /// method resolved again. The stub takes the frame that the VM has stored below its record,
    /// `ldp x8, x29, [sp]; ldp x30, x9, [sp, 16]; mov sp, x8; br x9`, and thereby removes the method's frame
    /// with its own (cpu/aarch64/stubGenerator_aarch64.cpp, generate_method_entry_barrier;
    /// gc/shared/barrierSetNMethod_aarch64.cpp, BarrierSetNMethod::deoptimize; JDK 17-25).
    pub(super) fn resolved_again_caller(
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

    /// The slot with the address to which the entry barrier's stub returns: in the frame record at `fp`.
    pub(in crate::walk) fn entry_barrier_return_slot(&self, fp: u64) -> Result<u64, WalkError> {
        Ok(fp.wrapping_add(8))
    }
}
