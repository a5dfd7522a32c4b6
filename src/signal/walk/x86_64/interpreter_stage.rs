//! An interrupted frame of the interpreter, on x86_64.
//!
//! Outside the stages of entry and exit the frame is complete and RBP points to it. In them RBP still, or
//! again, belongs to the caller, and the return address and the sender's SP are where this table says
//! (cpu/x86/templateInterpreterGenerator_x86.cpp, interp_masm_x86.cpp, JDK 11-25):
//!
//! | Stage | Return PC | Sender SP | Caller's RBP | Method |
//! |---|---|---|---|---|
//! | entry | `[rsp]`; rax between its pop and push | r13 | rbp | rbx |
//! | at `mov rbp, rsp` | `[rsp + 8]` | r13 | `[rsp]` | rbx |
//! | until the sender SP is saved | `rbp[1]` | r13 | `rbp[0]` | rbx |
//! | until the method is saved | `rbp[1]` | `rbp[-1]` | `rbp[0]` | rbx |
//! | exit, after `leave` | `[rsp]`, then r13 (native: rdi) | rbx (native: r11) | rbp | lost |

use crate::core::memory::Memory;
use crate::core::record::FrameKind;
use crate::core::vm_layout::VmLayout;
use crate::signal::walk::registers::Registers;
use crate::signal::walk::{Cursor, FrameSink, Walk, WalkError};

/// `mov rbp, rsp` follows the one-byte `push rbp`, and is three bytes long itself.
const PUSH_FP_BYTES: u64 = 1;
const MOVE_FP_BYTES: u64 = 3;

impl<M: Memory> Walk<'_, M> {
    /// Puts the interrupted interpreter frame into the sink and finds its caller.
    pub(in crate::signal::walk) fn interrupted_interpreter_step(
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
            let has_frame = entry.push_fp != 0 && pc > entry.push_fp;
            if !has_frame || pc < entry.method_saved {
                self.entered_method(vm, registers, sink)?;
            }
            let caller = |pc, sp, fp| Cursor { pc, sp, fp, interrupted: false };
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
            // Which method it was is not in any register any more. The bytecode that returned has ended: the
            // sample belongs to the caller, at its call.
            let (pc_register, sender_sp) = if exit.native {
                (registers.rdi(), registers.r11())
            } else {
                (registers.r13(), registers.rbx())
            };
            let in_register = exit.return_in_register.contains(pc);
            let return_pc = if in_register { pc_register } else { self.load(cursor.sp)? };
            return Ok(Cursor { pc: return_pc, sp: sender_sp, fp: cursor.fp, interrupted: false });
        }
        self.interpreted_step(vm, cursor, Some(registers.r13()), sink)
    }

    fn entered_method(
        &self,
        vm: &VmLayout,
        registers: &Registers,
        sink: &mut FrameSink<'_>,
    ) -> Result<(), WalkError> {
        let method = registers.rbx();
        self.const_method(vm, method)?;
        sink.java(FrameKind::Interpreted, 0, method, 0);
        Ok(())
    }
}
