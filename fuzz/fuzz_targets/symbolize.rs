//! Messages of any content whose native frames get names: the result is a message that can be read, and has
//! no frame without a name any more.
//!
//! `cargo fuzz run symbolize`; the example `fuzz_inputs symbolize` makes a good first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_otlp::reader::{Limits, Reader};
use otlpprof_otlp::to_json;
use otlpprof_symbolize::with_names;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_bytes: 1 << 20, ..Limits::default() };
    for message in Reader::within(bytes, limits).expect("memory can be read").flatten() {
        // A JSON sample without values resembles one of an older layout as protobuf, which is not read.
        if EncodedMessage::of_protobuf(message.bytes().to_vec()).is_err() {
            continue;
        }
        for functions in [&["inner", "outer"][..], &["f"]] {
            let Some(Ok(named)) = with_names(&message, functions) else { continue };
            let named = EncodedMessage::of_protobuf(named.into_bytes()).expect("a message");
            assert!(with_names(&named, functions).is_none());
            let _ = to_json(named.bytes());
        }
    }
});
