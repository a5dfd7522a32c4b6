//! Interpreter frames.

use super::arch::interpreter_frame::sender_sp;
use super::{Cursor, FrameSink, Walk, WalkError};
use crate::core::memory::Memory;
use crate::core::record::FrameKind;
use crate::core::vm_layout::VmLayout;

impl<M: Memory> Walk<'_, M> {
    /// A word of the frame at `fp`.
    pub(super) fn slot(&self, fp: u64, index: i64) -> Result<u64, WalkError> {
        self.load(fp.wrapping_add_signed(index.wrapping_mul(8)))
    }

    /// Puts the Java frame of a complete interpreter frame into the sink and finds its caller. `bcp_register` is
    /// tried before the frame's own slot, which holds the bytecode pointer only across calls.
    pub(super) fn interpreted_step(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        bcp_register: Option<u64>,
        sink: &mut FrameSink<'_>,
    ) -> Result<Cursor, WalkError> {
        let fp = cursor.fp;
        if fp < cursor.sp || !fp.is_multiple_of(8) || fp >= self.stack_high {
            return Err(WalkError::BadInterpreterFrame);
        }
        let method = self.slot(fp, vm.interpreter_frame.method)?;
        let const_method = self.const_method(vm, method)?;
        let bci = match bcp_register.map(|bcp| self.bci(vm, const_method, bcp)) {
            Some(bci) if bci >= 0 => bci,
            _ => self.bci(vm, const_method, self.slot(fp, vm.interpreter_frame.bcp)?),
        };
        // A native method has no bytecodes; its bytecode pointer is 0.
        let kind = if self.code_size(vm, const_method) == 0 {
            FrameKind::NativeMethod
        } else {
            FrameKind::Interpreted
        };
        sink.java(kind, 0, method, bci);
        let sender = Cursor {
            pc: self.load_return_address(fp.wrapping_add(8))?,
            sp: sender_sp(fp, self.slot(fp, vm.interpreter_frame.sender_sp)?),
            fp: self.slot(fp, 0)?,
            interrupted: false,
        };
        if !(fp < sender.sp && sender.sp <= self.stack_high && sender.sp.is_multiple_of(8)) {
            return Err(WalkError::BadStackPointer);
        }
        Ok(sender)
    }

    /// The ConstMethod of what should be a Method.
    pub(super) fn const_method(&self, vm: &VmLayout, method: u64) -> Result<u64, WalkError> {
        if method == 0 || !method.is_multiple_of(8) {
            return Err(WalkError::BadInterpreterFrame);
        }
        let const_method = self
            .memory
            .load_u64(method.wrapping_add(u64::from(vm.method.const_method)))
            .filter(|&address| address != 0 && address.is_multiple_of(8))
            .ok_or(WalkError::BadInterpreterFrame)?;
        // A ConstMethod leads to a constant pool, which leads to its class: three dependent loads that garbage
        // does not survive.
        let pool = self.memory.load_u64(const_method.wrapping_add(u64::from(vm.method.constants)));
        let holder =
            pool.and_then(|pool| self.memory.load_u64(pool.wrapping_add(u64::from(vm.method.pool_holder))));
        match holder {
            Some(holder) if holder != 0 && holder.is_multiple_of(8) => Ok(const_method),
            _ => Err(WalkError::BadInterpreterFrame),
        }
    }

    pub(super) fn code_size(&self, vm: &VmLayout, const_method: u64) -> u64 {
        self.memory.load_u16(const_method.wrapping_add(u64::from(vm.method.code_size))).map_or(0, u64::from)
    }

    /// The bytecode index of `bcp`; -1 if it does not point into the method's bytecodes.
    pub(super) fn bci(&self, vm: &VmLayout, const_method: u64, bcp: u64) -> i32 {
        let code = const_method.wrapping_add(u64::from(vm.method.const_method_size));
        let index = bcp.wrapping_sub(code);
        if index < self.code_size(vm, const_method) { index as i32 } else { -1 }
    }
}
