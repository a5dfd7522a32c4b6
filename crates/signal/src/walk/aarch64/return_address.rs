//! Return addresses on aarch64: they may be signed.
//!
//! glibc and libjvm are built with pointer authentication, and HotSpot signs with
//! `-XX:UseBranchProtection=standard` (cpu/aarch64/macroAssembler_aarch64.cpp, protect_return_address, JDK 19
//! on). The signature is in the bits above the address: code is below 2^48, unless a program asks for more
//! (Documentation/arch/arm64/memory.rst).

use otlpprof_core::a64_branch::INSTRUCTION_BYTES;
use otlpprof_core::memory::Memory;

use super::instructions::is_call;

const ADDRESS_BITS: u32 = 48;

/// Whether a call pushes its return address onto the stack. A call leaves it in x30. A function that makes no
/// call may keep it there, and its caller's stack pointer equals its own.
pub(in crate::walk) const IS_PUSHED: bool = false;

/// The address without its signature.
pub(in crate::walk) const fn strip(saved: u64) -> u64 {
    saved & ((1 << ADDRESS_BITS) - 1)
}

/// Whether the instruction before `pc` is a call.
pub(in crate::walk) fn is_after_call(memory: &impl Memory, pc: u64) -> bool {
    pc.is_multiple_of(INSTRUCTION_BYTES)
        && memory.load_u32(pc.wrapping_sub(INSTRUCTION_BYTES)).is_some_and(is_call)
}
