//! The words that compiled code pushes for a search through the supertypes of a class, on aarch64.
//!
//! Around its calls of slow_subtype_check C1 pushes the two classes that the stub takes, `stp; bl; ldp` or
//! `ldr` (c1_LIRAssembler_aarch64.cpp, emit_typecheck_helper and emit_opTypeCheck). In emit_arraycopy it has
//! pushed the two arrays before (JDK 11-25). C2 searches only with registers.

use otlpprof_core::a64_branch::INSTRUCTION_BYTES;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::instructions::{DROP_PAIR, POP_RECORD, PUSH_RECORD, is_call, leaves};
use crate::walk::stack_walk::Walk;

const PAIR_BYTES: u64 = 16;
/// The most instructions between the push of the arrays and their pop.
const INSTRUCTIONS: usize = 40;
const BYTES: usize = INSTRUCTIONS * INSTRUCTION_BYTES as usize;

impl<M: Memory> Walk<'_, M> {
    /// The number of bytes on top of the frame of a method that was interrupted at `pc`.
    pub(in crate::walk) fn bytes_pushed_for_subtype_check(&self, _vm: &VmLayout, pc: u64) -> u64 {
        self.pairs_pushed_before(pc).wrapping_mul(PAIR_BYTES)
    }

    /// The number of bytes on top of the frame of a method that has called slow_subtype_check and is returned
    /// to at `return_pc`.
    pub(in crate::walk) fn bytes_below_subtype_check(&self, return_pc: u64) -> u64 {
        self.pairs_pushed_before(return_pc).max(1).wrapping_mul(PAIR_BYTES)
    }

    /// The number of pairs that have been pushed and not popped on the straight way to `pc`.
    fn pairs_pushed_before(&self, pc: u64) -> u64 {
        let mut code = [0_u8; BYTES];
        let is_read = self.memory.read_bytes(pc.wrapping_sub(BYTES as u64), &mut code);
        let (instructions, _) = code.as_chunks::<{ INSTRUCTION_BYTES as usize }>();
        let mut pushed = 0_i64;
        let before = instructions.iter().rev().map(|&code| u32::from_le_bytes(code));
        let straight = before.take_while(|&code| is_read && (is_call(code) || !leaves(code)));
        for code in straight {
            match code {
                // The frame begins at this instruction.
                PUSH_RECORD | POP_RECORD => break,
                _ if is_pair_push(code) => pushed = pushed.wrapping_add(1),
                _ if is_pair_load(code) || code == DROP_PAIR => pushed = pushed.wrapping_sub(1),
                _ => {}
            }
        }
        let at_pop = self.memory.load_u32(pc).is_some_and(is_pair_load);
        pushed.max(i64::from(at_pop)) as u64
    }
}

/// Whether the instruction is `stp x, x, [sp, -16]!`.
fn is_pair_push(code: u32) -> bool {
    code & 0xffff_83e0 == 0xa9bf_03e0
}

/// Whether the instruction is `ldr x, [sp], 16` or `ldp x, x, [sp], 16`.
fn is_pair_load(code: u32) -> bool {
    code & 0xffff_ffe0 == 0xf841_07e0 || code & 0xffff_83e0 == 0xa8c1_03e0
}
