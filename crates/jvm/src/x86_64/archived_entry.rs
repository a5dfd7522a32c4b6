//! Entries of methods in an archive of classes, on x86_64.

use otlpprof_core::memory::Memory;

/// The interpreter's entry that code in an archive of classes jumps to: `mov r10, ENTRY; jmp r10`
/// (cpu/x86/sharedRuntime_x86_64.cpp, generate_trampoline, JDK 11). `None` if the code at `address` does not.
pub(crate) fn target(memory: &dyn Memory, address: u64) -> Option<u64> {
    let mut code = [0; 13];
    if !memory.read_bytes(address, &mut code) {
        return None;
    }
    match code {
        [0x49, 0xba, entry @ .., 0x41, 0xff, 0xe2] => Some(u64::from_le_bytes(entry)),
        _ => None,
    }
}
