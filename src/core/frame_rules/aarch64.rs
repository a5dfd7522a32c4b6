//! DWARF on aarch64 (DWARF for the Arm 64-bit Architecture, "DWARF register names").

use super::{Architecture, Op};
use crate::core::unwind::{CfaRule, ReturnAddressRule};

/// x29 29, SP 31, the link register x30.
pub const ARCHITECTURE: Architecture = Architecture {
    fp: 29,
    sp: 31,
    return_address: 30,
    unsaved_return_address: Some(ReturnAddressRule::LinkRegister),
    special_cfa,
    is_signal_frame,
};

/// PLT entries push nothing here: ordinary rules describe them.
fn special_cfa(_: &[Op]) -> Option<CfaRule> {
    None
}

/// The kernel describes its trampoline by the frame record it builds, without an expression.
fn is_signal_frame(_: &[Op]) -> bool {
    true
}
