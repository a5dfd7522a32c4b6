//! OTLP profiles of any content: read in every form, validated, rendered and judged.
//!
//! `cargo fuzz run otlp`; a profile written by the agent makes a good first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_otlp::frames::frames;
use otlpprof_otlp::reader::{Failure, Limits, Reader};
use otlpprof_otlp::roots::{Ends, classify};
use otlpprof_otlp::validate::Validator;

fuzz_target!(|bytes: &[u8]| {
    let mut validator = Validator::new(2);
    let limits = Limits { max_bytes: 1 << 20, ..Limits::default() };
    for message in Reader::within(bytes, limits).expect("memory can be read") {
        match message {
            Ok(message) => {
                validator.message(&message);
                let tables = message.tables();
                for stack in 0..tables.stacks().len().min(100) {
                    let frames = frames(tables, stack as i32);
                    for walker in StackWalker::ALL {
                        let _ = classify(&frames, Ends::Unmarked, walker);
                    }
                }
            }
            Err(Failure::Read(error)) => validator.unreadable(&error),
            Err(Failure::Io(error)) => panic!("memory can be read: {error}"),
        }
    }
    let _ = validator.finish();
});
