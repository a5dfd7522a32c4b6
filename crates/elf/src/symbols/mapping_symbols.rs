//! Mapping symbols: marks in symbol tables for Arm's processors that separate code from data. They name no
//! function.
//!
//! Source: ELF for the Arm Architecture and ELF for the Arm 64-bit Architecture, "Mapping symbols".

use goblin::elf::header::{EM_AARCH64, EM_ARM};

/// The beginnings of the names of mapping symbols in files for a processor (`e_machine`). Empty for
/// processors without them.
pub fn mapping_symbols(machine: u16) -> &'static [&'static [u8]] {
    match machine {
        EM_ARM => &[b"$a", b"$d", b"$t"],
        EM_AARCH64 => &[b"$d", b"$x"],
        _ => &[],
    }
}

/// Whether a symbol of this name is a mapping symbol in files for a processor.
pub fn is_mapping_symbol(machine: u16, name: &[u8]) -> bool {
    mapping_symbols(machine).iter().any(|mark| name.starts_with(mark))
}
