//! A64 instructions of HotSpot's code, and the place of a frame record by the instructions around an
//! interrupted one. A record is the pair of the caller's x29 and the return address. The return address is in
//! x30 until the record is saved, and again when it has been restored.
//!
//! | Code | Meaning |
//! |---|---|
//! | `sub sp, sp, N; stp x29, x30, [sp, N - 16]` | the entry of a small frame (MacroAssembler::build_frame) |
//! | `stp x29, x30, [sp, -16]!; [mov x8, M;] sub sp, sp, M` | the entry of a large frame |
//! | `stp x29, x30, [sp, -16]!; mov x29, sp` | the entry of a stub, or of a native method's wrapper (enter) |
//! | `ldp x29, x30, [sp, N - 16]; add sp, sp, N` | the exit of a small frame (remove_frame) |
//! | `[mov x8, M;] add sp, sp, M; ldp x29, x30, [sp], 16` | the exit of a large frame |
//! | `mov sp, x29; ldp x29, x30, [sp], 16` | the exit of a stub or wrapper (leave) |
//!
//! Sources: cpu/aarch64/macroAssembler_aarch64.cpp, macroAssembler_aarch64.hpp (JDK 11-25).

use otlpprof_core::a64_branch::{Branch, INSTRUCTION_BYTES, adr_distance};
use otlpprof_core::memory::Memory;

/// `stp x29, x30, [sp, -16]!`
pub(super) const PUSH_RECORD: u32 = 0xa9bf_7bfd;
/// `ldp x29, x30, [sp], 16`
pub(super) const POP_RECORD: u32 = 0xa8c1_7bfd;
/// `mov x29, sp`
pub(super) const MOVE_SP_TO_FP: u32 = 0x9100_03fd;
/// `add sp, sp, 16`
pub(super) const DROP_PAIR: u32 = 0x9100_43ff;
/// `ldp x8, x12, [sp], 16`: pops the registers that the macro assembler saves across a call of the VM
/// (MacroAssembler::call_VM_leaf_base, JDK 11-25).
pub(super) const RESTORE_AFTER_CALL: u32 = 0xa8c1_33e8;
/// `sub sp, sp, x8`
const SUB_SP_X8: u32 = 0xcb28_63ff;
/// `add sp, sp, x8`
const ADD_SP_X8: u32 = 0x8b28_63ff;
/// `add sp, sp, imm`, without the immediate.
const ADD_SP: u32 = 0x9100_03ff;
/// `br x8`
pub(super) const BR_X8: u32 = 0xd61f_0100;

/// The most instructions from the push of a record to its pop, with some to spare, if all registers are saved
/// between.
const MAX_WITH_RECORD: u64 = 256;

/// The numbers of instructions before and after the interrupted one that are read.
const BEFORE: usize = 8;
const AFTER: usize = 2;
const BYTES: usize = (BEFORE + 1 + AFTER) * 4;

/// The place of a frame record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::walk) enum Record {
    /// In x29 and x30. The caller's SP is this many bytes above SP.
    InRegisters(u64),
    /// On the stack, this many bytes above SP. The caller's SP lies right after the record.
    OnStack(u64),
}

/// The instructions around an interrupted one. An unreadable instruction is 0, which is not an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    code: [u32; BEFORE + 1 + AFTER],
}

