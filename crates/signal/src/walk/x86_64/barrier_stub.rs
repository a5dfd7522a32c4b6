//! A compiled method's stubs that call a collector's slow path, on x86_64. They lie after the method's own
//! code, and save the live registers below the method's frame.
//!
//! Such a stub is `sub rsp, size; mov …; call slow_path; mov …; add rsp, size; jmp continuation`
//! (cpu/x86: gc/z/zBarrierSetAssembler_x86.cpp, ZSaveLiveRegisters, JDK 17 and 21;
//! gc/shared/barrierSetAssembler_x86.cpp, SaveLiveRegisters, JDK 25). Without registers to save it has no
//! `sub` and no `add`. With Shenandoah in JDK 27 a stub may have two barriers, between which it tests the
//! collector's state: `add rsp, size; cmpb [r15 + state], 0; je continuation; …; sub rsp, size; …`.
//! C1 pushes rax, if that is live, and makes room for arguments:
//! `call slow_path; add rsp, 16; mov reference, rax; pop rax; jmp continuation`
//! (generate_c1_load_barrier_stub, gc/z/zBarrierSetAssembler_x86.cpp, JDK 17 on).

use otlpprof_core::memory::Memory;

use crate::walk::blob::Stubs;
use crate::walk::stack_walk::Walk;

/// The most bytes that restore registers: a stub that restores all, vectors included, is shorter.
const LONGEST_STUB_BYTES: usize = 768;
/// The same for C1: `sub; mov; mov; call; add; mov; pop; jmp`.
const LONGEST_C1_STUB_BYTES: usize = 32;
/// The room that C1 makes for arguments.
const C1_ARGUMENT_BYTES: u64 = 16;
const PUSH_RAX: u8 = 0x50;
const POP_RAX: u8 = 0x58;
/// The most bytes of saved registers.
const MOST_SAVED_BYTES: u64 = 4096;

impl<M: Memory> Walk<'_, M> {
    /// The number of bytes on top of the frame of a method whose code, at `pc`, is in its `stubs`: the bytes
    /// that the next instructions remove before they jump back to the method's own code.
    pub(in crate::walk) fn bytes_saved_by_barrier(&self, stubs: &Stubs, pc: u64) -> u64 {
        self.bytes_removed(stubs, pc, LONGEST_STUB_BYTES, |size| size < MOST_SAVED_BYTES)
    }

    /// The same number for a `pc` that may be in a stub of C1, or in the method's own code.
    pub(in crate::walk) fn bytes_saved_by_c1s_barrier(&self, stubs: &Stubs, pc: u64) -> u64 {
        self.bytes_removed(stubs, pc, LONGEST_C1_STUB_BYTES, |size| size == C1_ARGUMENT_BYTES)
    }

    /// The number of bytes that the instructions at `pc` remove before they jump back to the method's own
    /// code, within `longest_bytes`, at most [`LONGEST_STUB_BYTES`]. `is_room` says whether an `add` of that
    /// size is the stub's.
    fn bytes_removed(
        &self,
        stubs: &Stubs,
        pc: u64,
        longest_bytes: usize,
        is_room: impl Fn(u64) -> bool,
    ) -> u64 {
        let mut bytes = [0_u8; LONGEST_STUB_BYTES];
        let length = usize::try_from(stubs.end.saturating_sub(pc)).unwrap_or(0).min(longest_bytes);
        let Some(code) = bytes.get_mut(..length).filter(|code| !code.is_empty()) else { return 0 };
        if !self.memory.read_bytes(pc, code) {
            return 0;
        }
        // Directly after the removal of C1's arguments. Elsewhere these bytes may be part of any
        // instruction.
        let popped = match code {
            [0x48 | 0x49 | 0x4c, 0x89 | 0x8b, _, POP_RAX, jump @ ..] => Some((4, jump)),
            [POP_RAX, jump @ ..] => Some((1, jump)),
            _ => None,
        };
        if popped.is_some_and(|(bytes, jump)| stubs.is_left_at(pc.wrapping_add(bytes), jump)) {
            return 8;
        }
        let mut rest: &[u8] = code;
        let mut at = pc;
        // Between C1's push and the making of room for arguments, only the pushed word lies on the frame.
        let only_pushed = match code {
            [0x48, 0x83, 0xec, ..] if self.memory.load_u8(pc.wrapping_sub(1)) == Some(PUSH_RAX) => {
                rest = rest.get(4..).unwrap_or_default();
                at = at.wrapping_add(4);
                true
            }
            _ => false,
        };
        while !rest.is_empty() {
            let removed = match rest {
                // The registers are not saved yet, or another stub begins because this one never jumps back.
                [0x48, 0x81 | 0x83, 0xec, ..] => return 0,
                [0xe9, ..] if stubs.is_left_at(at, rest) => return 0,
                [0x48, 0x83, 0xc4, size, jump @ ..] => Some((u64::from(*size), 4, jump)),
                [0x48, 0x81, 0xc4, a, b, c, d, jump @ ..] => {
                    Some((u64::from(u32::from_le_bytes([*a, *b, *c, *d])), 7, jump))
                }
                _ => None,
            };
            if let Some((size, add_bytes, after)) = removed
                && size.is_multiple_of(8)
                && is_room(size)
            {
                let (moved, jump) = match after {
                    [0x48 | 0x49 | 0x4c, 0x89 | 0x8b, _, jump @ ..] => (3, jump),
                    _ => (0, after),
                };
                let (popped, jump) = match jump {
                    [POP_RAX, jump @ ..] => (1_u64, jump),
                    _ => (0, jump),
                };
                let jump_at = at.wrapping_add(add_bytes).wrapping_add(moved).wrapping_add(popped);
                if stubs.is_left_at(jump_at, jump) || stubs.is_between_barriers(jump_at, jump) {
                    let room = if only_pushed { 0 } else { size };
                    return room.wrapping_add(popped.wrapping_mul(8));
                }
            }
            rest = rest.get(1..).unwrap_or_default();
            at = at.wrapping_add(1);
        }
        0
    }
}

impl Stubs {
    /// Whether `code`, which is at `at`, begins with a jump to the method's own code.
    fn is_left_at(&self, at: u64, code: &[u8]) -> bool {
        let (jump_bytes, distance) = match code {
            [0xe9, a, b, c, d, ..] => (5, i64::from(i32::from_le_bytes([*a, *b, *c, *d]))),
            [0xeb, distance, ..] => (2, i64::from(*distance as i8)),
            _ => return false,
        };
        self.leads_back(at.wrapping_add(jump_bytes).wrapping_add_signed(distance))
    }

    /// Whether `code`, which is at `at`, begins with the test of the collector's state after which a second
    /// barrier follows or the method's own code: `cmpb [r15 + state], 0; je continuation`.
    fn is_between_barriers(&self, at: u64, code: &[u8]) -> bool {
        const BYTES: u64 = 11;
        if cfg!(without_rules_of_26) {
            return false;
        }
        let [0x41, 0x80, 0x7f, _, 0, 0x0f, 0x84, a, b, c, d, ..] = code else { return false };
        let distance = i64::from(i32::from_le_bytes([*a, *b, *c, *d]));
        self.leads_back(at.wrapping_add(BYTES).wrapping_add_signed(distance))
    }
}
