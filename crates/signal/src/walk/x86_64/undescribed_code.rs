//! Code without call frame information, on x86_64: PLTs that LLD has made, and musl's signal trampoline. GNU
//! ld describes its own PLTs, and glibc describes its signal trampoline.

use otlpprof_core::memory::Memory;
use otlpprof_core::unwind_rule::{CfaRule, FpRule, ReturnAddressRule, UnwindRule};

use super::registers::is_signal_return;

/// `push index; jmp`, the continuation of an entry that is bound at its first call.
const PUSH_INDEX_BYTES: usize = 5;
/// `jmp [rip + distance]`, the start of every entry (System V ABI for x86_64, "Procedure Linkage Table").
const JUMP_BYTES: usize = 6;
/// The numbers of bytes that are read before and after the instruction.
const BEFORE: usize = JUMP_BYTES + PUSH_INDEX_BYTES;
const BEHIND: usize = JUMP_BYTES + PUSH_INDEX_BYTES + 1;

const SIGNAL_FRAME: UnwindRule = UnwindRule {
    cfa: CfaRule::SignalFrame,
    fp: FpRule::Same,
    return_address: ReturnAddressRule::AtCfaPlus(0),
};

/// The rule at run-time address `pc`.
pub(in crate::walk) fn rule_at(memory: &impl Memory, pc: u64) -> Option<UnwindRule> {
    if is_signal_return(memory, pc) {
        return Some(SIGNAL_FRAME);
    }
    let mut code = [0; BEHIND];
    let mut before = [0; BEFORE];
    // Code that cannot be read is no PLT.
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
