//! The interpreter's entries that have no frame, on x86_64: intrinsics (`Thread.currentThread`, `Reference.get`,
//! `CRC32.update`). They end with `pop R; mov rsp, r13; jmp R`, and a collector's barrier in them saves registers that it takes
//! off the stack again by `add rsp, size` and `popf` (cpu/x86/templateInterpreterGenerator_x86.cpp;
//! gc/shared/barrierSetAssembler_x86.cpp; `MacroAssembler::push_IU_state`, 11 to 25).

use crate::core::memory::Memory;
use crate::core::vm_layout::VmLayout;
use crate::signal::walk::registers::Registers;
use crate::signal::walk::{Cursor, Walk, WalkError};

/// What lies between a barrier's saves and the end is shorter.
const LONGEST_END_BYTES: usize = 192;
const POP_FLAGS: u8 = 0x9d;
/// `mov rsp, r13`.
const TAKE_SENDER_SP: [u8; 3] = [0x49, 0x8b, 0xe5];

/// What is below the return address of a stub that such an entry has called: nothing, or a word where SP was not aligned for C.
const PADDING_BYTES: [u64; 2] = [0, 8];

impl<M: Memory> Walk<'_, M> {
    /// The caller of a frameless entry that has called a stub or C function (`Math.sin`, `CRC32.update`): the entry has
    /// nothing on the stack but the return address and padding. `None` if `cursor` is elsewhere, or its caller is compiled:
    /// the sender's SP is in a register that is gone.
    pub(in crate::signal::walk) fn frameless_entry_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
    ) -> Option<Cursor> {
        vm.stubs.interpreter_code.entry_at(cursor.pc).filter(|entry| entry.push_fp == 0)?;
        PADDING_BYTES.into_iter().find_map(|padding| {
            let slot = cursor.sp.wrapping_add(padding);
            let pc = self.memory.load_u64(slot).filter(|&pc| vm.stubs.interpreter.contains(pc))?;
            Some(Cursor { pc, sp: slot.wrapping_add(8), fp: cursor.fp, interrupted: false })
        })
    }

    /// The caller of an interrupted stub, or, if that is a frameless entry that compiled code has called, the entry's: the
    /// stubs that entries call leave r13 alone, which has the sender's SP.
    pub(in crate::signal::walk) fn without_frameless_entry(
        &self,
        vm: &VmLayout,
        caller: Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let code = &vm.stubs.interpreter_code;
        if code.entry_at(caller.pc).is_none_or(|entry| entry.push_fp != 0)
            || self.frameless_entry_caller(vm, &caller).is_some()
        {
            return Ok(caller);
        }
        let compiled = PADDING_BYTES.into_iter().find_map(|padding| {
            let slot = caller.sp.wrapping_add(padding);
            let pc = self.memory.load_u64(slot)?;
            (self.is_java_code(vm, pc) && self.is_return_address(vm, pc)).then_some((pc, slot))
        });
        let Some((pc, slot)) = compiled else { return Ok(caller) };
        let sp = self.told_sender_sp(slot.wrapping_add(8), registers.r13()).ok_or(WalkError::NoFrameSize)?;
        Ok(Cursor { pc, sp, ..caller })
    }

    /// The return address of the frameless entry that was interrupted at `pc`.
    pub(in crate::signal::walk) fn frameless_return_address(
        &self,
        pc: u64,
        registers: &Registers,
    ) -> Result<u64, WalkError> {
        let mut bytes = [0_u8; LONGEST_END_BYTES];
        // Where fewer can be read, it has not begun to leave.
        let _ = self.memory.read_bytes(pc, &mut bytes);
        let jump = bytes.strip_prefix(&TAKE_SENDER_SP).unwrap_or(&bytes);
        if let [0xff, to @ 0xe0..=0xe7, ..] = *jump {
            return Ok(in_order_of_encoding(registers, to & 7));
        }
        self.load(registers.sp().wrapping_add(bytes_until_return(&bytes)))
    }
}

/// How many bytes the code takes off the stack before it pops the return address: none if it is still to save them.
fn bytes_until_return(code: &[u8]) -> u64 {
    let mut removed = 0_u64;
    let mut rest = code;
    loop {
        let length = match *rest {
            [pop @ 0x58..=0x5f, 0x49, 0x8b, 0xe5, 0xff, jump, ..]
                if jump == pop.wrapping_add(0xe0 - 0x58) =>
            {
                return removed;
            }
            [0x48, 0x83 | 0x81, 0xec, ..] | [] => return 0,
            [0x48, 0x83, 0xc4, size, ..] => {
                removed = removed.wrapping_add(u64::from(size));
                4
            }
            [0x48, 0x81, 0xc4, a, b, c, d, ..] => {
                removed = removed.wrapping_add(u64::from(u32::from_le_bytes([a, b, c, d])));
                7
            }
            [POP_FLAGS, ..] => {
                removed = removed.wrapping_add(8);
                1
            }
            _ => 1,
        };
        rest = rest.get(length..).unwrap_or_default();
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
