//! The data that compiled code has on top of its frame while it compares strings or searches in them, on
//! x86_64 (cpu/x86/c2_MacroAssembler_x86.cpp, in JDK 11 macroAssembler_x86.cpp; JDK 11-27).
//!
//! - `string_compare` pushes the difference of the lengths: `mov eax, ecx; sub ecx, edx; push rcx;
//!   cmovle edx, eax; …; pop rcx` (or `pop rax`).
//! - `string_indexof` keeps the stack pointer in RCX while it copies short strings to the stack. It then
//!   pushes RCX, after up to three more words, and restores the stack pointer by `pop rsp`.
//! - `char_array_compress` pushes the length, `push rdx; …`, and pops it by `pop rax`, or drops it by
//!   `add rsp, 8` (JDK 11 to 21).

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;

/// `mov eax, ecx; sub ecx, edx; push rcx; cmovle edx, eax`.
const COMPARE: [u8; 8] = [0x8b, 0xc1, 0x2b, 0xca, 0x51, 0x0f, 0x4e, 0xd0];
/// The number of these bytes behind the push.
const BYTES_BEHIND_PUSH: u64 = 3;
/// `mov rcx, rsp`.
const KEEP_SP: [u8; 3] = [0x48, 0x8b, 0xcc];
/// The most bytes up to an operation's last instruction; a comparison has loops for each size of vectors.
const OPERATION_BYTES: usize = 1024;
/// The most bytes on top of a frame: two short strings, three words and the stack pointer.
const MOST_BYTES: u64 = 2 * 16 + 4 * 8;

impl<M: Memory> Walk<'_, M> {
    /// The caller of a compiled frame whose stack pointer a search has kept on the stack or in RCX.
    pub(in crate::walk) fn caller_by_kept_sp(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Option<Cursor> {
        let above = cursor.sp.wrapping_add(8)..=cursor.sp.wrapping_add(MOST_BYTES);
        let kept = [self.memory.load_u64(cursor.sp), Some(registers.rcx())];
        let mut kept = kept.into_iter().flatten().filter(|sp| above.contains(sp) && sp.is_multiple_of(8));
        kept.find_map(|sp| self.caller_from(vm, blob, cursor, sp))
    }

    /// Whether the interrupted instruction at `pc` may be one of a search that has kept the stack pointer.
    pub(in crate::walk) fn may_be_searching(&self, blob: &Blob, pc: u64) -> bool {
        self.has_before(blob, pc, &KEEP_SP)
    }

    /// The caller of a compiled frame that has a comparison's data on top.
    pub(in crate::walk) fn caller_below_comparison(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Option<Cursor> {
        let is_comparing = self.has_before(blob, cursor.pc.wrapping_add(BYTES_BEHIND_PUSH), &COMPARE);
        is_comparing.then(|| self.caller_from(vm, blob, cursor, cursor.sp.wrapping_add(8)))?
    }

    /// The caller of a compiled frame whose own stack pointer is `sp`, if the caller is at a return address.
    fn caller_from(&self, vm: &VmLayout, blob: &Blob, cursor: &Cursor, sp: u64) -> Option<Cursor> {
        let caller = self.sized_caller(&Cursor { sp, ..*cursor }, blob.frame_bytes).ok()?;
        self.is_return_address(vm, caller.pc).then_some(caller)
    }

    /// Whether the code has these bytes among the last ones before `end`.
    fn has_before(&self, blob: &Blob, end: u64, bytes: &[u8]) -> bool {
        let mut code = [0; OPERATION_BYTES];
        let begin = end.wrapping_sub(OPERATION_BYTES as u64).max(blob.code_begin);
        let code = code.get_mut(..end.saturating_sub(begin) as usize).unwrap_or_default();
        self.memory.read_bytes(begin, code) && code.windows(bytes.len()).any(|code| code == bytes)
    }

    /// The caller of a compiled frame that has some more words on top: its instructions remove these words
    /// before they remove the frame.
    pub(in crate::walk) fn caller_below_pushes(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Option<Cursor> {
        let caller = self.way_out_of_blob(vm, blob, cursor, registers)?;
        let frame_end = cursor.sp.wrapping_add_signed(blob.frame_bytes);
        let pushed = caller.sp.wrapping_sub(frame_end);
        let is_frame = pushed.is_multiple_of(8) && (8..=MOST_BYTES).contains(&pushed);
        is_frame.then_some(caller)
    }
}
