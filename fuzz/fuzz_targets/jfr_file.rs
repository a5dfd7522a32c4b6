//! A recording of any content: every chunk, event, field and constant is read.
//!
//! `cargo fuzz run jfr_file`; the recordings of `scripts/jfr-corpus.sh` make a good first corpus, at least
//! the small ones.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_fuzz::read_recording;

fuzz_target!(|bytes: &[u8]| read_recording(bytes));
