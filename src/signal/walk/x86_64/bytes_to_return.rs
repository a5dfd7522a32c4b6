//! The remaining actions of code without a frame of its own (adapters, the interpreter's entries, a
//! collector's stubs) on the straight way to its end, on x86_64: the number of bytes that it removes from the
//! stack until its return address is on top.

use super::instructions::{MAX_BYTES, length};
use crate::core::address::CodeRange;
use crate::core::memory::Memory;
use crate::core::vm_layout::VmLayout;
use crate::signal::walk::blob::Blob;
use crate::signal::walk::{Cursor, Walk};

/// The most instructions that are followed: more than a barrier has that saves all registers twice.
const MAX_INSTRUCTIONS: usize = 512;
/// The most bytes of saved registers: more than all registers take, saved twice.
const MAX_SAVED_BYTES: u64 = 8192;
const POP_FLAGS: u8 = 0x9d;
const PUSH_FLAGS: u8 = 0x9c;

/// The way in which code without a frame ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// By a jump to the return address, which it has popped: `pop R; mov rsp, r13; jmp R`.
    Return,
    /// By a jump to other code, which finds the return address on the stack.
    Jump,
    /// By `ret`.
    Ret,
}

impl<M: Memory> Walk<'_, M> {
    /// [`Self::bytes_until`] the jump to other code.
    pub(super) fn bytes_until_jump(&self, code: CodeRange, pc: u64) -> Option<u64> {
        self.bytes_until(code, pc, None, End::Jump).filter(|&above| above < MAX_SAVED_BYTES)
    }

    /// The slot of the return address in a blob whose code has no frame and leaves by jumps. `None` if the
    /// address is in a register.
    pub(super) fn return_slot_of_frameless(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Option<u64> {
        let above = self.bytes_until_jump(self.code_of(vm, blob)?, cursor.pc)?;
        self.return_slot(vm, cursor.sp.wrapping_add(above))
    }

    /// Returns `slot` if it holds a return address.
    pub(super) fn return_slot(&self, vm: &VmLayout, slot: u64) -> Option<u64> {
        let is_there = self.memory.load_u64(slot).is_some_and(|pc| self.is_return_address(vm, pc));
        is_there.then_some(slot)
    }

    pub(super) fn code_of(&self, vm: &VmLayout, blob: &Blob) -> Option<CodeRange> {
        Some(CodeRange { start: blob.code_begin, end: self.blob_end(vm, blob).ok()? })
    }

    /// The number of bytes between SP and the return address when the code is at `pc`: the bytes that the
    /// code pops on the straight way to its end, less those that it pushes. `fp_above` is the distance from
    /// SP up to the address in RBP, if RBP may point to a frame that the code has made. `None` if the end is
    /// not found.
    pub(super) fn bytes_until(
        &self,
        range: CodeRange,
        mut pc: u64,
        mut fp_above: Option<u64>,
        end: End,
    ) -> Option<u64> {
        let mut above = 0_u64;
        for _ in 0..MAX_INSTRUCTIONS {
            if !range.contains(pc) {
                return (end == End::Jump).then_some(above);
            }
            let code = self.instruction(pc)?;
            let length = length(&code)?;
            let after = pc.wrapping_add(length as u64);
            let distance = |at: usize| Some(i32::from_le_bytes(*code.get(at..)?.first_chunk()?));
            let (added, next) = match code {
                [pop @ 0x58..=0x5f, 0x49, 0x8b, 0xe5, 0xff, jump, ..]
                    if jump == pop.wrapping_add(0xe0 - 0x58) =>
                {
                    return (end == End::Return).then_some(above);
                }
                // pop rax, or lea r13, [rsp + 8]: the adapter is after its barriers.
                [0x58, 0x4c, 0x8b, 0xec, ..]
                | [0x58, 0x49, 0x89, 0xe5, ..]
                | [0x4c, 0x8d, 0x6c, 0x24, 0x08, ..]
                    if end == End::Jump =>
                {
                    return Some(above);
                }
                // pop rax; pop rbx; push rax: from here on the return address is in another place.
                [0x58, 0x5b, 0x50, ..] if end == End::Jump => return None,
                [0xff, to, ..] | [0x41, 0xff, to, ..] if end == End::Jump && to & 0x38 == 0x20 => {
                    return Some(above);
                }
                [0xc3, ..] if end == End::Ret => return Some(above),
                // mov rbp, rsp; mov rsp, rbp; in both encodings
                [0x48, 0x8b, 0xec, ..] | [0x48, 0x89, 0xe5, ..] => {
                    fp_above = Some(above);
                    (0, after)
                }
                [0x48, 0x8b, 0xe5, ..] | [0x48, 0x89, 0xec, ..] => {
                    above = fp_above?;
                    (0, after)
                }
                [0x58..=0x5f | POP_FLAGS, ..] | [0x41, 0x58..=0x5f, ..] => (8, after),
                [0x50..=0x57 | PUSH_FLAGS, ..] | [0x41, 0x50..=0x57, ..] => (-8, after),
                [0x48, 0x83, 0xc4, size, ..] => (i64::from(size as i8), after),
                [0x48, 0x83, 0xec, size, ..] => (i64::from(size as i8).wrapping_neg(), after),
                [0x48, 0x81, 0xc4, ..] => (i64::from(distance(3)?), after),
                [0x48, 0x81, 0xec, ..] => (i64::from(distance(3)?).wrapping_neg(), after),
                [0xeb, to, ..] => (0, after.wrapping_add_signed(i64::from(to as i8))),
                [0xe9, ..] => (0, after.wrapping_add_signed(i64::from(distance(1)?))),
                // These instructions leave the code in another way than the one asked for.
                [0xc3, ..] | [0xff, 0xe0..=0xe7, ..] | [0x41, 0xff, 0xe0..=0xe7, ..] => return None,
                _ => (0, after),
            };
            above = above.wrapping_add_signed(added);
            pc = next;
        }
        None
    }

    /// The bytes at `pc`, as many as an instruction can have, with zeros after the last byte that is mapped.
    /// `None` if nothing is mapped, or if the first two bytes are zero: that is `add [rax], al`, which no
    /// code contains. Each load that fails costs a signal.
    pub(super) fn instruction(&self, pc: u64) -> Option<[u8; MAX_BYTES]> {
        let mut code = [0; MAX_BYTES];
        let _ = self.memory.read_bytes(pc, &mut code);
        (!code.starts_with(&[0, 0])).then_some(code)
    }
}
