//! Calls that enter a thread's or the program's code, on x86_64.

use std::ops::{Range, RangeInclusive};

use otlpprof_core::address::ElfVaddr;

/// `call` with a distance from the next instruction.
const CALL: u8 = 0xe8;
const CALL_BYTES: usize = 5;
/// The moves of the result to the argument: none, `mov rdi, rax`, `mov edi, eax`, `movsxd rdi, eax`.
const MOVES: [&[u8]; 4] = [&[], &[0x48, 0x89, 0xc7], &[0x89, 0xc7], &[0x48, 0x63, 0xf8]];
/// The lengths of `call` through a register or memory.
const INDIRECT_CALL_BYTES: RangeInclusive<usize> = 2..=7;
/// The prefix of a call through one of the eight later registers.
const LATER_REGISTER: u8 = 0x41;

/// Finds the calls in `code`, which begins at `start`, that are followed by a call of one of `exits`.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "for code of this architecture"))]
pub(super) fn entries(code: &[u8], start: ElfVaddr, exits: &[ElfVaddr]) -> Vec<Range<ElfVaddr>> {
    let is_exit = |call: usize| {
        let distance = code.get(call + 1..)?.first_chunk()?;
        let target = at(start, call + CALL_BYTES).0.wrapping_add_signed(i32::from_le_bytes(*distance).into());
        Some(exits.contains(&ElfVaddr(target)))
    };
    let calls = code.iter().enumerate().filter(|&(call, &byte)| byte == CALL && is_exit(call) == Some(true));
    let entries = calls.filter_map(|(call, _)| {
        let before = code.get(..call)?;
        let entering = MOVES.iter().filter_map(|bytes| before.strip_suffix(*bytes)).find_map(|before| {
            let lengths = INDIRECT_CALL_BYTES.filter_map(|length| before.len().checked_sub(length));
            let first = lengths.filter(|&first| is_indirect_call(&before[first..])).max()?;
            Some(if before[..first].last() == Some(&LATER_REGISTER) { first - 1 } else { first })
        })?;
        Some(at(start, entering)..at(start, call + CALL_BYTES))
    });
    entries.collect()
}

/// Whether the bytes are one `call` through a register or memory, without a prefix (Intel SDM, volume 2,
/// "CALL", FF /2).
fn is_indirect_call(bytes: &[u8]) -> bool {
    let [0xff, operand, rest @ ..] = bytes else { return false };
    let (mode, low) = (operand >> 6, operand & 7);
    // A SIB byte follows, if the low bits say so. Its base may be only a distance.
    let (sib_bytes, base) = match rest {
        [sib, ..] if mode != 3 && low == 4 => (1, sib & 7),
        _ => (0, low),
    };
    let distance_bytes = match (mode, base) {
        (0, 5) | (2, _) => 4,
        (1, _) => 1,
        _ => 0,
    };
    operand & 0x38 == 0x10 && rest.len() == sib_bytes + distance_bytes
}

/// The place `offset` bytes after `start`.
fn at(start: ElfVaddr, offset: usize) -> ElfVaddr {
    ElfVaddr(start.0.wrapping_add(offset as u64))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{self, EXIT, START};
    use super::*;

    /// The starts and ends of the entries in code that calls `EXIT` after `before`.
    fn found(before: &[u8]) -> Vec<(u64, u64)> {
        let mut code = before.to_vec();
        let next = START.0 + code.len() as u64 + CALL_BYTES as u64;
        code.push(CALL);
        code.extend((EXIT.0.wrapping_sub(next) as i32).to_le_bytes());
        code.extend([0xcc; 8]);
        tests::found(entries, &code)
    }

    /// The code of Debian's musl 1.2.3.
    #[test]
    fn a_result_that_is_passed_to_an_exit_comes_from_the_entered_code() {
        // mov rdi, [rbx + 8]; call [rbx]; mov rdi, rax
        assert_eq!(found(&[0x48, 0x8b, 0x7b, 0x08, 0xff, 0x13, 0x48, 0x89, 0xc7]), [(4, 14)]);
        // call [rax]; movsxd rdi, eax
        assert_eq!(found(&[0x90, 0xff, 0x10, 0x48, 0x63, 0xf8]), [(1, 11)]);
        // call rbx; mov edi, eax
        assert_eq!(found(&[0x90, 0xff, 0xd3, 0x89, 0xc7]), [(1, 10)]);
    }

    #[test]
    fn every_form_of_a_call_is_known_and_no_other_instruction() {
        // call r12; call [rsp]; call [rsp + 8]; call [rip + 1]; call [rax + 256]; call [r12 + 8]
        for call in [
            &[0x41, 0xff, 0xd4][..],
            &[0xff, 0x14, 0x24],
            &[0xff, 0x54, 0x24, 0x08],
            &[0xff, 0x15, 1, 0, 0, 0],
            &[0xff, 0x90, 0, 1, 0, 0],
            &[0x41, 0xff, 0x54, 0x24, 0x08],
        ] {
            assert_eq!(found(&[&[0x90], call].concat()), [(1, call.len() as u64 + 6)], "{call:x?}");
        }
        // mov edi, 1; call rel32; jmp rbx; push [rbx]
        for other in [
            &[0xbf, 1, 0, 0, 0][..],
            &[0xe8, 1, 0, 0, 0, 0x48, 0x89, 0xc7],
            &[0xff, 0xe3, 0x89, 0xc7],
            &[0xff, 0x33, 0x89, 0xc7],
        ] {
            assert_eq!(found(other), [], "{other:x?}");
        }
    }

    #[test]
    fn a_call_of_another_function_is_no_exit() {
        assert_eq!(entries(&[0xff, 0xd3, 0x89, 0xc7, CALL, 0, 0, 0, 0], START, &[EXIT]), []);
        assert_eq!(entries(&[0xff, 0xd3, 0x89, 0xc7, CALL, 0, 0], START, &[EXIT]), []);
        assert_eq!(entries(&[], START, &[EXIT]), []);
    }
}
