//! DWARF on x86_64 (System V ABI, AMD64 Architecture Processor Supplement, 3.7).

use super::{Architecture, Op};
use crate::core::unwind::{CfaRule, FpRule, UnwindRule};

/// rbp 6, rsp 7, return address 16.
pub const ARCHITECTURE: Architecture = Architecture {
    fp: 6,
    sp: 7,
    return_address: 16,
    unsaved_return_address: None,
    special_cfa,
    is_signal_frame,
};

/// Where `uc_mcontext.gregs[REG_RSP]` is in a `ucontext_t`, which is what SP points at on return from a
/// handler.
const UCONTEXT_RSP: i64 = 160;

/// The lazy-binding PLT that linkers describe by one expression for all entries:
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

/// Kernel signal frames are those whose CFA is the `rsp` saved in the `ucontext_t`; a marked frame with
/// another rule unwinds by that rule.
fn is_signal_frame(cfa: &[Op]) -> bool {
    matches!(*cfa, [Op::RegisterPlus(7, UCONTEXT_RSP), Op::Deref])
}

/// Whether code under this rule keeps a frame record that FP points at; `None` if it has no frame yet, or is no function.
pub fn keeps_frame_record(rule: &UnwindRule) -> Option<bool> {
    match rule.cfa {
        // On entry, and behind the epilogue.
        CfaRule::SpPlus(8) => None,
        CfaRule::SpPlus(_) => Some(false),
        CfaRule::FpPlus(16) => Some(rule.fp == FpRule::AtCfaPlus(-16)),
        _ => None,
    }
}
