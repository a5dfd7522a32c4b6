//! The data that compiled code has on top of its frame while it compares strings or searches in them, on
//! x86_64 (cpu/x86/c2_MacroAssembler_x86.cpp, in JDK 11 macroAssembler_x86.cpp; JDK 11-25).
//!
//! - `string_compare` pushes the difference of the lengths: `mov eax, ecx; sub ecx, edx; push rcx;
//!   cmovle edx, eax; …; pop rcx` (or `pop rax`).
//! - `string_indexof` keeps the stack pointer in RCX while it copies short strings to the stack. It then
//!   pushes RCX, after up to three more words, and restores the stack pointer by `pop rsp`.
//! - `char_array_compress` pushes the length, `push rdx; …`, and pops it by `pop rax`, or drops it by
//!   `add rsp, 8` (JDK 11 to 21).

use crate::core::memory::Memory;
use crate::core::vm_layout::VmLayout;
use crate::signal::walk::blob::Blob;
use crate::signal::walk::registers::Registers;
use crate::signal::walk::{Cursor, Walk};

/// `mov eax, ecx; sub ecx, edx; push rcx; cmovle edx, eax`.
const COMPARE: [u8; 8] = [0x8b, 0xc1, 0x2b, 0xca, 0x51, 0x0f, 0x4e, 0xd0];
/// The number of these bytes behind the push.
const BYTES_BEHIND_PUSH: u64 = 3;
/// The most bytes up to the comparison's last instruction; it has loops for each size of vectors.
const COMPARE_BYTES: usize = 1024;
/// The most bytes on top of a frame: two short strings, three words and the stack pointer.
const MOST_BYTES: u64 = 2 * 16 + 4 * 8;

impl<M: Memory> Walk<'_, M> {
    /// The caller of a compiled frame that has a string operation's data on top.
    pub(in crate::signal::walk) fn caller_below_strings(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Option<Cursor> {
        let above = cursor.sp.wrapping_add(8)..=cursor.sp.wrapping_add(MOST_BYTES);
        let is_comparing = || {
            let mut code = [0; COMPARE_BYTES];
            let end = cursor.pc.wrapping_add(BYTES_BEHIND_PUSH);
            let begin = end.wrapping_sub(COMPARE_BYTES as u64).max(blob.code_begin);
            let code = code.get_mut(..end.saturating_sub(begin) as usize).unwrap_or_default();
            self.memory.read_bytes(begin, code) && code.windows(COMPARE.len()).any(|code| code == COMPARE)
        };
        let kept = [self.memory.load_u64(cursor.sp), Some(registers.rcx())];
        let kept = kept.into_iter().flatten().filter(|sp| above.contains(sp) && sp.is_multiple_of(8));
        let caller = |sp| {
            let caller = self.sized_caller(&Cursor { sp, ..*cursor }, blob.frame_bytes).ok()?;
            self.is_return_address(vm, caller.pc).then_some(caller)
        };
        let found = kept.into_iter().find_map(caller);
        found.or_else(|| is_comparing().then(|| caller(cursor.sp.wrapping_add(8)))?)
    }

    /// The caller of a compiled frame that has some more words on top: its instructions remove these words
    /// before they remove the frame.
    pub(in crate::signal::walk) fn caller_below_pushes(
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
