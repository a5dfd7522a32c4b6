//! The conversion of a row to a rule, with the parameters that differ between architectures.

use super::row::{Op, Ops, Register, RowCfa, RowRegister, RuleRow};
use crate::unwind_rule::{CfaRule, FpRule, ReturnAddressRule, UnwindRule};

/// The parameters that differ between architectures.
#[derive(Clone, Copy, Debug)]
pub struct Architecture {
    /// The frame pointer.
    pub fp: Register,
    /// The stack pointer.
    pub sp: Register,
    /// The column of the return address, for rows that use it.
    pub return_address: Register,
    /// The meaning of a row without a rule for the return address.
    pub unsaved_return_address: Option<ReturnAddressRule>,
    /// CFA expressions that only this architecture has.
    pub special_cfa: fn(&[Op]) -> Option<CfaRule>,
    /// Whether a frame that is marked as a signal trampoline and has this CFA expression (empty if it has
    /// none) belongs to the kernel.
    pub is_signal_frame: fn(&[Op]) -> bool,
    /// The right rule in place of one that code is known to state wrongly; any other rule as it is.
    pub corrected: fn(UnwindRule) -> UnwindRule,
}

/// Returns the rule of code that cannot be unwound further by call frame information.
const fn without_caller(cfa: CfaRule) -> UnwindRule {
    UnwindRule { cfa, fp: FpRule::Undefined, return_address: ReturnAddressRule::AtCfaPlus(0) }
}

/// The rule of the outermost frame of a stack.
pub const END_OF_STACK: UnwindRule = without_caller(CfaRule::EndOfStack);

/// The rule for rows that cannot be expressed.
pub const UNSUPPORTED: UnwindRule = without_caller(CfaRule::Unsupported);

impl Architecture {
    /// Returns the rule of `row`.
    pub fn rule(&self, row: &RuleRow<'_>) -> UnwindRule {
        let cfa_ops = match row.cfa {
            RowCfa::Register(..) => &Ops::EMPTY,
            RowCfa::Expression(Some(ops)) => ops,
            RowCfa::Expression(None) => return UNSUPPORTED,
        };
        if row.is_signal_trampoline && (self.is_signal_frame)(cfa_ops.as_slice()) {
            return without_caller(CfaRule::SignalFrame);
        }
        let return_address = match row.return_address {
            RowRegister::Undefined => return END_OF_STACK,
            RowRegister::AtCfaPlus(offset) => i32::try_from(offset).ok().map(ReturnAddressRule::AtCfaPlus),
            RowRegister::Same => self.unsaved_return_address,
            RowRegister::AtExpression(_) | RowRegister::Other => None,
        };
        let cfa = match row.cfa {
            RowCfa::Register(register, offset) => self.register_cfa(register, offset),
            RowCfa::Expression(_) => self.expression_cfa(cfa_ops.as_slice()),
        };
        match (cfa, return_address) {
            (Some(cfa), Some(return_address)) => {
                (self.corrected)(UnwindRule { cfa, fp: self.fp_rule(row.fp), return_address })
            }
            _ => UNSUPPORTED,
        }
    }

    fn register_cfa(&self, register: Register, offset: i64) -> Option<CfaRule> {
        let offset = i32::try_from(offset).ok()?;
        Some(if register == self.sp {
            CfaRule::SpPlus(offset)
        } else if register == self.fp {
            CfaRule::FpPlus(offset)
        } else {
            CfaRule::RegisterPlus(u8::try_from(register).ok()?, offset)
        })
    }

    fn expression_cfa(&self, ops: &[Op]) -> Option<CfaRule> {
        let (register, at, offset) = match *ops {
            [Op::RegisterPlus(register, at), Op::Deref] => (register, at, 0),
            [Op::RegisterPlus(register, at), Op::Deref, Op::PlusConstant(offset)]
            | [Op::RegisterPlus(register, at), Op::Deref, Op::Constant(offset), Op::Plus] => {
                (register, at, offset)
            }
            [Op::RegisterPlus(register, offset)] => return self.register_cfa(register, offset),
            [
                Op::RegisterPlus(base, at),
                Op::RegisterPlus(index, 0),
                Op::Constant(scale),
                Op::Multiply,
                Op::Plus,
                Op::Deref,
                Op::PlusConstant(offset),
            ] if base == self.sp => {
                return Some(CfaRule::IndexedSpDeref {
                    register: u8::try_from(index).ok()?,
                    scale: u8::try_from(scale).ok()?,
                    at: i16::try_from(at).ok()?,
                    offset: i16::try_from(offset).ok()?,
                });
            }
            _ => return (self.special_cfa)(ops),
        };
        let (at, offset) = (i16::try_from(at).ok()?, i16::try_from(offset).ok()?);
        if register == self.fp {
            Some(CfaRule::FpDeref { at, offset })
        } else if register == self.sp {
            Some(CfaRule::SpDeref { at, offset })
        } else {
            None
        }
    }

    /// Returns the rule for the caller's frame pointer. If it cannot be expressed, only the caller's frame
    /// pointer is lost.
    fn fp_rule(&self, saved: RowRegister<'_>) -> FpRule {
        let rule = match saved {
            RowRegister::Same => Some(FpRule::Same),
            RowRegister::AtCfaPlus(offset) => i32::try_from(offset).ok().map(FpRule::AtCfaPlus),
            RowRegister::AtExpression(Some(ops)) => match *ops.as_slice() {
                [Op::RegisterPlus(register, offset)] if register == self.fp => {
                    i32::try_from(offset).ok().map(FpRule::AtFpPlus)
                }
                _ => None,
            },
            RowRegister::Undefined | RowRegister::AtExpression(None) | RowRegister::Other => None,
        };
        rule.unwrap_or(FpRule::Undefined)
    }
}
