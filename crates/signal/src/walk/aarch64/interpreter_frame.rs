//! The ends of an interpreter frame (cpu/aarch64/frame_aarch64.hpp, JDK 11-25).

use otlpprof_core::a64_branch::INSTRUCTION_BYTES;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::instructions::{POP_RECORD, leaves};
use crate::walk::cursor::Cursor;
use crate::walk::stack_walk::Walk;

/// The stack pointer of the sender's frame. `saved` is the sender's SP that the interpreter frame at `fp` has
/// saved. While a method is interpreted, its SP lies below the whole room of its expression stack, but the
/// frames of its callees begin above that SP. In that case the sender's frame is taken to end where this
/// frame begins (cpu/aarch64/interp_masm_aarch64.cpp, jump_from_interpreted).
pub(in crate::walk) const fn sender_sp(fp: u64, saved: u64) -> u64 {
    let begins = fp.wrapping_add(16);
    if saved < begins { begins } else { saved }
}

/// The most instructions until a barrier removes its frame. A barrier that restores all registers has fewer.
const MAX_INSTRUCTIONS: u64 = 256;

impl<M: Memory> Walk<'_, M> {
    /// The frame pointer of the interpreted method whose bytecode has called a collector's function in a
    /// barrier with a frame record of its own, to which x29 points: `stp x29, x30, [sp, -16]!; mov x29, sp;
    /// …; ldp x29, x30, [sp], 16` (gc/shenandoah/shenandoahBarrierSetAssembler_aarch64.cpp,
    /// load_reference_barrier, JDK 11-27). `None` if `cursor` is not in such a barrier.
    pub(in crate::walk) fn frame_below_barrier(&self, vm: &VmLayout, cursor: &Cursor) -> Option<u64> {
        let mut at = cursor.pc;
        for _ in 0..MAX_INSTRUCTIONS {
            let instruction = self.memory.load_u32(at).filter(|_| vm.stubs.interpreter.contains(at))?;
            if instruction == POP_RECORD {
                return self.memory.load_u64(cursor.fp);
            }
            // Another bytecode follows, or the end of the interpreter's frame.
            if leaves(instruction) {
                return None;
            }
            at = at.wrapping_add(INSTRUCTION_BYTES);
        }
        None
    }
}
