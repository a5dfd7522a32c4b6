//! ELF files of any content, as the locator examines them, and the sections and the index that it reads:
//! debug links, supplementary links, the ids of split units, and the remembered content of a folder.
//!
//! `cargo fuzz run debug_files`; a small library with `.gnu_debuglink`, files treated by dwz, split units,
//! and a folder's content by the example `fuzz_inputs debug_files`, make a good first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_debug_files::examined::Examined;
use otlpprof_debug_files::index_format;
use otlpprof_debug_files::links::SupplementaryLink;
use otlpprof_debug_files::split_units;
use otlpprof_dwarf::{package_has, split_ids};
use otlpprof_elf::debug_link::{DebugLink, crc_of};

fuzz_target!(|bytes: &[u8]| {
    let _ = Examined::of(&bytes);
    let _ = crc_of(bytes);
    let _ = split_units::id_of(&bytes);
    let ids = split_ids(&bytes).unwrap_or_default();
    let _ = package_has(&bytes, &ids);
    for is_little_endian in [false, true] {
        let _ = DebugLink::parse(bytes, is_little_endian);
        let _ = SupplementaryLink::parse_dwarf5(bytes, is_little_endian);
    }
    let _ = SupplementaryLink::parse(bytes);
    let _ = index_format::decode(bytes);
    // The checksum would stop most inputs.
    if let Some(files) = index_format::decode_files(bytes) {
        assert_eq!(index_format::decode(&index_format::encode(&files)), Some(files));
    }
});
