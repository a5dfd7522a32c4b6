//! The instructions of a description, followed up to an address (DWARF 5, 6.4.2 and 7.24; LSB 5.0, 10.6.2).

use otlpprof_core::frame_rules::{Register, RowRegister, native};
use otlpprof_core::memory::Memory;

use self::opcode::*;
use super::description::Description;
use super::expression::Expression;
use super::reader::FrameInfoReader;

/// DWARF 5, table 7.29, and GNU's extensions (LSB 5.0, 10.6.2). The prefix `DW_CFA_` is left out.
mod opcode {
    pub(super) const NOP: u8 = 0x00;
    pub(super) const SET_LOC: u8 = 0x01;
    pub(super) const ADVANCE_LOC1: u8 = 0x02;
    pub(super) const ADVANCE_LOC2: u8 = 0x03;
    pub(super) const ADVANCE_LOC4: u8 = 0x04;
    pub(super) const OFFSET_EXTENDED: u8 = 0x05;
    pub(super) const RESTORE_EXTENDED: u8 = 0x06;
    pub(super) const UNDEFINED: u8 = 0x07;
    pub(super) const SAME_VALUE: u8 = 0x08;
    pub(super) const REGISTER: u8 = 0x09;
    pub(super) const REMEMBER_STATE: u8 = 0x0a;
    pub(super) const RESTORE_STATE: u8 = 0x0b;
    pub(super) const DEF_CFA: u8 = 0x0c;
    pub(super) const DEF_CFA_REGISTER: u8 = 0x0d;
    pub(super) const DEF_CFA_OFFSET: u8 = 0x0e;
    pub(super) const DEF_CFA_EXPRESSION: u8 = 0x0f;
    pub(super) const EXPRESSION: u8 = 0x10;
    pub(super) const OFFSET_EXTENDED_SF: u8 = 0x11;
    pub(super) const DEF_CFA_SF: u8 = 0x12;
    pub(super) const DEF_CFA_OFFSET_SF: u8 = 0x13;
    pub(super) const VAL_OFFSET: u8 = 0x14;
    pub(super) const VAL_OFFSET_SF: u8 = 0x15;
    pub(super) const VAL_EXPRESSION: u8 = 0x16;
    pub(super) const MIPS_ADVANCE_LOC8: u8 = 0x1d;
    pub(super) const GNU_WINDOW_SAVE: u8 = 0x2d;
    pub(super) const GNU_ARGS_SIZE: u8 = 0x2e;
    pub(super) const GNU_NEGATIVE_OFFSET_EXTENDED: u8 = 0x2f;
    /// The operand is in the lower six bits, as for `OFFSET` and `RESTORE`.
    pub(super) const ADVANCE_LOC: u8 = 0x40;
    pub(super) const OFFSET: u8 = 0x80;
    pub(super) const RESTORE: u8 = 0xc0;
}

/// The most instructions of one description: some nanoseconds each.
const MAX_INSTRUCTIONS: usize = 16 * 1024;

/// The most states that a program may remember. Compilers nest one state, rarely two.
const MAX_REMEMBERED: usize = 4;

/// The rule for the CFA. Expressions are read when the row is complete.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cfa {
    Register(Register, i64),
    Expression(Expression),
}

/// The rule for a register.
#[derive(Clone, Copy, Debug)]
pub(super) enum Saved {
    Same,
    Undefined,
    AtCfaPlus(i64),
    AtExpression(Expression),
    Other,
}

impl Saved {
    /// The rule as a column of a row, without an expression's operations.
    pub(super) const fn row<'a>(self) -> RowRegister<'a> {
        match self {
            Self::Same => RowRegister::Same,
            Self::Undefined => RowRegister::Undefined,
            Self::AtCfaPlus(offset) => RowRegister::AtCfaPlus(offset),
            Self::AtExpression(_) => RowRegister::AtExpression(None),
            Self::Other => RowRegister::Other,
        }
    }
}

/// A row with the columns that walks need.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) cfa: Cfa,
    pub(super) fp: Saved,
    pub(super) return_address: Saved,
    /// The column of the register that the caller asks for.
    pub(super) asked: Saved,
}

/// The row that holds at `pc`, with the column of the register `asked` if that is given. `None` if the
/// instructions cannot be followed up to `pc`.
#[inline(never)]
pub(super) fn state_at<M: Memory>(
    description: &Description<'_, M>,
    pc: u64,
    asked: Option<Register>,
) -> Option<State> {
    let same = Saved::Same;
    let state = State { cfa: Cfa::Register(0, 0), fp: same, return_address: same, asked: same };
    let mut run = Run {
        asked,
        description,
        state,
        initial: state,
        remembered: [None; MAX_REMEMBERED],
        depth: 0,
        left: MAX_INSTRUCTIONS,
    };
    run.follow(description.common.program, u64::MAX)?;
    run.initial = run.state;
    run.follow(description.program, pc)?;
    Some(run.state)
}

struct Run<'r, 'm, M> {
    asked: Option<Register>,
    description: &'r Description<'m, M>,
    state: State,
    /// The row that the CIE's instructions made.
    initial: State,
    remembered: [Option<State>; MAX_REMEMBERED],
    depth: usize,
    /// The number of instructions that may still be followed.
    left: usize,
}

