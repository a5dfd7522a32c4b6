//! Return addresses on x86_64.

use otlpprof_core::memory::Memory;

/// Whether a call pushes its return address onto the stack, so that a caller's stack pointer always lies
/// above.
pub(in crate::walk) const IS_PUSHED: bool = true;

/// The address as it was saved; x86_64 does not sign addresses.
pub(in crate::walk) const fn strip(saved: u64) -> u64 {
    saved
}

/// Whether the instruction before `pc` is a call.
pub(in crate::walk) fn is_after_call(memory: &impl Memory, pc: u64) -> bool {
    let mut before = [0_u8; 7];
    if !memory.read_bytes(pc.wrapping_sub(7), &mut before) {
        return false;
    }
    // call rel32 is E8 with four bytes. call r/m64 is FF /2 with a ModRM byte and up to five more bytes.
    let indirect = |call: &[u8]| matches!(call, [0xff, modrm, ..] if modrm & 0x38 == 0x10);
    let [.., opcode, _, _, _, _] = before;
    opcode == 0xe8 || before.windows(2).any(indirect)
}
