//! Going through a chunk's events, with and without those of some types.

#[allow(clippy::duplicate_mod, reason = "other support modules of a test binary need it too")]
mod jfr_support;

use std::collections::BTreeMap;

use jfr_support::recordings;
use jfr_support::synthetic::{LONG, STRING, TypeOf, crafted};
use otlpprof::jfr::chunk::{Chunk, OpenChunk};
use otlpprof::jfr::events::Passed;
use otlpprof::jfr::recording::Chunks;

/// The offsets of a chunk's events, by the position of their type.
fn offsets(chunk: Chunk<'_>) -> BTreeMap<usize, Vec<u64>> {
    let mut offsets = BTreeMap::<usize, Vec<u64>>::new();
    for event in chunk.events() {
        let event = event.unwrap();
        offsets.entry(event.type_index().position()).or_default().push(event.offset());
    }
    offsets
}

/// Passes all types but one, each in turn, and holds it to what there is.
fn check(label: &str, recording: &[u8]) {
    for chunk in Chunks::new(recording) {
        let chunk = chunk.unwrap();
        let chunk = chunk.contents();
        let expected = offsets(chunk);
        for (of, _) in chunk.metadata().types().filter(|(of, _)| expected.contains_key(&of.position())) {
            let mut others = Passed::all_but(chunk.metadata(), of);
            let mut events = chunk.events();
            let mut found = Vec::new();
            while let Some(event) = events.next_but(&mut others) {
                found.push(event.unwrap().offset());
            }
            assert_eq!(found, expected[&of.position()], "{label}: {of:?}");
            for (position, count) in others.counts() {
                let expected = expected.get(&position).map_or(0, Vec::len) as u64;
                assert_eq!(count, expected, "{label}: {of:?}, position {position}");
            }
        }
    }
}

#[test]
fn passed_events_are_counted_and_the_others_are_all_there() {
    for (name, bytes) in recordings(|name| ["chunks", "datadog", "async-profiler"].contains(&name)) {
        check(name, &bytes);
    }
}

/// Behind an event of a type that the metadata does not describe there is another that is to be passed.
#[test]
fn an_event_of_no_known_type_hides_none_that_is_to_be_passed() {
    const TYPES: [TypeOf; 4] = [
        (LONG, "long", "", &[]),
        (STRING, "java.lang.String", "", &[]),
        (20, "first.Event", "jdk.jfr.Event", &[("startTime", LONG, false, false)]),
        (21, "second.Event", "jdk.jfr.Event", &[("startTime", LONG, false, false)]),
    ];
    let recording = crafted(
        &TYPES,
        |out| {
            for type_id in [20, 99, 21, 20, 1 << 40, 20, 21, 99, 20] {
                out.event(type_id, |out| out.long(5));
            }
        },
        0,
        |_| {},
    );
    check("made by hand", &recording);
}

/// What is known of a chunk's types is not taken for those of another that has different ones.
#[test]
fn each_chunk_has_the_types_that_it_tells() {
    let by_name = |wanted: &str| recordings(|name| name == wanted).remove(0).1;
    let (jdk, datadog) = (by_name("chunks"), by_name("datadog"));
    let all = [&*jdk, &jdk, &datadog, &jdk, &datadog, &datadog].concat();
    let mut at = 0;
    for chunk in Chunks::new(&all) {
        let chunk = chunk.unwrap();
        let alone = OpenChunk::open(&all[at..], at as u64).unwrap();
        at += chunk.len();
        let told = |chunk: Chunk<'_>| {
            let types: Vec<_> = chunk.metadata().types().map(|(_, of)| format!("{of:?}")).collect();
            (chunk.metadata_offset(), chunk.metadata().region().clone(), types)
        };
        assert!(told(chunk.contents()) == told(alone.contents()), "the chunk that ends at {at}");
    }
    assert_eq!(at, all.len());
}
