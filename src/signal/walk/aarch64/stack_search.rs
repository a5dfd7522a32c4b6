//! The caller of code that nothing describes and that cannot be followed to its return, on aarch64.

use crate::core::memory::Memory;
use crate::signal::walk::{Cursor, Walk};

impl<M: Memory> Walk<'_, M> {
    /// None is certain: a return address on the stack does not say where the caller's frame begins, as it does where
    /// calls push it. Instructions are all of one length, so that code can nearly always be followed.
    pub(in crate::signal::walk) fn searched_caller(&self, _cursor: &Cursor) -> Option<Cursor> {
        None
    }
}
