//! Code without call frame information, on x86_64: its effects on the stack pointer up to its return show
//! where the return address is.
//!
//! On each path to a return a function removes the same data from the stack. So one path is enough, and a
//! short one is chosen: forward jumps are taken, and loops are left.
//!
//! The stack while the path is followed:
//!
//! ```text
//!   higher addresses
//! ├──────────────────┤
//! │ return address   │ ← SP at the return
//! │ caller's RBP     │   pushed before the interruption: popped from memory
//! │ room             │ ← SP at the interruption
//! ├──────────────────┤
//! │ RBP              │   pushed on the path, not in memory yet: popped, RBP keeps its value
//! │ room             │ ← SP on the path
//! └──────────────────┘
//!   lower addresses
//! ```

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::instructions::{MAX_BYTES, length};
use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;

/// The most instructions that are followed on all paths together. Unrolled loops have hundreds.
const MAX_INSTRUCTIONS: usize = 1024;
/// The most alternatives of branches that are remembered.
const MAX_BRANCHES: usize = 12;
/// The most jumps back that are followed.
const MAX_JUMPS_BACK: usize = 8;

const RSP: u8 = 4;
const RBP: u8 = 5;
const RAX_TO_DWARF: [u8; 8] = [0, 2, 1, 3, 7, 6, 4, 5];

/// The position on the path, and the register values there.
#[derive(Clone, Copy)]
struct State {
    pc: u64,
    sp: u64,
    fp: u64,
    /// A register to which the code has copied the stack pointer on the path, and its value.
    keeper: Option<(u8, u64)>,
}

/// The state after an instruction.
enum Next {
    /// The code continues at one place: the next instruction, or another in the function.
    Here(State),
    /// The code continues at either place. The first one is tried first.
    Either(State, State),
    /// The code returns: the return address is at SP, and FP has the caller's value.
    Returned(State),
    /// The path cannot be followed.
    Lost,
}

