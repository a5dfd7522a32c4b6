//! The blobs that compiled code polls into, on x86_64 (cpu/x86/sharedRuntime_x86_64.cpp,
//! generate_handler_blob, save_live_registers, JDK 11-25). One blob is entered from the poll before a return,
//! with the method's frame removed and its return address on the stack. The others are entered by the VM's
//! signal handler from a poll elsewhere, with no return address on the stack. They first make room for a
//! return address, and write it when the registers are saved.
//!
//! | Stage | The caller's return address |
//! |---|---|
//! | at `push rbx` (not before a return) | in the thread's `_saved_exception_pc`; no slot yet |
//! | `push rbp` | rsp |
//! | `mov rbp, rsp` | rsp + 8 |
//! | registers saved, the VM called, registers restored | rbp + 8 |
//! | `pop rbp` | rsp + 8 |
//! | `ret`, `jmp` to the pending exception's stub | rsp |
//!
//! The values saved below RBP can be anything, including return addresses of frames that no longer exist.

use otlpprof_core::memory::Memory;

use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

const PUSH_RBX: u8 = 0x53;
const POP_RBP: u8 = 0x5d;
const RET: u8 = 0xc3;
const JMP: u8 = 0xe9;
/// The most bytes of code before the return address is written.
const MAX_SAVING_BYTES: usize = 1024;
/// The most bytes of a blob's frame, which has all registers, those of AVX-512 too.
const MAX_FRAME_BYTES: u64 = 16 * 1024;

/// The place of the return address.
enum ReturnAddress {
    /// Not on the stack yet: it was read from the thread.
    Saved(u64),
    OnStack,
}

impl<M: Memory> Walk<'_, M> {
    /// The frame of the compiled method that has polled into the interrupted blob at `cursor`. For the poll
    /// before a return, the method's caller.
    #[inline(never)] // Few frames need this, and a handler's stack may be small.
    pub(super) fn interrupted_safepoint_blob_caller(
        &self,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let (sp, fp) = (cursor.sp, registers.fp());
        let done = cursor.pc.wrapping_sub(blob.code_begin);
        let makes_room = self.memory.load_u8(blob.code_begin) == Some(PUSH_RBX);
        let return_address =
            if makes_room { self.polled(blob.code_begin, done)? } else { ReturnAddress::OnStack };
        let mut code = [0_u8; 2];
        if !self.memory.read_bytes(cursor.pc.wrapping_sub(1), &mut code) {
            return Err(WalkError::Unreadable);
        }
        let (slot, fp) = match (done.wrapping_sub(u64::from(makes_room)), code) {
            // Before the room is made, the frame ends where the return address will be.
            (u64::MAX, _) => (sp.wrapping_sub(8), fp),
            (0, _) | (_, [_, RET] | [POP_RBP, JMP]) => (sp, fp),
            (1, _) | (_, [_, POP_RBP]) => (sp.wrapping_add(8), self.load(sp)?),
            _ if fp >= sp && fp.wrapping_sub(sp) <= MAX_FRAME_BYTES => (fp.wrapping_add(8), self.load(fp)?),
            _ => return Err(WalkError::NoFrameSize),
        };
        let pc = match return_address {
            ReturnAddress::Saved(pc) => pc,
            ReturnAddress::OnStack => self.load(slot)?,
        };
        let caller = Cursor { pc, sp: slot.wrapping_add(8), fp, interrupted: false };
        if caller.sp == sp { Ok(caller) } else { self.check_progress(cursor, caller) }
    }

    /// The place of the poll's address when `done` bytes of the blob's code have been executed.
    fn polled(&self, code_begin: u64, done: u64) -> Result<ReturnAddress, WalkError> {
        let mut code = [0_u8; MAX_SAVING_BYTES];
        // A blob is larger than this read, but may be the last of a code heap.
        let is_read = self.memory.read_bytes(code_begin, &mut code);
        // `mov rbx, [r15 + disp32]; mov [rbp + 8], rbx`.
        let store = code.windows(11).enumerate().find_map(|(at, window)| match window {
            [0x49, 0x8b, 0x9f, a, b, c, d, 0x48, 0x89, 0x5d, 8] => {
                Some((at, u32::from_le_bytes([*a, *b, *c, *d])))
            }
            _ => None,
        });
        let (at, field) = store.filter(|_| is_read).ok_or(WalkError::NoFrameSize)?;
        if done >= (at as u64).wrapping_add(11) {
            return Ok(ReturnAddress::OnStack);
        }
        self.load(self.java_thread.wrapping_add(u64::from(field))).map(ReturnAddress::Saved)
    }
}
