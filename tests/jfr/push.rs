//! Recordings that arrive in parts, are truncated, or are corrupt: the parser delivers the same events as
//! from the whole file, and never panics.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::mem;

use otlpprof_jfr::chunk::Chunk;
use otlpprof_jfr::error::{JfrError, Problem};
use otlpprof_jfr::events::Event;
use otlpprof_jfr::push::PushParser;
use otlpprof_jfr::recording::Chunks;
use otlpprof_jfr::values::Value;
use otlpprof_testkit::jdk::everything;
use otlpprof_testkit::recordings::recordings;
use otlpprof_testkit::recordings::synthetic::{Shape, native_image, recording};
use proptest::prelude::*;

const SMALL: Shape =
    Shape { events: 9, depth: 3, repeated_percent: 50, contexts: 2, remote_frames: 0, compressed: true };

/// The offset of an event in its recording, and the hash of its contents, or 0.
type Delivered = (u64, u64);

/// Hashes the values of an event, with the constants that they refer to.
fn hash(event: &Event<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    event.type_of().name.hash(&mut hasher);
    hash_value(Value::Struct(event.values()), event.values().chunk(), &mut hasher);
    hasher.finish()
}

fn hash_value(value: Value<'_>, chunk: Chunk<'_>, hasher: &mut DefaultHasher) {
    mem::discriminant(&value).hash(hasher);
    match value {
        Value::Boolean(value) => value.hash(hasher),
        Value::Char(value) => value.hash(hasher),
        Value::Float(value) => value.to_bits().hash(hasher),
        Value::Double(value) => value.to_bits().hash(hasher),
        Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_) => value.as_i64().hash(hasher),
        Value::String(_) => chunk.text(value).hash(hasher),
        Value::Constant(constant) => {
            let resolved = chunk.resolve(constant);
            resolved.is_some().hash(hasher);
            if let Some(value) = resolved {
                hash_value(value, chunk, hasher);
            }
        }
        Value::Struct(of) => {
            for item in of.fields() {
                let (field, value) = item.unwrap();
                field.name.hash(hasher);
                hash_value(value, chunk, hasher);
            }
        }
        Value::Array(array) => {
            array.values().count().hash(hasher);
            array.values().for_each(|value| hash_value(value.unwrap(), chunk, hasher));
        }
    }
}

fn delivered(event: &Event<'_>, contents: bool) -> Delivered {
    (event.offset(), if contents { hash(event) } else { 0 })
}

