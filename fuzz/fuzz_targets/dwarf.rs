//! ELF files with debug information of any content: compiled, looked up, and written to an index.
//!
//! `cargo fuzz run dwarf`; small programs compiled with `-g`, `-g -gz=zlib` and `-gdwarf-2` make a good first
//! corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof::dwarf::{DwarfError, Inputs, LookUp as _, compile};

/// Addresses of small programs.
const ADDRESSES: [u64; 6] = [0x1020, 0x1040, 0x1139, 0x1150, 0x401_126, u64::MAX];

fuzz_target!(|bytes: &[u8]| {
    let wanted = bytes.len().is_multiple_of(2).then_some(&ADDRESSES[..]);
    match compile(&Inputs::of(&bytes), wanted) {
        Ok(mut compiled) => {
            let mut frames = Vec::new();
            for address in ADDRESSES {
                let _ = compiled.frames(address, &mut frames);
                for id in frames.iter().flat_map(|frame| [frame.function, frame.file]).flatten() {
                    let _ = compiled.text(id);
                }
            }
        }
        Err(error) => assert!(!matches!(error, DwarfError::Panicked)),
    }
});
