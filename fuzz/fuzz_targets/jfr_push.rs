//! A recording whose bytes arrive in parts: the input's first byte is the size of the parts.
//!
//! `cargo fuzz run jfr_push`; a corpus for `jfr_file` with a byte before each file makes a good first corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use otlpprof_jfr::push::PushParser;
use otlpprof_jfr::recording::Chunks;

fuzz_target!(|input: &[u8]| {
    let Some((&length, bytes)) = input.split_first() else { return };
    let mut pushed = Vec::new();
    let mut parser = PushParser::new();
    let mut is_right = true;
    for part in bytes.chunks(usize::from(length).max(1)) {
        is_right &= parser.push(part, &mut |event| pushed.push(event.offset())).is_ok();
    }
    is_right &= parser.finish(&mut |event| pushed.push(event.offset())).is_ok();
    let mut whole = Vec::new();
    for chunk in Chunks::new(bytes) {
        let Ok(chunk) = chunk else { return };
        let events = chunk.contents().events().map_while(Result::ok).map(|event| event.offset());
        whole.extend(events);
        if chunk.problem().is_some() {
            return;
        }
    }
    if is_right {
        pushed.sort_unstable();
        assert_eq!(pushed, whole);
    }
});
