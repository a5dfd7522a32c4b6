//! The rules of DWARF on x86_64 (System V ABI, AMD64 Architecture Processor Supplement, 3.7).

use super::architecture::Architecture;
use super::row::Op;
use crate::unwind_rule::{CfaRule, FpRule, UnwindRule};

/// rbp 6, rsp 7, return address 16.
pub const ARCHITECTURE: Architecture = Architecture {
    fp: 6,
    sp: 7,
    return_address: 16,
    unsaved_return_address: None,
    special_cfa,
    is_signal_frame,
    corrected,
};

/// The offset of `uc_mcontext.gregs[REG_RSP]` in a `ucontext_t`, to which SP points on return from a handler.
const UCONTEXT_RSP: i64 = 160;

/// Recognises the expression by which linkers describe all entries of the lazy-binding PLT:
/// `rsp + 8 + ((rip & 15) >= threshold) << 3`.
fn special_cfa(ops: &[Op]) -> Option<CfaRule> {
    use Op::{And, Constant, Ge, Plus, RegisterPlus, Shl};
    let [
        RegisterPlus(7, 8),
        RegisterPlus(16, 0),
        Constant(15),
        And,
        Constant(threshold @ 0..=15),
        Ge,
        Constant(3),
        Shl,
        Plus,
    ] = *ops
    else {
        return None;
    };
    Some(CfaRule::PltX86_64 { threshold: threshold as u8 })
}

/// Whether a frame that is marked as a signal trampoline is the kernel's: the CFA of such a frame is the
/// `rsp` saved in the `ucontext_t`. A marked frame with another rule is unwound by that rule.
fn is_signal_frame(cfa: &[Op]) -> bool {
    matches!(*cfa, [Op::RegisterPlus(7, UCONTEXT_RSP), Op::Deref])
}

/// No code is known to state its rules wrongly.
fn corrected(rule: UnwindRule) -> UnwindRule {
    rule
}

/// Whether a frame may go on above its frame record: the return address is at the top of the frame.
pub const FRAME_GOES_ON_ABOVE_RECORD: bool = false;

/// Whether code under this rule keeps a frame record to which FP points; `None` if the code has no frame yet,
/// or is not a function.
pub fn keeps_frame_record(rule: &UnwindRule) -> Option<bool> {
    match rule.cfa {
        // At the entry, and after the epilogue.
        CfaRule::SpPlus(8) => None,
        CfaRule::SpPlus(_) => Some(false),
        CfaRule::FpPlus(16) => Some(rule.fp == FpRule::AtCfaPlus(-16)),
        _ => None,
    }
}
