//! Code that leaves a continuation for its carrier, on x86_64: the ends of `Continuation.doYield` and of
//! cont_preempt. The code is `mov rsp, [r15 + _cont_entry]`, then instructions that restore the thread's
//! fields, then `add rsp, 64; pop rbp; ret` (cpu/x86/sharedRuntime_x86_64.cpp gen_continuation_yield,
//! continuation_enter_cleanup, JDK 21 and 25; stubGenerator_x86_64.cpp generate_cont_preempt_stub, JDK 25).

use otlpprof_core::continuation::ContinuationLayout;
use otlpprof_core::memory::Memory;

use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;

/// The most bytes of code between the change of RSP and the return.
const EXIT_BYTES: usize = 160;
const POP_RBP: u8 = 0x5d;
const RET: u8 = 0xc3;

/// The carrier's frame of `Continuation.run`, if the thread was interrupted after the change of the stack
/// pointer.
pub(in crate::walk) fn carrier(
    memory: &impl Memory,
    layout: &ContinuationLayout,
    cursor: &Cursor,
    _registers: &Registers,
) -> Option<Cursor> {
    let mut before = [0_u8; EXIT_BYTES];
    let mut at = [0_u8; 1];
    let is_read = memory.read_bytes(cursor.pc.wrapping_sub(EXIT_BYTES as u64), &mut before)
        && memory.read_bytes(cursor.pc, &mut at);
    if !is_read {
        return None;
    }
    let [a, b, c, d] = layout.entry.to_le_bytes();
    let takes_stack = [0x49, 0x8b, 0xa7, a, b, c, d];
    let after = before.windows(takes_stack.len()).rposition(|window| window == takes_stack)?;
    let after = before.get(after.wrapping_add(takes_stack.len())..)?;
    if after.windows(2).any(|window| window == [POP_RBP, RET]) {
        return None;
    }
    let caller = |slot: u64, fp: u64| {
        let pc = memory.load_u64(slot)?;
        Some(Cursor { pc, sp: slot.wrapping_add(8), fp, interrupted: false })
    };
    match at {
        [RET] => caller(cursor.sp, cursor.fp),
        [POP_RBP] => caller(cursor.sp.wrapping_add(8), memory.load_u64(cursor.sp)?),
        _ => {
            let fp_slot = cursor.sp.wrapping_add(ContinuationLayout::ENTRY_BYTES);
            caller(fp_slot.wrapping_add(8), memory.load_u64(fp_slot)?)
        }
    }
}
