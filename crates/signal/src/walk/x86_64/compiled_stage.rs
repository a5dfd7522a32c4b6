//! An interrupted frame of a compiled method, on x86_64: determines whether the frame exists at the
//! instruction.
//!
//! The entry is `[mov [rsp-N], eax]; push rbp; sub rsp, size` or `sub rsp, size; mov [rsp+size-8], rbp`. The
//! exit is `add rsp, size; pop rbp; poll; ret`, where the poll is `cmp rsp, [r15+x]; ja stub` (JDK 17 on) or
//! `mov r10, [r15+x]; test [r10], eax` (JDK 11). The exit for an exception is `add rsp, size; pop rbp; jmp`.
//! Sources: cpu/x86/x86_64.ad MachPrologNode, MachEpilogNode and RethrowException, c1_LIRAssembler_x86.cpp,
//! verified_entry in macroAssembler_x86.cpp (JDK 11 and 17) and c2_MacroAssembler_x86.cpp (JDK 21 and 25).
//! `size` follows from the blob's frame size, so the exact bytes of the `sub` are known.

use otlpprof_core::address::CodeRange;
use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::VmLayout;

use super::bytes_to_return::{End, ReturnSlot};
use crate::walk::blob::Blob;
use crate::walk::compiled::Part;
use crate::walk::cursor::Cursor;
use crate::walk::registers::Registers;
use crate::walk::stack_walk::Walk;
use crate::walk::walk_error::WalkError;

/// The number of bytes before `frame_complete` that are searched for the allocating `sub`. Entry checks and
/// barriers lie between.
const PROLOGUE_BYTES: usize = 192;

const PUSH_RBP: u8 = 0x55;
const POP_RBP: u8 = 0x5d;
const RET: u8 = 0xc3;
const RET_POP: u8 = 0xc2;
const JMP: u8 = 0xe9;
const LEAVE: u8 = 0xc9;

/// The state of the interrupted method's frame, which says where its caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::walk) enum Stage {
    /// The frame is complete.
    Complete,
    /// The frame is complete, and the next instruction is the first one that removes it.
    Leaving,
    /// The return address is this many bytes above SP, and RBP has the caller's value.
    Bare(u64),
    /// The method has no frame, and its way to its jump shows where the return address is.
    Frameless,
    /// RBP is saved on top of the stack, the return address above it.
    FpPushed,
    /// The frame is complete, with one more word on top.
    WordPushed,
}

