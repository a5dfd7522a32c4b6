//! An interrupted I2C or C2I adapter, on x86_64 (cpu/x86/sharedRuntime_x86_64.cpp, gen_i2c_adapter,
//! gen_c2i_adapter, JDK 11-25).
//!
//! Both pop the return address (`pop rax`), move the stack pointer, and push the return address again
//! (`push rax`, or, until JDK 17, `mov [rsp], rax`). I2C does not change the interpreted caller's RBP. C2I,
//! which lies after I2C, saves the compiled caller's SP in r13. Until then, through the barriers at C2I's
//! entry, r13 holds an unrelated value, often an earlier caller's SP.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::bytes_to_return::ReturnSlot;
use crate::walk::blob::Blob;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

/// The most bytes of an adapter. Its longest part saves all registers.
const MAX_ADAPTER_BYTES: u64 = 4096;
/// The most bytes of saved data: more than the arguments that a call moves, and than all registers
/// (`push_CPU_state`).
const MAX_SAVED_BYTES: u64 = 4096;
/// The places where `push_CPU_state` leaves registers that C2I needs again, in bytes above the floating-point
/// state, and the number of bytes that it pushes there: `pusha`, a word for the alignment, and the flags
/// (cpu/x86/macroAssembler_x86.cpp, push_CPU_state, push_IU_state, assembler_x86.cpp, pusha, JDK 11-25).
const SAVED_R13: u64 = 16;
const SAVED_FP: u64 = 80;
const SAVED_RAX: u64 = 120;
const SAVED_BYTES: u64 = 128 + 16;
/// `add rsp, imm32`, after the instruction that restores the floating-point state. The state's size depends
/// on the processor.
const REMOVES: [u8; 3] = [0x48, 0x81, 0xc4];
/// The most bytes between the call and this `add`.
const RESTORING_BYTES: usize = 24;
/// The most bytes from after `pop rax` to the end of the instruction that puts the address back.
const PUTTING_BACK_BYTES: usize = 24;
/// The number of an adapter's bytes that are read at once.
const WINDOW: usize = 64;

/// `pop rax; mov r13, rsp` in both encodings (11 and 17) and `lea r13, [rsp + 8]` (21 on).
const SET_SENDER_SP: [&[u8]; 3] =
    [&[0x58, 0x4c, 0x8b, 0xec], &[0x58, 0x49, 0x89, 0xe5], &[0x4c, 0x8d, 0x6c, 0x24, 0x08]];
/// The length of the longest of these sequences, less one.
const SET_SENDER_SP_OVERLAP: u64 = 4;

