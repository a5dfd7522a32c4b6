//! An interrupted stub, on aarch64: its kind shows how its caller is found.

use super::leaf_stub::leaf_caller;
use crate::core::memory::Memory;
use crate::core::vm_layout::VmLayout;
use crate::signal::walk::blob::{Blob, StubKind};
use crate::signal::walk::registers::Registers;
use crate::signal::walk::{Cursor, Walk, WalkError};

impl<M: Memory> Walk<'_, M> {
    /// The caller of the stub of this kind that was interrupted at `cursor`.
    #[inline(never)] // Few frames need this, and a handler's stack may be small.
    pub(in crate::signal::walk) fn interrupted_stub_caller(
        &self,
        vm: &VmLayout,
        kind: StubKind,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        // The entry barrier's stub is no kind: its guard is among the rules for all other stubs.
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