impl<M: Memory> Walk<'_, M> {
    /// The caller of the compiled method's frame that was interrupted at `cursor`.
    pub(in crate::walk) fn interrupted_compiled_caller(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
        registers: &Registers,
        stage: Stage,
    ) -> Result<Cursor, WalkError> {
        let bare = |above: u64| -> Result<Cursor, WalkError> {
            let slot = cursor.sp.wrapping_add(above);
            let caller = Cursor {
                pc: self.load(slot)?,
                sp: slot.wrapping_add(8),
                fp: registers.fp(),
                interrupted: false,
            };
            self.check_progress(cursor, caller)
        };
        match stage {
            Stage::Complete | Stage::Leaving => {
                let pushed = self
                    .bytes_pushed_for_subtype_check(vm, cursor.pc)
                    .wrapping_add(self.bytes_saved_at(vm, blob, cursor.pc));
                let whole = Cursor { sp: cursor.sp.wrapping_add(pushed), ..*cursor };
                let caller = self.sized_caller(&whole, blob.frame_bytes);
                let kept = self.caller_by_kept_sp(vm, blob, cursor, registers);
                if caller.is_ok_and(|caller| self.is_code(caller.pc)) {
                    // Below a search's data the frame's size may lead to a return address of an earlier call.
                    let below = kept.filter(|_| self.may_be_searching(blob, cursor.pc));
                    return below.map_or(caller, Ok);
                }
                kept.or_else(|| self.caller_below_comparison(vm, blob, cursor))
                    .or_else(|| self.caller_below_pushes(vm, blob, cursor, registers))
                    .map_or(caller, Ok)
            }
            Stage::WordPushed => {
                let whole = Cursor { sp: cursor.sp.wrapping_add(8), ..*cursor };
                self.sized_caller(&whole, blob.frame_bytes)
            }
            Stage::Bare(above) => bare(above),
            Stage::Frameless => {
                let Some(found) = self.slot_above_jump(vm, blob, cursor)? else { return bare(0) };
                let (pc, sp) = (self.load(found.slot)?, found.slot.wrapping_add(8));
                self.check_progress(cursor, Cursor { pc, sp, fp: found.fp, interrupted: false })
            }
            Stage::FpPushed => {
                let sp = cursor.sp.wrapping_add(16);
                let (fp, pc) = (self.load(cursor.sp)?, self.load(cursor.sp.wrapping_add(8))?);
                self.check_progress(cursor, Cursor { pc, sp, fp, interrupted: false })
            }
        }
    }

    /// The frame at `cursor`, from whose SP its size counts. Calls push no other words on x86_64.
    pub(in crate::walk) fn without_call_words(&self, cursor: Cursor) -> Cursor {
        cursor
    }

    /// The part of the method that the interrupted instruction at `pc` is in, and the state of the frame
    /// there.
    pub(in crate::walk) fn interrupted_stage(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        pc: u64,
    ) -> Result<(Part, Stage), WalkError> {
        let complete_at = blob.code_begin.wrapping_add_signed(self.frame_complete(vm, blob)?);
        if pc < complete_at {
            return Ok((Part::Entry, self.entry_stage(blob, pc, complete_at)));
        }
        let stage = self.stage_after_entry(vm, blob, pc)?;
        let part = match stage {
            Stage::Complete | Stage::WordPushed => Part::Body,
            Stage::Leaving | Stage::Bare(_) | Stage::Frameless | Stage::FpPushed => Part::Exit,
        };
        Ok((part, stage))
    }

    fn stage_after_entry(&self, vm: &VmLayout, blob: &Blob, pc: u64) -> Result<Stage, WalkError> {
        // If the bytes cannot be read, the code counts as no exit.
        let mut code = [0_u8; 24];
        let _ = self.memory.read_bytes(pc, &mut code);
        let mut before = [0_u8; 16];
        let _ = self.memory.read_bytes(pc.wrapping_sub(before.len() as u64), &mut before);
        if let Some(stage) = later_entry_stage(&code, &before, blob.frame_bytes.wrapping_sub(16)) {
            return Ok(stage);
        }
        let is_exit = match code {
            [RET | RET_POP, ..] => true,
            [POP_RBP, ..] => return Ok(Stage::FpPushed),
            _ if is_pop_to_stack(&code) => return Ok(Stage::WordPushed),
            _ => {
                is_return_poll(&code, &before)
                    || is_return_poll_stub(&code, &before)
                    || is_native_return(&code, &before)
            }
        };
        if is_exit || self.is_unwinding_jump(vm, blob, pc, &code, &before)? {
            return Ok(Stage::Bare(0));
        }
        let is_leaving = begins_exit(&code, blob.frame_bytes.wrapping_sub(16));
        Ok(if is_leaving { Stage::Leaving } else { Stage::Complete })
    }

    /// Whether the code has removed its frame and jumps to another blob to unwind an exception:
    /// `add rsp, size; pop rbp; jmp rel32` (c1_LIRAssembler_x86.cpp emit_unwind_handler; C2's
    /// RethrowException, x86_64.ad).
    fn is_unwinding_jump(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        pc: u64,
        code: &[u8],
        before: &[u8],
    ) -> Result<bool, WalkError> {
        let ([JMP, a, b, c, d, ..], [entry @ .., POP_RBP]) = (code, before) else { return Ok(false) };
        let removes_frame = match i32::try_from(blob.frame_bytes.wrapping_sub(16)) {
            Ok(0) => true,
            Ok(size) => ends_with_add_rsp(entry, size),
            Err(_) => false,
        };
        let end = self.blob_end(vm, blob)?;
        let distance = i64::from(i32::from_le_bytes([*a, *b, *c, *d]));
        let target = pc.wrapping_add(5).wrapping_add_signed(distance);
        Ok(removes_frame && !(blob.address <= target && target < end))
    }

    /// The stage before `frame_complete`: the frame exists once its `sub` has been executed.
    fn entry_stage(&self, blob: &Blob, pc: u64, complete_at: u64) -> Stage {
        let frame = blob.frame_bytes;
        if frame == 0 {
            return Stage::Frameless;
        }
        let mut code = [0_u8; PROLOGUE_BYTES];
        let from = blob.code_begin.max(complete_at.wrapping_sub(PROLOGUE_BYTES as u64));
        let length = (complete_at.wrapping_sub(from) as usize).min(PROLOGUE_BYTES);
        let Some(code) = code.get_mut(..length) else { return Stage::Bare(0) };
        if !self.memory.read_bytes(from, code) {
            return Stage::Bare(0);
        }
        if let Some((start, end)) = find_sub_rsp_of_entry(code, from, pc, frame.wrapping_sub(16)) {
            return match pc {
                pc if pc >= end => Stage::Complete,
                // Between `push rbp` and the `sub` only `mov rbp, rsp` may stand.
                pc if pc == start || self.is_after_push(pc, start) => Stage::FpPushed,
                _ => Stage::Bare(0),
            };
        }
        if let Some((start, end)) = find_sub_rsp(code, frame.wrapping_sub(8)) {
            let (start, end) = (from.wrapping_add(start as u64), from.wrapping_add(end as u64));
            return match pc {
                pc if pc <= start => Stage::Bare(0),
                // At `mov [rsp + size - 8], rbp`: RBP is not saved yet.
                pc if pc == end => Stage::Bare(frame.wrapping_sub(8) as u64),
                _ => Stage::Complete,
            };
        }
        // A frame of 16 bytes is made by `push rbp` only.
        if frame == 16
            && let Some(push) = find_lone_push(code)
            && pc > from.wrapping_add(push as u64)
        {
            return Stage::FpPushed;
        }
        Stage::Bare(0)
    }

    /// The place of the return address of a wrapper of a method handle intrinsic (`linkToStatic`). Such a
    /// wrapper has no frame, and a collector's barrier in it saves registers
    /// (cpu/x86/sharedRuntime_x86_64.cpp, gen_special_dispatch; methodHandles_x86.cpp, JDK 11-27).
    fn slot_above_jump(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Result<Option<ReturnSlot>, WalkError> {
        let end = blob.code_begin.wrapping_add_signed(self.frame_complete(vm, blob)?);
        Ok(self.slot_at_end(CodeRange { start: blob.code_begin, end }, cursor, End::Jump))
    }

    /// The caller of a method without a frame that has called native code.
    pub(in crate::walk) fn frameless_caller_after_call(
        &self,
        vm: &VmLayout,
        blob: &Blob,
        cursor: &Cursor,
    ) -> Result<Cursor, WalkError> {
        let ReturnSlot { slot, fp } =
            self.slot_above_jump(vm, blob, cursor)?.ok_or(WalkError::NoFrameSize)?;
        let (pc, sp) = (self.load_return_address(slot)?, slot.wrapping_add(8));
        if !self.is_return_address(vm, pc) {
            return Err(WalkError::NoFrameSize);
        }
        self.check_progress(cursor, Cursor { pc, sp, fp, interrupted: false })
    }

    fn is_after_push(&self, pc: u64, sub: u64) -> bool {
        // push rbp; mov rbp, rsp; sub: the mov is three bytes (48 8b ec or 48 89 e5).
        pc.wrapping_add(3) == sub && self.memory.load_u8(pc.wrapping_sub(1)) == Some(PUSH_RBP)
    }
}

