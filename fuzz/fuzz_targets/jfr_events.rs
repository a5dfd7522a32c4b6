//! A chunk whose events are the input: sizes, types, fields and inline strings.
//!
//! `cargo fuzz run jfr_events` needs no first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_fuzz::{Layer, convert_recording, read_recording, recording_with};

fuzz_target!(|input: &[u8]| {
    let recording = recording_with(Layer::Events, input);
    read_recording(&recording);
    convert_recording(&recording);
});
