//! Converts one row of call frame information to one [`UnwindRule`].
//!
//! Two readers produce such rows: `elf::unwind` compiles an object's whole `.eh_frame` to a table, and until
//! that table exists, `signal::walk::frame_info` reads a single description in place. The meaning of a row is
//! defined only here.

pub mod aarch64;
pub mod x86_64;

use super::unwind::{CfaRule, FpRule, ReturnAddressRule, UnwindRule};

#[cfg(target_arch = "aarch64")]
pub use aarch64 as native;
#[cfg(target_arch = "x86_64")]
pub use x86_64 as native;

/// A DWARF register number.
pub type Register = u16;

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
    /// none) is the kernel's.
    pub is_signal_frame: fn(&[Op]) -> bool,
}

/// The supported operations of expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Pushes register + offset.
    RegisterPlus(Register, i64),
    /// Pushes a constant.
    Constant(u64),
    /// Adds a constant.
    PlusConstant(u64),
    /// Loads a machine word.
    Deref,
    /// Bitwise and.
    And,
    /// Signed comparison.
    Ge,
    /// Addition.
    Plus,
    /// Multiplication.
    Multiply,
    /// Left shift.
    Shl,
}

/// The length of the longest supported expression.
const MAX_OPS: usize = 9;

/// The operations of an expression.
#[derive(Clone, Copy, Debug)]
pub struct Ops {
    ops: [Op; MAX_OPS],
    len: usize,
}

impl Ops {
    /// No operation.
    pub const EMPTY: Self = Self { ops: [Op::Deref; MAX_OPS], len: 0 };

    /// Adds an operation; `None` if the expression is longer than any that is supported.
    pub fn push(&mut self, op: Op) -> Option<()> {
        *self.ops.get_mut(self.len)? = op;
        self.len = self.len.wrapping_add(1);
        Some(())
    }

    /// The operations.
    pub fn as_slice(&self) -> &[Op] {
        self.ops.get(..self.len).unwrap_or_default()
    }
}

/// The rule of a row for the CFA.
#[derive(Clone, Copy, Debug)]
pub enum RowCfa<'a> {
    /// A register and an offset.
    Register(Register, i64),
    /// An expression; `None` if not all of its operations are supported.
    Expression(Option<&'a Ops>),
}

/// The rule of a row for a register of the caller.
#[derive(Clone, Copy, Debug)]
pub enum RowRegister<'a> {
    /// No rule, or "unchanged".
    Same,
    /// The register has no value in the caller.
    Undefined,
    /// Saved at the CFA plus this offset.
    AtCfaPlus(i64),
    /// Saved at the address of an expression; `None` if not all of its operations are supported.
    AtExpression(Option<&'a Ops>),
    /// Any other rule.
    Other,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The rule for the CFA.
    pub cfa: RowCfa<'a>,
    /// The rule for the caller's frame pointer.
    pub fp: RowRegister<'a>,
    /// The rule for the return address.
    pub return_address: RowRegister<'a>,
    /// Whether the description is marked as that of a signal trampoline.
    pub is_signal_trampoline: bool,
}

/// Returns the rule of code that cannot be unwound further by call frame information.
const fn without_caller(cfa: CfaRule) -> UnwindRule {
    UnwindRule { cfa, fp: FpRule::Undefined, return_address: ReturnAddressRule::AtCfaPlus(0) }
}

/// The rule for rows that cannot be expressed.
pub const UNSUPPORTED: UnwindRule = without_caller(CfaRule::Unsupported);

impl Architecture {
    /// Returns the rule of `row`.
    pub fn rule(&self, row: &Row<'_>) -> UnwindRule {
        let cfa_ops = match row.cfa {
            RowCfa::Register(..) => &Ops::EMPTY,
            RowCfa::Expression(Some(ops)) => ops,
            RowCfa::Expression(None) => return UNSUPPORTED,
        };
        if row.is_signal_trampoline && (self.is_signal_frame)(cfa_ops.as_slice()) {
            return without_caller(CfaRule::SignalFrame);
        }
        let return_address = match row.return_address {
            RowRegister::Undefined => return without_caller(CfaRule::EndOfStack),
            RowRegister::AtCfaPlus(offset) => i32::try_from(offset).ok().map(ReturnAddressRule::AtCfaPlus),
            RowRegister::Same => self.unsaved_return_address,
            RowRegister::AtExpression(_) | RowRegister::Other => None,
        };
        let cfa = match row.cfa {
            RowCfa::Register(register, offset) => self.register_cfa(register, offset),
            RowCfa::Expression(_) => self.expression_cfa(cfa_ops.as_slice()),
        };
        match (cfa, return_address) {
            (Some(cfa), Some(return_address)) => UnwindRule { cfa, fp: self.fp_rule(row.fp), return_address },
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