/// The stage at a later entry, before its `sub` has been executed. A method compiled for on-stack replacement
/// has a second entry somewhere after its first: `mov [rsp-N], eax; push rbp; sub rsp, size`.
fn later_entry_stage(code: &[u8], before: &[u8], size: i64) -> Option<Stage> {
    let at_push = match code {
        [0x89, 0x84, 0x24, _, _, _, _, push @ ..] => push,
        push => push,
    };
    if let [PUSH_RBP, sub @ ..] = at_push
        && matches!(find_sub_rsp(sub, size), Some((0, _)))
    {
        return Some(Stage::Bare(0));
    }
    let is_after_push = matches!(before, [.., PUSH_RBP]);
    (is_after_push && matches!(find_sub_rsp(code, size), Some((0, _)))).then_some(Stage::FpPushed)
}

/// Whether the code is at the poll before a return, after the removal of the frame: only returns compare RSP
/// to the poll word. From JDK 25 on the poll word is near enough to the thread's start for an 8-bit
/// displacement. Before the poll, a method that may touch the stack's reserved zone compares RSP with the
/// limit for it (macroAssembler_x86.cpp, reserved_stack_check).
fn is_return_poll(code: &[u8], before: &[u8]) -> bool {
    match code {
        // cmp rsp, [r15 + disp32] or [r15 + disp8]
        [0x49, 0x3b, 0xa7 | 0x67, ..] => true,
        // ja stub, or jb, after that cmp
        [0x0f, 0x82 | 0x87, ..] => {
            matches!(before, [.., 0x49, 0x3b, 0xa7, _, _, _, _] | [.., 0x49, 0x3b, 0x67, _])
        }
        // mov r10, [r15 + disp32]; test [r10], eax; ret
        [0x4d, 0x8b, 0x97, _, _, _, _, 0x41, 0x85, 0x02, RET, ..] => true,
        // mov r10, imm64; test [r10], eax; ret
        [0x49, 0xba, _, _, _, _, _, _, _, _, 0x41, 0x85, 0x02, RET, ..] => true,
        // test [r10], eax; ret
        [0x41, 0x85, 0x02, RET, ..] => true,
        // test [rip + disp32], eax; ret
        [0x85, 0x05, _, _, _, _, RET | RET_POP, ..] => true,
        _ => false,
    }
}

