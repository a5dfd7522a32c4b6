//! Recordings crafted so that their cost exceeds their size. The memory and the work of their conversion are
//! bounded.

use std::fs::File;
use std::io::Write as _;

use otlpprof_convert::{AddError, ConvertOptions, JfrToOtlp};
use otlpprof_jfr::error::Problem;
use otlpprof_jfr::push::PushParser;
use otlpprof_testkit::peak_memory::{Counting, MIB, SERIAL, peak_of};
use otlpprof_testkit::recordings::synthetic::{
    FieldOf, LONG, STRING, Shape, TypeOf, Writer, crafted, metadata_with, recording,
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of events that became samples.
fn converted(converter: &JfrToOtlp) -> u64 {
    converter.counts().map(|(_, count)| count.converted).sum()
}

const SMALL: Shape =
    Shape { events: 9, depth: 3, repeated_percent: 50, contexts: 2, remote_frames: 0, compressed: true };

/// A file of 2 GiB that begins with these bytes; the rest is zeros.
fn sparse(begin: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut to: &File = file.as_file();
    to.write_all(begin).unwrap();
    file.as_file().set_len(2 << 30).unwrap();
    file
}

/// The results for a file of 2 GiB that begins with `begin`, read as a whole and in parts: the peak of memory
/// in bytes, the number of converted events, and the error's offset.
fn two_gibibytes(begin: &[u8]) -> [(usize, u64, Option<u64>); 2] {
    let file = sparse(begin);
    let mut converter = JfrToOtlp::new(ConvertOptions::default());
    let (peak, added) = peak_of(|| converter.add_file(file.path()));
    let at = match added {
        Ok(()) => None,
        Err(AddError::Jfr(error)) => Some(error.at),
        Err(error @ (AddError::Io(_) | AddError::Packed(_))) => panic!("{error}"),
    };
    let whole = (peak, converted(&converter), at);
    let mut converter = JfrToOtlp::new(ConvertOptions::default());
    let mut at = None;
    let (peak, _) = peak_of(|| {
        let mut from = file.reopen().unwrap();
        converter
            .follow::<std::io::Error>(&mut from, |error| at = at.or(Some(error.at)), |_| Ok(()))
            .unwrap();
    });
    [whole, (peak, converted(&converter), at)]
}

#[test]
fn bytes_after_a_chunk_that_are_no_chunk_are_not_read_into_memory() {
    let _serial = SERIAL.lock();
    let chunk = recording(SMALL);
    for (peak, events, at) in two_gibibytes(&chunk) {
        assert!(peak < 16 * MIB, "{peak} bytes");
        assert_eq!((events, at), (9, Some(chunk.len() as u64)));
    }
}

#[test]
fn bytes_after_an_unreadable_chunk_are_not_read_into_memory() {
    let _serial = SERIAL.lock();
    let good = recording(SMALL);
    let at = good.len() as u64 * 2;
    // An unfinished chunk; an impossible size; a nearly infinite size; a size of 2 GiB; and a size below the
    // header's.
    for (place, bytes) in [
        (64, vec![7]),
        (8, (-1i64).to_be_bytes().to_vec()),
        (8, i64::MAX.to_be_bytes().to_vec()),
        (8, (1i64 << 31).to_be_bytes().to_vec()),
        (8, 3i64.to_be_bytes().to_vec()),
    ] {
        let mut two = [&good[..], &good[..]].concat();
        two[good.len() + place..][..bytes.len()].copy_from_slice(&bytes);
        for (peak, events, found) in two_gibibytes(&two) {
            assert!(peak < 16 * MIB, "{peak} bytes with {bytes:?} at {place}");
            assert_eq!((events, found), (18, Some(at)), "with {bytes:?} at {place}");
        }
    }
}

/// The ids of the types that events and stacks consist of.
const CLASS: i64 = 21;
const METHOD: i64 = 22;
const FRAME: i64 = 25;
const STACK: i64 = 26;
const ATTRIBUTE: i64 = 29;
const SAMPLE: i64 = 100;
const VARIABLE: i64 = 101;

const BOOLEAN: TypeOf = (12, "boolean", "", &[]);
const TYPES: [TypeOf; 6] = [
    (LONG, "long", "", &[]),
    (STRING, "java.lang.String", "", &[]),
    BOOLEAN,
    (CLASS, "java.lang.Class", "", &[("name", STRING, false, false)]),
    (
        METHOD,
        "jdk.types.Method",
        "",
        &[("type", CLASS, true, false), ("name", STRING, false, false), ("descriptor", STRING, false, false)],
    ),
    (STACK, "jdk.types.StackTrace", "", &[("truncated", 12, false, false), ("frames", FRAME, false, true)]),
];
const FRAME_OF_METHOD: TypeOf = (FRAME, "jdk.types.StackFrame", "", &[("method", METHOD, true, false)]);
const SAMPLE_OF_STACK: TypeOf = (
    SAMPLE,
    "jdk.ExecutionSample",
    "jdk.jfr.Event",
    &[("startTime", LONG, false, false), ("stackTrace", STACK, true, false)],
);

fn sample_of(out: &mut Writer, stack: i64) {
    out.event(SAMPLE, |out| {
        out.long(1);
        out.long(stack);
    });
}

/// Converts a recording of at most 1 MiB. Returns the peak of memory in bytes, the first problem, and the
/// converter.
fn conversion(bytes: &[u8]) -> (usize, Option<Problem>, JfrToOtlp) {
    assert!(bytes.len() <= MIB, "{} bytes", bytes.len());
    let mut converter = JfrToOtlp::new(ConvertOptions::default());
    let (peak, added) = peak_of(|| converter.add(bytes));
    (peak, added.err().map(|error| error.problem), converter)
}

fn leaked(text: String) -> &'static str {
    text.leak()
}

