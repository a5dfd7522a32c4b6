//! Collapsed stacks of any content: read to batches, each of which becomes a message that can be read.
//!
//! `cargo fuzz run collapsed`; a few lines such as `[main tid=1];a/B.c:7_[j];d_[k] 5` make a good first
//! corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_collapsed::{CollapsedError, is_collapsed, read};
use otlpprof_fuzz::check_batch;

fuzz_target!(|bytes: &[u8]| {
    let _ = is_collapsed(bytes);
    for unit in [None, Some("bytes")] {
        let _ = read(bytes, unit, |batch| {
            check_batch(&batch);
            Ok::<_, CollapsedError>(())
        });
    }
});
