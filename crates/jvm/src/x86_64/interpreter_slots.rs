//! The frame slots that the interpreter's code and the call stub use, found in their instructions (x86_64).
//!
//! Sources: cpu/x86/templateInterpreterGenerator_x86.cpp (`generate_return_entry_for`),
//! cpu/x86/interp_masm_x86.hpp (`get_const`), cpu/x86/interp_masm_x86.cpp (`remove_activation`),
//! cpu/x86/stubGenerator_x86_64.cpp (`generate_call_stub`), JDK 11-25. All of this code addresses a slot by
//! an 8-bit displacement from rbp.

use super::interpreter_code::find_exits;
use crate::used_slots::UsedSlots;

/// `mov qword ptr [rbp + d], 0`: the bytes before and after the displacement.
const CLEAR_SLOT: [&[u8]; 2] = [&[0x48, 0xc7, 0x45], &[0, 0, 0, 0]];
/// `mov r13, [rbp + d]`: loads the bytecode pointer.
const LOAD_R13: &[u8] = &[0x4c, 0x8b, 0x6d];
/// `mov r14, [rbp + d]`: loads the address of the locals, since 21 their distance from rbp.
const LOAD_R14: &[u8] = &[0x4c, 0x8b, 0x75];
/// `mov rbx, [rbp + d]`: loads the sender's stack pointer, where a bytecode method returns.
const LOAD_RBX: &[u8] = &[0x48, 0x8b, 0x5d];
/// `mov r11, [rbp + d]`: loads the sender's stack pointer, where a native method returns.
const LOAD_R11: &[u8] = &[0x4c, 0x8b, 0x5d];
/// `mov [rbp + d], rdi`.
const SAVE_RDI: &[u8] = &[0x48, 0x89, 0x7d];
/// The most bytes between the load of the sender's stack pointer and `leave`. The check of the reserved stack
/// pages may be in between.
const BEFORE_LEAVE_BYTES: usize = 256;
const RBP: u8 = 5;

/// The slot at `displacement`, if it is a multiple of a word.
fn slot(displacement: u8) -> Option<i64> {
    let bytes = i64::from(displacement.cast_signed());
    (bytes % 8 == 0).then_some(bytes / 8)
}

/// If `bytes` begin with `instruction`, the slot of its displacement, and the bytes after the displacement.
fn slot_after<'b>(bytes: &'b [u8], instruction: &[u8]) -> Option<(i64, &'b [u8])> {
    let (&displacement, rest) = bytes.strip_prefix(instruction)?.split_first()?;
    Some((slot(displacement)?, rest))
}

/// Appends the slots that the codelet with these instructions uses.
pub(crate) fn find_slots(bytes: &[u8], to_constant_pool: [u32; 2], used: &mut UsedSlots) {
    for at in 0..bytes.len() {
        if let Some((last_sp, bcp, locals)) = returned_to(&bytes[at..]) {
            used.last_sp.push(last_sp);
            used.bcp.push(bcp);
            used.locals.push(locals);
        }
        used.method.extend(constant_pool(&bytes[at..], to_constant_pool));
    }
    let mut exits = Vec::new();
    find_exits(0, bytes, &mut exits);
    for exit in exits {
        // `leave` is one byte.
        let leave = exit.return_on_stack.start as usize - 1;
        let load = if exit.uses_alternate_registers { LOAD_R11 } else { LOAD_RBX };
        let before = leave.saturating_sub(BEFORE_LEAVE_BYTES)..leave;
        let loaded = before.rev().find_map(|at| slot_after(&bytes[at..leave], load));
        used.sender_sp.extend(loaded.map(|(slot, _)| slot));
    }
}

/// The slots `(last_sp, bcp, locals)` used where a call returns to: the code clears the last stack pointer
/// and restores the bytecode pointer and the locals.
fn returned_to(bytes: &[u8]) -> Option<(i64, i64, i64)> {
    let (last_sp, rest) = slot_after(bytes, CLEAR_SLOT[0])?;
    let (bcp, rest) = slot_after(rest.strip_prefix(CLEAR_SLOT[1])?, LOAD_R13)?;
    let (locals, _) = slot_after(rest, LOAD_R14)?;
    Some((last_sp, bcp, locals))
}

