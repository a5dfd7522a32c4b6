//! A chunk whose types are the input: the strings and the tree of elements that describe them.
//!
//! `cargo fuzz run jfr_metadata` needs no first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_fuzz::{Layer, convert_recording, read_recording, recording_with};

fuzz_target!(|input: &[u8]| {
    let recording = recording_with(Layer::Metadata, input);
    read_recording(&recording);
    convert_recording(&recording);
});
