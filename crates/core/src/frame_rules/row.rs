//! One row of call frame information, in the form that both readers produce.

/// A DWARF register number.
pub type Register = u16;

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
pub struct RuleRow<'a> {
    /// The rule for the CFA.
    pub cfa: RowCfa<'a>,
    /// The rule for the caller's frame pointer.
    pub fp: RowRegister<'a>,
    /// The rule for the return address.
    pub return_address: RowRegister<'a>,
    /// Whether the description is marked as describing a signal trampoline.
    pub is_signal_trampoline: bool,
}
