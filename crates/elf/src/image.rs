//! The image of a loaded object in memory, and reads from it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use otlpprof_core::address::{ElfVaddr, LoadBias, RuntimeAddr};
use otlpprof_core::memory::Memory;

use super::process_memory::ProcessMemory;
use super::program_header::ProgramHeader;

/// A copied description of an object's image: name, load bias and program headers. Reading the image is
/// always safe, but yields the object's bytes only while the object is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedImage {
    name: PathBuf,
    load_bias: LoadBias,
    program_headers: Vec<ProgramHeader>,
}

impl LoadedImage {
    /// An image that was mapped by any means.
    pub fn new(name: PathBuf, load_bias: LoadBias, program_headers: Vec<ProgramHeader>) -> Self {
        Self { name, load_bias, program_headers }
    }

    /// The dynamic linker's name for the object: a path, absolute or not; empty for the main program;
    /// `linux-vdso.so.1` for the vDSO.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Run-time minus ELF virtual address.
    pub fn load_bias(&self) -> LoadBias {
        self.load_bias
    }

    /// All program headers, in the file's order.
    pub fn program_headers(&self) -> &[ProgramHeader] {
        &self.program_headers
    }

    /// The first program header with this `p_type`.
    pub fn program_header(&self, kind: u32) -> Option<&ProgramHeader> {
        self.program_headers.iter().find(|header| header.kind == kind)
    }

    /// The readable `PT_LOAD` segment that contains `vaddr`.
    pub fn segment_at(&self, vaddr: ElfVaddr) -> Option<&ProgramHeader> {
        self.program_headers.iter().find(|header| header.is_readable() && header.vaddrs().contains(&vaddr))
    }

    /// The number of readable bytes from `vaddr` to the end of its segment; 0 if no segment contains `vaddr`.
    pub fn readable_from(&self, vaddr: ElfVaddr) -> u64 {
        self.segment_at(vaddr).and_then(|segment| segment.bytes_from(vaddr)).unwrap_or(0)
    }

    /// Fills `bytes` from `vaddr` on. Returns false if the range is not inside one readable segment, or not
    /// mapped.
    pub fn read_into(&self, vaddr: ElfVaddr, bytes: &mut [u8]) -> bool {
        bytes.len() as u64 <= self.readable_from(vaddr)
            && ProcessMemory.read_bytes(self.load_bias.to_runtime(vaddr).0, bytes)
    }

    /// Copies `len` bytes from `vaddr` on. Checks `len` against the segment before allocating.
    pub fn read(&self, vaddr: ElfVaddr, len: u64) -> Option<Vec<u8>> {
        if len > self.readable_from(vaddr) {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(len).ok()?];
        self.read_into(vaddr, &mut bytes).then_some(bytes)
    }

    /// Reads eight bytes at `vaddr`.
    pub fn read_u64(&self, vaddr: ElfVaddr) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read_into(vaddr, &mut bytes).then(|| u64::from_ne_bytes(bytes))
    }

    /// The run-time addresses of a program header's memory.
    pub fn runtime_range(&self, header: &ProgramHeader) -> Range<RuntimeAddr> {
        let vaddrs = header.vaddrs();
        self.load_bias.to_runtime(vaddrs.start)..self.load_bias.to_runtime(vaddrs.end)
    }

    /// Whether one of the object's segments contains `address`.
    pub fn contains(&self, address: RuntimeAddr) -> bool {
        let vaddr = self.load_bias.to_elf(address);
        self.program_headers.iter().any(|header| header.is_load() && header.vaddrs().contains(&vaddr))
    }

    /// The pages that the dynamic linker made read-only after relocation (`PT_GNU_RELRO`), rounded as in
    /// glibc and musl: a page that is only partly inside stays writable.
    pub fn relro(&self) -> Option<Range<RuntimeAddr>> {
        let range = self.runtime_range(self.program_header(libc::PT_GNU_RELRO)?);
        let page_mask = !(page_size() - 1);
        let pages = RuntimeAddr(range.start.0 & page_mask)..RuntimeAddr(range.end.0 & page_mask);
        (pages.start < pages.end).then_some(pages)
    }
}

/// The size of a memory page, in bytes.
pub fn page_size() -> u64 {
    // SAFETY: sysconf has no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader_list::loaded_objects;

    fn image_with_this_function() -> LoadedImage {
        let here = RuntimeAddr(image_with_this_function as *const () as u64);
        loaded_objects().images.into_iter().find(|image| image.contains(here)).unwrap()
    }

    #[test]
    fn lists_the_object_that_this_code_is_in() {
        let image = image_with_this_function();
        let header = image.program_header(libc::PT_LOAD).unwrap();
        assert_eq!(image.read(header.vaddr, 4).unwrap(), b"\x7fELF");
    }

    #[test]
    fn a_read_stays_in_one_segment() {
        let image = image_with_this_function();
        let first = image.program_header(libc::PT_LOAD).unwrap();
        let last_byte = ElfVaddr(first.vaddr.0 + first.memory_size - 1);
        assert_eq!(image.read(last_byte, 1).map(|bytes| bytes.len()), Some(1));
        assert_eq!(image.read(last_byte, 2), None);
        assert_eq!(image.read(last_byte, u64::MAX), None);
        assert_eq!(image.read_u64(ElfVaddr(u64::MAX - 3)), None);
    }
}
