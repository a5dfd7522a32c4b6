//! A recording that is right but for some bytes and comes bit by bit becomes profiles that break no rule: the input's first
//! four bytes say how the recording is written, where it is damaged and how many bytes come at a time, the others are put
//! there.
//!
//! `cargo fuzz run jfr_convert_push` needs no first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_fuzz::{convert_parts, sound_recording};

fuzz_target!(|input: &[u8]| {
    let [kind, length, high, low, damage @ ..] = input else { return };
    let mut recording = sound_recording(kind & 1 == 0);
    let at = usize::from(u16::from_be_bytes([*high, *low])) % recording.len();
    for (byte, damage) in recording[at..].iter_mut().zip(damage) {
        *byte = *damage;
    }
    convert_parts(&recording, usize::from(*length) * 16);
});
