//! An interrupted I2C or C2I adapter, on aarch64 (cpu/aarch64/sharedRuntime_aarch64.cpp, gen_i2c_adapter,
//! gen_c2i_adapter, JDK 11-25).
//!
//! Neither adapter has a frame: the return address is in x30, and the caller's x29 in x29. There are two
//! exceptions, both in C2I. It makes a frame record to have the caller's call patched, and to ask a collector
//! whether the method's class is alive; in the second case x10 is saved above the record
//! (gc/shared/barrierSetAssembler_aarch64.cpp, c2i_entry_barrier, JDK 17 on). C2I saves the compiled caller's
//! SP in x13 (JDK 11 and 17) or x19 (JDK 21 on) before it makes room for the arguments; until then SP is the
//! caller's. An interpreted caller is found only by x29. The return address in that caller's own record may
//! equal the one in x30, so only the instructions show whose record x29 points to.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::actions_before::ActionsBefore;
use super::instructions::{instructions_before, pushed_record};
use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

/// The most instructions before the interrupted one that are read. Adapters are shorter; their longest parts
/// move arguments or save all registers.
const MAX_INSTRUCTIONS: u64 = 1024;
/// The most bytes of saved registers: more than all registers take (`push_CPU_state`), those of SVE included.
const MAX_SAVED_BYTES: u64 = 32 * 1024;

impl<M: Memory> Walk<'_, M> {
    /// The caller of an adapter that has called the VM or a collector: C2I to have its caller's call patched
    /// (`patch_callers_callsite`), or in a barrier. x29 points to the adapter's record.
    pub(in crate::walk) fn returned_adapter_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Option<Cursor> {
        if cursor.fp.wrapping_sub(cursor.sp) >= MAX_SAVED_BYTES {
            return None;
        }
        let pc = self.load_return_address(cursor.fp.wrapping_add(8)).ok()?;
        let kept = adapter_actions_before(self.memory, blob, cursor.pc).bytes_kept();
        let (sp, fp) = (cursor.fp.wrapping_add(16).wrapping_add(kept), self.memory.load_u64(cursor.fp)?);
        self.is_java_code(vm, pc).then_some(Cursor { pc, sp, fp, interrupted: false })
    }

    /// The caller of the adapter that was interrupted at `cursor`.
    pub(in crate::walk) fn interrupted_adapter_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let done = adapter_actions_before(self.memory, blob, cursor.pc);
        let kept = done.bytes_kept();
        if done.has_record() {
            let record = pushed_record(self.memory, cursor.pc, cursor.sp, registers.fp());
            let caller = self.caller_by_record(cursor, registers, record)?;
            return Ok(Cursor { sp: caller.sp.wrapping_add(kept), ..caller });
        }
        let lr = registers.lr();
        if !self.is_return_address(vm, lr) {
            return Err(WalkError::UnknownCode);
        }
        let sender_sp = done.sender_sp.and_then(|register| registers.by_dwarf_number(register));
        let sp = sender_sp.unwrap_or_else(|| cursor.sp.wrapping_add(kept));
        if sp < cursor.sp || sp > self.stack_high {
            return Err(WalkError::BadStackPointer);
        }
        Ok(Cursor { pc: lr, sp, fp: registers.fp(), interrupted: false })
    }
}

/// The actions of an adapter before `pc`. Its branches lead over later actions or out of the adapter.
fn adapter_actions_before(memory: &impl Memory, blob: &Blob, pc: u64) -> ActionsBefore {
    ActionsBefore::by(instructions_before(memory, blob.code_begin, pc, MAX_INSTRUCTIONS))
}
