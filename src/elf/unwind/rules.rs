//! One row of call frame information to one [`UnwindRule`].

use gimli::{
    CommonInformationEntry, Register, RegisterRule, UnwindExpression, UnwindSection, UnwindTableRow,
};

use super::compile::{Bytes, Storage};
use crate::core::unwind::{CfaRule, FpRule, ReturnAddressRule, UnwindRule};

/// What differs between architectures.
#[derive(Clone, Copy, Debug)]
pub struct Architecture {
    /// The frame pointer.
    pub fp: Register,
    /// The stack pointer.
    pub sp: Register,
    /// The column that callers are found by, for the rows that use it.
    pub return_address: Register,
    /// What it means that a row has no rule for the return address.
    pub unsaved_return_address: Option<ReturnAddressRule>,
    /// CFA expressions that only this architecture has.
    pub special_cfa: fn(&[Op]) -> Option<CfaRule>,
    /// Whether a frame marked as a signal trampoline, with this CFA expression (empty if it has none), is the
    /// kernel's.
    pub is_signal_frame: fn(&[Op]) -> bool,
}

/// The operations of the expressions that are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Pushes register + offset.
    RegisterPlus(Register, i64),
    /// Pushes a constant.
    Constant(u64),
    /// Adds a constant.
    PlusConstant(u64),
    /// Loads a word of the machine.
    Deref,
    /// Bitwise and.
    And,
    /// Signed comparison.
    Ge,
    /// Addition.
    Plus,
    /// Left shift.
    Shl,
}

/// A rule for code that cannot be unwound further, and says so.
const fn without_caller(cfa: CfaRule) -> UnwindRule {
    UnwindRule { cfa, fp: FpRule::Undefined, return_address: ReturnAddressRule::AtCfaPlus(0) }
}

/// A rule that this table cannot express.
pub const UNSUPPORTED: UnwindRule = without_caller(CfaRule::Unsupported);

/// The rule of `row`.
pub fn translate<'a, S: UnwindSection<Bytes<'a>>>(
    architecture: &Architecture,
    section: &S,
    cie: &CommonInformationEntry<Bytes<'a>>,
    row: &UnwindTableRow<usize, Storage>,
) -> UnwindRule {
    let cfa_ops = match row.cfa() {
        gimli::CfaRule::RegisterAndOffset { .. } => Some(Vec::new()),
        gimli::CfaRule::Expression(expression) => read_ops(section, cie, expression),
    };
    let Some(cfa_ops) = cfa_ops else { return UNSUPPORTED };
    if cie.is_signal_trampoline() && (architecture.is_signal_frame)(&cfa_ops) {
        return without_caller(CfaRule::SignalFrame);
    }
    let return_address = match row.register(architecture.return_address) {
        Some(RegisterRule::Undefined) => return without_caller(CfaRule::EndOfStack),
        Some(RegisterRule::Offset(offset)) => i32::try_from(offset).ok().map(ReturnAddressRule::AtCfaPlus),
        None | Some(RegisterRule::SameValue) => architecture.unsaved_return_address,
        Some(_) => None,
    };
    let cfa = match row.cfa() {
        &gimli::CfaRule::RegisterAndOffset { register, offset } => {
            register_cfa(architecture, register, offset)
        }
        gimli::CfaRule::Expression(_) => expression_cfa(architecture, &cfa_ops),
    };
    match (cfa, return_address) {
        (Some(cfa), Some(return_address)) => {
            UnwindRule { cfa, fp: fp_rule(architecture, section, cie, row), return_address }
        }
        _ => UNSUPPORTED,
    }
}

fn register_cfa(architecture: &Architecture, register: Register, offset: i64) -> Option<CfaRule> {
    let offset = i32::try_from(offset).ok()?;
    Some(if register == architecture.sp {
        CfaRule::SpPlus(offset)
    } else if register == architecture.fp {
        CfaRule::FpPlus(offset)
    } else {
        CfaRule::RegisterPlus(u8::try_from(register.0).ok()?, offset)
    })
}

fn expression_cfa(architecture: &Architecture, ops: &[Op]) -> Option<CfaRule> {
    let (register, at, offset) = match *ops {
        [Op::RegisterPlus(register, at), Op::Deref] => (register, at, 0),
        [Op::RegisterPlus(register, at), Op::Deref, Op::PlusConstant(offset)]
        | [Op::RegisterPlus(register, at), Op::Deref, Op::Constant(offset), Op::Plus] => {
            (register, at, offset)
        }
        [Op::RegisterPlus(register, offset)] => return register_cfa(architecture, register, offset),
        _ => return (architecture.special_cfa)(ops),
    };
    let (at, offset) = (i16::try_from(at).ok()?, i16::try_from(offset).ok()?);
    if register == architecture.fp {
        Some(CfaRule::FpDeref { at, offset })
    } else if register == architecture.sp {
        Some(CfaRule::SpDeref { at, offset })
    } else {
        None
    }
}

/// A frame pointer that cannot be followed costs the caller's frame pointer alone.
fn fp_rule<'a, S: UnwindSection<Bytes<'a>>>(
    architecture: &Architecture,
    section: &S,
    cie: &CommonInformationEntry<Bytes<'a>>,
    row: &UnwindTableRow<usize, Storage>,
) -> FpRule {
    let rule = match row.register(architecture.fp) {
        None | Some(RegisterRule::SameValue) => Some(FpRule::Same),
        Some(RegisterRule::Offset(offset)) => i32::try_from(offset).ok().map(FpRule::AtCfaPlus),
        Some(RegisterRule::Expression(expression)) => match read_ops(section, cie, &expression).as_deref() {
            Some(&[Op::RegisterPlus(register, offset)]) if register == architecture.fp => {
                i32::try_from(offset).ok().map(FpRule::AtFpPlus)
            }
            _ => None,
        },
        Some(_) => None,
    };
    rule.unwrap_or(FpRule::Undefined)
}

/// The longest expression that is understood.
const MAX_OPS: usize = 9;

/// The operations of an expression; `None` if not all of them are known.
fn read_ops<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    cie: &CommonInformationEntry<Bytes<'a>>,
    expression: &UnwindExpression<usize>,
) -> Option<Vec<Op>> {
    let expression = expression.get(section).ok()?;
    let mut operations = expression.operations(cie.encoding());
    let mut ops = Vec::new();
    while let Some(operation) = operations.next().ok()? {
        if ops.len() == MAX_OPS {
            return None;
        }
        ops.push(known(&operation)?);
    }
    Some(ops)
}

fn known(operation: &gimli::Operation<Bytes<'_>>) -> Option<Op> {
    use gimli::Operation;
    Some(match *operation {
        Operation::RegisterOffset { register, offset, base_type: gimli::UnitOffset(0) } => {
            Op::RegisterPlus(register, offset)
        }
        Operation::UnsignedConstant { value } => Op::Constant(value),
        Operation::SignedConstant { value } => Op::Constant(u64::try_from(value).ok()?),
        Operation::PlusConstant { value } => Op::PlusConstant(value),
        Operation::Deref { base_type: gimli::UnitOffset(0), size: 8, space: false } => Op::Deref,
        Operation::And => Op::And,
        Operation::Ge => Op::Ge,
        Operation::Plus => Op::Plus,
        Operation::Shl => Op::Shl,
        _ => return None,
    })
}
