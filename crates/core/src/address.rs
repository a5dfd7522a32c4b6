//! One type for each address space, so that addresses of different spaces cannot be mixed up, and the range
//! of addresses that code takes.
//!
//! `run-time address = ELF virtual address + load bias` (all arithmetic wraps, as the dynamic linker's does:
//! gABI, "Program Loading"). A file offset belongs to neither space.

use std::fmt;

macro_rules! address {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub u64);

        impl fmt::LowerHex for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.0, f)
            }
        }
    };
}

address! {
    /// An address in this process, such as a program counter or a pointer.
    RuntimeAddr
}
address! {
    /// A virtual address as an ELF object's program headers and symbols give it (`p_vaddr`, `st_value`).
    ElfVaddr
}
address! {
    /// A position in a file.
    FileOffset
}
address! {
    /// The number that the dynamic linker added to an object's ELF virtual addresses. 0 for a non-PIE
    /// executable.
    LoadBias
}

impl LoadBias {
    /// Converts a run-time address to an ELF virtual address.
    pub const fn to_elf(self, address: RuntimeAddr) -> ElfVaddr {
        ElfVaddr(address.0.wrapping_sub(self.0))
    }

    /// Converts an ELF virtual address to a run-time address.
    pub const fn to_runtime(self, address: ElfVaddr) -> RuntimeAddr {
        RuntimeAddr(address.0.wrapping_add(self.0))
    }
}

/// A range of run-time addresses, the end excluded; 0..0 if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeRange {
    /// The first address.
    pub start: u64,
    /// The address one past the last.
    pub end: u64,
}

impl CodeRange {
    /// Whether `address` lies in the range.
    pub const fn contains(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_bias_converts_both_ways_and_wraps() {
        // A prelinked object can be mapped below its own addresses; the bias is then "negative".
        for bias in [0, 0x7f00_0000_0000, u64::MAX - 0xfff] {
            let bias = LoadBias(bias);
            let elf = ElfVaddr(0x40_1234);
            assert_eq!(bias.to_elf(bias.to_runtime(elf)), elf);
        }
        assert_eq!(LoadBias(0).to_elf(RuntimeAddr(0x401000)), ElfVaddr(0x401000));
    }
}
