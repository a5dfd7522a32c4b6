//! The frame slots that the interpreter's code and the call stub use, found in their instructions (aarch64).
//!
//! Sources: cpu/aarch64/templateInterpreterGenerator_aarch64.cpp (`generate_return_entry_for`,
//! `generate_fixed_frame`), cpu/aarch64/interp_masm_aarch64.hpp (`get_const`),
//! cpu/aarch64/stubGenerator_aarch64.cpp (`generate_call_stub`), JDK 11-25. The macro assembler merges two
//! loads from adjacent addresses into one instruction.

use super::interpreter_code::{FIXED_FRAME_INSTRUCTIONS, instructions};
use crate::used_slots::UsedSlots;

/// The registers of the bytecode pointer (X22) and of the locals (X24).
const X22: u32 = 22;
const X24: u32 = 24;
const FP: u32 = 29;
/// Register number 31: the stack pointer when used as a base, the zero register when stored.
const SP: u32 = 31;
const ZERO: u32 = 31;

/// An instruction, decoded only as far as this module needs: registers by number, offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instruction {
    Load { to: u32, from: u32, offset: i64 },
    LoadPair { to: [u32; 2], from: u32, offset: i64 },
    Store { what: u32, to: u32, offset: i64 },
    StorePair { what: [u32; 2], to: u32, offset: i64 },
    FramePointer { above_sp: i64 },
    Other,
}

fn decode(code: u32) -> Instruction {
    let (first, base, second) = (code & 0x1f, code >> 5 & 0x1f, code >> 10 & 0x1f);
    let signed = |from: u32, bits: u32| i64::from((code << (32 - from - bits)).cast_signed() >> (32 - bits));
    match code {
        // ldur, ldr, ldp, stur, stp of 64 bits, without write-back.
        _ if code & 0xffe0_0c00 == 0xf840_0000 => {
            Instruction::Load { to: first, from: base, offset: signed(12, 9) }
        }
        _ if code & 0xffc0_0000 == 0xf940_0000 => {
            Instruction::Load { to: first, from: base, offset: i64::from(code >> 10 & 0xfff) * 8 }
        }
        _ if code & 0xffc0_0000 == 0xa940_0000 => {
            Instruction::LoadPair { to: [first, second], from: base, offset: signed(15, 7) * 8 }
        }
        _ if code & 0xffe0_0c00 == 0xf800_0000 => {
            Instruction::Store { what: first, to: base, offset: signed(12, 9) }
        }
        _ if code & 0xffc0_0000 == 0xa900_0000 => {
            Instruction::StorePair { what: [first, second], to: base, offset: signed(15, 7) * 8 }
        }
        // add x29, sp, #imm
        _ if code & 0xffc0_03ff == 0x9100_03fd => {
            Instruction::FramePointer { above_sp: i64::from(code >> 10 & 0xfff) }
        }
        _ => Instruction::Other,
    }
}

fn slot(offset: i64) -> Option<i64> {
    (offset % 8 == 0).then_some(offset / 8)
}

/// Appends the slots that the codelet with these instructions uses.
pub(crate) fn find_slots(bytes: &[u8], to_constant_pool: [u32; 2], used: &mut UsedSlots) {
    let code: Vec<_> = instructions(bytes).into_iter().map(decode).collect();
    for at in 0..code.len() {
        if let Some((last_sp, bcp, locals)) = returned_to(&code[at..]) {
            used.last_sp.push(last_sp);
            used.bcp.push(bcp);
            used.locals.push(locals);
        }
        if let Some((last_sp, sender_sp)) = fixed_frame(&code[at..]) {
            used.last_sp.push(last_sp);
            used.sender_sp.push(sender_sp);
        }
        used.method.extend(constant_pool(&code[at..], to_constant_pool));
    }
}

/// The slots `(last_sp, bcp, locals)` used where a call returns to: `str xzr, [x29, last_sp]`, followed by
/// loads of x22 and x24, in one instruction or two.
fn returned_to(code: &[Instruction]) -> Option<(i64, i64, i64)> {
    let &[Instruction::Store { what: ZERO, to: FP, offset: last_sp }, ref rest @ ..] = code else {
        return None;
    };
    let (bcp, locals) = match *rest {
        [Instruction::LoadPair { to: [X22, X24], from: FP, offset }, ..] => (offset, offset + 8),
        [
            Instruction::Load { to: X22, from: FP, offset: bcp },
            Instruction::Load { to: X24, from: FP, offset: locals },
            ..,
        ] => (bcp, locals),
        _ => return None,
    };
    Some((slot(last_sp)?, slot(bcp)?, slot(locals)?))
}

