//! Program headers: the parts of a file and their addresses in memory.

use std::ops::Range;

use goblin::elf::ProgramHeader as GoblinProgramHeader;

use otlpprof_core::address::{ElfVaddr, FileOffset};

/// One program header, of either ELF class (gABI, "Program Header").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProgramHeader {
    /// `p_type`
    pub kind: u32,
    /// `p_flags`
    pub flags: u32,
    /// `p_offset`
    pub offset: FileOffset,
    /// `p_vaddr`
    pub vaddr: ElfVaddr,
    /// `p_filesz`
    pub file_size: u64,
    /// `p_memsz`
    pub memory_size: u64,
    /// `p_align`
    pub align: u64,
}

impl ProgramHeader {
    /// Whether this is a `PT_LOAD` segment.
    pub fn is_load(&self) -> bool {
        self.kind == libc::PT_LOAD
    }

    /// Whether this is a `PT_LOAD` segment whose memory can be read.
    pub fn is_readable(&self) -> bool {
        self.is_load() && self.flags & libc::PF_R != 0
    }

    /// Whether this is an executable `PT_LOAD` segment.
    pub fn is_executable(&self) -> bool {
        self.is_load() && self.flags & libc::PF_X != 0
    }

    /// The segment's addresses in memory. The range cannot wrap.
    pub fn vaddrs(&self) -> Range<ElfVaddr> {
        self.vaddr..ElfVaddr(self.vaddr.0.saturating_add(self.memory_size))
    }

    /// The number of the segment's bytes from `vaddr` on; `None` if `vaddr` is outside the segment.
    pub(super) fn bytes_from(&self, vaddr: ElfVaddr) -> Option<u64> {
        let inside = vaddr.0.checked_sub(self.vaddr.0)?;
        self.memory_size.checked_sub(inside).filter(|&left| left > 0)
    }
}

impl From<&GoblinProgramHeader> for ProgramHeader {
    fn from(header: &GoblinProgramHeader) -> Self {
        Self {
            kind: header.p_type,
            flags: header.p_flags,
            offset: FileOffset(header.p_offset),
            vaddr: ElfVaddr(header.p_vaddr),
            file_size: header.p_filesz,
            memory_size: header.p_memsz,
            align: header.p_align,
        }
    }
}