#[test]
fn a_long_text_that_many_elements_of_the_metadata_name_is_kept_once() {
    let _serial = SERIAL.lock();
    let long = leaked("n".repeat(500_000));
    let fields: &'static [FieldOf] = vec![(long, LONG, false, false); 40_000].leak();
    let bytes = crafted(&[TYPES[0], TYPES[1], (SAMPLE, long, "jdk.jfr.Event", fields)], |_| {}, 0, |_| {});
    let (peak, problem, _) = conversion(&bytes);
    assert!(peak < 64 * MIB, "{peak} bytes");
    assert_eq!(problem, None);
}

#[test]
fn a_class_of_a_long_name_does_not_multiply_by_its_methods() {
    let _serial = SERIAL.lock();
    const METHODS: i64 = 20_000;
    let types = [&TYPES[..], &[FRAME_OF_METHOD, SAMPLE_OF_STACK]].concat();
    let bytes = crafted(
        &types,
        |out| sample_of(out, 1),
        3,
        |out| {
            out.pool(CLASS, 1..2, |out, _| out.text(&"c".repeat(500_000)));
            out.pool(METHOD, 1..METHODS + 1, |out, key| {
                out.long(1);
                out.text(&format!("m{key}"));
                out.text("()V");
            });
            out.pool(STACK, 1..2, |out, _| {
                out.bytes.push(0);
                out.int(METHODS);
                (1..METHODS + 1).for_each(|method| out.long(method));
            });
        },
    );
    let (peak, problem, converter) = conversion(&bytes);
    assert!(peak < 160 * MIB, "{peak} bytes");
    assert_eq!((problem, converted(&converter)), (None, 1));
}

#[test]
fn frames_without_fields_are_not_counted_by_the_bytes_that_follow() {
    let _serial = SERIAL.lock();
    const STACKS: i64 = 2_000;
    let types = [&TYPES[..], &[(FRAME, "jdk.types.StackFrame", "", &[][..]), SAMPLE_OF_STACK]].concat();
    let bytes = crafted(
        &types,
        |out| (1..STACKS + 1).for_each(|stack| sample_of(out, stack)),
        1,
        |out| {
            out.pool(STACK, 1..STACKS + 1, |out, key| {
                out.bytes.push(0);
                out.int(100_000 + key);
            });
            out.bytes.resize(out.bytes.len() + 200_000, 0);
        },
    );
    let (peak, problem, _) = conversion(&bytes);
    assert!(peak < 16 * MIB, "{peak} bytes");
    assert_eq!(problem, Some(Problem::EmptyElements(100_001)));
}

