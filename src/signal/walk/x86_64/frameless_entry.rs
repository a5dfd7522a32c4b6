//! The interpreter's entries that have no frame, on x86_64: intrinsics (`Thread.currentThread`, `Reference.get`,
//! `CRC32.update`). They end with `pop R; mov rsp, r13; jmp R`, and a collector's barrier in them saves registers that it takes
//! off the stack again (cpu/x86/templateInterpreterGenerator_x86.cpp; gc/*/*BarrierSetAssembler_x86.cpp;
//! `MacroAssembler::push_IU_state`, 11 to 25). The stubs that they call leave r13 alone, C functions keep it.

use super::instructions::{MAX_BYTES, length};
use crate::core::interpreter_code::InterpreterEntry;
use crate::core::memory::Memory;
use crate::core::vm_layout::VmLayout;
use crate::signal::walk::registers::Registers;
use crate::signal::walk::{Cursor, Walk, WalkError};

/// More than a barrier has that saves all registers twice.
const MAX_INSTRUCTIONS: usize = 512;
const POP_FLAGS: u8 = 0x9d;
const PUSH_FLAGS: u8 = 0x9c;
/// `mov rsp, r13`.
const TAKE_SENDER_SP: [u8; 3] = [0x49, 0x8b, 0xe5];
/// The DWARF number of the register in which an entry is told the sender's SP.
const SENDER_SP: u8 = 13;

impl<M: Memory> Walk<'_, M> {
    /// The caller of a frameless entry that has called a C function, itself (`Math.sin`) or in a barrier (`Reference.get`).
    /// `None` if `cursor` is elsewhere.
    pub(in crate::signal::walk) fn frameless_entry_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
    ) -> Option<Result<Cursor, WalkError>> {
        let entry = vm.stubs.interpreter_code.entry_at(cursor.pc).filter(|entry| entry.push_fp == 0)?;
        Some(self.called_out_of_entry_caller(vm, entry, cursor, || self.kept_register(SENDER_SP, cursor)))
    }

    /// The caller of an interrupted stub, or, if that is a frameless entry, the entry's.
    pub(in crate::signal::walk) fn without_frameless_entry(
        &self,
        vm: &VmLayout,
        caller: Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        match vm.stubs.interpreter_code.entry_at(caller.pc) {
            Some(entry) if entry.push_fp == 0 => {
                self.called_out_of_entry_caller(vm, entry, &caller, || Some(registers.r13()))
            }
            _ => Ok(caller),
        }
    }

    /// The caller of the frameless entry that is returned to at `cursor`. The one that is compiled has its SP above the
    /// arguments, where `sender_sp` says.
    fn called_out_of_entry_caller(
        &self,
        vm: &VmLayout,
        entry: &InterpreterEntry,
        cursor: &Cursor,
        sender_sp: impl FnOnce() -> Option<u64>,
    ) -> Result<Cursor, WalkError> {
        let below = self.bytes_until_return(entry, cursor.pc).ok_or(WalkError::NoFrameSize)?;
        let slot = cursor.sp.wrapping_add(below);
        let (pc, above) = (self.load(slot)?, slot.wrapping_add(8));
        let sp = match pc {
            _ if vm.stubs.interpreter.contains(pc) || pc == vm.stubs.call_stub_return => Some(above),
            _ if self.is_java_code(vm, pc) && self.is_return_address(vm, pc) => {
                sender_sp().and_then(|told| self.told_sender_sp(above, told))
            }
            _ => None,
        };
        Ok(Cursor { pc, sp: sp.ok_or(WalkError::NoFrameSize)?, fp: cursor.fp, interrupted: false })
    }

    /// The return address of the frameless entry that was interrupted at `pc`.
    pub(in crate::signal::walk) fn frameless_return_address(
        &self,
        entry: &InterpreterEntry,
        pc: u64,
        registers: &Registers,
    ) -> Result<u64, WalkError> {
        let code = self.instruction(pc);
        let jump = code.strip_prefix(&TAKE_SENDER_SP).unwrap_or(&code);
        if let [0xff, to @ 0xe0..=0xe7, ..] = *jump {
            return Ok(in_order_of_encoding(registers, to & 7));
        }
        let below = self.bytes_until_return(entry, pc).ok_or(WalkError::NoFrameSize)?;
        self.load(registers.sp().wrapping_add(below))
    }

    /// How many bytes lie between SP and the return address where the entry is at `pc`: what the code takes off the stack
    /// on the straight way to its end, less what it puts there. `None` if that is not found.
    fn bytes_until_return(&self, entry: &InterpreterEntry, mut pc: u64) -> Option<u64> {
        let mut above = 0_u64;
        for _ in 0..MAX_INSTRUCTIONS {
            if !entry.code.contains(pc) {
                return None;
            }
            let code = self.instruction(pc);
            let length = length(&code)?;
            let behind = pc.wrapping_add(length as u64);
            let distance = |at: usize| Some(i32::from_le_bytes(*code.get(at..)?.first_chunk()?));
            let (added, next) = match code {
                [pop @ 0x58..=0x5f, 0x49, 0x8b, 0xe5, 0xff, jump, ..]
                    if jump == pop.wrapping_add(0xe0 - 0x58) =>
                {
                    return Some(above);
                }
                [0x58..=0x5f | POP_FLAGS, ..] | [0x41, 0x58..=0x5f, ..] => (8, behind),
                [0x50..=0x57 | PUSH_FLAGS, ..] | [0x41, 0x50..=0x57, ..] => (-8, behind),
                [0x48, 0x83, 0xc4, size, ..] => (i64::from(size as i8), behind),
                [0x48, 0x83, 0xec, size, ..] => (i64::from(size as i8).wrapping_neg(), behind),
                [0x48, 0x81, 0xc4, ..] => (i64::from(distance(3)?), behind),
                [0x48, 0x81, 0xec, ..] => (i64::from(distance(3)?).wrapping_neg(), behind),
                [0xeb, to, ..] => (0, behind.wrapping_add_signed(i64::from(to as i8))),
                [0xe9, ..] => (0, behind.wrapping_add_signed(i64::from(distance(1)?))),
                // Elsewhere: it does not end here.
                [0xc3, ..] | [0xff, 0xe0..=0xe7, ..] | [0x41, 0xff, 0xe0..=0xe7, ..] => return None,
                _ => (0, behind),
            };
            above = above.wrapping_add_signed(added);
            pc = next;
        }
        None
    }

    /// The bytes at `pc`, as many as an instruction can have; zeros where there are none.
    fn instruction(&self, pc: u64) -> [u8; MAX_BYTES] {
        let mut code = [0; MAX_BYTES];
        let _ = self.memory.read_bytes(pc, &mut code);
        code
    }
}

/// The register with this number in instructions: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi.
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
