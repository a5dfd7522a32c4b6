//! StubRoutines' forward_exception on aarch64, which has no frame. It is entered with an address in x30 at
//! which a Java frame is to go on with its pending exception. It keeps that address in x19, asks for that
//! frame's handler (with a pair pushed for the call), moves x19 to x30 and x3, and jumps
//! (cpu/aarch64/stubGenerator_aarch64.cpp, generate_forward_exception, JDK 11-25).

use otlpprof_core::a64_branch::INSTRUCTION_BYTES;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

/// `stp x8, x12, [sp, -16]!` and `ldp x8, x12, [sp], 16` (MacroAssembler::call_VM_leaf_base).
const PUSH_FOR_CALL: u32 = 0xa9bf_33e8;
const POP_AFTER_CALL: u32 = 0xa8c1_33e8;
/// The most instructions of the stub, more than it has.
const MAX_INSTRUCTIONS: u64 = 64;

impl<M: Memory> Walk<'_, M> {
    /// The frame whose exception the forward_exception at `cursor` passes on. `interrupted` has the registers
    /// if the stub was interrupted. In its call the address is in a register that the called function may
    /// have saved anywhere.
    pub(in crate::walk) fn forward_exception_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        interrupted: Option<&Registers>,
    ) -> Result<Cursor, WalkError> {
        let stub = vm.stubs.forward_exception;
        let registers = interrupted.ok_or(WalkError::NoFrameSize)?;
        let last = (1..MAX_INSTRUCTIONS)
            .map(|back| cursor.pc.wrapping_sub(back.wrapping_mul(INSTRUCTION_BYTES)))
            .take_while(|&address| address >= stub.start)
            .find_map(|address| {
                self.memory.load_u32(address).filter(|code| matches!(*code, PUSH_FOR_CALL | POP_AFTER_CALL))
            });
        let pushed = if last == Some(PUSH_FOR_CALL) { 16 } else { 0 };
        let lr = registers.lr();
        // After the call x30 holds an address of this stub.
        let pc = if stub.contains(lr) { registers.x19() } else { lr };
        let sp = cursor.sp.wrapping_add(pushed);
        Ok(Cursor { pc, sp, fp: cursor.fp, interrupted: false })
    }
}
