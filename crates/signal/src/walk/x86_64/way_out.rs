//! Code without call frame information, on x86_64: its effects on the stack pointer up to its return show
//! where the return address is.
//!
//! On each path to a return a function removes the same data from the stack. So one path is enough, and a
//! short one is chosen: forward jumps are taken, and loops are left.

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
    /// The code returns: the return address is at SP, and FP is the caller's.
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
    /// of it may be the last instruction of a function, so the code after the call is another function's.
    /// Such is musl's `__stack_chk_fail` (src/env/__stack_chk_fail.c), to which many functions branch at
    /// their end.
    fn traps_at_once(&self, pc: u64) -> bool {
        const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
        let Some(code) = self.instruction(pc) else { return false };
        let first = code.strip_prefix(&ENDBR64).unwrap_or(&code);
        matches!(first, [0xf4, ..] | [0x0f, 0x0b, ..])
    }

    /// Applies an instruction that does not jump.
    fn changed(
        &self,
        state: &State,
        code: &[u8; MAX_BYTES],
        start: &Cursor,
        known: Option<&Registers>,
    ) -> Option<State> {
        let plus = |bytes: i64| Some(State { sp: state.sp.wrapping_add_signed(bytes), ..*state });
        // A word that was on the stack already when the code was interrupted.
        let word = |address: u64| self.memory.load_u64(address).filter(|_| address >= start.sp);
        let register = |number: u8| match (number, state.keeper) {
            (RSP, _) => Some(state.sp),
            (RBP, _) => Some(state.fp),
            (_, Some((keeper, sp))) if keeper == number => Some(sp),
            _ => {
                let dwarf = RAX_TO_DWARF.get(usize::from(number)).copied().unwrap_or(number);
                known?.by_dwarf_number(dwarf)
            }
        };
        let constant = |at: usize| Some(i64::from(i32::from_le_bytes(*code.get(at..)?.first_chunk()?)));
        match *code {
            [0x50..=0x57 | 0x9c | 0x68 | 0x6a, ..] | [0x40..=0x4f, 0x50..=0x57, ..] => plus(-8),
            // pop rbp: a word below the first SP was pushed on the path, and RBP keeps its value in `state`.
            [0x5d, ..] => {
                let fp = word(state.sp).unwrap_or(state.fp);
                Some(State { fp, sp: state.sp.wrapping_add(8), ..*state })
            }
            [0x58..=0x5f | 0x9d, ..] | [0x40..=0x4f, 0x58..=0x5f, ..] => plus(8),
            // push [..]; pop [..]
            [0xff, operand, ..] | [0x40..=0x4f, 0xff, operand, ..] if operand & 0x38 == 0x30 => plus(-8),
            [0x8f, ..] | [0x40..=0x4f, 0x8f, ..] => plus(8),
            // leave
            [0xc9, ..] => {
                let fp = word(state.fp).unwrap_or(state.fp);
                Some(State { fp, sp: state.fp.wrapping_add(8), ..*state })
            }
            // add, and, sub
            [0x48, 0x83, 0xc4, bytes, ..] => plus(i64::from(bytes as i8)),
            [0x48, 0x81, 0xc4, ..] => plus(constant(3)?),
            [0x48, 0x83, 0xe4, mask, ..] => {
                Some(State { sp: state.sp & i64::from(mask as i8) as u64, ..*state })
            }
            [0x48, 0x81, 0xe4, ..] => Some(State { sp: state.sp & constant(3)? as u64, ..*state }),
            [0x48, 0x83, 0xec, bytes, ..] => plus(i64::from(bytes as i8).wrapping_neg()),
            [0x48, 0x81, 0xec, ..] => plus(constant(3)?.wrapping_neg()),
            // sub rsp, r; add rsp, r: the register's value is not known.
            [0x48 | 0x4c, 0x29 | 0x01, operand, ..] if operand & 0xc7 == 0xc0 | RSP => None,
            [0x48 | 0x49, 0x2b | 0x03, operand, ..] if operand & 0xf8 == 0xe0 => None,
            // mov and lea from RSP, or to RSP or RBP.
            [rex @ 0x48..=0x4f, opcode @ (0x89 | 0x8b | 0x8d), operand, ..] => {
                let (mode, middle, low) = (operand >> 6, operand >> 3 & 7, operand & 7);
                let (middle, low) = (middle | (rex & 4) << 1, low | (rex & 1) << 3);
                match (opcode, mode) {
                    (0x89, 3) => set(state, low, middle, register),
                    (0x8b, 3) => set(state, middle, low, register),
                    (0x8b | 0x8d, _) => {
                        let address = match address(code, mode, low) {
                            Some((base, distance)) => {
                                register(base).map(|base| base.wrapping_add_signed(distance))
                            }
                            None => None,
                        };
                        let value = if opcode == 0x8d { address } else { address.and_then(word) };
                        match middle {
                            RSP => Some(State { sp: value?, ..*state }),
                            RBP => Some(State { fp: value.unwrap_or(state.fp), ..*state }),
                            keeper if opcode == 0x8d && low == RSP && state.keeper.is_none() => {
                                Some(State { keeper: value.map(|sp| (keeper, sp)), ..*state })
                            }
                            _ => Some(*state),
                        }
                    }
                    _ => Some(*state),
                }
            }
            _ => Some(*state),
        }
    }
}

/// Applies a move between registers.
fn set(state: &State, to: u8, from: u8, register: impl Fn(u8) -> Option<u64>) -> Option<State> {
    match (to, from) {
        (RSP, from) => Some(State { sp: register(from)?, ..*state }),
        (RBP, from) => Some(State { fp: register(from).unwrap_or(state.fp), ..*state }),
        (keeper, RSP) if state.keeper.is_none() => Some(State { keeper: Some((keeper, state.sp)), ..*state }),
        _ => Some(*state),
    }
}

/// The base register and distance of an operand in memory, after a prefix and an opcode of one byte each.
/// `None` if the operand has an index or no base.
fn address(code: &[u8; MAX_BYTES], mode: u8, low: u8) -> Option<(u8, i64)> {
    let distance_at = match low & 7 {
        // A SIB byte of 0x24 means a base alone.
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
