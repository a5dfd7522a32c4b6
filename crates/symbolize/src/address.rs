//! The address space of a mapping.
//!
//! This profiler and OpenTelemetry's eBPF profiler write ELF virtual addresses, and mappings that begin at
//! the segment's `p_vaddr`. Other producers, such as the writers of pprof, write run-time addresses. Both
//! give the offset in the file of the byte at the mapping's begin, so that a run-time address has an offset
//! in the file, and with it an ELF virtual address.

use otlpprof_core::address::ElfVaddr;
use otlpprof_elf::program_header::ProgramHeader;

/// The largest page of Linux on the processors that are supported (aarch64 with 64 KiB pages). A mapping
/// begins at its segment's address or at the page that contains that address.
const PAGE: u64 = 64 << 10;

/// The addresses of a mapping, as a message has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct MappedRange {
    /// The first address.
    pub(super) start: u64,
    /// The address after the last one; 0 if unknown.
    pub(super) limit: u64,
    /// The offset in the file of the byte at `start`.
    pub(super) file_offset: u64,
}

/// The segments of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Segments {
    loads: Vec<ProgramHeader>,
    /// Whether the offsets in the file equal the object's offsets. A file that has only debug information
    /// keeps the addresses, but its offsets may be its own.
    has_offsets: bool,
}

/// The reason why an address is not one of the object's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoCode {
    /// Outside the code.
    Outside,
    /// A run-time address, which only the object itself can convert.
    NeedsObject,
}

impl Segments {
    pub(super) fn new(headers: &[ProgramHeader], has_offsets: bool) -> Self {
        let loads = headers.iter().filter(|header| header.is_load()).copied().collect();
        Self { loads, has_offsets }
    }

    /// The ELF virtual address of a message's address, which must be one of code.
    pub(super) fn vaddr(&self, address: u64, mapped: MappedRange) -> Result<ElfVaddr, NoCode> {
        let is_mapped = mapped.start <= address && address < mapped.limit;
        let vaddr = if !is_mapped || self.has_mapping(mapped) {
            address
        } else if self.has_offsets {
            let offset = (address - mapped.start).checked_add(mapped.file_offset).ok_or(NoCode::Outside)?;
            self.vaddr_of_offset(offset).ok_or(NoCode::Outside)?
        } else {
            return Err(NoCode::NeedsObject);
        };
        let is_code =
            |header: &ProgramHeader| header.is_executable() && header.vaddrs().contains(&ElfVaddr(vaddr));
        if self.loads.iter().any(is_code) { Ok(ElfVaddr(vaddr)) } else { Err(NoCode::Outside) }
    }

    /// Whether the mapping begins in one of the segments, so that its addresses are ELF virtual addresses.
    fn has_mapping(&self, mapped: MappedRange) -> bool {
        let contains = |header: &ProgramHeader| {
            let addresses = header.vaddrs();
            let start = addresses.start.0 / PAGE * PAGE;
            (start..addresses.end.0).contains(&mapped.start)
        };
        self.loads.iter().any(contains)
    }

    fn vaddr_of_offset(&self, offset: u64) -> Option<u64> {
        self.loads.iter().filter(|header| header.is_executable()).find_map(|header| {
            let inside = offset.checked_sub(header.offset.0).filter(|&inside| inside < header.file_size)?;
            header.vaddr.0.checked_add(inside)
        })
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_core::address::FileOffset;

    use super::*;

    fn load(offset: u64, vaddr: u64, size: u64, flags: u32) -> ProgramHeader {
        ProgramHeader {
            kind: libc::PT_LOAD,
            flags,
            offset: FileOffset(offset),
            vaddr: ElfVaddr(vaddr),
            file_size: size,
            memory_size: size,
            align: 0x1000,
        }
    }

    /// A library whose code has other addresses than offsets, as lld links it.
    fn segments(has_offsets: bool) -> Segments {
        let code = libc::PF_R | libc::PF_X;
        Segments::new(&[load(0, 0, 0x1500, libc::PF_R), load(0x1500, 0x2500, 0x3000, code)], has_offsets)
    }

    #[test]
    fn mappings_in_the_objects_own_addresses_are_taken_as_they_are() {
        for mapped in [
            MappedRange { start: 0x2500, limit: 0x5500, file_offset: 0x1500 },
            // From the begin of the page.
            MappedRange { start: 0x2000, limit: 0x6000, file_offset: 0x1000 },
            // The whole object, as recordings describe it.
            MappedRange { start: 0, limit: 0x6000, file_offset: 0 },
            // Nothing is known of the mapping, or the address is not in it.
            MappedRange::default(),
            MappedRange { start: 0x7f00_0000_0000, limit: 0x7f00_0001_0000, file_offset: 0x1500 },
        ] {
            for has_offsets in [true, false] {
                let vaddr = |address| segments(has_offsets).vaddr(address, mapped);
                assert_eq!(vaddr(0x2600), Ok(ElfVaddr(0x2600)), "{mapped:?}");
                assert_eq!(vaddr(0x1600), Err(NoCode::Outside), "{mapped:?}");
                assert_eq!(vaddr(0x5500), Err(NoCode::Outside), "{mapped:?}");
            }
        }
    }

    #[test]
    fn run_time_addresses_are_converted_by_their_offset_in_the_file() {
        let mapped = MappedRange { start: 0x7f00_0000_0000, limit: 0x7f00_0000_4000, file_offset: 0x1000 };
        let vaddr = |address| segments(true).vaddr(address, mapped);
        assert_eq!(vaddr(0x7f00_0000_0500), Ok(ElfVaddr(0x2500)));
        assert_eq!(vaddr(0x7f00_0000_0600), Ok(ElfVaddr(0x2600)));
        assert_eq!(vaddr(0x7f00_0000_0400), Err(NoCode::Outside));
        assert_eq!(vaddr(0x7f00_0000_3fff), Err(NoCode::Outside));
        assert_eq!(segments(false).vaddr(0x7f00_0000_0600, mapped), Err(NoCode::NeedsObject));
        let absurd = MappedRange { start: 1 << 40, limit: u64::MAX, file_offset: u64::MAX };
        assert_eq!(segments(true).vaddr(u64::MAX - 1, absurd), Err(NoCode::Outside));
    }
}
