//! A compiled method's stubs that call a collector's slow path, on aarch64. They lie after the method's own
//! code, and save the live registers below the method's frame.
//!
//! Such a stub consists of pushes, a call, the pops, and `b continuation` (cpu/aarch64:
//! gc/z/zBarrierSetAssembler_aarch64.cpp, ZSaveLiveRegisters, JDK 17 and 21;
//! gc/shared/barrierSetAssembler_aarch64.cpp, SaveLiveRegisters, JDK 25). A set of registers is pushed by a
//! store that first lowers SP, and popped by a load that raises SP afterwards (MacroAssembler::push, pop,
//! push_fp, pop_fp, macroAssembler_aarch64.cpp). With Shenandoah in JDK 27 a stub may have two barriers,
//! between which it tests the collector's state: `…; ldp …; ldrb w8, [x28, state]; cbz x8, continuation; …;
//! stp …`.
//!
//! C1 makes room for r0, if that is live, and for arguments: `sub sp, sp, 32; str x0, [sp, 16]; str …; str …;
//! bl slow_path; mov reference, x0; ldr x0, [sp, 16]; add sp, sp, 32; b continuation`, or the same with 16
//! bytes and without x0 (generate_c1_load_barrier_stub, gc/z/zBarrierSetAssembler_aarch64.cpp, JDK 17 on).

use otlpprof_core::a64_branch::{Branch, INSTRUCTION_BYTES, RET};
use otlpprof_core::memory::Memory;

use crate::walk::blob::Stubs;
use crate::walk::stack_walk::Walk;

/// The most bytes that restore registers: a stub that restores all, vectors included, is shorter.
const LONGEST_STUB_BYTES: u64 = 384;
/// The most instructions of C1's stub behind its `sub`: its call takes up to three.
const MOST_C1_INSTRUCTIONS: u64 = 9;

impl<M: Memory> Walk<'_, M> {
    /// The number of bytes on top of the frame of a method whose code, at `pc`, is in its `stubs`: the bytes
    /// that the next instructions pop before they jump back to the method's own code.
    pub(in crate::walk) fn bytes_saved_by_barrier(&self, stubs: &Stubs, pc: u64) -> u64 {
        let mut saved = 0_u64;
        for offset in (0..LONGEST_STUB_BYTES).step_by(INSTRUCTION_BYTES as usize) {
            let at = pc.wrapping_add(offset);
            let Some(instruction) = self.memory.load_u32(at).filter(|_| at < stubs.end) else { return 0 };
            let test_at = at.wrapping_add(INSTRUCTION_BYTES);
            if is_state_load(instruction)
                && let Some(distance) = self.memory.load_u32(test_at).and_then(jump_if_zero)
                && stubs.leads_back(test_at.wrapping_add_signed(distance))
            {
                return saved;
            }
            if let Some(distance) = jump(instruction) {
                return if stubs.leads_back(at.wrapping_add_signed(distance)) { saved } else { 0 };
            }
            // The registers are not saved yet, another stub begins, or the code never jumps back to the
            // method's own code.
            if is_push(instruction) || instruction & ANY_ADDEND == SUB_SP || instruction == RET {
                return 0;
            }
            let added =
                if instruction & ANY_ADDEND == ADD_SP { u64::from(instruction >> 10 & 0xfff) } else { 0 };
            saved = saved.wrapping_add(popped_bytes(instruction)).wrapping_add(added);
        }
        0
    }

    /// The same number for a `pc` that may be in a stub of C1, or in the method's own code: only the exact
    /// instructions of C1's stub are accepted.
    pub(in crate::walk) fn bytes_saved_by_c1s_barrier(&self, stubs: &Stubs, pc: u64) -> u64 {
        for number in 0..MOST_C1_INSTRUCTIONS {
            let at = pc.wrapping_add(number.wrapping_mul(INSTRUCTION_BYTES));
            let Some(instruction) = self.memory.load_u32(at).filter(|_| at < stubs.end) else { return 0 };
            if let ADD_16_SP | ADD_32_SP = instruction {
                let jump_at = at.wrapping_add(INSTRUCTION_BYTES);
                let distance = self.memory.load_u32(jump_at).and_then(jump);
                let leaves = |distance| stubs.leads_back(jump_at.wrapping_add_signed(distance));
                let room = u64::from(instruction >> 10 & 0xfff);
                return if distance.is_some_and(leaves) { room } else { 0 };
            }
            if !is_of_c1s_stub(instruction) {
                return 0;
            }
        }
        0
    }
}

