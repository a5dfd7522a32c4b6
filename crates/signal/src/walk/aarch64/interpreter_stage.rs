//! An interrupted frame of the interpreter, on aarch64.
//!
//! Outside the stages of entry and exit the frame is complete and x29 points to it. In those stages x29
//! belongs to the caller. The return address and the sender's SP are in the places of this table
//! (cpu/aarch64/templateInterpreterGenerator_aarch64.cpp, interp_masm_aarch64.cpp, JDK 11-25):
//!
//! | Stage | Return PC | Sender SP | Caller's x29 | Method |
//! |---|---|---|---|---|
//! | entry, to `add x29, sp, 80` | x30 | x13 (11, 17), x19 (21 on) | x29 | x12 |
//! | until the sender SP is saved | `x29[1]` | x13 or x19, as before | `x29[0]` | x12 |
//! | exit, after `ldp x29, x30, [sp], 16` | x30 | x9 (native methods and exceptions: x20) | x29 | lost |
//!
//! An intrinsic's entry has no frame ([`super::frameless_entry`]).

use otlpprof_core::a64_branch::INSTRUCTION_BYTES;
use otlpprof_core::memory::Memory;
use otlpprof_core::record::FrameKind;
use otlpprof_core::vm_layout::VmLayout;

use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::sink::FrameSink;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

impl<M: Memory> Walk<'_, M> {
    /// Appends the interrupted interpreter frame and finds its caller.
    pub(in crate::walk) fn interrupted_interpreter_step(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        registers: &Registers,
        sink: &mut FrameSink<'_>,
    ) -> Result<Cursor, WalkError> {
        let pc = cursor.pc;
        let code = &vm.stubs.interpreter_code;
        let caller = |pc, sp, fp| Cursor { pc, sp, fp, interrupted: false };
        if let Some(entry) = code.entry_at(pc) {
            if entry.push_fp == 0 {
                // After a call no register holds the method any more, and the sample belongs to the caller.
                let _ = self.entered_method(vm, registers, sink);
                return self.frameless_caller(vm, entry, cursor, registers);
            }
            let sender_sp = registers.by_dwarf_number(code.sender_sp_register).unwrap_or(0);
            if pc <= entry.push_fp {
                self.entered_method(vm, registers, sink)?;
                return Ok(caller(registers.lr(), sender_sp, cursor.fp));
            }
            if pc < entry.sender_sp_saved {
                self.entered_method(vm, registers, sink)?;
                let return_pc = self.load_return_address(cursor.fp.wrapping_add(8))?;
                return Ok(caller(return_pc, sender_sp, self.slot(cursor.fp, 0)?));
            }
        } else if let Some(exit) = code.exit_at(pc) {
            // No register holds the method any more. The bytecode that returned has ended: the sample belongs
            // to the caller, at its call.
            let sender_sp = if exit.uses_alternate_registers { registers.x20() } else { registers.x9() };
            return Ok(caller(registers.lr(), sender_sp, cursor.fp));
        }
        if let Some(caller) = self.thrown_to_caller(vm, cursor, registers) {
            return caller;
        }
        self.interpreted_step(vm, cursor, Some(registers.x22()), sink)
    }

    /// The caller of an interpreter frame that an exception has removed, while its handler is looked up.
    /// Above the caller's frame lie the exception and the return address, and a pair for the call. After the
    /// call come `ldp x8, x12, [sp], 16; mov x1, x0; ldp x0, x30, [sp], 16; mov x3, x30; br x1`
    /// (templateInterpreterGenerator_aarch64.cpp, generate_throw_exception;
    /// MacroAssembler::call_VM_leaf_base).
    pub(in crate::walk) fn removed_activation_caller(&self, cursor: &Cursor) -> Option<Cursor> {
        const LEAVES: [u32; 5] = [0xa8c1_33e8, 0xaa00_03e1, 0xa8c1_7be0, 0xaa1e_03e3, 0xd61f_0020];
        let mut code = [0_u8; LEAVES.len() * INSTRUCTION_BYTES as usize];
        let is_read = self.memory.read_bytes(cursor.pc, &mut code);
        let (instructions, _) = code.as_chunks::<{ INSTRUCTION_BYTES as usize }>();
        let leaves = instructions.iter().map(|&code| u32::from_le_bytes(code)).eq(LEAVES);
        if !is_read || !leaves {
            return None;
        }
        let pc = self.load_return_address(cursor.sp.wrapping_add(24)).ok()?;
        Some(Cursor { pc, sp: cursor.sp.wrapping_add(32), fp: cursor.fp, interrupted: false })
    }

    fn entered_method(
        &self,
        vm: &VmLayout,
        registers: &Registers,
        sink: &mut FrameSink<'_>,
    ) -> Result<(), WalkError> {
        let method = registers.x12();
        self.bytecodes(vm, method)?;
        sink.java(FrameKind::Interpreted, 0, method, 0);
        Ok(())
    }
}