impl Around {
    pub(super) fn read(memory: &impl Memory, pc: u64) -> Self {
        let mut bytes = [0_u8; BYTES];
        let before = (BEFORE as u64).wrapping_mul(INSTRUCTION_BYTES);
        if !memory.read_bytes(pc.wrapping_sub(before), &mut bytes) {
            bytes = [0; BYTES];
            if let Some(from_pc) = bytes.get_mut(before as usize..)
                && !memory.read_bytes(pc, from_pc)
            {
                from_pc.fill(0);
            }
        }
        let mut code = [0; BEFORE + 1 + AFTER];
        for (instruction, bytes) in code.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *instruction = u32::from_le_bytes(*bytes);
        }
        Self { code }
    }

    /// The instruction `distance` instructions after the interrupted one, or before it if negative.
    pub(super) fn at(&self, distance: isize) -> u32 {
        let index = BEFORE.checked_add_signed(distance);
        index.and_then(|index| self.code.get(index)).copied().unwrap_or(0)
    }

    /// The place of the record, if the instructions show it. `frame_bytes` is the size of the whole frame if
    /// that is fixed.
    pub(super) fn record(&self, frame_bytes: i64) -> Option<Record> {
        let (before, at, next) = (self.at(-1), self.at(0), self.at(1));
        if at == PUSH_RECORD {
            return Some(Record::InRegisters(0));
        }
        let is_pushed = before == PUSH_RECORD || before == MOVE_SP_TO_FP && self.at(-2) == PUSH_RECORD;
        if is_pushed || at == POP_RECORD || self.is_sizing_large_frame() {
            return Some(Record::OnStack(0));
        }
        if let Ok(size) = u64::try_from(frame_bytes)
            && let Some(small) = SmallFrame::of(size)
        {
            if at == small.save {
                return Some(Record::InRegisters(size));
            }
            if at == small.make && next == small.save {
                return Some(Record::InRegisters(0));
            }
            if at == small.remove && before == small.restore {
                return Some(Record::InRegisters(size));
            }
            if self.is_after(|instruction, earlier| instruction == small.remove && earlier == small.restore) {
                return Some(Record::InRegisters(0));
            }
        }
        let is_popped = self.is_after(|instruction, _| instruction == POP_RECORD);
        (is_popped || self.is_return_poll_stub()).then_some(Record::InRegisters(0))
    }

    /// Whether the interrupted instruction is the first one that removes the frame.
    pub(super) fn begins_exit(&self, frame_bytes: i64) -> bool {
        let small = u64::try_from(frame_bytes).ok().and_then(SmallFrame::of);
        small.is_some_and(|small| self.at(0) == small.restore && self.at(1) == small.remove)
            || self.is_shrinking_large_frame()
    }

    /// Whether `add sp, sp, M` is next, followed by the pop of the record. A large M is in x8.
    fn is_shrinking_large_frame(&self) -> bool {
        let is_add = |instruction: u32| instruction == ADD_SP_X8 || instruction & 0xff80_03ff == ADD_SP;
        is_add(self.at(0)) && self.at(1) == POP_RECORD
    }

    /// Whether one of the preceding instructions, back to the last one that jumps away for good, satisfies
    /// `is_wanted`. The predicate also gets the instruction before it.
    fn is_after(&self, is_wanted: impl Fn(u32, u32) -> bool) -> bool {
        (1..=BEFORE as isize)
            .map(isize::wrapping_neg)
            .take_while(|&place| !leaves(self.at(place)) || self.is_jump_of_poll(place))
            .any(|place| is_wanted(self.at(place), self.at(place.wrapping_sub(1))))
    }

    /// Whether the instruction at this distance is the jump of a return poll that lies among the other
    /// instructions: the wrappers of native methods check for an exception after it, `ldr x8, [x28, offset];
    /// tbz w8, 0, next; adr x8, poll; str x8, [x28, offset]; b; next: ldr x8, [x28, offset]; cbnz x8; ret`
    /// (read in the machine code of 25).
    fn is_jump_of_poll(&self, place: isize) -> bool {
        sets_poll_pc(self.at(place.wrapping_sub(2)), self.at(place.wrapping_sub(1)))
    }

    /// Whether the interrupted instruction is between the push of a record and `sub sp, sp, x8`. The size is
    /// moved to x8 by one or two instructions.
    fn is_sizing_large_frame(&self) -> bool {
        let is_move = |instruction: u32| instruction & 0x9f80_001f == 0x9280_0008 || is_orr_x8(instruction);
        let moves = (1..=2).take_while(|&back: &isize| is_move(self.at(back.wrapping_neg()))).count();
        let at = self.at(0);
        moves != 0
            && (at == SUB_SP_X8 || is_move(at))
            && self.at((moves as isize).wrapping_neg().wrapping_sub(1)) == PUSH_RECORD
    }

    /// Whether the interrupted instruction is in the stub of a poll before a return, where the frame has
    /// already been removed, as at the poll: `adr x8, poll; str x8, [x28, offset]`, and a jump
    /// (cpu/aarch64/c1_CodeStubs_aarch64.cpp C1SafepointPollStub, JDK 17-25; c2_CodeStubs_aarch64.cpp
    /// C2SafepointPollStub, JDK 21 and 25; c2_safepointPollStubTable_aarch64.cpp, JDK 17).
    fn is_return_poll_stub(&self) -> bool {
        (0..=4).any(|back: isize| {
            let adr = back.wrapping_neg();
            sets_poll_pc(self.at(adr), self.at(adr.wrapping_add(1)))
                && (adr.wrapping_add(2)..0).all(|between| !leaves(self.at(between)))
        })
    }
}

