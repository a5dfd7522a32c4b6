//! The operations of the expressions that compilers and linkers write.

use otlpprof_core::frame_rules::{Op, Ops, Register};
use otlpprof_core::memory::Memory;

use super::reader::FrameInfoReader;

/// The location of an expression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expression {
    /// Run-time address of its first byte.
    pub(super) at: u64,
    pub(super) len: u64,
}

/// Reads the operations; `None` if not all of them are known. Opcodes: DWARF 5, 7.7.1, table 7.9.
pub(super) fn read_ops<M: Memory>(memory: &M, expression: Expression, ops: &mut Ops) -> Option<()> {
    let mut expression = FrameInfoReader::new(memory, expression.at, expression.len)?;
    while !expression.is_empty() {
        ops.push(read_op(&mut expression)?)?;
    }
    Some(())
}

fn read_op<M: Memory>(expression: &mut FrameInfoReader<'_, M>) -> Option<Op> {
    let constant = |value: i64| u64::try_from(value).ok().map(Op::Constant);
    match expression.byte()? {
        0x06 => Some(Op::Deref),
        0x08 => expression.byte().map(|value| Op::Constant(value.into())),
        0x09 => expression.byte().and_then(|value| constant((value as i8).into())),
        0x0a => expression.half().map(|value| Op::Constant(value.into())),
        0x0b => expression.half().and_then(|value| constant((value as i16).into())),
        0x0c => expression.word().map(|value| Op::Constant(value.into())),
        0x0d => expression.word().and_then(|value| constant((value as i32).into())),
        0x0e => expression.double().map(Op::Constant),
        0x0f => expression.double().and_then(|value| constant(value as i64)),
        0x10 => expression.uleb().map(Op::Constant),
        0x11 => expression.sleb().and_then(constant),
        0x1a => Some(Op::And),
        0x1e => Some(Op::Multiply),
        0x22 => Some(Op::Plus),
        0x23 => expression.uleb().map(Op::PlusConstant),
        0x24 => Some(Op::Shl),
        0x2a => Some(Op::Ge),
        literal @ 0x30..=0x4f => Some(Op::Constant(u64::from(literal.wrapping_sub(0x30)))),
        register @ 0x70..=0x8f => {
            let register = Register::from(register.wrapping_sub(0x70));
            expression.sleb().map(|offset| Op::RegisterPlus(register, offset))
        }
        0x92 => {
            let register = Register::try_from(expression.uleb()?).ok()?;
            expression.sleb().map(|offset| Op::RegisterPlus(register, offset))
        }
        _ => None,
    }
}
