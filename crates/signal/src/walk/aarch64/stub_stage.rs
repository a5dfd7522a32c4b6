//! An interrupted stub, on aarch64: its kind shows how its caller is found.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::leaf_stub::leaf_caller;
use crate::walk::blob::{Blob, StubKind};
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

impl<M: Memory> Walk<'_, M> {
    /// The caller of the stub of this kind that was interrupted at `cursor`.
    #[inline(never)] // Few frames need this, and a handler's stack may be small.
    pub(in crate::walk) fn interrupted_stub_caller(
        &self,
        vm: &VmLayout,
        kind: StubKind,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        // The stub of the method entry barrier has no kind: the rules for `StubKind::Other` recognise it.
        match kind {
            StubKind::Vtable => Ok(leaf_caller(cursor.sp, registers)),
            StubKind::MethodHandleEntry => {
                self.interrupted_method_handle_entry_caller(vm, blob, cursor, registers)
            }
            StubKind::SlowSubtypeCheck => self.interrupted_subtype_check_caller(cursor, registers),
            StubKind::Safepoint => self.interrupted_safepoint_blob_caller(blob, cursor, registers),
            StubKind::Exception => self.interrupted_exception_blob_caller(blob, cursor, registers),
            StubKind::Collector
            | StubKind::UnwindException
            | StubKind::Deoptimization
            | StubKind::ForwardException
            | StubKind::Other => self.interrupted_other_stub_caller(vm, blob, cursor, registers),
        }
    }
}
