//! A collector's stub that compiled code calls to process a loaded reference, on aarch64.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::stack_walk::Walk;

impl<M: Memory> Walk<'_, M> {
    /// Always `None`: a collector's stub that compiled code calls makes a frame record before it calls out,
    /// as other stubs do.
    pub(in crate::walk) fn collector_stub_caller(
        &self,
        _vm: &VmLayout,
        _blob: &Blob,
        _cursor: &Cursor,
    ) -> Option<Cursor> {
        None
    }
}