/// Whether the two instructions are `adr x8, poll; str x8, [x28, offset]`.
fn sets_poll_pc(first: u32, second: u32) -> bool {
    adr_distance(first, 8).is_some() && second & 0xffc0_03ff == 0xf900_0388
}

/// Whether code that begins at `begin` has a record of its own at `pc`. Collectors' barriers make one for a
/// part of their code (`enter`, calls, `leave`). True if the last record that was pushed has not been popped.
pub(super) fn has_pushed_record(memory: &impl Memory, begin: u64, pc: u64) -> bool {
    let mut changes = instructions_before(memory, begin, pc, MAX_WITH_RECORD)
        .filter(|&code| matches!(code, PUSH_RECORD | POP_RECORD));
    changes.next() == Some(PUSH_RECORD)
}

/// The instructions before `pc`, the last one first: back to `begin`, and at most `most`.
pub(super) fn instructions_before(
    memory: &impl Memory,
    begin: u64,
    pc: u64,
    most: u64,
) -> impl Iterator<Item = u32> {
    let before = (1..=most).map(move |back| pc.wrapping_sub(back.wrapping_mul(INSTRUCTION_BYTES)));
    let own = before.take_while(move |&address| address >= begin && address < pc);
    own.map_while(|address| memory.load_u32(address))
}

/// The place of the record that code before `pc` has pushed. Right after the push the code sets x29 to it.
pub(super) fn pushed_record(memory: &impl Memory, pc: u64, sp: u64, fp: u64) -> Record {
    match Around::read(memory, pc).record(0) {
        Some(record @ Record::OnStack(_)) => record,
        _ => Record::OnStack(fp.wrapping_sub(sp)),
    }
}

/// The instructions that make and remove a frame of up to 512 bytes besides its record.
struct SmallFrame {
    make: u32,
    save: u32,
    restore: u32,
    remove: u32,
}

impl SmallFrame {
    fn of(size: u64) -> Option<Self> {
        const LIMIT: u64 = (1 << 9) + 16;
        if !(16..LIMIT).contains(&size) || !size.is_multiple_of(8) {
            return None;
        }
        let immediate = (size as u32) << 10;
        let scaled = ((size.wrapping_sub(16) >> 3) as u32 & 0x7f) << 15;
        Some(Self {
            make: 0xd100_03ff | immediate,
            save: 0xa900_7bfd | scaled,
            restore: 0xa940_7bfd | scaled,
            remove: 0x9100_03ff | immediate,
        })
    }
}

/// Whether the instruction saves the record in a frame of this size.
pub(super) fn saves_record(instruction: u32, frame_bytes: i64) -> bool {
    let small = u64::try_from(frame_bytes).ok().and_then(SmallFrame::of);
    instruction == PUSH_RECORD || small.is_some_and(|small| small.save == instruction)
}

/// Whether control does not pass directly from this instruction to the next: `b`, `bl`, `br`, `blr`, `ret`.
pub(super) fn leaves(instruction: u32) -> bool {
    Branch::of(instruction).is_some_and(Branch::is_unconditional)
}

/// Whether the instruction is a call: `bl`, `blr`.
pub(super) fn is_call(instruction: u32) -> bool {
    Branch::of(instruction).is_some_and(Branch::is_call)
}

/// Whether the instruction is `orr x8, xzr, immediate`, which moves some sizes.
fn is_orr_x8(instruction: u32) -> bool {
    instruction & 0xff80_03ff == 0xb200_03e8
}

/// The destination of a `movz` or `movk`.
pub(super) fn moved_immediate(instruction: u32) -> Option<u32> {
    let is_wide_move = instruction & 0xff80_0000 == 0xd280_0000 || instruction & 0xff80_0000 == 0xf280_0000;
    is_wide_move.then_some(instruction & 0x1f)
}
