//! Calls that enter a thread's or the program's code, on aarch64.

use std::ops::Range;

use otlpprof_core::a64_branch::Branch;
use otlpprof_core::address::ElfVaddr;

/// `sxtw x0, w0`: the result of C11's thread functions is 32 bits wide.
const EXTEND: u32 = 0x9340_7c00;
const INSTRUCTION_BYTES: usize = otlpprof_core::a64_branch::INSTRUCTION_BYTES as usize;

/// Finds the calls in `code`, which begins at `start`, that are followed by a call of one of `exits`.
#[cfg_attr(not(target_arch = "aarch64"), allow(dead_code, reason = "for code of this architecture"))]
pub(super) fn entries(code: &[u8], start: ElfVaddr, exits: &[ElfVaddr]) -> Vec<Range<ElfVaddr>> {
    let instruction = |index: usize| {
        let (instructions, _) = code.as_chunks::<INSTRUCTION_BYTES>();
        instructions.get(index).copied().map(u32::from_le_bytes)
    };
    let entry = |call: usize| {
        let Some(Branch::Call { distance }) = Branch::of(instruction(call)?) else { return None };
        let target = at(start, call * INSTRUCTION_BYTES).0.wrapping_add_signed(distance);
        if !exits.contains(&ElfVaddr(target)) {
            return None;
        }
        let last = call.checked_sub(1)?;
        let entering = if instruction(last)? == EXTEND { last.checked_sub(1)? } else { last };
        let first = at(start, entering * INSTRUCTION_BYTES);
        let is_entered = Branch::of(instruction(entering)?) == Some(Branch::RegisterCall);
        is_entered.then(|| first..at(start, (call + 1) * INSTRUCTION_BYTES))
    };
    (0..code.len() / INSTRUCTION_BYTES).filter_map(entry).collect()
}

/// The place `offset` bytes after `start`.
fn at(start: ElfVaddr, offset: usize) -> ElfVaddr {
    ElfVaddr(start.0.wrapping_add(offset as u64))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{self, EXIT, START};
    use super::*;

    const BLR_X1: u32 = 0xd63f_0020;

    /// The starts and ends of the entries in code that calls `EXIT` after `before`.
    fn found(before: &[u32]) -> Vec<(u64, u64)> {
        let at = START.0 + 4 * before.len() as u64;
        let call = 0x9400_0000 | (EXIT.0.wrapping_sub(at) >> 2) as u32 & 0x03ff_ffff;
        let code: Vec<u8> = before.iter().chain([&call, &0]).flat_map(|word| word.to_le_bytes()).collect();
        tests::found(entries, &code)
    }

    #[test]
    fn a_result_that_is_passed_to_an_exit_comes_from_the_entered_code() {
        // ldp x1, x0, [x19]; blr x1
        assert_eq!(found(&[0xa940_0261, BLR_X1]), [(4, 12)]);
        assert_eq!(found(&[BLR_X1, EXTEND]), [(0, 12)]);
    }

    #[test]
    fn no_other_instruction_enters_code() {
        // mov w0, #1; br x1; bl
        for other in [0x5280_0020, 0xd61f_0020, 0x9400_0001] {
            assert_eq!(found(&[other]), []);
            assert_eq!(found(&[other, EXTEND]), []);
        }
        assert_eq!(found(&[EXTEND]), []);
        assert_eq!(found(&[]), []);
    }
}
