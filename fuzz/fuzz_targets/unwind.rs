//! Compiles call frame information of any content to unwind tables.
//!
//! The input is `.eh_frame`, after a first byte that chooses how it is found: by a walk through all of it, or
//! by a search table, with which the input then begins. `cargo fuzz run unwind`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_core::address::{ElfVaddr, FileOffset};
use otlpprof_elf::program_header::ProgramHeader;
use otlpprof_elf::unwind::FrameSections;
use otlpprof_fuzz::image;

/// The code lies before its description, as in most objects, so that the addresses that a compiler wrote
/// relative to their own place are valid here.
const CODE_LEN: usize = 64 << 10;
/// The size, in bytes, of the header before the input, including the table.
const HEADER_LEN: usize = 64;
/// Version 1; the section's address relative to the field, in four bytes; no search table (LSB 5.0, 10.6.2).
const WITHOUT_TABLE: [u8; 4] = [1, 0x1b, 0xff, 0xff];
/// As `WITHOUT_TABLE`, with a count and a table of pairs, in four bytes each, relative to the header.
const WITH_TABLE: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
const TABLE_ENTRIES: usize = (HEADER_LEN - 12) / 8;

fn header(kind: u32, at: usize, len: usize) -> ProgramHeader {
    ProgramHeader {
        kind,
        flags: libc::PF_R | libc::PF_X,
        offset: FileOffset(0),
        vaddr: ElfVaddr(at as u64),
        file_size: len as u64,
        memory_size: len as u64,
        align: 1,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&way, rest)) = bytes.split_first() else { return };
    let mut content = vec![0; CODE_LEN];
    content.extend(if way & 1 == 0 { WITHOUT_TABLE } else { WITH_TABLE });
    // The distance from this field to the section.
    content.extend((HEADER_LEN as u32 - 4).to_ne_bytes());
    let table = rest.len().min(8 * TABLE_ENTRIES);
    let (table, frames) = rest.split_at(if way & 1 == 0 { 0 } else { table });
    content.extend((table.len() as u32 / 8).to_ne_bytes());
    content.extend(table);
    content.resize(CODE_LEN + HEADER_LEN, 0);
    content.extend(frames);
    let load = header(libc::PT_LOAD, 0, content.len());
    let image = image(&content, vec![load, header(libc::PT_GNU_EH_FRAME, CODE_LEN, HEADER_LEN)]);
    let Ok(sections) = FrameSections::of_image(&image) else { return };
    let table = sections.compile();
    assert!(table.rows().is_sorted_by(|a, b| a.0 < b.0));
    for (start, rule) in table.rows() {
        assert!(start.0 <= content.len() as u64);
        assert_eq!(table.rule_at(start), rule);
    }
});
