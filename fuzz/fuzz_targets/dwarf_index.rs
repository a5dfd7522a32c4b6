//! Indexes of any content, with checksums that are right: opened and looked up.
//!
//! `cargo fuzz run dwarf_index`; the index of a small program, by the example `resolve_addresses --make`,
//! makes a good first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof::dwarf::LookUp as _;
use otlpprof::dwarf::index::{Index, reseal};

/// Addresses of small programs.
const ADDRESSES: [u64; 6] = [0x1020, 0x1040, 0x1139, 0x1150, 0x401_126, u64::MAX];

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    reseal(&mut bytes);
    let Ok(mut index) = Index::open(&bytes[..]) else { return };
    let mut frames = Vec::new();
    for address in ADDRESSES {
        if index.frames(address, &mut frames).is_ok() {
            for id in frames.iter().flat_map(|frame| [frame.function, frame.file]).flatten() {
                let _ = index.text(id);
            }
        }
    }
});
