//! Leaf stubs, on x86_64. They have no frame, and their return address is on top of the stack.

use otlpprof_core::address::RuntimeAddr;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

impl<M: Memory> Walk<'_, M> {
    /// The caller of the interrupted vtable or itable stub, which finds the method that is called.
    pub(super) fn interrupted_vtable_stub_caller(
        &self,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let (pc, sp) = (self.load(cursor.sp)?, cursor.sp.wrapping_add(8));
        self.check_progress(cursor, Cursor { pc, sp, fp: registers.fp(), interrupted: false })
    }

    /// The caller of a leaf stub that native code has called, in a thread without Java frames. JNI's fast
    /// field getters and similar stubs keep the return address on top (cpu/x86/jniFastGetField_x86_64.cpp).
    pub(in crate::walk) fn native_leaf_stub_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        _registers: Option<&Registers>,
    ) -> Result<Cursor, WalkError> {
        let pc = self.load(cursor.sp)?;
        if !cursor.interrupted
            || self.objects.find(RuntimeAddr(pc)).is_none()
            || !self.is_return_address(vm, pc)
        {
            return Err(WalkError::UnknownCode);
        }
        let caller = Cursor { pc, sp: cursor.sp.wrapping_add(8), fp: cursor.fp, interrupted: false };
        self.check_progress(cursor, caller)
    }
}
