//! Code that leaves a continuation for its carrier, on aarch64: the ends of `Continuation.doYield` and of
//! cont_preempt. The code is `ldr x8, [x28, _cont_entry]; mov sp, x8`, then instructions that restore the
//! thread's fields, then `add x29, sp, 64; mov sp, x29; ldp x29, x30, [sp], 16; ret`
//! (cpu/aarch64/sharedRuntime_aarch64.cpp gen_continuation_yield, continuation_enter_cleanup, JDK 21 and 25;
//! stubGenerator_aarch64.cpp generate_cont_preempt_stub, JDK 25).

use otlpprof_core::a64_branch::{INSTRUCTION_BYTES, RET};
use otlpprof_core::continuation::ContinuationLayout;
use otlpprof_core::memory::Memory;

use super::instructions::POP_RECORD;
use super::return_address::strip;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;

/// The most bytes of code between the change of SP and the return.
const EXIT_BYTES: usize = 160;

/// The carrier's frame of `Continuation.run`, if the thread was interrupted after the change of the stack
/// pointer.
pub(in crate::walk) fn carrier(
    memory: &impl Memory,
    layout: &ContinuationLayout,
    cursor: &Cursor,
    registers: &Registers,
) -> Option<Cursor> {
    let mut before = [0_u8; EXIT_BYTES];
    let is_read = memory.read_bytes(cursor.pc.wrapping_sub(EXIT_BYTES as u64), &mut before);
    let at = memory.load_u32(cursor.pc).filter(|_| is_read)?;
    let (before, _) = before.as_chunks::<{ INSTRUCTION_BYTES as usize }>();
    let mut takes_stack = before.windows(2).enumerate().filter_map(|(index, pair)| {
        let [load, moves] = pair else { return None };
        is_taking_stack(layout, u32::from_le_bytes(*load), u32::from_le_bytes(*moves)).then_some(index)
    });
    let after = takes_stack.next_back()?.wrapping_add(2);
    if before.get(after..)?.iter().any(|&code| u32::from_le_bytes(code) == RET) {
        return None;
    }
    let by_record = |slot: u64| {
        let pc = strip(memory.load_u64(slot.wrapping_add(8))?);
        Some(Cursor { pc, sp: slot.wrapping_add(16), fp: memory.load_u64(slot)?, interrupted: false })
    };
    match at {
        RET => Some(Cursor { pc: registers.lr(), sp: cursor.sp, fp: registers.fp(), interrupted: false }),
        POP_RECORD => by_record(cursor.sp),
        _ => by_record(cursor.sp.wrapping_add(ContinuationLayout::ENTRY_BYTES)),
    }
}

/// Whether the instructions are `ldr x, [x28, _cont_entry]; mov sp, x`.
fn is_taking_stack(layout: &ContinuationLayout, load: u32, moves: u32) -> bool {
    let register = load & 0x1f;
    load == 0xf940_0380 | (layout.entry >> 3) << 10 | register && moves == 0x9100_001f | register << 5
}
