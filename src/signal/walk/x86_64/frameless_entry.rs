//! The interpreter's entries that have no frame, on x86_64: intrinsics (`Thread.currentThread`, `Reference.get`,
//! `CRC32.update`). They end with `pop R; mov rsp, r13; jmp R`, and a collector's barrier in them saves registers that it takes
//! off the stack again (cpu/x86/templateInterpreterGenerator_x86.cpp; gc/*/*BarrierSetAssembler_x86.cpp;
//! `MacroAssembler::push_IU_state`, 11 to 25). The stubs that they call leave r13 alone, C functions keep it.

use super::instructions::{MAX_BYTES, length};
use crate::core::interpreter_code::InterpreterEntry;
use crate::core::memory::Memory;
use crate::core::vm_layout::{CodeRange, VmLayout};
use crate::signal::walk::blob::Blob;
use crate::signal::walk::registers::Registers;
use crate::signal::walk::{Cursor, Walk, WalkError};

/// More than a barrier has that saves all registers twice.
const MAX_INSTRUCTIONS: usize = 512;
/// All registers are smaller, saved twice.
const MAX_SAVED_BYTES: u64 = 8192;
const POP_FLAGS: u8 = 0x9d;
const PUSH_FLAGS: u8 = 0x9c;
/// `mov rsp, r13`.
const TAKE_SENDER_SP: [u8; 3] = [0x49, 0x8b, 0xe5];
/// The DWARF number of the register in which an entry is told the sender's SP.
const SENDER_SP: u8 = 13;

/// How code without a frame ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// By the return address, which it has taken off the stack: `pop R; mov rsp, r13; jmp R`.
    Return,
    /// By a jump to other code, to which the return address is left.
    Jump,
}

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

    /// The caller of the frameless entry that is returned to at `cursor`.
    fn called_out_of_entry_caller(
        &self,
        vm: &VmLayout,
        entry: &InterpreterEntry,
        cursor: &Cursor,
        sender_sp: impl FnOnce() -> Option<u64>,
    ) -> Result<Cursor, WalkError> {
        let below = self.bytes_until_return(entry, cursor.pc).ok_or(WalkError::NoFrameSize)?;
        self.entry_caller_at(vm, cursor, cursor.sp.wrapping_add(below), sender_sp)
    }

    /// The caller of the interpreter's entry at `cursor` whose return address is at `slot`. The one that is compiled has its SP
    /// above the arguments, where `sender_sp` says.
    fn entry_caller_at(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        slot: u64,
        sender_sp: impl FnOnce() -> Option<u64>,
    ) -> Result<Cursor, WalkError> {
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
    fn bytes_until_return(&self, entry: &InterpreterEntry, pc: u64) -> Option<u64> {
        self.bytes_until(entry.code, pc, End::Return)
    }

    /// The same of code that leaves by a jump, with the return address on top of the stack.
    pub(super) fn bytes_until_jump(&self, code: CodeRange, pc: u64) -> Option<u64> {
        self.bytes_until(code, pc, End::Jump).filter(|&above| above < MAX_SAVED_BYTES)
    }

    /// Where the return address is in a blob whose code has no frame and leaves by jumps; `None` if it is in a register.
    pub(super) fn return_slot_of_frameless(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Option<u64> {
        let size = self.load_i32(blob.address.wrapping_add(u64::from(vm.code_blob.size))).ok()?;
        let end = blob.address.wrapping_add_signed(i64::from(size));
        let above = self.bytes_until_jump(CodeRange { start: blob.code_begin, end }, cursor.pc)?;
        let slot = cursor.sp.wrapping_add(above);
        let is_there = self.memory.load_u64(slot).is_some_and(|pc| self.is_return_address(vm, pc));
        is_there.then_some(slot)
    }

    /// The caller of an interpreter's entry of a method handle's intrinsic that has called the collector.
    pub(in crate::signal::walk) fn called_out_of_method_handle_entry_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Result<Cursor, WalkError> {
        let slot = self.return_slot_of_frameless(vm, blob, cursor).ok_or(WalkError::NoFrameSize)?;
        self.entry_caller_at(vm, cursor, slot, || self.kept_register(SENDER_SP, cursor))
    }

    fn bytes_until(&self, range: CodeRange, mut pc: u64, end: End) -> Option<u64> {
        let mut above = 0_u64;
        for _ in 0..MAX_INSTRUCTIONS {
            if !range.contains(pc) {
                return (end == End::Jump).then_some(above);
            }
            let code = self.instruction(pc);
            let length = length(&code)?;
            let behind = pc.wrapping_add(length as u64);
            let distance = |at: usize| Some(i32::from_le_bytes(*code.get(at..)?.first_chunk()?));
            let (added, next) = match code {
                [pop @ 0x58..=0x5f, 0x49, 0x8b, 0xe5, 0xff, jump, ..]
                    if jump == pop.wrapping_add(0xe0 - 0x58) =>
                {
                    return (end == End::Return).then_some(above);
                }
                // pop rax, or lea r13, [rsp + 8]: an adapter has been through its barriers.
                [0x58, 0x4c, 0x8b, 0xec, ..]
                | [0x58, 0x49, 0x89, 0xe5, ..]
                | [0x4c, 0x8d, 0x6c, 0x24, 0x08, ..]
                    if end == End::Jump =>
                {
                    return Some(above);
                }
                // pop rax; pop rbx; push rax: from here on the return address is elsewhere.
                [0x58, 0x5b, 0x50, ..] if end == End::Jump => return None,
                [0xff, to, ..] | [0x41, 0xff, to, ..] if end == End::Jump && to & 0x38 == 0x20 => {
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
