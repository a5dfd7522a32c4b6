//! Iteration over a chunk's events, with and without the events of some types.

use std::collections::BTreeMap;

use otlpprof_jfr::chunk::{Chunk, OpenChunk};
use otlpprof_jfr::events::SkippedTypes;
use otlpprof_jfr::recording::Chunks;
use otlpprof_jfr::types::Constant;
use otlpprof_jfr::values::Value;
use otlpprof_testkit::recordings::recordings;
use otlpprof_testkit::recordings::synthetic::{
    LONG, STACK_TRACE, STRING, THREAD_STATE, TypeOf, VALUE_TYPES, crafted,
};

/// The offsets of a chunk's events, by the position of their type.
fn offsets(chunk: Chunk<'_>) -> BTreeMap<usize, Vec<u64>> {
    let mut offsets = BTreeMap::<usize, Vec<u64>>::new();
    for event in chunk.events() {
        let event = event.unwrap();
        offsets.entry(event.type_index().position()).or_default().push(event.offset());
    }
    offsets
}

/// For each type, skips the events of all other types, and compares the result with all events.
fn check(label: &str, recording: &[u8]) {
    for chunk in Chunks::new(recording) {
        let chunk = chunk.unwrap();
        let chunk = chunk.contents();
        let expected = offsets(chunk);
        for (of, _) in chunk.metadata().types().filter(|(of, _)| expected.contains_key(&of.position())) {
            let mut others = SkippedTypes::all_except(chunk.metadata(), of);
            let mut events = chunk.events();
            let mut found = Vec::new();
            while let Some(event) = events.next_except(&mut others) {
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

/// The event of an unknown type is followed by one whose type is skipped.
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

/// Datadog's profiler omits `truncated` for a stack without frames.
///
/// Regression: the next stack's key was read as its number of frames. All following constants were lost,
/// methods and names among them.
#[test]
fn stacks_without_frames_may_have_no_first_field() {
    const FIRST_KEY: i64 = 1 << 32;
    let of_datadog: TypeOf =
        (100, "datadog.ExecutionSample", "jdk.jfr.Event", &[("startTime", LONG, false, false)]);
    for bare in [&[][..], &[0, 1, 3], &[2, 4], &[0, 1, 2, 3, 4]] {
        let bytes = crafted(
            &[VALUE_TYPES, &[of_datadog]].concat(),
            |_| {},
            2,
            |out| {
                out.pool(STACK_TRACE, FIRST_KEY..FIRST_KEY + 5, |out, key| {
                    let number = key - FIRST_KEY;
                    let frames = if bare.contains(&number) { 0 } else { number + 1 };
                    if frames != 0 {
                        out.bytes.push(0);
                    }
                    out.int(frames);
                    for frame in 0..frames {
                        [frame, 10, 20, 1].into_iter().for_each(|value| out.int(value));
                    }
                });
                out.pool(THREAD_STATE, 1..3, |out, key| out.text(&format!("state {key}")));
            },
        );
        let chunk = OpenChunk::open(&bytes, 0).unwrap();
        assert_eq!(chunk.problem(), None, "{bare:?}");
        let chunk = chunk.contents();
        let of = |name| chunk.metadata().find_by_name(name).unwrap();
        for number in 0..5 {
            let stack = Constant { of: of("jdk.types.StackTrace"), key: FIRST_KEY + number };
            let frames = Value::Constant(stack).as_struct(chunk).and_then(|stack| stack.get("frames"));
            let frames = frames.map(|frames| match frames {
                Value::Array(frames) => frames.len() as i64,
                other => panic!("{other:?}"),
            });
            assert_eq!(frames, (!bare.contains(&number)).then_some(number + 1), "{number} of {bare:?}");
        }
        let state = Constant { of: of("jdk.types.ThreadState"), key: 2 };
        assert_eq!(chunk.text(Value::Constant(state)).as_deref(), Some("state 2"), "{bare:?}");
    }
}

/// The cached types of one chunk are not used for another chunk with different types.
#[test]
fn each_chunk_has_the_types_of_its_own_metadata() {
    let by_name = |wanted: &str| recordings(|name| name == wanted).remove(0).1;
    let (jdk, datadog) = (by_name("chunks"), by_name("datadog"));
    let all = [&*jdk, &jdk, &datadog, &jdk, &datadog, &datadog].concat();
    let mut at = 0;
    for chunk in Chunks::new(&all) {
        let chunk = chunk.unwrap();
        let alone = OpenChunk::open(&all[at..], at as u64).unwrap();
        at += chunk.len();
        let contents = |chunk: Chunk<'_>| {
            let types: Vec<_> = chunk.metadata().types().map(|(_, of)| format!("{of:?}")).collect();
            (chunk.metadata_offset(), chunk.metadata().region().clone(), types)
        };
        assert!(contents(chunk.contents()) == contents(alone.contents()), "the chunk that ends at {at}");
    }
    assert_eq!(at, all.len());
}