impl<M: Memory> Walk<'_, M> {
    /// The frame to which the code at `cursor` returns. `known` are the registers there, if the thread was
    /// interrupted there. `is_inside` says whether an address is in the same code: a jump out of it is a tail
    /// call, whose callee returns to the caller. The result must be checked.
    #[inline(never)] // Few frames need this, and a handler's stack may be small.
    pub(in crate::walk) fn way_out(
        &self,
        cursor: &Cursor,
        known: Option<&Registers>,
        is_inside: impl Fn(u64) -> bool,
    ) -> Option<Cursor> {
        let mut state = State { pc: cursor.pc, sp: cursor.sp, fp: cursor.fp, keeper: None };
        let mut branches = [state; MAX_BRANCHES];
        let mut branch_count = 0_usize;
        let mut jumps_back = 0_usize;
        let cost = self.cost_of_instruction(cursor.pc);
        for _ in 0..MAX_INSTRUCTIONS {
            self.instructions_left.set(self.instructions_left.get().checked_sub(cost)?);
            let next = self.follow(&state, cursor, known, &is_inside);
            let next = match next {
                // A loop without an end of its own: it is left by one of its branches.
                Next::Here(next) if next.pc < state.pc => {
                    jumps_back = jumps_back.wrapping_add(1);
                    (jumps_back <= MAX_JUMPS_BACK).then_some(next)
                }
                Next::Here(next) => Some(next),
                Next::Either(first, second) => {
                    if let Some(branch) = branches.get_mut(branch_count) {
                        *branch = second;
                        branch_count = branch_count.wrapping_add(1);
                    }
                    Some(first)
                }
                Next::Returned(State { sp, fp, .. }) => {
                    let pc = self.memory.load_u64(sp)?;
                    let caller = Cursor { pc, sp: sp.wrapping_add(8), fp, interrupted: false };
                    return self.check_progress(cursor, caller).ok();
                }
                Next::Lost => None,
            };
            state = match next {
                Some(next) => next,
                None => {
                    branch_count = branch_count.checked_sub(1)?;
                    *branches.get(branch_count)?
                }
            };
        }
        None
    }

    /// The frame that the code of `blob` returns to, if its PC can be a return address.
    pub(super) fn way_out_of_blob(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Option<Cursor> {
        let code = self.code_of(vm, blob)?;
        let caller = self.way_out(cursor, Some(registers), |pc| code.contains(pc))?;
        self.is_return_address(vm, caller.pc).then_some(caller)
    }

    fn follow(
        &self,
        state: &State,
        start: &Cursor,
        known: Option<&Registers>,
        is_inside: impl Fn(u64) -> bool,
    ) -> Next {
        let Some(code) = self.instruction(state.pc) else { return Next::Lost };
        let Some(length) = length(&code) else { return Next::Lost };
        let following = State { pc: state.pc.wrapping_add(length as u64), ..*state };
        let jump = |distance: i32| following.pc.wrapping_add_signed(i64::from(distance));
        if let Some(distance) = branch_distance(&code) {
            let target = State { pc: jump(distance), ..*state };
            return match () {
                () if !is_inside(target.pc) => Next::Here(following),
                () if distance >= 0 => Next::Either(target, following),
                () => Next::Either(following, target),
            };
        }
        if let [0xe8, a, b, c, d, ..] = code
            && self.traps_at_once(jump(i32::from_le_bytes([a, b, c, d])))
        {
            return Next::Lost;
        }
        let to = match code {
            [0xe9, a, b, c, d, ..] => Some(i32::from_le_bytes([a, b, c, d])),
            [0xeb, distance, ..] => Some(i32::from(distance as i8)),
            _ => None,
        };
        match (to.map(jump), code) {
            (Some(target), _) if is_inside(target) => Next::Here(State { pc: target, ..*state }),
            (Some(_), _) => Next::Returned(*state),
            // ret; ret that drops arguments; jmp [rip + distance]
            (_, [0xc3 | 0xc2, ..] | [0xf3, 0xc3, ..] | [0xff, 0x25, ..] | [0xf2, 0xff, 0x25, ..]) => {
                Next::Returned(*state)
            }
            // Any other jump through a register or memory.
            (_, [0xff, to, ..] | [0x40..=0x4f | 0x3e | 0xf2, 0xff, to, ..]) if to & 0x30 == 0x20 => {
                Next::Lost
            }
            _ => self.changed(&following, &code, start, known).map_or(Next::Lost, Next::Here),
        }
    }

    /// Whether the function at `pc` never returns: it begins with `hlt` or `ud2`, after an `endbr64`. A call
    /// of it may be the last instruction of a function, so the code after the call may belong to another
    /// function. Such is musl's `__stack_chk_fail` (src/env/__stack_chk_fail.c), to which many functions
    /// branch at their end.
    fn traps_at_once(&self, pc: u64) -> bool {
        const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
        let Some(code) = self.instruction(pc) else { return false };
        let first = code.strip_prefix(&ENDBR64).unwrap_or(&code);
        matches!(first, [0xf4, ..] | [0x0f, 0x0b, ..])
    }

    /// Applies an instruction that does not jump; `None` if SP is not known after it.
    fn changed(
        &self,
        state: &State,
        code: &[u8; MAX_BYTES],
        start: &Cursor,
        known: Option<&Registers>,
    ) -> Option<State> {
        let State { sp, fp, .. } = *state;
        let constant = |at: usize| Some(i64::from(i32::from_le_bytes(*code.get(at..)?.first_chunk()?)));
        let (sp, fp) = match *code {
            // push register, flags or constant; push [..]
            [0x50..=0x57 | 0x9c | 0x68 | 0x6a, ..] | [0x40..=0x4f, 0x50..=0x57, ..] => (plus(sp, -8), fp),
            [0xff, operand, ..] | [0x40..=0x4f, 0xff, operand, ..] if operand & 0x38 == 0x30 => {
                (plus(sp, -8), fp)
            }
            // pop rbp
            [0x5d, ..] => (plus(sp, 8), self.word_before(start, sp).unwrap_or(fp)),
            // pop register or flags; pop [..]
            [0x58..=0x5f | 0x9d | 0x8f, ..] | [0x40..=0x4f, 0x58..=0x5f | 0x8f, ..] => (plus(sp, 8), fp),
            // leave: mov rsp, rbp; pop rbp
            [0xc9, ..] => (plus(fp, 8), self.word_before(start, fp).unwrap_or(fp)),
            // add rsp, constant
            [0x48, 0x83, 0xc4, bytes, ..] => (plus(sp, (bytes as i8).into()), fp),
            [0x48, 0x81, 0xc4, ..] => (plus(sp, constant(3)?), fp),
            // sub rsp, constant
            [0x48, 0x83, 0xec, bytes, ..] => (plus(sp, i64::from(bytes as i8).wrapping_neg()), fp),
            [0x48, 0x81, 0xec, ..] => (plus(sp, constant(3)?.wrapping_neg()), fp),
            // and rsp, constant
            [0x48, 0x83, 0xe4, mask, ..] => (sp & i64::from(mask as i8) as u64, fp),
            [0x48, 0x81, 0xe4, ..] => (sp & constant(3)? as u64, fp),
            // sub rsp, register; add rsp, register: the register's value is not known.
            [0x48 | 0x4c, 0x29 | 0x01, operand, ..] if operand & 0xc7 == 0xc0 | RSP => return None,
            [0x48 | 0x49, 0x2b | 0x03, operand, ..] if operand & 0xf8 == 0xe0 => return None,
            // mov and lea
            [rex @ 0x48..=0x4f, opcode @ (0x89 | 0x8b | 0x8d), operand, ..] => {
                return self.moved(state, code, (rex, opcode, operand), start, known);
            }
            _ => (sp, fp),
        };
        Some(State { sp, fp, ..*state })
    }

    /// Applies `mov` between registers or from memory, or `lea`.
    fn moved(
        &self,
        state: &State,
        code: &[u8; MAX_BYTES],
        (rex, opcode, operand): (u8, u8, u8),
        start: &Cursor,
        known: Option<&Registers>,
    ) -> Option<State> {
        let (mode, middle, low) = (operand >> 6, operand >> 3 & 7, operand & 7);
        let (middle, low) = (middle | (rex & 4) << 1, low | (rex & 1) << 3);
        let address = || {
            let (base, distance) = address(code, mode, low)?;
            Some(plus(state.register(base, known)?, distance))
        };
        match (opcode, mode) {
            // mov low, middle
            (0x89, 3) => state.assign(low, state.register(middle, known), middle == RSP),
            // mov middle, low
            (0x8b, 3) => state.assign(middle, state.register(low, known), low == RSP),
            // mov middle, [..]
            (0x8b, _) => {
                let word = address().and_then(|address| self.word_before(start, address));
                state.assign(middle, word, false)
            }
            // lea middle, [..]
            (0x8d, _) => state.assign(middle, address(), low == RSP),
            // mov [..], middle
            _ => Some(*state),
        }
    }

    /// The word at an address, if it was on the stack already when the code was interrupted.
    fn word_before(&self, start: &Cursor, address: u64) -> Option<u64> {
        self.memory.load_u64(address).filter(|_| address >= start.sp)
    }
}

