//! The caller of native code without call frame information: hand-written assembly.
//!
//! Either the code's instructions say where the return address is (`way_out`), or the stack is searched for
//! it (`stack_search`). Both results are checked before use: the caller must be after a call, and call frame
//! information must lead from there to Java, to the thread's entry, or through many frames.

use otlpprof_core::address::RuntimeAddr;
use otlpprof_core::memory::Memory;

use super::cursor::{Cursor, Step};
use super::registers::{Registers, is_signal_return};
use super::stack_walk::Walk;

/// The number of consecutive callers, each after a call, that is accepted as proof.
const MAX_CHECKED_FRAMES: usize = 64;
/// The most callers that may be undescribed too. A library's initializers run before the agent knows the
/// library.
const MAX_UNDESCRIBED_CALLERS: usize = 8;

/// The cost of an instruction of code that is in no known object, in instructions of other code.
const COST_IN_UNKNOWN_OBJECT: u32 = 16;

impl<M: Memory> Walk<'_, M> {
    /// The amount by which an instruction at `pc` reduces the number that the walk may still follow. Code of
    /// a library that is being loaded is in no known object yet: the library has call frame information as a
    /// rule, so its instructions seldom lead anywhere.
    pub(super) fn cost_of_instruction(&self, pc: u64) -> u32 {
        let is_known = self.in_code_cache(pc) || self.objects.find(RuntimeAddr(pc)).is_some();
        if is_known { 1 } else { COST_IN_UNKNOWN_OBJECT }
    }

    /// The caller of the undescribed native code at `cursor`, if it is certain. `known` are the registers
    /// there, if the thread was interrupted there.
    pub(super) fn undescribed_caller(&self, cursor: &Cursor, known: Option<&Registers>) -> Option<Cursor> {
        // A caller has made a call. Otherwise the walk has gone wrong, and no instruction is worth following.
        if !cursor.interrupted && !self.is_after_call(cursor.pc) {
            return None;
        }
        let followed = self.way_out(cursor, known, |pc| self.is_undescribed(pc));
        followed
            .filter(|&caller| self.reaches_an_end(caller, MAX_UNDESCRIBED_CALLERS))
            .or_else(|| self.searched_caller(cursor))
    }

    /// Whether no call frame information covers the native code at `pc`.
    pub(super) fn is_undescribed(&self, pc: u64) -> bool {
        !self.in_code_cache(pc) && self.rule_at(self.object_at(pc), pc).is_none()
    }

    /// Whether `caller` is after a call, and call frame information leads from there to Java, to the
    /// thread's entry, or through as many frames as are checked. Up to `undescribed` frames may lack such
    /// information, and are followed by their instructions.
    pub(super) fn reaches_an_end(&self, caller: Cursor, mut undescribed: usize) -> bool {
        let mut cursor = caller;
        for _ in 0..MAX_CHECKED_FRAMES {
            if self.java_thread != 0 && self.in_code_cache(cursor.pc) {
                return self.vm.is_some_and(|vm| self.is_return_address(vm, cursor.pc));
            }
            match self.described_step_with(&cursor, &mut None, |_| None) {
                // A signal handler returns to code that has not called it, through a trampoline that may be
                // undescribed.
                Some(Step::Caller(interrupted)) if interrupted.interrupted => return true,
                Some(Step::Caller(caller)) if self.is_after_call(cursor.pc) => cursor = caller,
                Some(Step::Root) => {
                    return self.is_after_call(cursor.pc)
                        && self.anchor().is_none()
                        && !self.must_have_java_frames();
                }
                None if is_signal_return(self.memory, cursor.pc) => return true,
                None if self.is_after_call(cursor.pc) && self.is_undescribed(cursor.lookup_pc()) => {
                    let Some(left) = undescribed.checked_sub(1) else { return false };
                    undescribed = left;
                    match self.way_out(&cursor, None, |pc| self.is_undescribed(pc)) {
                        Some(caller) => cursor = caller,
                        None => return false,
                    }
                }
                _ => return false,
            }
        }
        true
    }
}