#[test]
fn fields_of_a_context_do_not_each_take_a_table_of_all_values() {
    let _serial = SERIAL.lock();
    const FIELDS: usize = 4_000;
    let contexts = (0..FIELDS).map(|field| (leaked(format!("f{field}")), ATTRIBUTE, true, false));
    let own = [("startTime", LONG, false, false), ("stackTrace", STACK, true, false)];
    let fields: &'static [FieldOf] = own.into_iter().chain(contexts).collect::<Vec<_>>().leak();
    let attribute = (ATTRIBUTE, "profiler.types.AttributeValue", "", &[("value", STRING, false, false)][..]);
    let sample = (SAMPLE, "jdk.ExecutionSample", "jdk.jfr.Event", fields);
    let types = [&TYPES[..], &[FRAME_OF_METHOD, attribute, sample]].concat();
    let bytes = crafted(
        &types,
        |out| {
            out.event(SAMPLE, |out| {
                out.long(1);
                out.long(1);
                (0..FIELDS).for_each(|_| out.long(1));
            });
        },
        2,
        |out| {
            out.pool(STACK, 1..2, |out, _| {
                out.bytes.push(0);
                out.int(1);
                out.long(1);
            });
            out.pool(
                ATTRIBUTE,
                1..150_000,
                |out, key| if key == 1 { out.text("v") } else { out.bytes.push(1) },
            );
        },
    );
    let (peak, problem, mut converter) = conversion(&bytes);
    assert!(peak < 128 * MIB, "{peak} bytes");
    assert_eq!((problem, converted(&converter)), (None, 1));
    // The first 32 contexts.
    let strings = converter.convert().tables.strings;
    assert!(strings.find("f31").is_some() && strings.find("f32").is_none());
}

#[test]
fn a_list_of_resource_attributes_is_taken_up_to_a_number() {
    let _serial = SERIAL.lock();
    let variable: TypeOf = (
        VARIABLE,
        "jdk.InitialEnvironmentVariable",
        "jdk.jfr.Event",
        &[("startTime", LONG, false, false), ("key", STRING, false, false), ("value", STRING, false, false)],
    );
    let list: Vec<String> = (0..60_000).map(|key| format!("k{key}=v")).collect();
    let bytes = crafted(
        &[TYPES[0], TYPES[1], variable],
        |out| {
            out.event(VARIABLE, |out| {
                out.long(1);
                out.text("OTEL_RESOURCE_ATTRIBUTES");
                out.text(&list.join(","));
            });
        },
        0,
        |_| {},
    );
    let (_, problem, mut converter) = conversion(&bytes);
    let resource = converter.convert().resource;
    // 128 listed attributes, and the service's name.
    assert_eq!((problem, resource.attributes().len()), (None, 129));
    assert!(resource.get("k127").is_some() && resource.get("k128").is_none());
}

/// The number of values of an unfinished chunk that a parser has checked, and the number of events that it
/// has delivered so far.
fn values_checked(bytes: &mut [u8]) -> (u64, usize) {
    assert!(bytes.len() <= MIB, "{} bytes", bytes.len());
    // An unfinished chunk without a size.
    bytes[8..16].fill(0);
    bytes[64] = 1;
    let (mut parser, mut delivered) = (PushParser::new(), 0);
    parser.push(bytes, &mut |_| delivered += 1).unwrap();
    (parser.values_checked(), delivered)
}

/// A checkpoint of a flush, with one pool.
fn flush(out: &mut Writer, of: i64, keys: std::ops::Range<i64>, write: impl Fn(&mut Writer, i64)) {
    out.event(1, |out| {
        out.checkpoint(0, 1);
        out.padded(1);
        out.pool(of, keys, write);
    });
}

fn late_types() -> Vec<TypeOf> {
    [&TYPES[..], &[FRAME_OF_METHOD, SAMPLE_OF_STACK]].concat()
}

