//! An interrupted stub without debug information, on x86_64.
//!
//! StubRoutines and most helpers begin with `push rbp; mov rbp, rsp` and end with `leave; ret` or
//! `pop rbp; ret`; in between RBP leads to the caller. Small leaf stubs have no frame and keep RBP.

use super::compiled_stage::is_pop_to_stack;
use crate::core::address::RuntimeAddr;
use crate::core::memory::Memory;
use crate::core::vm_layout::VmLayout;
use crate::signal::walk::blob::{Blob, BlobKind};
use crate::signal::walk::registers::Registers;
use crate::signal::walk::{Cursor, Walk, WalkError};

/// How far above SP a stub's own frame pointer may lie: stubs save registers, up to AVX-512's.
const MAX_STUB_FRAME: u64 = 16 * 1024;
/// How many words above SP a return address is looked for in a stub whose registers were pushed one by one: C1's
/// slow_subtype_check has eight of them in 25 (c1_Runtime1_x86.cpp).
const MAX_PUSHED_WORDS: u64 = 10;

/// What the entry barrier's stub has between the saved RBP and the return address.
pub(in crate::signal::walk) const ENTRY_BARRIER_WORDS_BYTES: u64 = 8;

impl<M: Memory> Walk<'_, M> {
    /// The caller of the stub that was interrupted at `cursor`.
    pub(in crate::signal::walk) fn interrupted_stub_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let (pc, sp, fp) = (cursor.pc, cursor.sp, registers.fp());
        let is_subtype_check = blob.kind == BlobKind::SlowSubtypeCheck;
        let caller = |slot: u64, fp: u64| -> Result<Cursor, WalkError> {
            let pc = self.load(slot)?;
            let arguments = if is_subtype_check { self.bytes_below_subtype_check(pc) } else { 0 };
            let sp = slot.wrapping_add(8).wrapping_add(arguments);
            self.check_progress(cursor, Cursor { pc, sp, fp, interrupted: false })
        };
        if vm.stubs.method_entry_barrier.contains(pc) {
            return self.entry_barrier_caller(cursor, fp);
        }
        if blob.kind == BlobKind::Vtable {
            return caller(sp, fp);
        }
        if blob.kind == BlobKind::MethodHandleEntry {
            return self.method_handle_entry_caller(vm, cursor, registers);
        }
        if blob.kind == BlobKind::Exception {
            return self.exception_blob_caller(blob, cursor, registers);
        }
        if blob.kind == BlobKind::Safepoint {
            return self.safepoint_blob_caller(blob, cursor, registers);
        }
        if let Some(caller) = self.jump_to_handler_caller(vm, cursor, registers) {
            return Ok(caller);
        }
        let mut code = [0_u8; 4];
        let _ = self.memory.read_bytes(pc, &mut code);
        match code {
            // ret; push rbp
            [0xc3, ..] | [0x55, ..] => return caller(sp, fp),
            _ if is_pop_to_stack(&code) => {
                let whole = Cursor { sp: sp.wrapping_add(8), ..*cursor };
                return self.sized_caller(&whole, blob.frame_bytes);
            }
            // mov rbp, rsp in both encodings, behind a push; pop rbp
            [0x48, 0x8b, 0xec, _] | [0x48, 0x89, 0xe5, _] | [0x5d, ..] => {
                return caller(sp.wrapping_add(8), self.load(sp)?);
            }
            _ if vm.stubs.framed.is_some_and(|stubs| stubs.at(pc).is_some())
                && self.load(fp.wrapping_add(8)).is_ok_and(|pc| self.is_return_address(vm, pc)) =>
            {
                return caller(fp.wrapping_add(8), self.load(fp)?);
            }
            // A thread that is not in Java has been called from native code: the small leaf stubs for it (cache
            // flush, safe fetch, CPU features) keep the return address on top. What lies above may be anything.
            _ if !self.is_in_java(vm) => return caller(sp, fp),
            _ => {}
        }
        // A sized blob (a runtime stub) is complete once past its entry; a stub with a frame of its own has RBP
        // right below its return address. Each guess is checked by what it leads to.
        let is_return =
            |slot: u64| self.memory.load_u64(slot).is_some_and(|pc| self.is_return_address(vm, pc));
        if blob.frame_bytes >= 16 && is_return(sp.wrapping_add_signed(blob.frame_bytes.wrapping_sub(8))) {
            return self.sized_caller(cursor, blob.frame_bytes);
        }
        // A stub without a frame keeps its return address on top. That is tried before RBP, which would lead
        // past the caller.
        if is_return(sp) {
            return caller(sp, fp);
        }
        let pushed = |word: u64| sp.wrapping_add(word.wrapping_mul(8));
        let mut pushed = (1..MAX_PUSHED_WORDS).map(pushed).filter(|&slot| is_return(slot));
        // A blob that says that it has no frame size leaves RBP to its caller.
        if blob.frame_bytes < 0
            && let Some(slot) = pushed.next()
        {
            return caller(slot, fp);
        }
        // Compiled code keeps anything in RBP, the entry frame's for one, which has native code above it.
        let is_frame = fp >= sp && fp.wrapping_sub(sp) <= MAX_STUB_FRAME;
        if is_frame && self.memory.load_u64(fp.wrapping_add(8)).is_some_and(|pc| self.is_java_code(vm, pc)) {
            return caller(fp.wrapping_add(8), self.load(fp)?);
        }
        let slot = pushed.next().ok_or(WalkError::NoFrameSize)?;
        caller(slot, fp)
    }

    /// The interpreter's entries of method handles' intrinsics have no frame. Those with a trailing MemberName take the
    /// return address off the stack and put it back: `pop rax; pop rbx; push rax` (cpu/x86/methodHandles_x86.cpp,
    /// generate_method_handle_interpreter_entry, JDK 11-25).
    fn method_handle_entry_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        registers: &Registers,
    ) -> Result<Cursor, WalkError> {
        let on_stack = self.load(cursor.sp)?;
        let (pc, sp) = if self.is_return_address(vm, on_stack) {
            (on_stack, cursor.sp.wrapping_add(8))
        } else {
            (registers.rax(), cursor.sp)
        };
        if !self.is_return_address(vm, pc) {
            return Err(WalkError::NoFrameSize);
        }
        Ok(Cursor { pc, sp, fp: registers.fp(), interrupted: false })
    }

    /// The caller of a leaf stub that native code has called, in a thread that has no Java frames: JNI's fast field
    /// getters and the like keep the return address on top (cpu/x86/jniFastGetField_x86_64.cpp).
    pub(in crate::signal::walk) fn native_leaf_stub_caller(
        &self,
        vm: &VmLayout,
        cursor: &Cursor,
        _registers: Option<&Registers>,
    ) -> Result<Cursor, WalkError> {
        let pc = self.load(cursor.sp)?;
        if !cursor.interrupted
            || self.objects.find(RuntimeAddr(pc)).is_none()
            || !self.is_return_address(vm, pc)
        {
            return Err(WalkError::UnknownCode);
        }
        let caller = Cursor { pc, sp: cursor.sp.wrapping_add(8), fp: cursor.fp, interrupted: false };
        self.check_progress(cursor, caller)
    }

    /// Whether `pc` can be a return address into code that calls stubs: into the interpreter (which pushes
    /// entries of its own), the frozen frames' barrier, right behind a call instruction of Java or native code, or a
    /// deoptimisation handler, which pushes its own address (cpu/x86/x86.ad emit_deopt_handler, c1_LIRAssembler_x86.cpp).
    pub(in crate::signal::walk) fn is_return_address(&self, vm: &VmLayout, pc: u64) -> bool {
        let is_barrier = pc == vm.stubs.cont_return_barrier.start && pc != 0;
        if is_barrier || vm.stubs.interpreter.contains(pc) {
            return true;
        }
        let is_java = self.is_java_code(vm, pc);
        if is_java && self.blob_at(vm, pc).is_ok_and(|blob| self.is_deopt_handler(vm, &blob, pc)) {
            return true;
        }
        if !is_java && self.objects.find(RuntimeAddr(pc)).is_none() {
            return false;
        }
        self.is_behind_call(pc)
    }

    /// Whether the instruction before `pc` is a call.
    pub(in crate::signal::walk) fn is_behind_call(&self, pc: u64) -> bool {
        let mut before = [0_u8; 7];
        if !self.memory.read_bytes(pc.wrapping_sub(7), &mut before) {
            return false;
        }
        // call rel32 is E8 with four bytes; call r/m64 is FF /2 with a ModRM byte and up to five more.
        let indirect = |call: &[u8]| matches!(call, [0xff, modrm, ..] if modrm & 0x38 == 0x10);
        let [.., opcode, _, _, _, _] = before;
        opcode == 0xe8 || before.windows(2).any(indirect)
    }

    /// `method_entry_barrier`: `push -1; push rbp; mov rbp, rsp` and so on; the return PC is in an nmethod whose
    /// frame is complete (cpu/x86/stubGenerator_x86_64.cpp, generate_method_entry_barrier, JDK 21-25).
    fn entry_barrier_caller(&self, cursor: &Cursor, fp: u64) -> Result<Cursor, WalkError> {
        let caller = |pc_slot: u64, fp: u64| -> Result<Cursor, WalkError> {
            let pc = self.load(pc_slot)?;
            let caller = Cursor { pc, sp: pc_slot.wrapping_add(8), fp, interrupted: false };
            self.check_progress(cursor, caller)
        };
        let mut code = [0_u8; 4];
        let _ = self.memory.read_bytes(cursor.pc, &mut code);
        match code {
            // push -1 (long and short form); ret
            [0x68, ..] | [0x6a, ..] | [0xc3, ..] => caller(cursor.sp, fp),
            // push rbp
            [0x55, ..] => caller(cursor.sp.wrapping_add(8), fp),
            // mov rbp, rsp
            [0x48, 0x8b, 0xec, _] | [0x48, 0x89, 0xe5, _] => {
                caller(cursor.sp.wrapping_add(16), self.load(cursor.sp)?)
            }
            _ if fp >= cursor.sp && fp.wrapping_sub(cursor.sp) <= MAX_STUB_FRAME => {
                caller(fp.wrapping_add(16), self.load(fp)?)
            }
            // After leave: only the -1 is left above the return address.
            _ => caller(cursor.sp.wrapping_add(8), fp),
        }
    }
}
