//! An interrupted I2C or C2I adapter, on x86_64 (cpu/x86/sharedRuntime_x86_64.cpp, gen_i2c_adapter,
//! gen_c2i_adapter, JDK 11-25).
//!
//! Both take the return address off the stack (`pop rax`), move the stack pointer, and put it back. I2C leaves the
//! interpreted caller's RBP alone; C2I first saves the compiled caller's SP in r13.

use crate::core::memory::Memory;
use crate::signal::walk::registers::Registers;
use crate::signal::walk::{Cursor, Walk, WalkError};

impl<M: Memory> Walk<'_, M> {
    /// The caller of the adapter that was interrupted at `cursor`.
    pub(in crate::signal::walk) fn interrupted_adapter_caller(
        &self,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let on_stack = self.load(cursor.sp)?;
        let pc = if self.in_code_cache(on_stack) { on_stack } else { registers.rax() };
        if !self.in_code_cache(pc) {
            return Err(WalkError::UnknownCode);
        }
        // In an I2C adapter r13 is the interpreted caller's bytecode pointer, never a stack address; the
        // interpreted caller is found by RBP alone. In C2I it is the sender's SP once it is a stack address.
        let above = cursor.sp.wrapping_add(8);
        let r13 = registers.r13();
        let is_sender_sp = r13 >= cursor.sp && r13 <= self.stack_high && r13.wrapping_sub(cursor.sp) < 4096;
        let sp = if is_sender_sp { r13 } else { above };
        Ok(Cursor { pc, sp, fp: registers.fp(), interrupted: false })
    }
}
