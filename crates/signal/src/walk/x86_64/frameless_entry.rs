//! The interpreter's entries that have no frame, on x86_64: intrinsics (`Thread.currentThread`,
//! `Reference.get`, `CRC32.update`). They end with `pop R; mov rsp, r13; jmp R`. A collector's barrier in
//! such an entry saves registers and restores them (cpu/x86/templateInterpreterGenerator_x86.cpp;
//! gc/*/*BarrierSetAssembler_x86.cpp; `MacroAssembler::push_IU_state`, JDK 11 to 25). In JDK 27 Shenandoah's
//! barriers have a frame of their own for that: `push rbp; mov rbp, rsp; …; leave`. The stubs that entries
//! call do not change r13, and C functions preserve it.

use otlpprof_core::interpreter_code::InterpreterEntry;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::bytes_to_return::{End, ReturnSlot};
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

/// `mov rsp, r13`.
const TAKE_SENDER_SP: [u8; 3] = [0x49, 0x8b, 0xe5];
/// The DWARF number of the register in which an entry receives the sender's SP.
pub(super) const SENDER_SP: u8 = 13;

impl<M: Memory> Walk<'_, M> {
    /// The caller of a frameless entry that has called a C function, by itself (`Math.sin`) or in a barrier
    /// (`Reference.get`). `None` if `cursor` is not in such an entry.
    pub(in crate::walk) fn frameless_entry_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
    ) -> Option<Result<Cursor, WalkError>> {
        let entry = vm.stubs.interpreter_code.entry_at(cursor.pc).filter(|entry| entry.push_fp == 0)?;
        Some(self.entry_caller_after_call(vm, entry, cursor, || self.kept_register(SENDER_SP, cursor)))
    }

    /// The caller of an interrupted stub. If that caller is a frameless entry, the entry's caller.
    pub(in crate::walk) fn without_frameless_entry(
        &self,
        vm: &VmLayout,
        caller: Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        match vm.stubs.interpreter_code.entry_at(caller.pc) {
            Some(entry) if entry.push_fp == 0 => {
                self.entry_caller_after_call(vm, entry, &caller, || Some(registers.r13()))
            }
            _ => Ok(caller),
        }
    }

    /// The caller of the frameless entry that is returned to at `cursor`.
    fn entry_caller_after_call(
        &self,
        vm: &VmLayout,
        entry: &InterpreterEntry,
        cursor: &Cursor,
        sender_sp: impl FnOnce() -> Option<u64>,
    ) -> Result<Cursor, WalkError> {
        let slot = self.slot_at_end(entry.code, cursor, End::Return).ok_or(WalkError::NoFrameSize)?;
        self.entry_caller_at(vm, slot, sender_sp)
    }

    /// The caller of an interpreter's entry whose return address is at `slot`. The SP of a compiled caller is
    /// above the arguments, and `sender_sp` supplies it.
    pub(super) fn entry_caller_at(
        &self,
        vm: &VmLayout,
        ReturnSlot { slot, fp }: ReturnSlot,
        sender_sp: impl FnOnce() -> Option<u64>,
    ) -> Result<Cursor, WalkError> {
        let (pc, above) = (self.load(slot)?, slot.wrapping_add(8));
        let sp = match pc {
            _ if vm.stubs.interpreter.contains(pc) || pc == vm.stubs.call_stub_return => Some(above),
            _ if self.is_java_code(vm, pc) && self.is_return_address(vm, pc) => {
                sender_sp().and_then(|passed| self.passed_sender_sp(above, passed))
            }
            _ => None,
        };
        Ok(Cursor { pc, sp: sp.ok_or(WalkError::NoFrameSize)?, fp, interrupted: false })
    }

    /// The caller of the frameless entry that was interrupted at `cursor`.
    pub(super) fn interrupted_frameless_entry_caller(
        &self,
        entry: &InterpreterEntry,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let caller = |pc, fp| Cursor { pc, sp: registers.r13(), fp, interrupted: false };
        let code = self.instruction(cursor.pc).ok_or(WalkError::Unreadable)?;
        let jump = code.strip_prefix(&TAKE_SENDER_SP).unwrap_or(&code);
        if let [0xff, to @ 0xe0..=0xe7, ..] = *jump {
            return Ok(caller(in_order_of_encoding(registers, to & 7), cursor.fp));
        }
        let found = self.slot_at_end(entry.code, cursor, End::Return).ok_or(WalkError::NoFrameSize)?;
        Ok(caller(self.load(found.slot)?, found.fp))
    }
}

/// The value of the register with this number in instruction encodings: rax, rcx, rdx, rbx, rsp, rbp, rsi,
/// rdi.
fn in_order_of_encoding(registers: &Registers, number: u8) -> u64 {
    match number {
        0 => registers.rax(),
        1 => registers.rcx(),
        2 => registers.rdx(),
        3 => registers.rbx(),
        4 => registers.sp(),
        5 => registers.fp(),
        6 => registers.rsi(),
        _ => registers.rdi(),
    }
}
