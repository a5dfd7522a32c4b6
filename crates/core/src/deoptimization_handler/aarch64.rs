//! The way out of a deoptimisation handler on aarch64. The return address is in x30:
//! `entry: adr x30, entry; b blob` until 25, `before: bl blob; entry: b before` later. A target that a branch
//! does not reach is put into a register first: `adrp; add; br`, or up to four moves.

use super::{Interrupted, Left, MAX_INSTRUCTIONS};
use crate::a64_branch::{Branch, INSTRUCTION_BYTES, adr_distance};
use crate::address::CodeRange;
use crate::memory::Memory;

/// The DWARF number of x30, the only register whose value matters.
pub const REGISTER: u8 = 30;

const NOP: u32 = 0xd503_201f;

/// Follows the code at `at` until it leaves `stubs`. `None` if an instruction is none of a handler's.
pub fn way_out<M: Memory + ?Sized>(memory: &M, stubs: CodeRange, at: Interrupted) -> Option<Left> {
    let Interrupted { mut pc, sp, register: mut x30 } = at;
    for _ in 0..MAX_INSTRUCTIONS {
        let code = memory.load_u32(pc)?;
        let after = pc.wrapping_add(INSTRUCTION_BYTES);
        let branch = Branch::of(code);
        if branch.is_some_and(Branch::is_call) {
            x30 = after;
        }
        let target = match branch {
            Some(Branch::Jump { distance } | Branch::Call { distance }) => {
                Some(pc.wrapping_add_signed(distance))
            }
            // The register's value is not followed: only the deoptimisation blob is that far away.
            Some(Branch::RegisterJump { .. } | Branch::RegisterCall) => None,
            Some(Branch::Conditional { .. } | Branch::Return { .. }) => return None,
            None if code == NOP || prepares_target(code) => Some(after),
            None => {
                x30 = pc.wrapping_add_signed(adr_distance(code, u32::from(REGISTER))?);
                Some(after)
            }
        };
        match target {
            Some(target) if stubs.contains(target) => pc = target,
            _ => return Some(Left { return_address: x30, sp }),
        }
    }
    None
}

/// Whether the instruction puts an address into a register other than x30: `adrp`, `add` of a number, `movz`,
/// `movk`.
fn prepares_target(code: u32) -> bool {
    let is_of_address = code & 0x9f00_0000 == 0x9000_0000
        || code & 0xff80_0000 == 0x9100_0000
        || code & 0xff80_0000 == 0xd280_0000
        || code & 0xff80_0000 == 0xf280_0000;
    is_of_address && code & 0x1f < 30
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::RecordedMemory;

    /// `adr x30`, of its own address.
    const ADR_X30: u32 = 0x1000_001e;
    const STUBS: CodeRange = CodeRange { start: 0x1000, end: 0x1100 };

    /// The return address of the code from the instruction of this number on.
    fn left_from(code: &[u32], number: u64, x30: u64) -> Option<u64> {
        let bytes: Vec<_> = code.iter().flat_map(|code| code.to_le_bytes()).collect();
        let mut memory = RecordedMemory::default();
        memory.put(STUBS.start, bytes);
        let pc = STUBS.start + INSTRUCTION_BYTES * number;
        let left = way_out(&memory, STUBS, Interrupted { pc, sp: 0x8000, register: x30 })?;
        assert_eq!(left.sp, 0x8000);
        Some(left.return_address)
    }

    #[test]
    fn the_entry_is_the_return_address_from_each_instruction_on() {
        // adr x30, itself; b. The same with adrp x8; add x8, x8, 0; br x8.
        let near = [ADR_X30, 0x1400_1000];
        let far = [ADR_X30, 0x9000_0008, 0x9100_0108, 0xd61f_0100];
        for code in [&near[..], &far] {
            assert_eq!(left_from(code, 0, 0x4242), Some(0x1000));
            assert!((1..code.len() as u64).all(|number| left_from(code, number, 0x1000) == Some(0x1000)));
        }
        // bl; b, to the bl. The same with adrp x8; blr x8.
        for (code, entry) in
            [(&[0x9400_1000, 0x17ff_ffff][..], 1), (&[0x9000_0008, 0xd63f_0100, 0x17ff_fffe], 2)]
        {
            let address = Some(STUBS.start + INSTRUCTION_BYTES * entry);
            assert!((0..=entry).all(|number| left_from(code, number, 0x4242) == address), "{code:x?}");
        }
    }

    #[test]
    fn an_address_is_ahead_or_behind() {
        // adr x30, -4; b. adr x30, 6; b.
        assert_eq!(left_from(&[NOP, 0x10ff_fffe, 0x1400_1000], 0, 0), Some(0x1000));
        assert_eq!(left_from(&[0x5000_003e, 0x1400_1000], 0, 0), Some(0x1006));
    }

    #[test]
    fn other_code_has_no_way_out() {
        // ret; b, to itself; add sp, sp, 16; add x30, x30, 0.
        for code in [0xd65f_03c0, 0x1400_0000, 0x9100_43ff, 0x9100_03de] {
            assert_eq!(left_from(&[code], 0, 0), None, "{code:x}");
        }
    }
}