impl<M: Memory> Walk<'_, M> {
    /// The caller of the adapter that was interrupted at `cursor`.
    pub(in crate::walk) fn interrupted_adapter_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let barriers_caller = self.adapter_in_barrier_caller(vm, blob, cursor);
        let is_on_top = barriers_caller.is_some_and(|caller| caller.sp == cursor.sp.wrapping_add(8));
        if let Some(caller) = barriers_caller.filter(|_| !is_on_top) {
            return Ok(caller);
        }
        let on_stack = self.load(cursor.sp)?;
        // A barrier saves rax by the same `push rax`.
        let is_popped = self.puts_return_back(cursor.pc) && !is_on_top;
        let is_on_stack = self.in_code_cache(on_stack) && !is_popped;
        let r13 = registers.r13();
        let is_near =
            r13 >= cursor.sp && r13 <= self.stack_high && r13.wrapping_sub(cursor.sp) < MAX_SAVED_BYTES;
        let sets_later = !is_near || self.sets_sender_sp_later(vm, blob, cursor.pc)?;
        // While C2I has the caller's call patched, it keeps its own SP in r13, and all registers are saved
        // below that SP.
        if is_near && sets_later && !is_on_stack && !is_popped {
            let pc = self.load(r13)?;
            if self.is_return_address(vm, pc) {
                let sp = r13.wrapping_add(8);
                return Ok(Cursor { pc, sp, fp: registers.fp(), interrupted: false });
            }
        }
        let pc = if is_on_stack { on_stack } else { registers.rax() };
        if !self.in_code_cache(pc) {
            return Err(WalkError::UnknownCode);
        }
        // An interpreted caller is found only by RBP.
        let above = if is_on_stack { cursor.sp.wrapping_add(8) } else { cursor.sp };
        let sp = if sets_later { above } else { r13 };
        Ok(Cursor { pc, sp, fp: registers.fp(), interrupted: false })
    }

    /// The caller of an adapter that has called the VM or a collector: C2I to have its caller's call patched
    /// (`patch_callers_callsite`), or in a barrier.
    pub(in crate::walk) fn returned_adapter_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Option<Cursor> {
        self.patching_adapter_caller(vm, cursor).or_else(|| self.adapter_in_barrier_caller(vm, blob, cursor))
    }

    /// The caller of an adapter whose barrier has saved registers. C2I checks whether the method's class is
    /// alive, which for some collectors is a call (gc/shared/barrierSetAssembler_x86.cpp, c2i_entry_barrier,
    /// JDK 17-25).
    fn adapter_in_barrier_caller(&self, vm: &VmLayout, blob: &Blob, cursor: &Cursor) -> Option<Cursor> {
        let ReturnSlot { slot, fp } = self.return_slot_of_frameless(vm, blob, cursor)?;
        Some(Cursor { pc: self.memory.load_u64(slot)?, sp: slot.wrapping_add(8), fp, interrupted: false })
    }

    /// The caller of a C2I adapter that has its caller's call patched. Meanwhile all registers are saved,
    /// among them the adapter's own SP in r13 and the return address in rax.
    fn patching_adapter_caller(&self, vm: &VmLayout, cursor: &Cursor) -> Option<Cursor> {
        let mut code = [0_u8; RESTORING_BYTES];
        if !self.memory.read_bytes(cursor.pc, &mut code) {
            return None;
        }
        let add = code.windows(7).find(|code| code.starts_with(&REMOVES))?;
        let size = u32::from_le_bytes(*add.last_chunk()?);
        let base = cursor.sp.wrapping_add(u64::from(size).min(MAX_SAVED_BYTES));
        let saved = |offset: u64| self.memory.load_u64(base.wrapping_add(offset));
        let slot = saved(SAVED_R13)?;
        // SP was aligned to 16 bytes before the registers were pushed.
        let padding = slot.wrapping_sub(base.wrapping_add(SAVED_BYTES));
        if padding >= 16 || !slot.is_multiple_of(8) {
            return None;
        }
        let pc = self.memory.load_u64(slot).filter(|&pc| self.is_java_code(vm, pc))?;
        let caller = Cursor { pc, sp: slot.wrapping_add(8), fp: saved(SAVED_FP)?, interrupted: false };
        (saved(SAVED_RAX) == Some(pc)).then_some(caller)
    }

    /// Whether the code at `pc`, possibly after moving SP, puts the return address back onto the stack. Until
    /// then the address is in rax, and the word on top of the stack is left over from an earlier call.
    fn puts_return_back(&self, pc: u64) -> bool {
        let mut code = [0_u8; PUTTING_BACK_BYTES];
        // If fewer bytes can be read, the zeros after them match no instruction here.
        let _ = self.memory.read_bytes(pc, &mut code);
        let mut rest = code.as_slice();
        loop {
            let length = match *rest {
                // push rax; mov [rsp], rax
                [0x50, ..] | [0x48, 0x89, 0x04, 0x24, ..] => return true,
                // mov r11, rsp; mov r13, rsp, in both encodings
                [0x4c, 0x8b, 0xdc | 0xec, ..] | [0x49, 0x89, 0xe3 | 0xe5, ..] => 3,
                // sub rsp, size; and rsp, -16
                [0x48, 0x83, 0xec, _, ..] | [0x48, 0x83, 0xe4, 0xf0, ..] => 4,
                [0x48, 0x81, 0xec, ..] => 7,
                _ => return false,
            };
            rest = rest.get(length..).unwrap_or_default();
        }
    }

    /// Whether the instruction that saves the sender's SP in r13 is at or after `pc`.
    fn sets_sender_sp_later(&self, vm: &VmLayout, blob: &Blob, pc: u64) -> Result<bool, WalkError> {
        let end = self.blob_end(vm, blob)?.min(pc.wrapping_add(MAX_ADAPTER_BYTES));
        // If `pc` is at `mov r13, rsp`, the preceding `pop rax` has been executed.
        let mut at = pc.wrapping_sub(1);
        while at < end {
            let mut window = [0_u8; WINDOW];
            let length = (end.wrapping_sub(at) as usize).min(WINDOW);
            let Some(code) = window.get_mut(..length) else { return Ok(false) };
            if !self.memory.read_bytes(at, code) {
                return Err(WalkError::Unreadable);
            }
            let code: &[u8] = code;
            if SET_SENDER_SP.iter().any(|&set| code.windows(set.len()).any(|bytes| bytes == set)) {
                return Ok(true);
            }
            at = at.wrapping_add((WINDOW as u64).wrapping_sub(SET_SENDER_SP_OVERLAP));
        }
        Ok(false)
    }
}
