//! What fuzz targets share: bytes as a loaded image.

use std::path::PathBuf;
use std::sync::OnceLock;

use otlpprof::core::address::LoadBias;
use otlpprof::elf::image::LoadedImage;
use otlpprof::elf::program_header::ProgramHeader;

/// Where images lie. Always there, so that a run with an absolute address in it can be repeated.
const ADDRESS: usize = 0x1234_0000_0000;
/// The longest image.
const LEN: usize = 1 << 20;

/// An image of these bytes, of which segments reach no further than the bytes do. The one before it is gone.
pub fn image(bytes: &[u8], mut headers: Vec<ProgramHeader>) -> LoadedImage {
    static MEMORY: OnceLock<usize> = OnceLock::new();
    let memory = *MEMORY.get_or_init(|| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: a mapping that replaces none.
        let memory = unsafe {
            libc::mmap(ADDRESS as *mut libc::c_void, LEN, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        assert_eq!(memory as usize, ADDRESS);
        ADDRESS
    });
    let len = bytes.len().min(LEN);
    // SAFETY: the mapping has room for so many bytes, and nobody else uses it: a fuzzer has one thread.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory as *mut u8, len) };
    for header in headers.iter_mut().filter(|header| header.is_load()) {
        header.vaddr.0 = header.vaddr.0.min(len as u64);
        header.memory_size = header.memory_size.min(len as u64 - header.vaddr.0);
    }
    LoadedImage::new(PathBuf::from("fuzzed"), LoadBias(memory as u64), headers)
}