#[test]
fn an_event_that_waits_for_a_constant_is_not_looked_at_with_each_flush() {
    let _serial = SERIAL.lock();
    const EVENTS: i64 = 10_000;
    const FLUSHES: i64 = 10_000;
    let mut bytes = crafted(
        &late_types(),
        |out| {
            out.event(0, |out| metadata_with(out, &late_types()));
            (0..EVENTS).for_each(|event| sample_of(out, 1_000_000 + event));
            for key in 1..=FLUSHES {
                flush(out, CLASS, key..key + 1, |out, _| out.bytes.push(1));
            }
            flush(out, STACK, 1_000_000..1_000_000 + EVENTS / 2, |out, _| {
                out.bytes.push(0);
                out.int(0);
            });
        },
        0,
        |_| {},
    );
    let (values_checked, delivered) = values_checked(&mut bytes);
    assert_eq!(delivered as i64, EVENTS / 2);
    // Each event is checked twice, together with its fields and the values that they refer to.
    assert!(values_checked < 20 * EVENTS as u64, "{values_checked} values");
}

#[test]
fn a_shared_constant_is_not_checked_for_each_event() {
    let _serial = SERIAL.lock();
    const EVENTS: i64 = 10_000;
    const FRAMES: i64 = 50_000;
    let both: TypeOf = (
        SAMPLE,
        "jdk.ExecutionSample",
        "jdk.jfr.Event",
        &[
            ("startTime", LONG, false, false),
            ("stackTrace", STACK, true, false),
            ("other", CLASS, true, false),
        ],
    );
    let types = [&TYPES[..], &[FRAME_OF_METHOD, both]].concat();
    // All events refer to one stack. It is known, or lacks the last of its methods. Each event also refers to
    // a class that is never written.
    for lacks in [false, true] {
        let mut bytes = crafted(
            &types,
            |out| {
                out.event(0, |out| metadata_with(out, &types));
                for event in 0..EVENTS {
                    out.event(SAMPLE, |out| {
                        out.long(1);
                        out.long(1);
                        out.long(2 + event);
                    });
                }
                flush(out, METHOD, 1..2, |out, _| {
                    out.long(0);
                    out.bytes.extend([1, 1]);
                });
                flush(out, STACK, 1..2, |out, _| {
                    out.bytes.push(0);
                    out.int(FRAMES);
                    (0..FRAMES).for_each(|frame| out.long(1 + i64::from(lacks && frame == FRAMES - 1)));
                });
            },
            0,
            |_| {},
        );
        let (values_checked, delivered) = values_checked(&mut bytes);
        assert_eq!(delivered, 0);
        assert!(values_checked < 20 * (EVENTS + FRAMES) as u64, "{values_checked} values");
    }
}

#[test]
fn an_event_whose_constants_come_one_by_one_waits_for_the_end() {
    let _serial = SERIAL.lock();
    const METHODS: i64 = 10_000;
    let mut bytes = crafted(
        &late_types(),
        |out| {
            out.event(0, |out| metadata_with(out, &late_types()));
            sample_of(out, 1);
            flush(out, STACK, 1..2, |out, _| {
                out.bytes.push(0);
                out.int(METHODS);
                (1..=METHODS).for_each(|method| out.long(method));
            });
            for method in 1..=METHODS {
                // Another event with the same stack, so that the stack is checked again.
                sample_of(out, 1);
                flush(out, METHOD, method..method + 1, |out, _| {
                    out.long(0);
                    out.bytes.extend([1, 1]);
                });
            }
        },
        0,
        |_| {},
    );
    let (values_checked, delivered) = values_checked(&mut bytes);
    assert_eq!(delivered, 0);
    assert!(values_checked < 100 * METHODS as u64, "{values_checked} values");
    let mut parser = PushParser::new();
    let mut all = 0;
    parser.push(&bytes, &mut |_| all += 1).unwrap();
    parser.finish(&mut |_| all += 1).unwrap();
    assert_eq!(all, METHODS + 1);
}
