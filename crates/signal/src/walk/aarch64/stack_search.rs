//! The search for the caller of undescribed code that cannot be followed to its return, on aarch64.

use otlpprof_core::memory::Memory;

use crate::walk::cursor::Cursor;
use crate::walk::stack_walk::Walk;

impl<M: Memory> Walk<'_, M> {
    /// Always `None`. A return address on the stack does not show where the caller's frame begins, unlike on
    /// architectures where calls push it. All instructions have one length, so code can nearly always be
    /// followed instead.
    pub(in crate::walk) fn searched_caller(&self, _cursor: &Cursor) -> Option<Cursor> {
        None
    }
}
