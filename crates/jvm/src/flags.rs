//! The VM's flags (`runtime/flags/jvmFlag.hpp`), found by name through VMStructs.

use otlpprof_core::memory::Memory;

use super::c_string;
use super::vm_structs::VmStructs;

/// The longest flag name to read, in bytes.
const MAX_NAME: usize = 128;
/// An upper bound of the number of flags.
const MAX_FLAGS: u64 = 10_000;

/// The address of the value of flag `name`; `None` if the flag does not exist or VMStructs lacks a needed
/// field. The value of a boolean flag is one byte.
pub fn address_of(structs: &VmStructs, memory: &dyn Memory, name: &str) -> Option<u64> {
    let [address] = addresses_of(structs, memory, [name]);
    address
}

/// The values of boolean flags; `None` for a flag that does not exist.
pub fn are_set<const N: usize>(
    structs: &VmStructs,
    memory: &dyn Memory,
    names: [&str; N],
) -> [Option<bool>; N] {
    addresses_of(structs, memory, names).map(|address| memory.load_u8(address?).map(|value| value != 0))
}

fn addresses_of<const N: usize>(
    structs: &VmStructs,
    memory: &dyn Memory,
    names: [&str; N],
) -> [Option<u64>; N] {
    let mut found = [None; N];
    let mut search = || {
        let size = u64::from(structs.size_of("JVMFlag").ok()?);
        let name_offset = u64::from(structs.offset("JVMFlag", "_name").ok()?);
        let value_offset = u64::from(structs.offset("JVMFlag", "_addr").ok()?);
        let flags = memory.load_u64(structs.static_address("JVMFlag", "flags").ok()?)?;
        let count = memory.load_u64(structs.static_address("JVMFlag", "numFlags").ok()?)?;
        for flag in (0..count.min(MAX_FLAGS)).map(|index| flags + index * size) {
            // The last entry has no name.
            let Some(name) =
                memory.load_u64(flag + name_offset).and_then(|name| c_string::read(memory, name, MAX_NAME))
            else {
                continue;
            };
            if let Some(slot) = names.iter().position(|&wanted| wanted == name) {
                found[slot] = memory.load_u64(flag + value_offset);
                if found.iter().all(Option::is_some) {
                    break;
                }
            }
        }
        Some(())
    };
    search();
    found
}
