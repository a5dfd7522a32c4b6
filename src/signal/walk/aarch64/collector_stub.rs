//! A collector's stub that compiled code calls to process a loaded reference, on aarch64.

use crate::core::memory::Memory;
use crate::core::vm_layout::VmLayout;
use crate::signal::walk::blob::Blob;
use crate::signal::walk::{Cursor, Walk};

impl<M: Memory> Walk<'_, M> {
    /// Always `None`: a collector's stub that compiled code calls makes a frame record before it calls out,
    /// as other stubs do.
    pub(in crate::signal::walk) fn collector_stub_caller(
        &self,
        _vm: &VmLayout,
        _blob: &Blob,
        _cursor: &Cursor,
    ) -> Option<Cursor> {
        None
    }
}
