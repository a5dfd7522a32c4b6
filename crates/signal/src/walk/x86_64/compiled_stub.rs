//! A compiled method interrupted in the stubs after its code, on x86_64. The stubs have no frame of their
//! own, and change the stack below the method's frame.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;

const JMP: u8 = 0xe9;
const JMP_SHORT: u8 = 0xeb;
const CALL: u8 = 0xe8;
const CALL_BYTES: u64 = 5;

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

    /// If a deoptimisation handler was interrupted, the frame in its state after the handler: returned to at
    /// the handler's entry. The handler pushes that address and leaves:
    /// `call next; sub qword ptr [rsp], 5; jmp` (C2) or `mov r10, address; push r10; jmp` (C1), until 25.
    /// From 26 on the entry is after the call: `before: call unpack; entry: jmp before`
    /// (emit_deopt_handler in cpu/x86/x86.ad and cpu/x86/c1_LIRAssembler_x86.cpp, JDK 11-27).
    pub(in crate::walk) fn deopt_handler_frame(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Option<Cursor> {
        let mut code = [0_u8; 2];
        let mut before = [0_u8; 12];
        let is_read = self.memory.read_bytes(cursor.pc, &mut code)
            && self.memory.read_bytes(cursor.pc.wrapping_sub(before.len() as u64), &mut before);
        // The number of the handler's bytes before `pc`, and the number of bytes that the handler has pushed
        // by then.
        let (done, pushed) = match (code, before) {
            ([CALL, _], _) if self.is_deopt_handler(vm, blob, cursor.pc.wrapping_add(CALL_BYTES)) => {
                (0_u64.wrapping_sub(CALL_BYTES), 0)
            }
            ([JMP_SHORT | JMP, _], [.., CALL, _, _, _, _]) if self.is_deopt_handler(vm, blob, cursor.pc) => {
                (0, 0)
            }
            ([0x49, 0xba], _) | ([CALL, 0], _) => (0, 0),
            ([0x41, 0x52], [_, _, 0x49, 0xba, ..]) => (10, 0),
            ([JMP, _], [0x49, 0xba, .., 0x41, 0x52]) => (12, 8),
            ([0x48, 0x83], [.., CALL, 0, 0, 0, 0]) => (5, 8),
            ([JMP, _], [.., CALL, 0, 0, 0, 0, 0x48, 0x83, 0x2c, 0x24, _]) => (10, 8),
            _ => return None,
        };
        let pc = cursor.pc.wrapping_sub(done);
        if !is_read || !self.is_deopt_handler(vm, blob, pc) {
            return None;
        }
        let sp = cursor.sp.wrapping_add(pushed);
        Some(Cursor { pc, sp, fp: registers.fp(), interrupted: false })
    }
}
