//! Code without call frame information, on aarch64: its effects on SP, x29 and x30 up to its return show
//! where it returns to.
//!
//! On each path to a return a function restores the same registers. So one path is enough, and a short one is
//! chosen: forward branches are taken, and loops are left.
//!
//! The stack while the path is followed:
//!
//! ```text
//!   higher addresses
//! ├──────────────────┤ ← SP at the return
//! │ caller's x30     │   stored before the interruption: loaded from memory
//! │ caller's x29     │
//! │ room             │ ← SP at the interruption
//! ├──────────────────┤
//! │ x30, x29         │   stored on the path, not in memory yet: loaded, they keep their values
//! │ room             │ ← SP on the path
//! └──────────────────┘
//!   lower addresses
//! ```

use otlpprof_core::a64_branch::{Branch, INSTRUCTION_BYTES, adr_distance};
use otlpprof_core::memory::Memory;

use super::return_address::strip;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;

/// The most instructions that are followed on all paths together. Unrolled loops have hundreds.
const MAX_INSTRUCTIONS: usize = 1024;
/// The most alternatives of branches that are remembered.
const MAX_BRANCHES: usize = 12;
/// The most jumps back that are followed.
const MAX_JUMPS_BACK: usize = 8;

const FP: u32 = 29;
const LR: u32 = 30;
const SP: u32 = 31;
/// `bti`, without its targets.
const BTI: u32 = 0xd503_241f;

/// The position on the path, and the register values there.
#[derive(Clone, Copy)]
struct State {
    pc: u64,
    sp: u64,
    fp: u64,
    /// `None` if the code had made a call and has not loaded x30 again.
    lr: Option<u64>,
    /// The slots into which the code has stored x29 and x30 on the path.
    stored_fp: Option<u64>,
    stored_lr: Option<u64>,
    /// A register to which the code has copied the stack pointer on the path, and its value.
    keeper: Option<(u32, u64)>,
}

/// The state after an instruction.
enum Next {
    /// The code continues at one place: the next instruction, or another in the function.
    Here(State),
    /// The code continues at either place. The first one is tried first.
    Either(State, State),
    /// The code returns to the address in x30.
    Returned(State),
    /// The path cannot be followed.
    Lost,
}

