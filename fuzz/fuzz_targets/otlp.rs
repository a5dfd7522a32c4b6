//! OTLP profiles from anywhere: read in every form, validated, rendered and judged.
//!
//! `cargo fuzz run otlp`; a profile written by the agent makes a good first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof::core::stack_walker::StackWalker;
use otlpprof::otlp::frames::frames;
use otlpprof::otlp::lookup::Lookup;
use otlpprof::otlp::read::{Limits, read_within};
use otlpprof::otlp::roots::{Ends, classify};
use otlpprof::otlp::validate::Validator;

fuzz_target!(|bytes: &[u8]| {
    let mut validator = Validator::new(2);
    for message in read_within(bytes, Limits { max_bytes: 1 << 20 }) {
        match message {
            Ok(message) => {
                validator.message(&message);
                let tables = Lookup::new(&message.data);
                for stack in 0..tables.dictionary.stack_table.len().min(100) {
                    let frames = frames(tables, stack as i32);
                    for walker in StackWalker::ALL {
                        let _ = classify(&frames, Ends::Unmarked, walker);
                    }
                }
            }
            Err(error) => validator.unreadable(&error),
        }
    }
    let _ = validator.finish();
});
