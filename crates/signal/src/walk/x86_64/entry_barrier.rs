//! The stub of the entry barrier, which compiled methods call once their frame is complete, on x86_64.

use otlpprof_core::memory::Memory;

use super::other_stub::MAX_STUB_FRAME;
use crate::walk::cursor::Cursor;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

impl<M: Memory> Walk<'_, M> {
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
    pub(super) fn interrupted_entry_barrier_caller(
        &self,
        cursor: &Cursor,
        fp: u64,
    ) -> Result<Cursor, WalkError> {
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
    pub(in crate::walk) fn entry_barrier_return_slot(&self, fp: u64) -> Result<u64, WalkError> {
        let first = fp.wrapping_add(8);
        match self.load(first)? {
            u64::MAX => Ok(first.wrapping_add(8)),
            callers_sp => Ok(callers_sp),
        }
    }
}
