//! The blobs that compiled code polls into, on aarch64 (cpu/aarch64/sharedRuntime_aarch64.cpp,
//! generate_handler_blob, save_live_registers, JDK 11-25). One blob is entered from the poll before a return,
//! with the method's frame removed and its return address in x30. The others are entered by the VM's signal
//! handler from a poll elsewhere, with an arbitrary value in x30. They save that value in a frame record, and
//! correct the record when the registers are saved, by
//! `ldr x20, [x28, _saved_exception_pc]; str x20, [x29, 8]`.

use otlpprof_core::a64_branch::INSTRUCTION_BYTES;
use otlpprof_core::memory::Memory;

use super::instructions::{Around, Record};
use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

/// The most bytes of code before the record is corrected.
const MAX_SAVING_BYTES: usize = 512;
/// The most bytes of a blob's frame, which has all registers, those of SVE too.
const MAX_FRAME_BYTES: u64 = 32 * 1024;
/// `str x20, [x29, 8]`
const CORRECT_RECORD: u32 = 0xf900_07b4;

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
        let above_fp = registers.fp().wrapping_sub(cursor.sp);
        let record = match Around::read(self.memory, cursor.pc).record(0) {
            Some(record) => record,
            None if above_fp <= MAX_FRAME_BYTES => Record::OnStack(above_fp),
            None => return Err(WalkError::NoFrameSize),
        };
        let caller = self.caller_by_record(cursor, registers, record)?;
        match self.polled(blob.code_begin, cursor.pc)? {
            Some(pc) => Ok(Cursor { pc, ..caller }),
            None => Ok(caller),
        }
    }

    /// The address of the poll, until the blob that begins at `code_begin` has put it into its record.
    fn polled(&self, code_begin: u64, pc: u64) -> Result<Option<u64>, WalkError> {
        let mut code = [0_u8; MAX_SAVING_BYTES];
        // A blob is larger than this read, but may be the last of a code heap.
        if !self.memory.read_bytes(code_begin, &mut code) {
            return Err(WalkError::Unreadable);
        }
        let (instructions, _) = code.as_chunks::<{ INSTRUCTION_BYTES as usize }>();
        let corrects = instructions.windows(2).enumerate().find_map(|(at, pair)| {
            let [load, store] = pair else { return None };
            let field = saved_pc_field(u32::from_le_bytes(*load))?;
            (u32::from_le_bytes(*store) == CORRECT_RECORD).then_some((at, field))
        });
        // The blob for polls before a return corrects nothing.
        let Some((at, field)) = corrects else { return Ok(None) };
        let corrected = (at as u64).wrapping_add(2).wrapping_mul(INSTRUCTION_BYTES);
        if pc.wrapping_sub(code_begin) >= corrected {
            return Ok(None);
        }
        self.load_return_address(self.java_thread.wrapping_add(field)).map(Some)
    }
}

/// The offset in `ldr x20, [x28, offset]`.
fn saved_pc_field(code: u32) -> Option<u64> {
    (code & 0xffc0_03ff == 0xf940_0394).then_some(u64::from(code >> 10 & 0xfff) << 3)
}
