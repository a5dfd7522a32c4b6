//! Code that has no call frame information, on x86_64: PLTs that LLD has made. GNU ld describes its own, and the C library the
//! signal trampoline.

use crate::core::memory::Memory;
use crate::core::unwind::{CfaRule, FpRule, ReturnAddressRule, UnwindRule};

/// `push index; jmp`, with which an entry that is bound when it is first called goes on.
const PUSH_INDEX_BYTES: usize = 5;
/// `jmp [rip + distance]`, with which every entry begins (System V ABI for x86_64, "Procedure Linkage Table").
const JUMP_BYTES: usize = 6;
/// The longest that is looked at before and behind the instruction.
const BEFORE: usize = JUMP_BYTES + PUSH_INDEX_BYTES;
const BEHIND: usize = JUMP_BYTES + PUSH_INDEX_BYTES + 1;

/// The rule at run-time address `pc`.
pub(in crate::signal::walk) fn rule_at(memory: &impl Memory, pc: u64) -> Option<UnwindRule> {
    let mut code = [0; BEHIND];
    let mut before = [0; BEFORE];
    // What cannot be read is no PLT's.
    let _ = memory.read_bytes(pc, &mut code);
    let _ = memory.read_bytes(pc.wrapping_sub(BEFORE as u64), &mut before);
    let below_cfa = match (before, code) {
        // The first entry, to which all others jump: push [rip + distance]; jmp [rip + distance]
        (_, [0xff, 0x35, _, _, _, _, 0xff, 0x25, ..]) => 16,
        ([.., 0xff, 0x35, _, _, _, _], [0xff, 0x25, ..]) => 24,
        // jmp [rip + distance]; push index; jmp
        (_, [0xff, 0x25, _, _, _, _, 0x68, _, _, _, _, 0xe9]) => 8,
        ([.., 0xff, 0x25, _, _, _, _], [0x68, _, _, _, _, 0xe9, ..]) => 8,
        ([0xff, 0x25, _, _, _, _, 0x68, _, _, _, _], [0xe9, ..]) => 16,
        _ => return None,
    };
    let cfa = CfaRule::SpPlus(below_cfa);
    Some(UnwindRule { cfa, fp: FpRule::Same, return_address: ReturnAddressRule::AtCfaPlus(-8) })
}
