//! Indexes of any content, with checksums that are right: opened and looked up.
//!
//! `cargo fuzz run dwarf_index`; the index of a small program with code at 0x1000, by the example
//! `resolve_addresses --make`, makes a good first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_dwarf::LookUp as _;
use otlpprof_dwarf::index::{Index, reseal};
use otlpprof_fuzz::ADDRESSES;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    reseal(&mut bytes);
    let Ok(mut index) = Index::open(&bytes[..]) else { return };
    let mut frames = Vec::new();
    for address in ADDRESSES {
        if index.frames(address, &mut frames).is_ok() {
            for id in frames.iter().flat_map(|frame| [frame.function, frame.file]).flatten() {
                let _ = index.name(id);
                let _ = index.text(id);
            }
        }
    }
});