/// A load or store of registers in memory.
struct Access {
    is_load: bool,
    is_vector: bool,
    /// The registers, and the size of each in bytes.
    registers: [Option<u32>; 2],
    bytes: u64,
    base: u32,
    /// The bytes added to the base before the access, and after it.
    before: i64,
    after: i64,
    /// Whether the result of the addition is written back to the base register.
    writes_back: bool,
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
        let mut state = State {
            pc: cursor.pc,
            sp: cursor.sp,
            fp: cursor.fp,
            lr: known.and_then(Registers::return_address),
            stored_fp: None,
            stored_lr: None,
            keeper: None,
        };
        let mut branches = [state; MAX_BRANCHES];
        let mut branch_count = 0_usize;
        let mut jumps_back = 0_usize;
        let cost = self.cost_of_instruction(cursor.pc);
        for _ in 0..MAX_INSTRUCTIONS {
            self.instructions_left.set(self.instructions_left.get().checked_sub(cost)?);
            let next = match self.follow(&state, cursor, known, &is_inside) {
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
                Next::Returned(State { sp, fp, lr, .. }) => {
                    let caller = Cursor { pc: strip(lr?), sp, fp, interrupted: false };
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

    fn follow(
        &self,
        state: &State,
        start: &Cursor,
        known: Option<&Registers>,
        is_inside: impl Fn(u64) -> bool,
    ) -> Next {
        let Some(code) = self.memory.load_u32(state.pc).filter(|&code| code >> 16 != 0) else {
            return Next::Lost;
        };
        let following = State { pc: state.pc.wrapping_add(INSTRUCTION_BYTES), ..*state };
        let at = |distance: i64| State { pc: state.pc.wrapping_add_signed(distance), ..*state };
        match Branch::of(code) {
            Some(Branch::Return { register: LR }) => Next::Returned(*state),
            Some(Branch::Return { .. }) => Next::Lost,
            Some(Branch::Conditional { distance }) => {
                let target = at(distance);
                match () {
                    () if !is_inside(target.pc) => Next::Here(following),
                    () if distance >= 0 => Next::Either(target, following),
                    () => Next::Either(following, target),
                }
            }
            Some(Branch::Jump { distance }) => {
                let target = at(distance);
                if is_inside(target.pc) { Next::Here(target) } else { Next::Returned(*state) }
            }
            Some(Branch::RegisterJump { register }) => {
                match self.jump_table(state.pc, register).filter(|&table| is_inside(table)) {
                    Some(table) => Next::Either(State { pc: table, ..*state }, following),
                    None => Next::Lost,
                }
            }
            Some(Branch::Call { distance }) if self.traps_soon(at(distance).pc) => Next::Lost,
            // Traps, but no system calls.
            None if code & 0xff00_0000 == 0xd400_0000 && code & 0xffe0_001f != 0xd400_0001 => Next::Lost,
            Some(Branch::Call { .. } | Branch::RegisterCall) | None => {
                self.changed(&following, code, start, known).map_or(Next::Lost, Next::Here)
            }
        }
    }

    /// The address from which the jump to `register` at `pc` counts its destination, if the destination is
    /// computed: `adr x3, address; add x3, x3, x2, lsl 5; br x3`. The code there is another part of the
    /// function.
    fn jump_table(&self, pc: u64, register: u32) -> Option<u64> {
        // Of registers, shifted or extended.
        let add = self.memory.load_u32(pc.wrapping_sub(INSTRUCTION_BYTES))?;
        if add & 0xff00_0000 != 0x8b00_0000 || add & 0x1f != register {
            return None;
        }
        let base = add >> 5 & 0x1f;
        let address = pc.wrapping_sub(2 * INSTRUCTION_BYTES);
        let distance = adr_distance(self.memory.load_u32(address)?, base)?;
        Some(address.wrapping_add_signed(distance))
    }

    /// Whether the function at `pc` never returns: one of its first instructions is `brk`, and none before it
    /// is a branch. A call of it may be the last instruction of a function, so the code after the call may
    /// belong to another function. Such is musl's `__stack_chk_fail` (src/env/__stack_chk_fail.c), to which
    /// many functions branch at their end: `[bti c;] mov x0, 0; strb wzr, [x0]; brk`.
    fn traps_soon(&self, pc: u64) -> bool {
        const INSTRUCTIONS: u64 = 4;
        let mut code = (0..INSTRUCTIONS)
            .map_while(|index| self.memory.load_u32(pc.wrapping_add(index.wrapping_mul(INSTRUCTION_BYTES))))
            // Branches, system calls and traps are one class of instructions.
            .filter(|code| code & 0x1c00_0000 == 0x1400_0000 && code & 0xffff_ff3f != BTI);
        code.next().is_some_and(|code| code & 0xffe0_001f == 0xd420_0000)
    }

    /// Applies an instruction that does not jump; `None` if SP is not known after it.
    fn changed(&self, state: &State, code: u32, start: &Cursor, known: Option<&Registers>) -> Option<State> {
        if let Some((to, from, bytes)) = added_constant(code) {
            let value = state.register(from, known).map(|value| value.wrapping_add_signed(bytes));
            return state.assign(to, value, from == SP);
        }
        if is_other_change_of_sp(code) {
            return None;
        }
        match Access::of(code).filter(|access| access.base == SP || access.base == FP) {
            Some(access) => self.accessed(state, &access, start, known),
            None => Some(*state),
        }
    }

    /// Applies a load or store in the stack.
    fn accessed(
        &self,
        state: &State,
        access: &Access,
        start: &Cursor,
        known: Option<&Registers>,
    ) -> Option<State> {
        let base = state.register(access.base, known)?;
        let address = base.wrapping_add_signed(access.before);
        let mut next = *state;
        for (index, number) in access.registers.into_iter().enumerate() {
            let slot = address.wrapping_add((index as u64).wrapping_mul(access.bytes));
            // A slot below the first SP, or one that was stored on the path, does not hold its value yet. The
            // register then keeps its value in `state`.
            let load = |stored: Option<u64>| {
                self.memory.load_u64(slot).filter(|_| slot >= start.sp && stored != Some(slot))
            };
            match (number, access.is_load) {
                _ if access.is_vector || access.bytes != 8 => {}
                (Some(FP), true) => next.fp = load(state.stored_fp).unwrap_or(state.fp),
                (Some(LR), true) => next.lr = load(state.stored_lr).or(state.lr),
                (Some(FP), false) => next.stored_fp = Some(slot),
                (Some(LR), false) => next.stored_lr = Some(slot),
                _ => {}
            }
        }
        // If x29 is the base as well as loaded, the write-back decides.
        match (access.base, access.writes_back) {
            (SP, true) => next.sp = address.wrapping_add_signed(access.after),
            (_, true) => next.fp = address.wrapping_add_signed(access.after),
            (_, false) => {}
        }
        Some(next)
    }
}

impl State {
    /// The value of a register, by its number in instructions. `known` are the registers at the interruption.
    fn register(&self, number: u32, known: Option<&Registers>) -> Option<u64> {
        match (number, self.keeper) {
            (SP, _) => Some(self.sp),
            (FP, _) => Some(self.fp),
            (_, Some((keeper, sp))) if keeper == number => Some(sp),
            _ => known?.by_dwarf_number(number as u8),
        }
    }

    /// The state after the register `to` has got a value, which may not be known. `is_of_sp`: the value is
    /// made of SP.
    fn assign(&self, to: u32, value: Option<u64>, is_of_sp: bool) -> Option<Self> {
        match to {
            SP => Some(Self { sp: value?, ..*self }),
            FP => Some(Self { fp: value.unwrap_or(self.fp), ..*self }),
            keeper if is_of_sp && self.keeper.is_none() => {
                Some(Self { keeper: value.map(|sp| (keeper, sp)), ..*self })
            }
            _ => Some(*self),
        }
    }
}

/// `add` and `sub` of a constant, 64 bits: destination, source, added bytes. `mov` from and to SP is such an
/// `add`.
fn added_constant(code: u32) -> Option<(u32, u32, i64)> {
    if !matches!(code & 0xff80_0000, 0x9100_0000 | 0xd100_0000) {
        return None;
    }
    let constant = i64::from(code >> 10 & 0xfff);
    let constant = if code & 1 << 22 == 0 { constant } else { constant << 12 };
    let bytes = if code & 1 << 30 == 0 { constant } else { constant.wrapping_neg() };
    Some((code & 0x1f, code >> 5 & 0x1f, bytes))
}

/// Whether the instruction is `add sp, …` or `sub sp, …` of registers, or `and sp, …`.
fn is_other_change_of_sp(code: u32) -> bool {
    code & 0x1f == SP && matches!(code & 0xffe0_0000, 0x8b20_0000 | 0xcb20_0000)
        || code & 0xff80_001f == 0x9200_001f
}

impl Access {
    /// `ldp`, `stp`, `ldr` and `str` with a constant (Arm Architecture Reference Manual, C4.1.94, "Loads and
    /// Stores").
    fn of(code: u32) -> Option<Self> {
        let is_vector = code & 1 << 26 != 0;
        let (first, base) = (code & 0x1f, code >> 5 & 0x1f);
        if code & 0x3a00_0000 == 0x2800_0000 {
            let size = code >> 30;
            let bytes = if is_vector { 4_u64.wrapping_shl(size) } else { 4_u64.wrapping_shl(size >> 1) };
            let offset = i64::from((code << 10) as i32 >> 25).wrapping_mul(bytes as i64);
            let kind = code >> 23 & 3;
            return Some(Self {
                is_load: code & 1 << 22 != 0,
                is_vector,
                registers: [Some(first), Some(code >> 10 & 0x1f)],
                bytes,
                base,
                before: if kind == 1 { 0 } else { offset },
                after: if kind == 1 { offset } else { 0 },
                writes_back: kind & 1 == 1,
            });
        }
        let size = code >> 30;
        let bytes = 1_u64.wrapping_shl(size);
        let is_load = code & 1 << 22 != 0;
        let access = |before: i64, after: i64, writes_back: bool| Self {
            is_load,
            is_vector,
            registers: [Some(first), None],
            bytes,
            base,
            before,
            after,
            writes_back,
        };
        // The constant is not negative, and counts in units of the register's size.
        if code & 0x3b00_0000 == 0x3900_0000 {
            return Some(access(i64::from(code >> 10 & 0xfff).wrapping_mul(bytes as i64), 0, false));
        }
        if code & 0x3b20_0000 == 0x3800_0000 {
            let offset = i64::from((code << 11) as i32 >> 23);
            return match code >> 10 & 3 {
                0 => Some(access(offset, 0, false)),
                1 => Some(access(0, offset, true)),
                3 => Some(access(offset, 0, true)),
                _ => None,
            };
        }
        None
    }
}
