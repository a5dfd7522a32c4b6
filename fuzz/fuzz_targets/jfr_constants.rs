//! A chunk whose constants are the input: their number, and pools.
//!
//! `cargo fuzz run jfr_constants` needs no first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_fuzz::{Layer, convert_recording, read_recording, recording_with};

fuzz_target!(|input: &[u8]| {
    let recording = recording_with(Layer::Constants, input);
    read_recording(&recording);
    convert_recording(&recording);
});
