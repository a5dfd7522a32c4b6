//! Entries of methods in an archive of classes, on aarch64.

use otlpprof_core::memory::Memory;

/// `br x8`
const BR_X8: u32 = 0xd61f_0100;

/// The interpreter's entry that code in an archive of classes jumps to: `movz x8, A; movk x8, B, lsl 16; movk
/// x8, C, lsl 32; br x8` (cpu/aarch64/sharedRuntime_aarch64.cpp, generate_trampoline, JDK 11). `None` if the
/// code at `address` does not.
pub(crate) fn target(memory: &dyn Memory, address: u64) -> Option<u64> {
    let instruction = |index: u64| memory.load_u32(address.wrapping_add(4 * index));
    let mut entry = 0;
    for (index, opcode) in [(0, 0xd280_0008), (1, 0xf2a0_0008), (2, 0xf2c0_0008)] {
        let found = instruction(index).filter(|found| found & 0xffe0_001f == opcode)?;
        entry |= u64::from(found >> 5 & 0xffff) << (16 * index);
    }
    (instruction(3) == Some(BR_X8)).then_some(entry)
}