/// Whether the code is in the stub of the return poll, where RBP is restored and the frame is removed, as at
/// the poll. The stub loads the poll's address into r10, by `mov r10, imm64` (JDK 17-25) or
/// `lea r10, [rip + disp32]`, and goes on by `mov [r15 + disp32], r10; jmp handler`.
fn is_return_poll_stub(code: &[u8], before: &[u8]) -> bool {
    match code {
        [0x49, 0xba, _, _, _, _, _, _, _, _, rest @ ..] | [0x4c, 0x8d, 0x15, _, _, _, _, rest @ ..] => {
            matches!(rest, [0x4d, 0x89, 0x97, _, _, _, _, JMP, ..])
        }
        [0x4d, 0x89, 0x97, _, _, _, _, JMP, ..] => {
            matches!(before, [.., 0x49, 0xba, _, _, _, _, _, _, _, _] | [.., 0x4c, 0x8d, 0x15, _, _, _, _])
        }
        [JMP, ..] => matches!(before, [.., 0x4d, 0x89, 0x97, _, _, _, _]),
        _ => false,
    }
}

/// Whether the `pop` of a copy within the frame is next. C2 copies a word from one place of the frame to
/// another by `push [rsp + x]; pop [rsp + y]` (x86_64.ad, MachSpillCopyNode); its rethrow stub copies the
/// return address in this way.
pub(super) fn is_pop_to_stack(code: &[u8]) -> bool {
    matches!(code, [0x48, 0x8f, 0x04 | 0x44 | 0x84, 0x24, ..] | [0x8f, 0x04 | 0x44 | 0x84, 0x24, ..])
}

/// Whether the code is at the end of a native method's wrapper, after its `leave`. First comes a poll,
/// `test byte ptr [r15 + x], 1; jz` (JDK 25). The check for a pending exception follows in all versions,
/// `cmp qword ptr [r15 + x], 0; jne; ret`, and the `jmp` for such an exception
/// (cpu/x86/sharedRuntime_x86_64.cpp, generate_native_wrapper).
fn is_native_return(code: &[u8], before: &[u8]) -> bool {
    match code {
        [0x49, 0x83, 0x7f, _, 0, rest @ ..]
        | [0x49, 0x83, 0xbf, _, _, _, _, 0, rest @ ..]
        | [0x49, 0x81, 0x7f, _, 0, 0, 0, 0, rest @ ..]
        | [0x49, 0x81, 0xbf, _, _, _, _, 0, 0, 0, 0, rest @ ..] => {
            matches!(rest, [0x0f, 0x85, _, _, _, _, RET, ..])
        }
        [0x0f, 0x85, _, _, _, _, RET, ..] => matches!(
            before,
            [.., 0x49, 0x83, 0x7f, _, 0]
                | [.., 0x49, 0x83, 0xbf, _, _, _, _, 0]
                | [.., 0x49, 0x81, 0x7f, _, 0, 0, 0, 0]
                | [.., 0x49, 0x81, 0xbf, _, _, _, _, 0, 0, 0, 0]
        ),
        [JMP, ..] => matches!(before, [.., 0x0f, 0x85, 1, 0, 0, 0, RET]),
        [0x41, 0xf6, 0x47, _, 1, ..] | [0x41, 0xf6, 0x87, _, _, _, _, 1, ..] => matches!(before, [.., LEAVE]),
        [0x74, ..] => matches!(
            before,
            [.., LEAVE, 0x41, 0xf6, 0x47, _, 1] | [.., LEAVE, 0x41, 0xf6, 0x87, _, _, _, _, 1]
        ),
        _ => false,
    }
}

