//! A collector's stub that compiled code calls to process a loaded reference, on x86_64.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::bytes_to_return::End;
use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::stack_walk::Walk;

impl<M: Memory> Walk<'_, M> {
    /// The caller of a collector's stub that compiled code calls. The stub saves registers one by one, and
    /// calls out. Shenandoah's stub has a frame below the saved registers for its call (cpu/x86:
    /// gc/shenandoah/shenandoahBarrierSetAssembler_x86.cpp, generate_shenandoah_lrb;
    /// gc/z/zBarrierSetAssembler_x86.cpp, generate_load_barrier_stub; both only in JDK 11).
    pub(in crate::walk) fn collector_stub_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Option<Cursor> {
        let fp_above = cursor.fp.wrapping_sub(cursor.sp);
        let above = self.bytes_until(self.code_of(vm, blob)?, cursor.pc, Some(fp_above), End::Ret)?;
        let slot = self.return_slot(vm, cursor.sp.wrapping_add(above))?;
        let has_frame = (cursor.sp..slot).contains(&cursor.fp);
        let fp = if has_frame { self.memory.load_u64(cursor.fp)? } else { cursor.fp };
        let caller =
            Cursor { pc: self.memory.load_u64(slot)?, sp: slot.wrapping_add(8), fp, interrupted: false };
        self.check_progress(cursor, caller).ok()
    }
}
