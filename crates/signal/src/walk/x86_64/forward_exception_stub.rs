//! StubRoutines' forward_exception on x86_64, which has no frame. It is entered with an address on the stack
//! at which a Java frame is to go on with its pending exception. It asks for that frame's handler
//! (`sub rsp, 8; call; add rsp, 8` if SP is not aligned), pops the address (`pop rdx`), and jumps
//! (cpu/x86/stubGenerator_x86_64.cpp, generate_forward_exception, JDK 11-25).

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

const SUB_RSP_8: [u8; 4] = [0x48, 0x83, 0xec, 0x08];
const ADD_RSP_8: [u8; 4] = [0x48, 0x83, 0xc4, 0x08];
const POP_RDX: u8 = 0x5a;
/// The most bytes of the stub, more than it has.
const MAX_STUB_BYTES: usize = 256;

impl<M: Memory> Walk<'_, M> {
    /// The frame whose exception the forward_exception at `cursor` passes on. `interrupted` has the registers
    /// if the stub was interrupted; else the stub is in its call.
    pub(in crate::walk) fn forward_exception_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        interrupted: Option<&Registers>,
    ) -> Result<Cursor, WalkError> {
        let stub = vm.stubs.forward_exception;
        let mut code = [0_u8; MAX_STUB_BYTES];
        let size = (stub.end.wrapping_sub(stub.start) as usize).min(MAX_STUB_BYTES);
        let code = code.get_mut(..size).ok_or(WalkError::NoFrameSize)?;
        if !self.memory.read_bytes(stub.start, code) {
            return Err(WalkError::Unreadable);
        }
        let done = cursor.pc.wrapping_sub(stub.start) as usize;
        let left = |slot: u64| -> Result<Cursor, WalkError> {
            let sp = slot.wrapping_add(8);
            Ok(Cursor { pc: self.load(slot)?, sp, fp: cursor.fp, interrupted: false })
        };
        let end_of = |instruction: [u8; 4]| {
            let start = code.windows(instruction.len()).position(|window| window == instruction)?;
            Some(start.wrapping_add(instruction.len()))
        };
        let aligned = match (end_of(SUB_RSP_8), end_of(ADD_RSP_8)) {
            (Some(from), Some(to)) => (from..to).contains(&done),
            _ => false,
        };
        let popped = code.iter().rposition(|&byte| byte == POP_RDX);
        match (interrupted, popped) {
            (Some(registers), Some(pop)) if done > pop => {
                Ok(Cursor { pc: registers.rdx(), sp: cursor.sp, fp: cursor.fp, interrupted: false })
            }
            _ if aligned => left(cursor.sp.wrapping_add(8)),
            _ => left(cursor.sp),
        }
    }
}
