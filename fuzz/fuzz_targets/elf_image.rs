//! Loaded images of any content: notes, the dynamic section and its tables, call frame information.
//!
//! `cargo fuzz run elf_image`; any small library makes a good first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_core::address::ElfVaddr;
use otlpprof_elf::build_id;
use otlpprof_elf::file::ElfFile;
use otlpprof_elf::relocations::import_slots;
use otlpprof_elf::symbols::tables::Symbols;
use otlpprof_elf::unwind::FrameSections;
use otlpprof_fuzz::image;

fuzz_target!(|bytes: &[u8]| {
    let Ok(elf) = ElfFile::parse(bytes) else { return };
    let Ok(headers) = elf.program_headers() else { return };
    let image = image(bytes, headers);
    if let Ok(found) = build_id::of_image(&image) {
        let id = image.read(found.vaddr, found.id.as_bytes().len() as u64);
        assert_eq!(id.as_deref(), Some(found.id.as_bytes()));
    }
    if let Ok(found) = import_slots(&image, &["malloc", "free", "pthread_create"]) {
        assert!(found.slots.is_sorted_by(|a, b| a.address < b.address));
    }
    let text = ElfVaddr(0)..ElfVaddr(bytes.len() as u64);
    if let Ok(symbols) = Symbols::of_image(&image, &text) {
        let _ = symbols.find(ElfVaddr(bytes.len() as u64 / 2));
    }
    if let Ok(mut sections) = FrameSections::of_image(&image) {
        let _ = sections.add_debug_frame(&elf);
        let table = sections.compile();
        assert!(table.rows().is_sorted_by(|a, b| a.0 < b.0));
    }
});
