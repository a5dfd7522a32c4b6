//! Code that has no call frame information, on x86_64: nothing is known of it. PLTs and the signal trampoline have theirs.

use crate::core::memory::Memory;
use crate::core::unwind::UnwindRule;

/// The rule at run-time address `pc`.
pub(in crate::signal::walk) fn rule_at(_memory: &impl Memory, _pc: u64) -> Option<UnwindRule> {
    None
}
