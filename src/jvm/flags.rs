//! The VM's flags (`runtime/flags/jvmFlag.hpp`), found by name through VMStructs.

use super::c_string;
use super::vm_structs::VmStructs;
use crate::core::memory::Memory;

/// The longest flag name read.
const MAX_NAME: usize = 128;
/// More flags than any VM has.
const MAX_FLAGS: u64 = 10_000;

/// Where the value of the flag `name` is in memory; `None` if there is no such flag or VMStructs does not lead to
/// it. A boolean flag is one byte.
pub fn address_of(structs: &VmStructs, memory: &dyn Memory, name: &str) -> Option<u64> {
    let size = u64::from(structs.size_of("JVMFlag").ok()?);
    let name_offset = u64::from(structs.offset("JVMFlag", "_name").ok()?);
    let value_offset = u64::from(structs.offset("JVMFlag", "_addr").ok()?);
    let flags = memory.load_u64(structs.static_address("JVMFlag", "flags").ok()?)?;
    let count = memory.load_u64(structs.static_address("JVMFlag", "numFlags").ok()?)?;
    (0..count.min(MAX_FLAGS)).map(|index| flags + index * size).find_map(|flag| {
        let flag_name = c_string::read(memory, memory.load_u64(flag + name_offset)?, MAX_NAME)?;
        if flag_name == name { memory.load_u64(flag + value_offset) } else { None }
    })
}
