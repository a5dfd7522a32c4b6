//! Converts one row in gimli's form to one [`UnwindRule`].

use gimli::{
    CommonInformationEntry, Register, RegisterRule, UnwindExpression, UnwindSection, UnwindTableRow,
};

use otlpprof_core::frame_rules::{Architecture, Op, Ops, RowCfa, RowRegister, RuleRow};
use otlpprof_core::unwind_rule::UnwindRule;

use super::parser_types::{Bytes, Storage};

/// The rule of `row`.
pub fn translate<'a, S: UnwindSection<Bytes<'a>>>(
    architecture: &Architecture,
    section: &S,
    cie: &CommonInformationEntry<Bytes<'a>>,
    row: &UnwindTableRow<usize, Storage>,
) -> UnwindRule {
    let ops = |expression: &UnwindExpression<usize>| read_ops(section, cie, expression);
    let (cfa_ops, fp_ops);
    let cfa = match row.cfa() {
        &gimli::CfaRule::RegisterAndOffset { register, offset } => RowCfa::Register(register.0, offset),
        gimli::CfaRule::Expression(expression) => {
            cfa_ops = ops(expression);
            RowCfa::Expression(cfa_ops.as_ref())
        }
    };
    let fp = row.register(Register(architecture.fp));
    fp_ops = match &fp {
        Some(RegisterRule::Expression(expression)) => ops(expression),
        _ => None,
    };
    architecture.rule(&RuleRow {
        cfa,
        fp: register(fp, fp_ops.as_ref()),
        return_address: register(row.register(Register(architecture.return_address)), None),
        is_signal_trampoline: cie.is_signal_trampoline(),
    })
}

fn register(rule: Option<RegisterRule<usize>>, ops: Option<&Ops>) -> RowRegister<'_> {
    match rule {
        None | Some(RegisterRule::SameValue) => RowRegister::Same,
        Some(RegisterRule::Undefined) => RowRegister::Undefined,
        Some(RegisterRule::Offset(offset)) => RowRegister::AtCfaPlus(offset),
        Some(RegisterRule::Expression(_)) => RowRegister::AtExpression(ops),
        Some(_) => RowRegister::Other,
    }
}

/// The operations of an expression; `None` if one of them is unknown, or there are too many.
fn read_ops<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    cie: &CommonInformationEntry<Bytes<'a>>,
    expression: &UnwindExpression<usize>,
) -> Option<Ops> {
    let expression = expression.get(section).ok()?;
    let mut operations = expression.operations(cie.encoding());
    let mut ops = Ops::EMPTY;
    while let Some(operation) = operations.next().ok()? {
        ops.push(known(&operation)?)?;
    }
    Some(ops)
}

fn known(operation: &gimli::Operation<Bytes<'_>>) -> Option<Op> {
    use gimli::Operation;
    Some(match *operation {
        Operation::RegisterOffset { register, offset, base_type: gimli::UnitOffset(0) } => {
            Op::RegisterPlus(register.0, offset)
        }
        Operation::UnsignedConstant { value } => Op::Constant(value),
        Operation::SignedConstant { value } => Op::Constant(u64::try_from(value).ok()?),
        Operation::PlusConstant { value } => Op::PlusConstant(value),
        Operation::Deref { base_type: gimli::UnitOffset(0), size: 8, space: false } => Op::Deref,
        Operation::And => Op::And,
        Operation::Ge => Op::Ge,
        Operation::Plus => Op::Plus,
        Operation::Mul => Op::Multiply,
        Operation::Shl => Op::Shl,
        _ => return None,
    })
}