/// `sub sp, sp, n`, `add sp, sp, n`, and the mask without n.
const SUB_SP: u32 = 0xd100_03ff;
const ADD_SP: u32 = 0x9100_03ff;
const ANY_ADDEND: u32 = 0xffc0_03ff;
/// `add sp, sp, 16` and `add sp, sp, 32`.
const ADD_16_SP: u32 = 0x9100_43ff;
const ADD_32_SP: u32 = 0x9100_83ff;

/// Whether the instruction occurs between the `sub` and the `add` of C1's stub.
fn is_of_c1s_stub(instruction: u32) -> bool {
    /// `ldr x0, [sp, 16]`, and `blr x8`.
    const LOAD_X0: u32 = 0xf940_0be0;
    const CALL_X8: u32 = 0xd63f_0100;
    // str x, [sp], [sp, 8] or [sp, 16]; mov x, x0
    matches!(instruction & 0xffff_ffe0, 0xf900_03e0 | 0xf900_07e0 | 0xf900_0be0 | 0xaa00_03e0)
        // bl; adrp x8; add x8, x8, n
        || matches!(Branch::of(instruction), Some(Branch::Call { .. }))
        || instruction & 0x9f00_001f == 0x9000_0008
        || instruction & 0xffc0_03ff == 0x9100_0108
        || matches!(instruction, LOAD_X0 | CALL_X8)
}

/// Whether the instruction is `ldrb w8, [x28, n]`: x28 is the thread.
fn is_state_load(instruction: u32) -> bool {
    !cfg!(without_rules_of_26) && instruction & 0xffc0_03ff == 0x3940_0388
}

/// The distance of a `cbz x8` or `cbz w8`.
fn jump_if_zero(instruction: u32) -> Option<i64> {
    match Branch::of(instruction)? {
        Branch::Conditional { distance } if instruction & 0x7f00_001f == 0x3400_0008 => Some(distance),
        _ => None,
    }
}

/// The distance of a `b`.
fn jump(instruction: u32) -> Option<i64> {
    match Branch::of(instruction)? {
        Branch::Jump { distance } => Some(distance),
        _ => None,
    }
}

/// Whether the instruction is `stp …, [sp, -n]!` of general or vector registers, or `str …, [sp, -n]!`.
fn is_push(instruction: u32) -> bool {
    matches!(instruction & 0xffc0_03e0, 0xa980_03e0 | 0x6d80_03e0 | 0xad80_03e0)
        || matches!(instruction & 0xffe0_0fe0, 0xf800_0fe0 | 0xfc00_0fe0 | 0x3c80_0fe0)
}

/// The number of bytes by which `ldp …, [sp], n` or `ldr …, [sp], n` raises SP; 0 for any other instruction.
fn popped_bytes(instruction: u32) -> u64 {
    let pair = |scale: u64| u64::from(instruction >> 15 & 0x3f).wrapping_mul(scale);
    match instruction & 0xffe0_03e0 {
        // The mask requires that the distance's sign bit is clear.
        0xa8c0_03e0 | 0x6cc0_03e0 => return pair(8),
        0xacc0_03e0 => return pair(16),
        _ => {}
    }
    match instruction & 0xfff0_0fe0 {
        0xf840_07e0 | 0xfc40_07e0 | 0x3cc0_07e0 => u64::from(instruction >> 12 & 0xff),
        _ => 0,
    }
}
