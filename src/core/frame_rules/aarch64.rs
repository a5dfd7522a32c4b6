//! The rules of DWARF on aarch64 (DWARF for the Arm 64-bit Architecture, "DWARF register names").

use super::architecture::Architecture;
use super::row::Op;
use crate::core::unwind_rule::{CfaRule, FpRule, ReturnAddressRule, UnwindRule};

/// x29 29, SP 31, the link register x30.
pub const ARCHITECTURE: Architecture = Architecture {
    fp: 29,
    sp: 31,
    return_address: 30,
    unsaved_return_address: Some(ReturnAddressRule::LinkRegister),
    special_cfa,
    is_signal_frame,
};

/// PLT entries push nothing on aarch64, so ordinary rules describe them.
fn special_cfa(_: &[Op]) -> Option<CfaRule> {
    None
}

/// The kernel describes its trampoline by the frame record that it builds, without an expression.
fn is_signal_frame(_: &[Op]) -> bool {
    true
}

/// Whether code under this rule keeps a frame record to which FP points; `None` if the code has no frame yet,
/// or is not a function.
pub fn keeps_frame_record(rule: &UnwindRule) -> Option<bool> {
    let ReturnAddressRule::AtCfaPlus(return_address) = rule.return_address else { return None };
    match rule.cfa {
        // Compilers describe frames by either register, whether or not FP has been set.
        CfaRule::SpPlus(_) | CfaRule::FpPlus(_) => {
            Some(rule.fp == FpRule::AtCfaPlus(return_address.wrapping_sub(8)))
        }
        _ => None,
    }
}
