//! Stubs that pass an exception from one compiled frame on to the next, on x86_64. The compiled frame below
//! such a stub is complete, but has made no call: the place where its code was left is in RDX.
//!
//! - ExceptionBlob, to which a compiled method's exception handler jumps:
//!   `push rdx; sub rsp, 8; … ; add rsp, 8; pop rdx; … ; jmp r8` (generate_exception_blob,
//!   cpu/x86/sharedRuntime_x86_64.cpp, in JDK 25 cpu/x86/runtime_x86_64.cpp).
//! - Stubs that are entered with a return address on the stack and leave for the handler of that address:
//!   `pop rdx; jmp register` (C2's rethrow stub: x86_64.ad tailjmpInd; StubRoutines' forward_exception; C1's
//!   unwind_exception).
//! - C1's handle_exception_from_callee, which is called, and replaces its return address by the handler:
//!   `leave; pop rcx; jmp rcx` (c1_Runtime1_x86.cpp, generate_handle_exception, JDK 11-25).

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::stub::left_at;
use crate::walk::walk_error::WalkError;

const POP_RDX: u8 = 0x5a;
const POP_RCX: u8 = 0x59;
/// The second byte of `jmp rcx`, after 0xff.
const JMP_RCX: u8 = 0xe1;
/// `push rdx`.
const PUSH_BYTES: u64 = 1;
/// `push rdx; sub rsp, 8`.
const ENTRY_BYTES: u64 = PUSH_BYTES + 4;
/// `add rsp, 8; pop rdx`.
const EXIT: [u8; 5] = [0x48, 0x83, 0xc4, 0x08, POP_RDX];
/// The most pairs of words that a stub without a frame may have pushed before it called out.
const MAX_PADDING: u64 = 4;
/// The most bytes of an ExceptionBlob, more than any has.
const MAX_BLOB_BYTES: usize = 256;

impl<M: Memory> Walk<'_, M> {
    /// The compiled frame whose exception the interrupted ExceptionBlob at `cursor` handles.
    pub(super) fn interrupted_exception_blob_caller(
        &self,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let mut code = [0_u8; MAX_BLOB_BYTES];
        let done = cursor.pc.wrapping_sub(blob.code_begin);
        let code =
            code.get_mut(..done.wrapping_add(EXIT.len() as u64) as usize).ok_or(WalkError::NoFrameSize)?;
        if !self.memory.read_bytes(blob.code_begin, code) {
            return Err(WalkError::Unreadable);
        }
        // The distance from the start of the last exit before or at `pc`. `None` if the exit lies ahead.
        let left = code
            .windows(EXIT.len())
            .rposition(|window| window == EXIT)
            .map(|at| done.wrapping_sub(at as u64));
        match (done, left) {
            (0, _) => Ok(left_at(registers.rdx(), cursor.sp, registers)),
            (..ENTRY_BYTES, _) | (_, Some(4)) => {
                Ok(left_at(self.load(cursor.sp)?, cursor.sp.wrapping_add(8), registers))
            }
            (_, Some(5..)) => Ok(left_at(registers.rdx(), cursor.sp, registers)),
            _ => self.sized_caller(cursor, blob.frame_bytes),
        }
    }

    /// The frame to whose handler a stub is about to jump. The frame's PC is the stub's return address, in
    /// RDX, or the handler's address if the stub has replaced its return address by that.
    pub(super) fn jump_to_handler_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Option<Cursor> {
        let mut bytes = [0_u8; 4];
        if !self.memory.read_bytes(cursor.pc.wrapping_sub(1), &mut bytes) {
            return None;
        }
        let (pc, sp) = match bytes {
            [POP_RDX, 0xff, 0xe0..=0xe7, _] | [POP_RDX, 0x41, 0xff, 0xe0..=0xe7] => {
                (registers.rdx(), cursor.sp)
            }
            [POP_RCX, 0xff, JMP_RCX, _] => (registers.rcx(), cursor.sp),
            [_, POP_RCX, 0xff, JMP_RCX] => (self.memory.load_u64(cursor.sp)?, cursor.sp.wrapping_add(8)),
            _ => return None,
        };
        self.is_java_code(vm, pc).then(|| left_at(pc, sp, registers))
    }

    /// The caller of a stub that has no frame size and has called out: C1's unwind_exception, which keeps its
    /// caller's RBP. Its return address is the first one above SP in a slot that SP's alignment allows: Java
    /// frames are aligned to 16 bytes at calls.
    pub(in crate::walk) fn returned_unwind_exception_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
    ) -> Option<Cursor> {
        let first = cursor.sp.wrapping_add(8) & !15;
        let slots = (0..MAX_PADDING).map(|pair| first.wrapping_add(8).wrapping_add(pair.wrapping_mul(16)));
        let is_return = |pc: &u64| self.in_code_cache(*pc) && self.is_return_address(vm, *pc);
        slots.into_iter().find_map(|slot| {
            let pc = self.memory.load_u64(slot).filter(is_return)?;
            Some(Cursor { pc, sp: slot.wrapping_add(8), fp: cursor.fp, interrupted: false })
        })
    }
}
