//! Code that has no call frame information, on aarch64: PLTs, and the kernel's signal trampoline.

use otlpprof_core::memory::Memory;
use otlpprof_core::unwind_rule::{CfaRule, FpRule, ReturnAddressRule, UnwindRule};

use super::registers::is_signal_return;

/// `br x17`, the last instruction of a PLT entry: `[bti c;] adrp x16, page; ldr x17, [x16, n];
/// add x16, x16, n; br x17` (ELF for the Arm 64-bit Architecture, "Procedure Linkage Table").
const JUMP: u32 = 0xd61f_0220;
/// The most instructions of an entry before the jump.
const MAX_BEFORE: u64 = 4;
const INSTRUCTION_BYTES: u64 = 4;

const SIGNAL_FRAME: UnwindRule = UnwindRule {
    cfa: CfaRule::SignalFrame,
    fp: FpRule::Same,
    return_address: ReturnAddressRule::LinkRegister,
};
const NO_FRAME: UnwindRule = UnwindRule { cfa: CfaRule::SpPlus(0), ..SIGNAL_FRAME };

/// The rule at run-time address `pc`.
pub(in crate::walk) fn rule_at(memory: &impl Memory, pc: u64) -> Option<UnwindRule> {
    if is_signal_return(memory, pc) {
        return Some(SIGNAL_FRAME);
    }
    is_plt_entry(memory, pc).then_some(NO_FRAME)
}

fn is_plt_entry(memory: &impl Memory, pc: u64) -> bool {
    let mut code = (0..=MAX_BEFORE)
        .map_while(|index| memory.load_u32(pc.wrapping_add(index.wrapping_mul(INSTRUCTION_BYTES))))
        .map_while(|code| match code {
            JUMP => Some(true),
            _ => is_before_jump(code).then_some(false),
        });
    code.any(|is_jump| is_jump)
}

fn is_before_jump(code: u32) -> bool {
    const BTI_C: u32 = 0xd503_245f;
    let is_adrp = code & 0x9f00_001f == 0x9000_0010;
    let is_load = code & 0xffc0_03ff == 0xf940_0211;
    let is_add = code & 0xffc0_03ff == 0x9100_0210;
    code == BTI_C || is_adrp || is_load || is_add
}
