//! An interrupted frame of the interpreter, on x86_64.
//!
//! Outside the stages of entry and exit the frame is complete and RBP points to it. In those stages RBP
//! belongs to the caller. The return address and the sender's SP are in the places of this table
//! (cpu/x86/templateInterpreterGenerator_x86.cpp, interp_masm_x86.cpp, JDK 11-25):
//!
//! | Stage | Return PC | Sender SP | Caller's RBP | Method |
//! |---|---|---|---|---|
//! | entry | `[rsp]`; rax between its pop and push | r13 | rbp | rbx |
//! | at `mov rbp, rsp` | `[rsp + 8]` | r13 | `[rsp]` | rbx |
//! | until the sender SP is saved | `rbp[1]` | r13 | `rbp[0]` | rbx |
//! | until the method is saved | `rbp[1]` | `rbp[-1]` | `rbp[0]` | rbx |
//! | exit, after `leave` | `[rsp]`, then r13 (native: rdi) | rbx (native: r11) | rbp | lost |

use otlpprof_core::memory::Memory;
use otlpprof_core::record::FrameKind;
use otlpprof_core::vm_layout::VmLayout;

use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::sink::FrameSink;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

/// `mov rbp, rsp` follows the one-byte `push rbp`, and is three bytes long itself.
const PUSH_FP_BYTES: u64 = 1;
const MOVE_FP_BYTES: u64 = 3;

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
        if let Some(entry) = code.entry_at(pc) {
            let moved_fp = entry.push_fp.wrapping_add(PUSH_FP_BYTES).wrapping_add(MOVE_FP_BYTES);
            let caller = |pc, sp, fp| Cursor { pc, sp, fp, interrupted: false };
            if entry.push_fp == 0 {
                // After a barrier no register holds the method any more, and the sample belongs to the
                // caller.
                let _ = self.entered_method(vm, registers, sink);
                return self.interrupted_frameless_entry_caller(entry, cursor, registers);
            }
            let has_frame = pc > entry.push_fp;
            if !has_frame || pc < entry.method_saved {
                self.entered_method(vm, registers, sink)?;
            }
            if !has_frame {
                let return_pc = if entry.return_in_register.contains(pc) {
                    registers.rax()
                } else {
                    self.load(cursor.sp)?
                };
                return Ok(caller(return_pc, registers.r13(), cursor.fp));
            }
            if pc < moved_fp {
                return Ok(caller(self.slot(cursor.sp, 1)?, registers.r13(), self.load(cursor.sp)?));
            }
            let sender_sp = |saved| if saved { self.slot(cursor.fp, -1) } else { Ok(registers.r13()) };
            if pc < entry.method_saved {
                let sp = sender_sp(pc >= entry.sender_sp_saved)?;
                return Ok(caller(self.slot(cursor.fp, 1)?, sp, self.slot(cursor.fp, 0)?));
            }
        } else if let Some(exit) = code.exit_at(pc) {
            // No register holds the method any more. The bytecode that returned has ended: the sample belongs
            // to the caller, at its call.
            let (pc_register, sender_sp) = if exit.uses_alternate_registers {
                (registers.rdi(), registers.r11())
            } else {
                (registers.r13(), registers.rbx())
            };
            let in_register = exit.return_in_register.contains(pc);
            let return_pc = if in_register { pc_register } else { self.load(cursor.sp)? };
            return Ok(Cursor { pc: return_pc, sp: sender_sp, fp: cursor.fp, interrupted: false });
        }
        if let Some(caller) = self.thrown_to_caller(vm, cursor, registers) {
            return caller;
        }
        self.interpreted_step(vm, cursor, Some(registers.r13()), sink)
    }

    /// The caller of an interpreter frame that an exception has removed, while its handler is looked up.
    /// Above the caller's frame lie the return address and the exception, and a word of padding if SP was not
    /// aligned for C. After the call come `mov rbx, rax; pop rdx; pop rax; jmp rbx`, after `add rsp, 8; jmp`
    /// if there is padding (templateInterpreterGenerator_x86.cpp, generate_throw_exception;
    /// MacroAssembler::call_VM_leaf_base).
    pub(in crate::walk) fn removed_activation_caller(&self, cursor: &Cursor) -> Option<Cursor> {
        const LEAVES: [u8; 7] = [0x48, 0x8b, 0xd8, 0x5a, 0x58, 0xff, 0xe3];
        const JMP_BYTES: u64 = 9;
        // A single load, since this check runs for each interpreter frame that is returned to.
        let code = |at: u64| self.memory.load_u64(at).map(u64::to_le_bytes);
        let leaves = |code: &[u8; 8]| code.starts_with(&LEAVES);
        let padding = match code(cursor.pc)? {
            here if leaves(&here) => 0,
            [0x48, 0x83, 0xc4, 0x08, 0xe9, ..] => {
                let after = cursor.pc.wrapping_add(JMP_BYTES);
                let distance = self.memory.load_u32(after.wrapping_sub(4))? as i32;
                code(after.wrapping_add_signed(i64::from(distance))).filter(leaves)?;
                8
            }
            _ => return None,
        };
        let slot = cursor.sp.wrapping_add(padding);
        let pc = self.memory.load_u64(slot)?;
        Some(Cursor { pc, sp: slot.wrapping_add(16), fp: cursor.fp, interrupted: false })
    }

    fn entered_method(
        &self,
        vm: &VmLayout,
        registers: &Registers,
        sink: &mut FrameSink<'_>,
    ) -> Result<(), WalkError> {
        let method = registers.rbx();
        self.bytecodes(vm, method)?;
        sink.java(FrameKind::Interpreted, 0, method, 0);
        Ok(())
    }
}