/// Whether `code` begins with `add rsp, size; pop rbp`.
fn begins_exit(code: &[u8], size: i64) -> bool {
    let add = match code {
        [0x48, 0x81, 0xc4, _, _, _, _, POP_RBP, ..] => code.get(..7),
        [0x48, 0x83, 0xc4, _, POP_RBP, ..] => code.get(..4),
        _ => None,
    };
    add.zip(i32::try_from(size).ok()).is_some_and(|(add, size)| ends_with_add_rsp(add, size))
}

/// Whether `code` ends with `add rsp, size`.
fn ends_with_add_rsp(code: &[u8], size: i32) -> bool {
    let [a, b, c, d] = size.to_le_bytes();
    code.ends_with(&[0x48, 0x81, 0xc4, a, b, c, d])
        || ((1..128).contains(&size) && code.ends_with(&[0x48, 0x83, 0xc4, a]))
}

/// Finds the `push rbp` that either ends an entry, or is followed by `mov rbp, rsp` or by the entry barrier's
/// compare (`cmp dword ptr [r15 + disp8], 1`).
fn find_lone_push(code: &[u8]) -> Option<usize> {
    let is_push = |rest: &&[u8]| {
        matches!(
            rest,
            [PUSH_RBP]
                | [PUSH_RBP, 0x48, 0x8b, 0xec, ..]
                | [PUSH_RBP, 0x48, 0x89, 0xe5, ..]
                | [PUSH_RBP, 0x41, 0x81 | 0x83, 0x7f, ..]
        )
    };
    let rests = (0..code.len()).filter_map(|start| code.get(start..));
    rests.enumerate().find(|(_, rest)| is_push(rest)).map(|(start, _)| start)
}

/// The start and end of `sub rsp, size` in the entry that `pc` is in; `code` is at `from`.
/// `Continuation.enterSpecial` has two entries, of which the interpreter's is the first
/// (cpu/x86/sharedRuntime_x86_64.cpp, gen_continuation_enter).
fn find_sub_rsp_of_entry(code: &[u8], from: u64, pc: u64, size: i64) -> Option<(u64, u64)> {
    /// The most bytes from the entry to the `sub`: a `nop` that can be patched, `push rbp; mov rbp, rsp`.
    const ENTRY_BYTES: u64 = 10;
    let at = |(start, end): (usize, usize)| (from.wrapping_add(start as u64), from.wrapping_add(end as u64));
    let first = find_sub_rsp(code, size)?;
    let later = code.get(first.1..).and_then(|rest| find_sub_rsp(rest, size));
    let later = later.map(|(start, end)| at((first.1.wrapping_add(start), first.1.wrapping_add(end))));
    Some(later.filter(|&(start, _)| pc >= start.wrapping_sub(ENTRY_BYTES)).unwrap_or_else(|| at(first)))
}

/// Finds `sub rsp, size` in `code`. Returns the offsets of its start and end.
fn find_sub_rsp(code: &[u8], size: i64) -> Option<(usize, usize)> {
    let size = i32::try_from(size).ok().filter(|&size| size > 0)?;
    let [a, b, c, d] = size.to_le_bytes();
    let long = [0x48, 0x81, 0xec, a, b, c, d];
    let short = [0x48, 0x83, 0xec, a];
    let find = |pattern: &[u8]| {
        let start = code.windows(pattern.len()).position(|window| window == pattern)?;
        Some((start, start.wrapping_add(pattern.len())))
    };
    find(&long).or_else(|| if size < 128 { find(&short) } else { None })
}