impl<'m, M: Memory> Run<'_, 'm, M> {
    /// Follows `program` up to the first row that begins after `pc`.
    fn follow(&mut self, mut program: FrameInfoReader<'m, M>, pc: u64) -> Option<()> {
        let mut location = self.description.start;
        while !program.is_empty() {
            self.left = self.left.checked_sub(1)?;
            let opcode = program.byte()?;
            let low = u64::from(opcode & 0x3f);
            let advance = match opcode {
                ADVANCE_LOC..OFFSET => Some(low),
                OFFSET..RESTORE => {
                    let offset = self.factored(program.uleb()?)?;
                    self.save(low, Saved::AtCfaPlus(offset));
                    None
                }
                RESTORE.. => {
                    self.restore(low);
                    None
                }
                SET_LOC => {
                    let encoding = self.description.common.encoding;
                    location = program.pointer(encoding, 0).filter(|&next| next >= location)?;
                    Some(0)
                }
                ADVANCE_LOC1 => Some(program.byte()?.into()),
                ADVANCE_LOC2 => Some(program.half()?.into()),
                ADVANCE_LOC4 => Some(program.word()?.into()),
                MIPS_ADVANCE_LOC8 => Some(program.double()?),
                _ => {
                    self.instruction(opcode, &mut program)?;
                    None
                }
            };
            if let Some(advance) = advance {
                let bytes = advance.checked_mul(self.description.common.code_factor)?;
                location = location.checked_add(bytes)?;
                if location > pc {
                    return Some(());
                }
            }
        }
        Some(())
    }

    /// Follows an instruction that has no operand in its opcode and does not advance the location.
    fn instruction(&mut self, opcode: u8, program: &mut FrameInfoReader<'m, M>) -> Option<()> {
        match opcode {
            NOP => {}
            OFFSET_EXTENDED | OFFSET_EXTENDED_SF | GNU_NEGATIVE_OFFSET_EXTENDED => {
                let register = program.uleb()?;
                let offset = match opcode {
                    OFFSET_EXTENDED => self.factored(program.uleb()?)?,
                    OFFSET_EXTENDED_SF => self.factored_signed(program.sleb()?)?,
                    _ => self.factored(program.uleb()?)?.checked_neg()?,
                };
                self.save(register, Saved::AtCfaPlus(offset));
            }
            RESTORE_EXTENDED => {
                let register = program.uleb()?;
                self.restore(register);
            }
            UNDEFINED => self.save(program.uleb()?, Saved::Undefined),
            SAME_VALUE => self.save(program.uleb()?, Saved::Same),
            // The value is in another register, or is computed from the CFA.
            REGISTER | VAL_OFFSET | VAL_OFFSET_SF => {
                let register = program.uleb()?;
                // Only the operand's length matters, which does not depend on the sign.
                program.uleb()?;
                self.save(register, Saved::Other);
            }
            REMEMBER_STATE => {
                *self.remembered.get_mut(self.depth)? = Some(self.state);
                self.depth = self.depth.wrapping_add(1);
            }
            RESTORE_STATE => {
                self.depth = self.depth.checked_sub(1)?;
                self.state = (*self.remembered.get(self.depth)?)?;
            }
            DEF_CFA => {
                let register = Register::try_from(program.uleb()?).ok()?;
                self.state.cfa = Cfa::Register(register, i64::try_from(program.uleb()?).ok()?);
            }
            DEF_CFA_SF => {
                let register = Register::try_from(program.uleb()?).ok()?;
                self.state.cfa = Cfa::Register(register, self.factored_signed(program.sleb()?)?);
            }
            DEF_CFA_REGISTER => {
                let Cfa::Register(_, offset) = self.state.cfa else { return None };
                self.state.cfa = Cfa::Register(Register::try_from(program.uleb()?).ok()?, offset);
            }
            DEF_CFA_OFFSET | DEF_CFA_OFFSET_SF => {
                let Cfa::Register(register, _) = self.state.cfa else { return None };
                let offset = match opcode {
                    DEF_CFA_OFFSET => i64::try_from(program.uleb()?).ok()?,
                    _ => self.factored_signed(program.sleb()?)?,
                };
                self.state.cfa = Cfa::Register(register, offset);
            }
            DEF_CFA_EXPRESSION => {
                let len = program.uleb()?;
                self.state.cfa = Cfa::Expression(expression(program, len)?);
            }
            EXPRESSION | VAL_EXPRESSION => {
                let (register, len) = (program.uleb()?, program.uleb()?);
                let expression = expression(program, len)?;
                let is_location = opcode == EXPRESSION;
                self.save(register, if is_location { Saved::AtExpression(expression) } else { Saved::Other });
            }
            // Means SPARC's register windows, or on aarch64 signed return addresses, whose signatures walks
            // strip.
            GNU_WINDOW_SAVE => {}
            // The number of bytes of pushed arguments, which the CFA already includes.
            GNU_ARGS_SIZE => _ = program.uleb()?,
            _ => return None,
        }
        Some(())
    }

    fn factored(&self, offset: u64) -> Option<i64> {
        self.factored_signed(i64::try_from(offset).ok()?)
    }

    fn factored_signed(&self, offset: i64) -> Option<i64> {
        offset.checked_mul(self.description.common.data_factor)
    }

    fn save(&mut self, register: u64, saved: Saved) {
        self.set(register, State { fp: saved, return_address: saved, asked: saved, ..self.state });
    }

    fn restore(&mut self, register: u64) {
        self.set(register, self.initial);
    }

    /// Copies the register's column from `row`.
    fn set(&mut self, register: u64, row: State) {
        if register == u64::from(native::ARCHITECTURE.fp) {
            self.state.fp = row.fp;
        } else if register == u64::from(native::ARCHITECTURE.return_address) {
            self.state.return_address = row.return_address;
        }
        if self.asked.is_some_and(|asked| register == u64::from(asked)) {
            self.state.asked = row.asked;
        }
    }
}

fn expression<M: Memory>(program: &mut FrameInfoReader<'_, M>, len: u64) -> Option<Expression> {
    Some(Expression { at: program.block(len)?.at, len })
}