impl State {
    /// The value of a register, by its number in instructions. `known` are the registers at the interruption.
    fn register(&self, number: u8, known: Option<&Registers>) -> Option<u64> {
        match (number, self.keeper) {
            (RSP, _) => Some(self.sp),
            (RBP, _) => Some(self.fp),
            (_, Some((keeper, sp))) if keeper == number => Some(sp),
            _ => {
                let dwarf = RAX_TO_DWARF.get(usize::from(number)).copied().unwrap_or(number);
                known?.by_dwarf_number(dwarf)
            }
        }
    }

    /// The state after the register `to` has got a value, which may not be known. `is_of_sp`: the value is
    /// made of SP.
    fn assign(&self, to: u8, value: Option<u64>, is_of_sp: bool) -> Option<Self> {
        match to {
            RSP => Some(Self { sp: value?, ..*self }),
            RBP => Some(Self { fp: value.unwrap_or(self.fp), ..*self }),
            keeper if is_of_sp && self.keeper.is_none() => {
                Some(Self { keeper: value.map(|sp| (keeper, sp)), ..*self })
            }
            _ => Some(*self),
        }
    }
}

fn plus(value: u64, bytes: i64) -> u64 {
    value.wrapping_add_signed(bytes)
}

/// The base register and distance of an operand in memory, after a prefix and an opcode of one byte each.
/// `None` if the operand has an index or no base.
fn address(code: &[u8; MAX_BYTES], mode: u8, low: u8) -> Option<(u8, i64)> {
    let distance_at = match low & 7 {
        // A SIB byte of 0x24 means a base without an index.
        RSP if code.get(3) == Some(&0x24) && low == RSP => 4,
        RSP => return None,
        _ => 3,
    };
    match mode {
        0 if low & 7 != RBP => Some((low, 0)),
        1 => Some((low, i64::from(*code.get(distance_at)? as i8))),
        2 => Some((low, i64::from(i32::from_le_bytes(*code.get(distance_at..)?.first_chunk()?)))),
        _ => None,
    }
}

/// The distance of a branch in bytes, counted from the next instruction.
fn branch_distance(code: &[u8; MAX_BYTES]) -> Option<i32> {
    match *code {
        [0x70..=0x7f | 0xe0..=0xe3, distance, ..] => Some(i32::from(distance as i8)),
        [0x0f, 0x80..=0x8f, a, b, c, d, ..] => Some(i32::from_le_bytes([a, b, c, d])),
        // Branches with hint prefixes, which compilers once used.
        [0x2e | 0x3e, 0x70..=0x7f, distance, ..] => Some(i32::from(distance as i8)),
        _ => None,
    }
}