/// The events of a recording that is read as a whole. With `contents`, the recording has to be valid.
fn whole(bytes: &[u8], contents: bool) -> (Vec<Delivered>, Option<JfrError>) {
    let (mut events, mut problem) = (Vec::new(), None);
    for chunk in Chunks::new(bytes) {
        match chunk {
            Ok(chunk) => {
                problem = problem.or(chunk.problem());
                for event in chunk.contents().events() {
                    match event {
                        Ok(event) => events.push(delivered(&event, contents)),
                        Err(error) => problem = problem.or(Some(error)),
                    }
                }
            }
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    (events, problem)
}

/// The result of [`whole`], by pushes of these lengths, used cyclically.
fn pushed(bytes: &[u8], contents: bool, lengths: &[usize]) -> (Vec<Delivered>, Option<JfrError>) {
    let (mut events, mut problem) = (Vec::new(), None);
    let mut parser = PushParser::new();
    let mut take = |event: &Event<'_>| events.push(delivered(event, contents));
    let (mut rest, mut lengths) = (bytes, lengths.iter().cycle());
    while !rest.is_empty() {
        let (now, later) = rest.split_at((*lengths.next().unwrap()).clamp(1, rest.len()));
        problem = problem.or(parser.push(now, &mut take).err());
        rest = later;
    }
    problem = problem.or(parser.finish(&mut take).err());
    // Events that refer to later constants are delivered after others.
    events.sort_unstable();
    (events, problem)
}

/// Reads every value, without examining it.
fn read_all(bytes: &[u8]) {
    fn read(value: Value<'_>, chunk: Chunk<'_>, level: usize) {
        let _ = chunk.text(value);
        match value {
            Value::Constant(constant) if level < 5 => {
                if let Some(value) = chunk.resolve(constant) {
                    read(value, chunk, level + 1);
                }
            }
            Value::Struct(of) if level < 5 => {
                of.fields().flatten().take(50).for_each(|(_, value)| read(value, chunk, level + 1));
            }
            Value::Array(array) if level < 5 => {
                array.values().flatten().take(20).for_each(|value| read(value, chunk, level + 1));
            }
            _ => {}
        }
    }
    for chunk in Chunks::new(bytes).flatten() {
        let contents = chunk.contents();
        for event in contents.events().flatten() {
            read(Value::Struct(event.values()), contents, 0);
        }
    }
}

#[test]
fn both_integer_encodings_are_read() {
    let (compressed, problem) = whole(&recording(SMALL), true);
    assert_eq!((compressed.len(), problem), (9, None));
    let (raw, problem) = whole(&recording(Shape { compressed: false, ..SMALL }), true);
    assert_eq!(problem, None);
    let contents = |events: Vec<Delivered>| events.into_iter().map(|(_, hash)| hash).collect::<Vec<_>>();
    assert_eq!(contents(compressed), contents(raw));
}

#[test]
fn one_byte_at_a_time_gives_the_same_events() {
    for bytes in [recording(SMALL), recording(Shape { compressed: false, ..SMALL })] {
        assert_eq!(pushed(&bytes, true, &[1]), whole(&bytes, true));
    }
    for (name, bytes) in recordings(|name| ["chunks", "datadog", "async-profiler"].contains(&name)) {
        let (events, problem) = pushed(&bytes, false, &[1]);
        assert_eq!((&events, problem), (&whole(&bytes, false).0, None), "{name}");
    }
}

#[test]
fn recordings_come_in_pieces_with_all_that_they_refer_to() {
    let of = |name: &str, of: &[&str], kinds: &[&str]| {
        of.iter().any(|of| name.starts_with(of)) && kinds.iter().any(|kind| name.ends_with(kind))
    };
    let releases: &[&str] = if everything() { &["17-", "25-"] } else { &["25-"] };
    for (name, bytes) in recordings(|name| of(name, releases, &["-default", "-killed"])) {
        let (expected, expected_problem) = whole(&bytes, true);
        assert!(expected.len() > 50, "{name}");
        let (events, problem) = pushed(&bytes, true, &[10_007, 65_536]);
        assert!(events == expected, "{name}: {} events of {}", events.len(), expected.len());
        assert_eq!(problem.is_some(), expected_problem.is_some(), "{name}: {problem:?} {expected_problem:?}");
    }
}

/// A JVM that flushes allows delivery before the chunk ends.
#[test]
fn flushed_segments_are_delivered_before_the_chunk_ends() {
    for (name, bytes) in recordings(|name| name.starts_with("17-") && name.ends_with("-killed")) {
        let mut parser = PushParser::new();
        let mut events = 0;
        parser.push(&bytes, &mut |_| events += 1).unwrap();
        assert!(events > 0, "{name}: no event without an end");
    }
}

/// Checkpoints of native images lack the bit HEADER, and the first ones precede the metadata.
#[test]
fn flushes_of_native_images_are_delivered_as_they_come() {
    let shape = Shape { events: 20, ..SMALL };
    let bytes = native_image(shape, 3);
    let mut parser = PushParser::new();
    let mut begin = 0;
    for flush in 1..4 {
        let end = native_image(shape, flush).len();
        let mut traces = Vec::new();
        let mut deliver = |event: &Event<'_>| {
            let (values, chunk) = (event.values(), event.values().chunk());
            let trace = values.get("trace_id").and_then(|value| value.as_struct(chunk));
            let text = trace.and_then(|trace| trace.get("value")).and_then(|value| chunk.text(value));
            traces.push(text.map(|text| text.into_owned()));
        };
        for byte in &bytes[begin..end] {
            parser.push(&[*byte], &mut deliver).unwrap();
        }
        assert_eq!(traces, vec![Some(format!("{flush:032x}")); shape.events], "flush {flush}");
        begin = end;
    }
    assert_eq!(whole(&bytes, false).0.len(), 3 * shape.events);
}

#[test]
fn chunks_of_a_killed_jvm_are_read_to_the_last_event() {
    for (name, bytes) in recordings(|name| name.ends_with("-killed")) {
        let (events, problem) = whole(&bytes, false);
        assert!(!events.is_empty(), "{name}");
        let cut = problem.is_none_or(|error| error.problem == Problem::TruncatedChunk);
        assert!(cut, "{name}: {problem:?}");
    }
}

#[test]
fn a_truncated_recording_gives_the_events_before_the_cut() {
    let two = [recording(Shape { events: 3, ..SMALL }), recording(Shape { events: 2, ..SMALL })].concat();
    let first = recording(Shape { events: 3, ..SMALL }).len();
    // Of the places far from an end of a recording, each seventh, unless everything is tested.
    let is_near_end = |end: usize| [0, first, two.len()].iter().any(|at| at.abs_diff(end) < 100);
    for end in (0..two.len()).filter(|end| everything() || is_near_end(*end) || end % 7 == 0) {
        let (events, problem) = whole(&two[..end], false);
        let expected = if end < first { 0 } else { 3 };
        assert!(events.len() >= expected, "{end}: {} events", events.len());
        let is_whole = end == 0 || end == first;
        assert_eq!(problem.is_none(), is_whole, "{end}: {problem:?}");
        let (pushed, problem) = pushed(&two[..end], false, &[97]);
        assert_eq!(pushed, events, "{end}");
        assert_eq!(problem.is_none(), is_whole, "{end}: {problem:?}");
    }
}

#[test]
fn a_broken_chunk_does_not_hide_the_next() {
    let mut bytes = recording(SMALL);
    let len = bytes.len();
    // The size of the second event.
    let second = 68 + usize::from(bytes[68] & 0x7f);
    bytes[second..second + 4].fill(0);
    bytes.extend(recording(Shape { events: 4, ..SMALL }));
    let (events, problem) = whole(&bytes, false);
    assert_eq!(problem.unwrap().at, second as u64);
    assert_eq!(events.iter().filter(|(at, _)| *at > len as u64).count(), 4);
    assert_eq!(events.len(), 5, "with the one before the damage");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_split_gives_the_same_events(
        lengths in prop::collection::vec(1usize..900, 1..30),
        events in 0usize..40,
    ) {
        let bytes = [recording(Shape { events, ..SMALL }), recording(SMALL)].concat();
        prop_assert_eq!(pushed(&bytes, true, &lengths), whole(&bytes, true));
    }

    #[test]
    fn damage_costs_no_panic_and_no_hang(
        places in prop::collection::vec((0usize..1 << 16, any::<u8>()), 1..12), compressed: bool,
    ) {
        let mut bytes = recording(Shape { compressed, ..SMALL });
        for (place, byte) in places {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        read_all(&bytes);
        pushed(&bytes, false, &[61]);
    }

    #[test]
    fn damaged_metadata_costs_no_panic_and_no_hang(
        places in prop::collection::vec(
            (0usize..1 << 16, prop::sample::select(vec![0u8, 1, 5, 0x7f, 0x80, 0xff])),
            1..20,
        ),
    ) {
        let mut bytes = recording(Shape { events: 3, ..SMALL });
        let metadata = u64::from_be_bytes(bytes[24..32].try_into().unwrap()) as usize;
        for (place, byte) in places {
            let place = metadata + place % 1_200;
            bytes[place] = byte;
        }
        read_all(&bytes);
    }

    #[test]
    fn any_bytes_after_a_header_cause_no_panic(bytes: Vec<u8>) {
        let mut recording = recording(SMALL)[..68].to_vec();
        recording[8..32].fill(0);
        recording.extend(bytes);
        read_all(&recording);
        pushed(&recording, false, &[7]);
    }
}
