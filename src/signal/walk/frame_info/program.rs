//! The instructions of a description, followed up to an address (DWARF 5, 6.4.2 and 7.24; LSB 5.0, 10.6.2).

use super::description::Description;
use super::expression::Expression;
use super::reader::Reader;
use crate::core::frame_rules::{Register, RowRegister, native};
use crate::core::memory::Memory;

/// The most instructions of one description: some nanoseconds each.
const MAX_INSTRUCTIONS: usize = 16 * 1024;

/// States that a program may remember. Compilers nest one, rarely two.
const MAX_REMEMBERED: usize = 4;

/// How the CFA is found. Expressions are read when the row is complete.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cfa {
    Register(Register, i64),
    Expression(Expression),
}

/// How a register is found.
#[derive(Clone, Copy, Debug)]
pub(super) enum Saved {
    Same,
    Undefined,
    AtCfaPlus(i64),
    AtExpression(Expression),
    Other,
}

impl Saved {
    /// Without the operations of an expression.
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

/// A row, of the columns that walks need.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) cfa: Cfa,
    pub(super) fp: Saved,
    pub(super) return_address: Saved,
}

/// The row that holds at `pc`; `None` if the instructions cannot be followed so far.
#[inline(never)]
pub(super) fn state_at<M: Memory>(description: &Description<'_, M>, pc: u64) -> Option<State> {
    let state = State { cfa: Cfa::Register(0, 0), fp: Saved::Same, return_address: Saved::Same };
    let mut run = Run {
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
    description: &'r Description<'m, M>,
    state: State,
    /// What the CIE's instructions made.
    initial: State,
    remembered: [Option<State>; MAX_REMEMBERED],
    depth: usize,
    /// Instructions that may still be followed.
    left: usize,
}

impl<'m, M: Memory> Run<'_, 'm, M> {
    /// Follows `program` until a row begins behind `pc`.
    fn follow(&mut self, mut program: Reader<'m, M>, pc: u64) -> Option<()> {
        let mut location = self.description.start;
        while !program.is_empty() {
            self.left = self.left.checked_sub(1)?;
            let opcode = program.byte()?;
            let low = u64::from(opcode & 0x3f);
            let advance = match opcode {
                0x40..=0x7f => Some(low),
                0x80..=0xbf => {
                    let offset = self.factored(program.uleb()?)?;
                    self.save(low, Saved::AtCfaPlus(offset));
                    None
                }
                0xc0..=0xff => {
                    self.restore(low);
                    None
                }
                0x01 => {
                    let encoding = self.description.common.encoding;
                    location = program.pointer(encoding, 0).filter(|&next| next >= location)?;
                    Some(0)
                }
                0x02 => Some(program.byte()?.into()),
                0x03 => Some(program.half()?.into()),
                0x04 => Some(program.word()?.into()),
                0x1d => Some(program.double()?),
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

    /// An instruction without operands in its opcode that does not advance the location.
    fn instruction(&mut self, opcode: u8, program: &mut Reader<'m, M>) -> Option<()> {
        match opcode {
            0x00 => {}
            // DW_CFA_offset_extended, _sf, and GNU's negative one.
            0x05 | 0x11 | 0x2f => {
                let register = program.uleb()?;
                let offset = match opcode {
                    0x05 => self.factored(program.uleb()?)?,
                    0x11 => self.factored_signed(program.sleb()?)?,
                    _ => self.factored(program.uleb()?)?.checked_neg()?,
                };
                self.save(register, Saved::AtCfaPlus(offset));
            }
            0x06 => {
                let register = program.uleb()?;
                self.restore(register);
            }
            0x07 => self.save(program.uleb()?, Saved::Undefined),
            0x08 => self.save(program.uleb()?, Saved::Same),
            // In another register; a value that is computed from the CFA.
            0x09 | 0x14 | 0x15 => {
                let register = program.uleb()?;
                // Its length alone is of interest, and does not depend on the sign.
                program.uleb()?;
                self.save(register, Saved::Other);
            }
            0x0a => {
                *self.remembered.get_mut(self.depth)? = Some(self.state);
                self.depth = self.depth.wrapping_add(1);
            }
            0x0b => {
                self.depth = self.depth.checked_sub(1)?;
                self.state = (*self.remembered.get(self.depth)?)?;
            }
            0x0c => {
                let register = Register::try_from(program.uleb()?).ok()?;
                self.state.cfa = Cfa::Register(register, i64::try_from(program.uleb()?).ok()?);
            }
            0x12 => {
                let register = Register::try_from(program.uleb()?).ok()?;
                self.state.cfa = Cfa::Register(register, self.factored_signed(program.sleb()?)?);
            }
            0x0d => {
                let Cfa::Register(_, offset) = self.state.cfa else { return None };
                self.state.cfa = Cfa::Register(Register::try_from(program.uleb()?).ok()?, offset);
            }
            0x0e | 0x13 => {
                let Cfa::Register(register, _) = self.state.cfa else { return None };
                let offset = match opcode {
                    0x0e => i64::try_from(program.uleb()?).ok()?,
                    _ => self.factored_signed(program.sleb()?)?,
                };
                self.state.cfa = Cfa::Register(register, offset);
            }
            0x0f => {
                let len = program.uleb()?;
                self.state.cfa = Cfa::Expression(expression(program, len)?);
            }
            0x10 | 0x16 => {
                let (register, len) = (program.uleb()?, program.uleb()?);
                let expression = expression(program, len)?;
                let is_location = opcode == 0x10;
                self.save(register, if is_location { Saved::AtExpression(expression) } else { Saved::Other });
            }
            // The register windows of SPARC, and the signing of aarch64's return addresses, which walks strip.
            0x2d => {}
            // How many bytes of arguments have been pushed: the CFA knows.
            0x2e => _ = program.uleb()?,
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
        if register == u64::from(native::ARCHITECTURE.fp) {
            self.state.fp = saved;
        } else if register == u64::from(native::ARCHITECTURE.return_address) {
            self.state.return_address = saved;
        }
    }

    fn restore(&mut self, register: u64) {
        if register == u64::from(native::ARCHITECTURE.fp) {
            self.state.fp = self.initial.fp;
        } else if register == u64::from(native::ARCHITECTURE.return_address) {
            self.state.return_address = self.initial.return_address;
        }
    }
}

fn expression<M: Memory>(program: &mut Reader<'_, M>, len: u64) -> Option<Expression> {
    Some(Expression { at: program.block(len)?.at, len })
}