/// The slots `(last_sp, sender_sp)` used where the fixed frame is built, by
/// `stp x29, x30, [sp, n]; add x29, sp, n`, and a few instructions later `stp xzr, sender, [sp, last_sp]`.
fn fixed_frame(code: &[Instruction]) -> Option<(i64, i64)> {
    let &[
        Instruction::StorePair { what: [FP, 30], to: SP, offset },
        Instruction::FramePointer { above_sp },
        ref rest @ ..,
    ] = code
    else {
        return None;
    };
    let saved = rest.iter().take(FIXED_FRAME_INSTRUCTIONS).find_map(|&instruction| match instruction {
        Instruction::StorePair { what: [ZERO, sender], to: SP, offset } if sender != ZERO => Some(offset),
        _ => None,
    })?;
    (offset == above_sp).then_some(())?;
    Some((slot(saved - above_sp)?, slot(saved + 8 - above_sp)?))
}

/// The slot `d` of the method in `ldr x, [x29, d]; ldr x, [x, _constMethod]; ldr x, [x, _constants]`.
fn constant_pool(code: &[Instruction], to_constant_pool: [u32; 2]) -> Option<i64> {
    let &[
        Instruction::Load { to: one, from: FP, offset },
        Instruction::Load { to: two, from: by_one, offset: const_method },
        Instruction::Load { from: by_two, offset: constants, .. },
        ..,
    ] = code
    else {
        return None;
    };
    let leads =
        (by_one, by_two) == (one, two) && [const_method, constants] == to_constant_pool.map(i64::from);
    slot(offset).filter(|_| leads)
}

/// The slots in which a stub with these instructions saves its first argument, x0.
pub(crate) fn first_argument(bytes: &[u8]) -> Vec<i64> {
    let saved = |code| match decode(code) {
        Instruction::Store { what: 0, to: FP, offset }
        | Instruction::StorePair { what: [0, _], to: FP, offset } => slot(offset),
        _ => None,
    };
    instructions(bytes).into_iter().filter_map(saved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots_of(code: &[u32]) -> UsedSlots {
        let bytes: Vec<_> = code.iter().flat_map(|code| code.to_le_bytes()).collect();
        let mut used = UsedSlots::default();
        find_slots(&bytes, [8, 16], &mut used);
        used
    }

    /// `str xzr, [x29, -16]`
    const CLEAR_LAST_SP: u32 = 0xf81f_03bf;

    #[test]
    fn a_return_from_a_call_shows_three_slots() {
        let pair = [CLEAR_LAST_SP, 0xa97b_e3b6];
        let single = [CLEAR_LAST_SP, 0xf85b_83b6, 0xf85c_03b8];
        for code in [&pair[..], &single] {
            let used = slots_of(code);
            assert_eq!((used.last_sp, used.bcp, used.locals), (vec![-2], vec![-9], vec![-8]));
        }
        assert!(slots_of(&single[..2]).last_sp.is_empty());
        assert!(slots_of(&single[1..]).bcp.is_empty());
    }

    #[test]
    fn the_slot_that_leads_to_the_constant_pool_is_the_methods() {
        let get = [0xf85e_83a2, 0xf940_0442, 0xf940_0842];
        assert_eq!(slots_of(&get).method, [-3]);
        assert!(slots_of(&[get[0], get[2], get[1]]).method.is_empty());
        assert!(slots_of(&[0xf85e_8382, get[1], get[2]]).method.is_empty());
    }

    #[test]
    fn the_fixed_frame_shows_the_stack_pointers() {
        // `stp x29, x30, [sp, 80]; add x29, sp, 80; stp xzr, x13, [sp, 64]`, and the variant with x19.
        for saved in [0xa904_37ff, 0xa904_4fff] {
            let used = slots_of(&[0xa905_7bfd, 0x9101_43fd, 0xf940_0588, saved]);
            assert_eq!((used.last_sp, used.sender_sp), (vec![-2], vec![-1]));
        }
    }

    #[test]
    fn a_stub_saves_its_first_argument() {
        // `stp x2, x3, [x29, -48]; stp x0, x1, [x29, -64]; str x0, [sp]`.
        let code = [0xa93d_0fa2_u32, 0xa93c_07a0, 0xf900_03e0];
        let bytes: Vec<_> = code.iter().flat_map(|code| code.to_le_bytes()).collect();
        assert_eq!(first_argument(&bytes), [-8]);
    }
}
