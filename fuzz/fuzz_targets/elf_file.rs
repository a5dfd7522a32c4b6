//! ELF files of any content: headers, notes, symbol tables, `.debug_frame`.
//!
//! `cargo fuzz run elf_file`; any small library makes a good first corpus.

#![no_main]

use std::fs::File;
use std::io::Write as _;
use std::os::fd::FromRawFd as _;

use libfuzzer_sys::fuzz_target;
use otlpprof_core::address::ElfVaddr;
use otlpprof_elf::build_id;
use otlpprof_elf::file::ElfFile;
use otlpprof_elf::htlhash::HtlHash;
use otlpprof_elf::source::FileSource;
use otlpprof_elf::symbols::demangle;
use otlpprof_elf::symbols::tables::Symbols;

/// Makes a regular file of these bytes.
fn file(bytes: &[u8]) -> FileSource {
    // SAFETY: the name is a C string; no other code has the new descriptor.
    let mut file = unsafe { File::from_raw_fd(libc::memfd_create(c"fuzzed".as_ptr(), libc::MFD_CLOEXEC)) };
    file.write_all(bytes).unwrap();
    FileSource::new(file).unwrap()
}

fuzz_target!(|bytes: &[u8]| {
    let _ = build_id::of_source(bytes);
    let _ = HtlHash::of(bytes);
    let Ok(elf) = ElfFile::parse(bytes) else { return };
    let _ = elf.program_headers();
    let Ok(sections) = elf.section_headers() else { return };
    let _ = elf.section(".debug_frame");
    // Two ranges for symbols: the executable section of the file, and all addresses.
    let executable = sections.iter().find(|section| section.sh_flags & 4 != 0);
    let text = executable.map_or(0..u64::MAX, |text| text.sh_addr..text.sh_addr.saturating_add(text.sh_size));
    for text in [text, 0..u64::MAX] {
        let text = ElfVaddr(text.start)..ElfVaddr(text.end);
        let Ok(symbols) = Symbols::of_file(file(bytes), &text) else { continue };
        for vaddr in
            [text.start.0, text.start.0.wrapping_add(1), text.end.0.wrapping_sub(1), bytes.len() as u64]
        {
            if let Some((start, name)) = symbols.find(ElfVaddr(vaddr)) {
                assert!(start.0 <= vaddr && text.contains(&start));
                let _ = demangle(&name);
            }
        }
    }
});
