//! The interpreter's entries that have no frame, on aarch64: intrinsics (`Math.sin`, `Reference.get`,
//! `CRC32.update`). The return address is in x30. Before they return, they set SP to the sender's SP:
//! `mov sp, x19` or `and sp, x19, -16` (x13 in JDK 11 and 17). Entries that call a function do so after that
//! instruction, and keep x30 in x23 (x19 in JDK 11 and 17). A collector's barrier in `Reference.get` makes a
//! frame record for its call before SP is set, with the sender's SP in x19
//! (cpu/aarch64/templateInterpreterGenerator_aarch64.cpp, generate_math_entry, generate_Reference_get_entry;
//! gc/g1/g1BarrierSetAssembler_aarch64.cpp, load_at; JDK 11 to 25).

use otlpprof_core::interpreter_code::InterpreterEntry;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::actions_before::ActionsBefore;
use super::instructions::{instructions_before, is_call, leaves, pushed_record};
use super::return_address::strip;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

/// The register in which the sender's SP is preserved across a barrier's call.
pub(super) const KEPT_SENDER_SP: u8 = 19;
/// The most instructions before the interrupted one that are read. A barrier that saves all registers is
/// shorter.
const MAX_INSTRUCTIONS: u64 = 256;

impl<M: Memory> Walk<'_, M> {
    /// The caller of the frameless entry that was interrupted at `cursor`.
    pub(in crate::walk) fn frameless_caller(
        &self,
        vm: &VmLayout,
        entry: &InterpreterEntry,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let done = self.entry_actions(entry, cursor.pc);
        let sp = if done.takes_sender_sp {
            cursor.sp
        } else if done.keeps_sender_sp {
            registers.x19()
        } else {
            registers.by_dwarf_number(vm.stubs.interpreter_code.sender_sp_register).unwrap_or(0)
        };
        if done.has_record() {
            let record = pushed_record(self.memory, cursor.pc, cursor.sp, cursor.fp);
            let caller = self.caller_by_record(cursor, registers, record)?;
            return Ok(Cursor { sp, ..caller });
        }
        // After a call x30 holds an address of the entry itself.
        let kept = done.keeps_return.and_then(|register| registers.by_dwarf_number(register)).map(strip);
        let lr = registers.lr();
        let pc = kept.filter(|_| entry.code.contains(lr)).unwrap_or(lr);
        Ok(Cursor { pc, sp, fp: cursor.fp, interrupted: false })
    }

    /// The caller of a frameless entry that has called a C function: either in a barrier, which makes a
    /// record that x29 points to, or by itself, with the return address kept in a register. `None` if
    /// `cursor` is not in such an entry.
    pub(in crate::walk) fn frameless_entry_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
    ) -> Option<Result<Cursor, WalkError>> {
        let code = &vm.stubs.interpreter_code;
        let entry = code.entry_at(cursor.pc).filter(|entry| entry.push_fp == 0)?;
        let done = self.entry_actions(entry, cursor.pc);
        let caller = if done.has_record() {
            let in_x19 = done.keeps_sender_sp || code.sender_sp_register == KEPT_SENDER_SP;
            self.recorded_entry_caller(vm, cursor, in_x19)
        } else {
            let kept = done.keeps_return.filter(|_| done.takes_sender_sp)?;
            self.kept_register(kept, cursor).map(strip).map(|pc| Cursor { pc, ..*cursor })
        };
        let is_return = |caller: &Cursor| {
            self.is_java_code(vm, caller.pc)
                && (caller.pc == vm.stubs.call_stub_return || self.is_return_address(vm, caller.pc))
        };
        Some(caller.filter(is_return).ok_or(WalkError::NoFrameSize))
    }

    /// The caller by the record that x29 points to. The SP of a compiled caller is above the arguments.
    pub(super) fn recorded_entry_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        has_sender_sp: bool,
    ) -> Option<Cursor> {
        let (fp, above) = (self.memory.load_u64(cursor.fp)?, cursor.fp.wrapping_add(16));
        let pc = self.load_return_address(cursor.fp.wrapping_add(8)).ok()?;
        let sp = if vm.stubs.interpreter.contains(pc) || pc == vm.stubs.call_stub_return {
            above
        } else {
            let passed = self.kept_register(KEPT_SENDER_SP, cursor).filter(|_| has_sender_sp)?;
            self.passed_sender_sp(above, passed)?
        };
        self.check_progress(cursor, Cursor { pc, sp, fp, interrupted: false }).ok()
    }

    /// The caller of an interrupted stub. If that is a frameless entry that compiled code has called, the
    /// entry's caller. The stubs that entries call do not change the register with the return address, or
    /// save it right below their record (macroAssembler_aarch64_trig.cpp, generate_dsin_dcos, JDK 11 to 25).
    pub(in crate::walk) fn without_frameless_entry(
        &self,
        vm: &VmLayout,
        caller: Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        const SAVED_BELOW_SP: u64 = 32;
        let entry = vm.stubs.interpreter_code.entry_at(caller.pc).filter(|entry| entry.push_fp == 0);
        let Some(entry) = entry else { return Ok(caller) };
        let done = self.entry_actions(entry, caller.pc);
        let kept = done.keeps_return.filter(|_| done.takes_sender_sp);
        let Some(kept) = kept.and_then(|register| registers.by_dwarf_number(register)) else {
            return Ok(caller);
        };
        let saved = self.load_return_address(caller.sp.wrapping_sub(SAVED_BELOW_SP)).unwrap_or(0);
        let is_return = |&pc: &u64| self.is_java_code(vm, pc) && self.is_return_address(vm, pc);
        let pc = [strip(kept), saved].into_iter().find(is_return);
        Ok(pc.map_or(caller, |pc| Cursor { pc, ..caller }))
    }

    /// The entry's actions before `pc`, along straight code.
    fn entry_actions(&self, entry: &InterpreterEntry, pc: u64) -> ActionsBefore {
        let before = instructions_before(self.memory, entry.code.start, pc, MAX_INSTRUCTIONS);
        ActionsBefore::by(before.take_while(|&code| is_call(code) || !leaves(code)))
    }
}
