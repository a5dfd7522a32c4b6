//! The rules of DWARF on aarch64 (DWARF for the Arm 64-bit Architecture, "DWARF register names").

use super::architecture::Architecture;
use super::row::Op;
use crate::unwind_rule::{CfaRule, FpRule, ReturnAddressRule, UnwindRule};

/// x29 29, SP 31, the link register x30.
pub const ARCHITECTURE: Architecture = Architecture {
    fp: 29,
    sp: 31,
    return_address: 30,
    unsaved_return_address: Some(ReturnAddressRule::LinkRegister),
    special_cfa,
    is_signal_frame,
    corrected,
};

/// PLT entries push nothing on aarch64, so ordinary rules describe them.
fn special_cfa(_: &[Op]) -> Option<CfaRule> {
    None
}

/// The kernel describes its trampoline by the frame record that it builds, without an expression.
fn is_signal_frame(_: &[Op]) -> bool {
    true
}

/// The rule with the caller's SP in place of a CFA that is not the caller's SP: the code that binds a call
/// lazily is entered with a pair on the stack, `stp x16, x30, [sp, -16]!` of the linkage table, and describes
/// itself as if its CFA were below that pair, with the return address at CFA + 8 (glibc,
/// sysdeps/aarch64/dl-trampoline.S).
fn corrected(rule: UnwindRule) -> UnwindRule {
    const PAIR: i32 = 16;
    match rule {
        UnwindRule { cfa: CfaRule::SpPlus(offset), fp, return_address: ReturnAddressRule::AtCfaPlus(8) } => {
            let fp = match fp {
                FpRule::AtCfaPlus(at) => FpRule::AtCfaPlus(at.wrapping_sub(PAIR)),
                other => other,
            };
            let return_address = ReturnAddressRule::AtCfaPlus(8_i32.wrapping_sub(PAIR));
            UnwindRule { cfa: CfaRule::SpPlus(offset.wrapping_add(PAIR)), fp, return_address }
        }
        rule => rule,
    }
}

/// Whether a frame may go on above its frame record: compilers put the record at the bottom.
pub const FRAME_GOES_ON_ABOVE_RECORD: bool = true;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame_rules::{RowCfa, RowRegister, RuleRow};

    /// Regression: in the C library's function that binds a call lazily the caller's stack pointer was 16
    /// bytes too low, so that a caller whose frame is found by its size had a wrong caller. The rows are
    /// those of `_dl_runtime_resolve` in glibc 2.42: at its body and at its last jump.
    #[test]
    fn the_caller_of_the_lazy_binder_is_above_the_pair_that_its_linkage_table_has_pushed() {
        const SP: u16 = ARCHITECTURE.sp;
        for (offset, fp) in
            [(208, RowRegister::Same), (-16, RowRegister::Same), (32, RowRegister::AtCfaPlus(-32))]
        {
            let row = RuleRow {
                cfa: RowCfa::Register(SP, offset),
                fp,
                return_address: RowRegister::AtCfaPlus(8),
                is_signal_trampoline: false,
            };
            let rule = ARCHITECTURE.rule(&row);
            assert_eq!(rule.cfa, CfaRule::SpPlus(offset as i32 + 16));
            assert_eq!(rule.return_address, ReturnAddressRule::AtCfaPlus(-8));
            let expected =
                if matches!(fp, RowRegister::Same) { FpRule::Same } else { FpRule::AtCfaPlus(-48) };
            assert_eq!(rule.fp, expected);
        }
    }
}
