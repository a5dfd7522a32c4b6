//! The remaining actions of code without a frame of its own (adapters, the interpreter's entries, a
//! collector's stubs) on the straight way to its end, on x86_64: the number of bytes that it removes from the
//! stack until its return address is on top.

use otlpprof_core::address::CodeRange;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::instructions::{MAX_BYTES, length};
use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::stack_walk::Walk;

/// The most instructions that are followed: more than a barrier has that saves all registers twice.
const MAX_INSTRUCTIONS: usize = 512;
/// The most bytes of saved registers: more than all registers take, saved twice.
const MAX_SAVED_BYTES: u64 = 8192;
const POP_FLAGS: u8 = 0x9d;
const PUSH_FLAGS: u8 = 0x9c;
const LEAVE: u8 = 0xc9;

/// The way in which code without a frame ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// By a jump to the return address, which it has popped: `pop R; mov rsp, r13; jmp R`.
    Return,
    /// By a jump to other code, which finds the return address on the stack.
    Jump,
    /// By `ret`.
    Ret,
    /// By `leave`, which removes a frame that earlier code has made.
    Leave,
}

/// The place where code without a frame of its own has its return address, and RBP at its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ReturnSlot {
    /// The run-time address of the word with the return address.
    pub(super) slot: u64,
    /// The caller's RBP.
    pub(super) fp: u64,
}

impl<M: Memory> Walk<'_, M> {
    /// The place of the return address of the code at `cursor`, as the code's way to `end` shows it. The word
    /// there must be checked. A barrier in the code may have a frame of its own, to which RBP points
    /// (gc/shenandoah/shenandoahBarrierSetAssembler_x86.cpp, JDK 27): `push rbp; mov rbp, rsp; …; leave`.
    pub(super) fn slot_at_end(&self, code: CodeRange, cursor: &Cursor, end: End) -> Option<ReturnSlot> {
        let fp_above = cursor.fp.wrapping_sub(cursor.sp);
        let (above, is_in_frame) = self.way_to_end(code, cursor.pc, Some(fp_above), end)?;
        if above >= MAX_SAVED_BYTES {
            return None;
        }
        let fp = if is_in_frame { self.memory.load_u64(cursor.fp)? } else { cursor.fp };
        Some(ReturnSlot { slot: cursor.sp.wrapping_add(above), fp })
    }

    /// The place of the return address in a blob whose code has no frame and leaves by jumps. `None` if the
    /// address is in a register.
    pub(super) fn return_slot_of_frameless(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Option<ReturnSlot> {
        let found = self.slot_at_end(self.code_of(vm, blob)?, cursor, End::Jump)?;
        self.return_slot(vm, found.slot).map(|_| found)
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
        pc: u64,
        fp_above: Option<u64>,
        end: End,
    ) -> Option<u64> {
        self.way_to_end(range, pc, fp_above, end).map(|(above, _)| above)
    }

    /// Whether code that has a frame already, such as a bytecode's, is in a barrier with another frame, which
    /// the code removes by `leave` before anything else ends the way.
    pub(super) fn is_in_frame_of_barrier(&self, range: CodeRange, pc: u64) -> bool {
        self.way_to_end(range, pc, Some(0), End::Leave).is_some()
    }

    /// The number of [`Self::bytes_until`], and whether RBP points to a frame at `pc` that the code removes
    /// by `leave`.
    fn way_to_end(
        &self,
        range: CodeRange,
        mut pc: u64,
        mut fp_above: Option<u64>,
        end: End,
    ) -> Option<(u64, bool)> {
        let mut above = 0_u64;
        let (mut makes_frame, mut is_in_frame) = (false, false);
        for _ in 0..MAX_INSTRUCTIONS {
            if !range.contains(pc) {
                return (end == End::Jump).then_some((above, is_in_frame));
            }
            let code = self.instruction(pc)?;
            let length = length(&code)?;
            let after = pc.wrapping_add(length as u64);
            let distance = |at: usize| Some(i32::from_le_bytes(*code.get(at..)?.first_chunk()?));
            let (added, next) = match code {
                [pop @ 0x58..=0x5f, 0x49, 0x8b, 0xe5, 0xff, jump, ..]
                    if jump == pop.wrapping_add(0xe0 - 0x58) =>
                {
                    return (end == End::Return).then_some((above, is_in_frame));
                }
                // pop rax, or lea r13, [rsp + 8]: the adapter is after its barriers.
                [0x58, 0x4c, 0x8b, 0xec, ..]
                | [0x58, 0x49, 0x89, 0xe5, ..]
                | [0x4c, 0x8d, 0x6c, 0x24, 0x08, ..]
                    if end == End::Jump =>
                {
                    return Some((above, is_in_frame));
                }
                // pop rax; pop rbx; push rax: from here on the return address is in another place.
                [0x58, 0x5b, 0x50, ..] if end == End::Jump => return None,
                [0xff, to, ..] | [0x41, 0xff, to, ..] if end == End::Jump && to & 0x38 == 0x20 => {
                    return Some((above, is_in_frame));
                }
                [0xc3, ..] if end == End::Ret => return Some((above, is_in_frame)),
                // mov rbp, rsp; mov rsp, rbp; in both encodings
                [0x48, 0x8b, 0xec, ..] | [0x48, 0x89, 0xe5, ..] => {
                    fp_above = Some(above);
                    makes_frame = true;
                    (0, after)
                }
                [LEAVE, ..] if end == End::Leave => return (!makes_frame).then_some((above, true)),
                [LEAVE, ..] => {
                    is_in_frame |= !makes_frame;
                    above = fp_above?;
                    (8, after)
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
                // A jump to the next bytecode: jmp [r10 + 8 * rbx].
                [0x41, 0xff, 0x24, ..] => return None,
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
