//! A recording of any content, converted to profiles that break no rule.
//!
//! `cargo fuzz run jfr_convert`; with the corpus of `jfr_file`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_fuzz::convert_recording;

fuzz_target!(|bytes: &[u8]| convert_recording(bytes));
