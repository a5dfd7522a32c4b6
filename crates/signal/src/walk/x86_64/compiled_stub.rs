//! A compiled method interrupted in the stubs after its code, on x86_64. The stubs have no frame of their
//! own, and change the stack below the method's frame.

use otlpprof_core::memory::Memory;

use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;

const JMP: u8 = 0xe9;
const CALL: u8 = 0xe8;

impl<M: Memory> Walk<'_, M> {
    /// If a compiled method's stub for a static call was interrupted, the call in the same method that led to
    /// the stub. The stub (`mov rbx, method; jmp entry`, cpu/x86/compiledIC_x86.cpp emit_to_interp_stub) has
    /// a return address on the stack, but is no callee.
    pub(in crate::walk) fn static_call_stub_caller(
        &self,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Option<Cursor> {
        let mut code = [0_u8; 11];
        let mut before = [0_u8; 10];
        let is_read = self.memory.read_bytes(cursor.pc, &mut code)
            && self.memory.read_bytes(cursor.pc.wrapping_sub(before.len() as u64), &mut before);
        let is_stub = matches!((code, before), ([0x48, 0xbb, .., JMP], _) | ([JMP, ..], [0x48, 0xbb, ..]));
        if !is_read || !is_stub {
            return None;
        }
        // Only a call in the method's code before the stub leads to the stub. The call may have been patched
        // since.
        let pc = self.memory.load_u64(cursor.sp)?;
        let is_call = self.memory.load_u8(pc.wrapping_sub(5))? == CALL;
        if !is_call || !(blob.code_begin..cursor.pc).contains(&pc) {
            return None;
        }
        let caller = Cursor { pc, sp: cursor.sp.wrapping_add(8), fp: registers.fp(), interrupted: false };
        Some(caller)
    }
}
