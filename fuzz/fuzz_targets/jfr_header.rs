//! Recordings whose chunk headers are the input: inconsistent sizes, offsets, states and flags.
//!
//! `cargo fuzz run jfr_header` needs no first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_fuzz::{convert_recording, read_recording, sound_recording};

/// The length of a chunk's header, in bytes.
const HEADER_LEN: usize = 68;
/// The largest number of chunks.
const MOST_CHUNKS: usize = 3;

fuzz_target!(|input: &[u8]| {
    let recording = sound_recording(input.first().is_some_and(|first| first & 1 == 0));
    let mut chunks = Vec::new();
    for header in input.get(1..).unwrap_or_default().chunks(HEADER_LEN).take(MOST_CHUNKS) {
        let begin = chunks.len();
        chunks.extend_from_slice(&recording);
        chunks[begin..][..header.len()].copy_from_slice(header);
    }
    read_recording(&chunks);
    convert_recording(&chunks);
});
