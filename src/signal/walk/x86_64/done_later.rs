//! What code without a frame of its own (adapters, the interpreter's entries, a collector's stubs) has still to do on the
//! straight way to its end: how much it takes off the stack until its return address is on top, on x86_64.

use super::instructions::{MAX_BYTES, length};
use crate::core::memory::Memory;
use crate::core::vm_layout::{CodeRange, VmLayout};
use crate::signal::walk::blob::Blob;
use crate::signal::walk::{Cursor, Walk};

/// More than a barrier has that saves all registers twice.
const MAX_INSTRUCTIONS: usize = 512;
/// All registers are smaller, saved twice.
const MAX_SAVED_BYTES: u64 = 8192;
const POP_FLAGS: u8 = 0x9d;
const PUSH_FLAGS: u8 = 0x9c;

/// How code without a frame ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// By the return address, which it has taken off the stack: `pop R; mov rsp, r13; jmp R`.
    Return,
    /// By a jump to other code, to which the return address is left.
    Jump,
    /// By `ret`.
    Ret,
}

impl<M: Memory> Walk<'_, M> {
    /// [`Self::bytes_until`] the jump to other code.
    pub(super) fn bytes_until_jump(&self, code: CodeRange, pc: u64) -> Option<u64> {
        self.bytes_until(code, pc, None, End::Jump).filter(|&above| above < MAX_SAVED_BYTES)
    }

    /// Where the return address is in a blob whose code has no frame and leaves by jumps; `None` if it is in a register.
    pub(super) fn return_slot_of_frameless(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Option<u64> {
        let above = self.bytes_until_jump(self.code_of(vm, blob)?, cursor.pc)?;
        self.return_slot(vm, cursor.sp.wrapping_add(above))
    }

    /// The slot, if a return address is there.
    pub(super) fn return_slot(&self, vm: &VmLayout, slot: u64) -> Option<u64> {
        let is_there = self.memory.load_u64(slot).is_some_and(|pc| self.is_return_address(vm, pc));
        is_there.then_some(slot)
    }

    pub(super) fn code_of(&self, vm: &VmLayout, blob: &Blob) -> Option<CodeRange> {
        Some(CodeRange { start: blob.code_begin, end: self.blob_end(vm, blob).ok()? })
    }

    /// How many bytes lie between SP and the return address where the code is at `pc`: what it takes off the stack on the
    /// straight way to its end, less what it puts there. `fp_above` is how far above SP RBP leads, if that may be to a frame
    /// that the code has made. `None` if the end is not found.
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
                [0xc3, ..] if end == End::Ret => return Some(above),
                // mov rbp, rsp; mov rsp, rbp; in both encodings
                [0x48, 0x8b, 0xec, ..] | [0x48, 0x89, 0xe5, ..] => {
                    fp_above = Some(above);
                    (0, behind)
                }
                [0x48, 0x8b, 0xe5, ..] | [0x48, 0x89, 0xec, ..] => {
                    above = fp_above?;
                    (0, behind)
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

    /// The bytes at `pc`, as many as an instruction can have; zeros behind the last that is mapped. `None` where nothing is
    /// mapped, or two bytes are zero: `add [rax], al`, which no code has. Each load that fails costs a signal.
    pub(super) fn instruction(&self, pc: u64) -> Option<[u8; MAX_BYTES]> {
        let mut code = [0; MAX_BYTES];
        let _ = self.memory.read_bytes(pc, &mut code);
        (!code.starts_with(&[0, 0])).then_some(code)
    }
}
