//! A recording that is valid except for some bytes, so that all parts of a chunk are reached. The input's
//! first three bytes determine how the recording is written and where it is damaged; the other bytes replace
//! the damaged ones.
//!
//! `cargo fuzz run jfr_damaged` needs no first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_fuzz::{convert_recording, read_recording, sound_recording};

fuzz_target!(|input: &[u8]| {
    let [kind, high, low, damage @ ..] = input else { return };
    let mut recording = sound_recording(kind & 1 == 0);
    let at = usize::from(u16::from_be_bytes([*high, *low])) % recording.len();
    for (byte, damage) in recording[at..].iter_mut().zip(damage) {
        *byte = *damage;
    }
    read_recording(&recording);
    convert_recording(&recording);
});