/// The slot `d` of the method in `mov r, [rbp + d]; mov r, [r + _constMethod]; mov r, [r + _constants]`.
fn constant_pool(bytes: &[u8], [const_method, constants]: [u32; 2]) -> Option<i64> {
    let (from, register, displacement) = load(bytes)?;
    if from != RBP {
        return None;
    }
    let follows = |at: usize, offset: u32| {
        load(bytes.get(at..)?)
            .filter(|&(from, to, by)| (from, to) == (register, register) && u32::from(by) == offset)
    };
    follows(4, const_method)?;
    follows(8, constants)?;
    slot(displacement)
}

/// Decodes the four bytes of `mov to, [from + displacement]`, with registers among the first eight, but not
/// rsp as `from`. Returns `(from, to, displacement)`.
fn load(bytes: &[u8]) -> Option<(u8, u8, u8)> {
    let &[0x48, 0x8b, registers, displacement] = bytes.get(..4)? else { return None };
    let (from, to) = (registers & 7, registers >> 3 & 7);
    (registers >> 6 == 1 && from != 4).then_some((from, to, displacement))
}

/// The slots in which a stub with these instructions saves its first argument, rdi.
pub(crate) fn first_argument(bytes: &[u8]) -> Vec<i64> {
    (0..bytes.len()).filter_map(|at| slot_after(&bytes[at..], SAVE_RDI)).map(|(slot, _)| slot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots_of(bytes: &[u8]) -> UsedSlots {
        let mut used = UsedSlots::default();
        find_slots(bytes, [8, 16], &mut used);
        used
    }

    #[test]
    fn a_return_from_a_call_shows_three_slots() {
        let jdk_17: &[u8] = &[
            0x48, 0x8b, 0x65, 0xf0, 0x48, 0xc7, 0x45, 0xf0, 0, 0, 0, 0, 0x4c, 0x8b, 0x6d, 0xc0, 0x4c, 0x8b,
            0x75, 0xc8,
        ];
        let used = slots_of(jdk_17);
        assert_eq!((used.last_sp, used.bcp, used.locals), (vec![-2], vec![-8], vec![-7]));
        // Clearing a slot alone proves nothing: other code does so too. A displacement that is not a multiple
        // of a word is not a slot.
        assert!(slots_of(&jdk_17[..17]).last_sp.is_empty());
        let mut odd = jdk_17.to_vec();
        odd[15] = 0xc1;
        assert!(slots_of(&odd).last_sp.is_empty());
    }

    #[test]
    fn the_slot_that_leads_to_the_constant_pool_is_the_methods() {
        let get: &[u8] = &[0x48, 0x8b, 0x4d, 0xe8, 0x48, 0x8b, 0x49, 0x08, 0x48, 0x8b, 0x49, 0x10];
        assert_eq!(slots_of(get).method, [-3]);
        for (at, other) in [(2, 0x4b), (6, 0x41), (7, 0x10), (11, 0x08)] {
            let mut code = get.to_vec();
            code[at] = other;
            assert!(slots_of(&code).method.is_empty(), "{at}");
        }
    }

    #[test]
    fn an_exit_takes_the_senders_stack_pointer_from_its_slot() {
        // Another load into rbx, the load of the slot into rbx, other code, and
        // `leave; pop r13; mov rsp, rbx; jmp r13`.
        let normal: &[u8] = &[
            0x48, 0x8b, 0x5d, 0xe8, 0x48, 0x8b, 0x5d, 0xf8, 0x90, 0xc9, 0x41, 0x5d, 0x48, 0x8b, 0xe3, 0x41,
            0xff, 0xe5,
        ];
        let native: &[u8] = &[0x4c, 0x8b, 0x5d, 0xf8, 0xc9, 0x5f, 0x49, 0x8b, 0xe3, 0xff, 0xe7];
        assert_eq!(slots_of(normal).sender_sp, [-1]);
        assert_eq!(slots_of(native).sender_sp, [-1]);
        assert!(slots_of(&native[4..]).sender_sp.is_empty());
    }

    #[test]
    fn a_stub_saves_its_first_argument() {
        // `push rbp; mov rbp, rsp; sub rsp, 96; mov [rbp - 8], r9; mov [rbp - 48], rdi`.
        let stub =
            [0x55, 0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 0x60, 0x4c, 0x89, 0x4d, 0xf8, 0x48, 0x89, 0x7d, 0xd0];
        assert_eq!(first_argument(&stub), [-6]);
    }
}
