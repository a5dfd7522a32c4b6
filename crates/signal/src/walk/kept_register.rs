//! Registers that C functions preserve for their callers: recovers a register's value at the call of native
//! code, which may have used the register since.

use otlpprof_core::memory::Memory;

use super::cursor::{Cursor, Step};
use super::frame_info::{self, SavedRegister};
use super::stack_walk::Walk;

/// The most native frames that are followed. Native code without a frame of the VM's below it is a
/// mathematical function, a collector's function, or the dynamic linker.
const MAX_FRAMES: usize = 64;

impl<M: Memory> Walk<'_, M> {
    /// The value that the register with this DWARF number had in the frame at `frame`, which has called the
    /// native code that was interrupted. Only call frame information is trusted to say where each function in
    /// between has saved the register. `None` if a function in between has a rule that finds its frame by
    /// another register.
    #[inline(never)] // Few frames need this, and a handler's stack may be small.
    pub(super) fn kept_register(&self, number: u8, frame: &Cursor) -> Option<u64> {
        let mut cursor = self.start();
        let mut registers = Some(self.registers);
        let mut value = self.registers.by_dwarf_number(number);
        for _ in 0..MAX_FRAMES {
            if (cursor.pc, cursor.sp) == (frame.pc, frame.sp) {
                return value;
            }
            let kept = self.kept_at(&cursor, number);
            let Some(Step::Caller(caller)) = self.described_step_with(&cursor, &mut registers, |_| None)
            else {
                return None;
            };
            value = match (registers, kept) {
                // A signal frame has all registers of the frame that it interrupted.
                (Some(interrupted), _) => interrupted.by_dwarf_number(number),
                (None, Some(SavedRegister::InRegister)) => value,
                // A caller's SP is the callee's CFA.
                (None, Some(SavedRegister::AtCfaPlus(offset))) => {
                    self.memory.load_u64(caller.sp.wrapping_add_signed(offset))
                }
                (None, None) => None,
            };
            cursor = caller;
        }
        None
    }

    fn kept_at(&self, cursor: &Cursor, number: u8) -> Option<SavedRegister> {
        let pc = cursor.lookup_pc();
        frame_info::kept_at(self.memory, self.frame_header(self.object_at(pc), pc)?, pc, number.into())
    }
}
