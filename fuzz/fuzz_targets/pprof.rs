//! A profile in pprof's format of any content: read to batches, each of which becomes a message that can be
//! read.
//!
//! `cargo fuzz run pprof`; a profile of Go's runtime, decompressed, makes a good first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_pprof::{PprofError, is_pprof, read};
use otlpprof_fuzz::check_batch;

fuzz_target!(|bytes: &[u8]| {
    let _ = is_pprof(bytes);
    let _ = read(bytes, |batch| {
        check_batch(&batch);
        Ok::<_, PprofError>(())
    });
});
