//! A recording from anywhere: every chunk, event, field and constant is read.
//!
//! `cargo fuzz run jfr_file`; the recordings of `scripts/jfr-corpus.sh` make a good first corpus, the small ones at least.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_fuzz::read_recording;

fuzz_target!(|bytes: &[u8]| read_recording(bytes));
