//! The end of a compiled method that may use the stack's reserved zone (`@ReservedStackAccess`, such as
//! `ReentrantLock`'s), on aarch64.
//!
//! The method removes its frame and compares SP with the limit of the zone before it polls and returns:
//! `ldr x8, [x28, limit]; cmp sp, x8; b.lo poll`. Between the jump and the poll lies the code that closes the
//! zone again and throws, which ends in a jump (cpu/aarch64/macroAssembler_aarch64.cpp, reserved_stack_check,
//! JDK 11-25). So the instructions right before the poll do not tell that the frame has been removed.

use otlpprof_core::a64_branch::{Branch, INSTRUCTION_BYTES, RET};
use otlpprof_core::memory::Memory;

use super::instructions::Around;

/// `cmp sp, x8`
const CMP_SP_X8: u32 = 0xeb28_63ff;
/// `ldr wzr, [x8]`
const TOUCH_X8: u32 = 0xb940_011f;

/// The most instructions of the code that closes the zone, with some to spare. JDK 11's saves all registers.
const MOST_TO_CLOSE: u64 = 64;

/// Whether the instruction at `pc`, which `around` has read, polls or returns after such a comparison.
pub(super) fn is_after_check(memory: &impl Memory, around: &Around, pc: u64) -> bool {
    // From the poll's load to the return.
    let back = |count: isize| around.at(count.wrapping_neg());
    let is_before_return = |code: u32| matches!(code, CMP_SP_X8 | TOUCH_X8 | RET) || is_jump_if(code, HIGHER);
    let passed = (0..=3).take_while(|&count| is_before_return(back(count))).count();
    let poll = pc.wrapping_sub((passed as u64).wrapping_mul(INSTRUCTION_BYTES));
    let instruction = |address: u64| memory.load_u32(address).unwrap_or(0);
    is_load_from_thread(back(passed as isize))
        && (1..=MOST_TO_CLOSE).any(|count| {
            let at =
                |earlier: u64| poll.wrapping_sub(count.wrapping_add(earlier).wrapping_mul(INSTRUCTION_BYTES));
            let jump = instruction(at(0));
            let leads_to_poll = match Branch::of(jump) {
                Some(Branch::Conditional { distance }) => at(0).wrapping_add_signed(distance) == poll,
                _ => false,
            };
            is_jump_if(jump, LOWER)
                && leads_to_poll
                && instruction(at(1)) == CMP_SP_X8
                && is_load_from_thread(instruction(at(2)))
        })
}

const LOWER: u32 = 3;
const HIGHER: u32 = 8;

/// Whether the instruction is `b.condition`.
fn is_jump_if(instruction: u32, condition: u32) -> bool {
    instruction & 0xff00_001f == 0x5400_0000 | condition
}

/// Whether the instruction is `ldr x8, [x28, offset]`.
fn is_load_from_thread(instruction: u32) -> bool {
    instruction & 0xffc0_03ff == 0xf940_0388
}
