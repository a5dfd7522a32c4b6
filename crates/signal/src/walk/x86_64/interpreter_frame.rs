//! The ends of an interpreter frame (cpu/x86/frame_x86.hpp, JDK 11-25).

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use crate::walk::cursor::Cursor;
use crate::walk::stack_walk::Walk;

/// The stack pointer of the sender's frame. `saved` is the sender's SP that the interpreter frame at `_fp`
/// has saved.
pub(in crate::walk) const fn sender_sp(_fp: u64, saved: u64) -> u64 {
    saved
}

impl<M: Memory> Walk<'_, M> {
    /// The frame pointer of the interpreted method whose bytecode has called a collector's function in a
    /// barrier with a frame of its own, to which RBP points: `push rbp; mov rbp, rsp; …; leave`
    /// (gc/shenandoah/shenandoahBarrierSetAssembler_x86.cpp, load_reference_barrier, JDK 27). `None` if
    /// `cursor` is not in such a barrier.
    pub(in crate::walk) fn frame_below_barrier(&self, vm: &VmLayout, cursor: &Cursor) -> Option<u64> {
        (!cfg!(without_rules_of_26) && self.is_in_frame_of_barrier(vm.stubs.interpreter, cursor.pc))
            .then(|| self.memory.load_u64(cursor.fp))?
    }
}
