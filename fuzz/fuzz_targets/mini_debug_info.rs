//! MiniDebugInfo of any content: the xz stream, and the symbol table of the ELF file in it.
//!
//! `cargo fuzz run mini_debug_info`; small files compressed by `xz`, and small libraries, make a good first
//! corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_core::address::ElfVaddr;
use otlpprof_elf::mini_debug_info::{MAX_LEN, decompress};
use otlpprof_elf::symbols::tables::Symbols;

/// The header of a stream without a check, and of a block by LZMA2 with a dictionary of 8 MiB. An input
/// seldom has the right checksums of its headers.
const HEADERS: [u8; 24] = [
    0xfd, b'7', b'z', b'X', b'Z', 0, 0, 0, 0xff, 0x12, 0xd9, 0x41, 2, 0, 0x21, 1, 0x16, 0, 0, 0, 0x74, 0x2f,
    0xe5, 0xa3,
];

fn name_all(image: &[u8]) {
    let text = ElfVaddr(0)..ElfVaddr(u64::MAX);
    let Ok(symbols) = Symbols::of_mini_debug_info(image, &text) else { return };
    for vaddr in [0, 1, image.len() as u64, u64::from(u32::MAX), u64::MAX] {
        if let Some((start, _)) = symbols.find(ElfVaddr(vaddr)) {
            assert!(start.0 <= vaddr);
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    name_all(bytes);
    for stream in [bytes, &[&HEADERS[..], bytes].concat()] {
        if let Ok(image) = decompress(stream) {
            assert!(image.len() <= MAX_LEN);
            name_all(&image);
        }
    }
});
