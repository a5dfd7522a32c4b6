//! Interpreter frames.

use otlpprof_core::interpreter_code::ValueLocation;
use otlpprof_core::memory::Memory;
use otlpprof_core::record::FrameKind;
use otlpprof_core::vm_layout::VmLayout;

use super::arch;
use super::arch::interpreter_frame::sender_sp;
use super::cursor::Cursor;
use super::registers::Registers;
use super::sink::FrameSink;
use super::stack_walk::Walk;
use super::walk_error::WalkError;

/// The most stack space that a C2I adapter reserves, in bytes. A method has at most 255 words of arguments
/// (JVMS 4.3.3), and SP is aligned (cpu/*/sharedRuntime_*.cpp, gen_c2i_adapter, JDK 11-25).
const MAX_ARGUMENT_BYTES: u64 = 256 * 8 + 16;

/// The location of a method's bytecodes.
#[derive(Clone, Copy)]
pub(super) struct Bytecodes {
    begin: u64,
    size: u64,
}

impl Bytecodes {
    /// The kind of the method's frames. A native method has no bytecodes.
    pub(super) const fn kind(self) -> FrameKind {
        if self.size == 0 { FrameKind::NativeMethod } else { FrameKind::Interpreted }
    }

    /// The bytecode index of `bcp`; -1 if it does not point into the bytecodes.
    pub(super) const fn index_of(self, bcp: u64) -> i32 {
        let index = bcp.wrapping_sub(self.begin);
        if index < self.size { index as i32 } else { -1 }
    }
}

impl<M: Memory> Walk<'_, M> {
    /// Loads a word of the frame at `fp`.
    pub(super) fn slot(&self, fp: u64, index: i64) -> Result<u64, WalkError> {
        self.load(fp.wrapping_add_signed(index.wrapping_mul(8)))
    }

    /// Returns `passed`, the sender's SP that code without a frame received in a register, if only arguments
    /// can lie between `sp` and `passed`.
    pub(super) fn passed_sender_sp(&self, sp: u64, passed: u64) -> Option<u64> {
        let is_above = passed.wrapping_sub(sp) <= MAX_ARGUMENT_BYTES && passed <= self.stack_high;
        (is_above && passed.is_multiple_of(8)).then_some(passed)
    }

    /// Appends the Java frame of a complete interpreter frame and finds its caller. `bcp_register` is tried
    /// before the frame's own slot, which holds the bytecode pointer only across calls.
    #[inline(always)]
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
        let bytecodes = self.bytecodes(vm, method)?;
        let bci = match bcp_register.map(|bcp| bytecodes.index_of(bcp)) {
            Some(bci) if bci >= 0 => bci,
            // The bytecode pointer of a native method is 0.
            _ => bytecodes.index_of(self.slot(fp, vm.interpreter_frame.bcp)?),
        };
        sink.java(bytecodes.kind(), 0, method, bci);
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

    /// The caller to which an exception is thrown at `cursor`, where the interpreter has already removed the
    /// frame that it leaves. The method of the removed frame is not kept: the sample belongs to the caller,
    /// at its call.
    pub(super) fn thrown_to_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Option<Result<Cursor, WalkError>> {
        let to = vm.stubs.interpreter_code.thrown_to_at(cursor.pc)?;
        let register = |number| registers.by_dwarf_number(number).ok_or(WalkError::BadInterpreterFrame);
        let above = |bytes: u8| cursor.sp.wrapping_add(u64::from(bytes));
        let pc = match to.return_address {
            ValueLocation::InRegister(number) => register(number).map(arch::return_address::strip),
            ValueLocation::AboveSp(bytes) => self.load_return_address(above(bytes)),
        };
        let sp = match to.sp {
            ValueLocation::InRegister(number) => register(number),
            ValueLocation::AboveSp(bytes) => Ok(above(bytes)),
        };
        let caller = |(pc, sp)| Cursor { pc, sp, fp: cursor.fp, interrupted: false };
        Some(pc.and_then(|pc| Ok((pc, sp?))).map(caller))
    }

    /// Appends the interpreter's frames at `cursor`, and finds their caller. `interrupted` has the registers
    /// if the interpreter was interrupted.
    pub(super) fn interpreter_step(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        interrupted: Option<&Registers>,
        sink: &mut FrameSink<'_>,
    ) -> Result<Cursor, WalkError> {
        match interrupted {
            Some(registers) => self.interrupted_interpreter_step(vm, cursor, registers, sink),
            None => match self.frameless_interpreter_caller(vm, cursor, sink) {
                Some(caller) => caller,
                None => self.interpreted_frames(vm, cursor, sink).or_else(|error| {
                    match self.frame_below_barrier(vm, cursor) {
                        Some(fp) if error == WalkError::BadInterpreterFrame && fp > cursor.fp => {
                            self.interpreted_frames(vm, &Cursor { fp, ..*cursor }, sink)
                        }
                        _ => Err(error),
                    }
                }),
            },
        }
    }

    /// The caller of interpreter code that has called stubs or native code without a frame of its own. Such
    /// code calls no Java: if the frame right above is a Java frame, the code at `cursor` is not of this
    /// kind.
    fn frameless_interpreter_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        sink: &FrameSink<'_>,
    ) -> Option<Result<Cursor, WalkError>> {
        if sink.last_method().is_some() {
            return None;
        }
        self.frameless_entry_caller(vm, cursor).or_else(|| self.removed_activation_caller(cursor).map(Ok))
    }

    /// As [`Walk::interpreted_step`], for a frame that is returned to and for all its interpreted callers.
    /// Returns the first caller that is not interpreted.
    fn interpreted_frames(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        sink: &mut FrameSink<'_>,
    ) -> Result<Cursor, WalkError> {
        // A local copy, which stays in registers.
        let mut cursor = *cursor;
        loop {
            cursor = self.interpreted_step(vm, &cursor, None, sink)?;
            if sink.is_full() || !vm.stubs.interpreter.contains(cursor.pc) {
                return Ok(cursor);
            }
        }
    }

    /// The bytecodes of the presumed Method at `method`.
    pub(super) fn bytecodes(&self, vm: &VmLayout, method: u64) -> Result<Bytecodes, WalkError> {
        let bad = WalkError::BadInterpreterFrame;
        let layout = &vm.method;
        if method == 0 || !method.is_multiple_of(8) {
            return Err(bad);
        }
        let pointer = |address: u64, field: u32| {
            self.memory
                .load_u64(address.wrapping_add(u64::from(field)))
                .filter(|&address| address != 0 && address.is_multiple_of(8))
        };
        // A ConstMethod leads to a constant pool, and the pool to its class. Garbage does not survive these
        // three dependent loads.
        let const_method = pointer(method, layout.const_method).ok_or(bad)?;
        let pool = self.memory.load_u64(const_method.wrapping_add(u64::from(layout.constants))).ok_or(bad)?;
        pointer(pool, layout.pool_holder).ok_or(bad)?;
        let size = self.memory.load_u16(const_method.wrapping_add(u64::from(layout.code_size)));
        Ok(Bytecodes {
            begin: const_method.wrapping_add(u64::from(layout.const_method_size)),
            size: size.map_or(0, u64::from),
        })
    }
}
