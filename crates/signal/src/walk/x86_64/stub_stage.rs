//! An interrupted stub, on x86_64: its kind shows how its caller is found.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

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
        match kind {
            // Guard before all kinds: the layout has the address of the entry barrier's stub, and is more
            // certain than a blob's name.
            _ if vm.stubs.method_entry_barrier.contains(cursor.pc) => {
                self.interrupted_entry_barrier_caller(cursor, registers.fp())
            }
            StubKind::Vtable => self.interrupted_vtable_stub_caller(cursor, registers),
            StubKind::MethodHandleEntry => {
                self.interrupted_method_handle_entry_caller(vm, blob, cursor, registers)
            }
            StubKind::Collector => self
                .collector_stub_caller(vm, blob, cursor)
                .map_or_else(|| self.interrupted_other_stub_caller(vm, blob, cursor, registers), Ok),
            StubKind::Exception => self.interrupted_exception_blob_caller(blob, cursor, registers),
            StubKind::Safepoint => self.interrupted_safepoint_blob_caller(blob, cursor, registers),
            StubKind::SlowSubtypeCheck
            | StubKind::UnwindException
            | StubKind::Deoptimization
            | StubKind::ForwardException
            | StubKind::Other => self.interrupted_other_stub_caller(vm, blob, cursor, registers),
        }
    }
}
