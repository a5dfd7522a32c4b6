//! An interpreter's entry for a method handle intrinsic, on aarch64.

use super::frameless_entry::KEPT_SENDER_SP;
use super::instructions::has_pushed_record;
use crate::core::memory::Memory;
use crate::core::vm_layout::VmLayout;
use crate::signal::walk::blob::Blob;
use crate::signal::walk::{Cursor, Walk, WalkError};

impl<M: Memory> Walk<'_, M> {
    /// The caller of an interpreter's entry for a method handle intrinsic that has called the collector. In
    /// JDK 11 and 17 the sender's SP is passed in x13, which no function preserves.
    pub(in crate::signal::walk) fn method_handle_entry_caller_after_call(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Result<Cursor, WalkError> {
        if !has_pushed_record(self.memory, blob.code_begin, cursor.pc) {
            return Err(WalkError::NoFrameSize);
        }
        let in_x19 = vm.stubs.interpreter_code.sender_sp_register == KEPT_SENDER_SP;
        self.recorded_entry_caller(vm, cursor, in_x19).ok_or(WalkError::NoFrameSize)
    }
}
