//! A recording that is valid except for some bytes, arrives in parts, and is converted to profiles that break
//! no rule. The input's first four bytes determine how the recording is written, where it is damaged and the
//! size of the parts; the other bytes replace the damaged ones.
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
