//! The search on the stack for the caller of undescribed code that cannot be followed to its return, on
//! x86_64.
//!
//! Return addresses of earlier calls may remain on the stack, in memory that the code has not written yet. So
//! a return address is only accepted if it follows a call of this very code, and if no other one does.

use otlpprof_core::address::RuntimeAddr;
use otlpprof_core::memory::Memory;

use crate::walk::cursor::Cursor;
use crate::walk::stack_walk::Walk;

/// The most words of the stack that are searched. Hand-written code rarely has more in its frame.
const MAX_WORDS: u64 = 512;
/// The most return addresses whose callers are walked.
const MAX_CHECKED: usize = 8;
/// The most bytes from the code's entry to the interrupted instruction.
const MAX_FUNCTION_BYTES: u64 = 64 * 1024;
const CALL: u8 = 0xe8;
const CALL_BYTES: u64 = 5;
const ENDBR64: u32 = 0xfa1e_0ff3;

impl<M: Memory> Walk<'_, M> {
    /// The caller of the undescribed code at `cursor`, if one is certain.
    #[inline(never)] // Few frames need this, and a handler's stack may be small.
    pub(in crate::walk) fn searched_caller(&self, cursor: &Cursor) -> Option<Cursor> {
        let mut found = None;
        let mut left = MAX_CHECKED;
        for word in 0..MAX_WORDS {
            let slot = cursor.sp.wrapping_add(word.wrapping_mul(8));
            let Some(pc) = self.memory.load_u64(slot).filter(|_| slot < self.stack_high) else { break };
            if self.objects.find(RuntimeAddr(pc)).is_none() || !self.is_after_call(pc) {
                continue;
            }
            let calls_this = self.calls_this(pc, cursor);
            if found.is_some() {
                if calls_this {
                    return None;
                }
                continue;
            }
            left = left.checked_sub(1)?;
            let caller = Cursor { pc, sp: slot.wrapping_add(8), fp: cursor.fp, interrupted: false };
            if self.reaches_an_end(caller, 0) {
                if !calls_this {
                    return None;
                }
                found = Some(caller);
            }
        }
        found
    }

    /// Whether the call before `return_pc` leads to the undescribed code at `cursor`.
    fn calls_this(&self, return_pc: u64, cursor: &Cursor) -> bool {
        let at = return_pc.wrapping_sub(CALL_BYTES);
        if self.memory.load_u8(at) != Some(CALL) {
            return false;
        }
        let Some(target) = self.relative(at.wrapping_add(1)) else { return false };
        let is_this = |target: u64| {
            target <= cursor.lookup_pc()
                && cursor.lookup_pc().wrapping_sub(target) < MAX_FUNCTION_BYTES
                && self.is_undescribed(target)
        };
        is_this(target) || self.plt_target(target).is_some_and(is_this)
    }

    /// The target of the procedure linkage table's entry at `entry`: `[endbr64;] [bnd] jmp [rip + distance]`.
    fn plt_target(&self, entry: u64) -> Option<u64> {
        let mut jump = entry;
        if self.memory.load_u32(jump) == Some(ENDBR64) {
            jump = jump.wrapping_add(4);
        }
        if self.memory.load_u8(jump) == Some(0xf2) {
            jump = jump.wrapping_add(1);
        }
        let is_jump = self.memory.load_u16(jump)? == u16::from_le_bytes([0xff, 0x25]);
        self.memory.load_u64(self.relative(jump.wrapping_add(2)).filter(|_| is_jump)?)
    }

    /// The target of the relative address at `at`, which is the last four bytes of an instruction.
    fn relative(&self, at: u64) -> Option<u64> {
        let distance = self.memory.load_u32(at)? as i32;
        Some(at.wrapping_add(4).wrapping_add_signed(i64::from(distance)))
    }
}
