//! Stacks with almost no repeated frames: every frame of the result is in the recording, and memory stays
//! proportional.

use otlpprof_convert::JfrToOtlp;
use otlpprof_otlp::wire::ProfilesData;
use otlpprof_otlp::{EncodeOptions, encode};
use otlpprof_testkit::peak_memory::{Counting, MIB, SERIAL, peak_of};
use otlpprof_testkit::recordings::random_frames::{RandomShape, frames_of, recording, stacks};
use prost::Message as _;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const LARGE: RandomShape = RandomShape {
    event: "datadog.ExecutionSample",
    events: 5_000,
    depth: 100,
    repeated_percent: 0,
    spans: 1_000,
    has_inline_frames: false,
};

fn converted(recording: &[u8]) -> Vec<u8> {
    let mut converter = JfrToOtlp::default();
    converter.add(recording).unwrap();
    encode(&converter.convert(), &EncodeOptions::default())
}

#[test]
fn every_frame_of_random_stacks_is_the_recordings() {
    let _serial = SERIAL.lock();
    for has_inline_frames in [false, true] {
        assert_same_frames(RandomShape {
            events: 300,
            depth: 50,
            repeated_percent: 70,
            has_inline_frames,
            ..LARGE
        });
    }
}

fn assert_same_frames(shape: RandomShape) {
    let data = ProfilesData::decode(&*converted(&recording(shape))).unwrap();
    let dictionary = data.dictionary.as_ref().unwrap();
    let name = |index: i32| &*dictionary.string_table[index as usize];
    let written = |stack: &otlpprof_otlp::wire::Stack| -> Vec<(String, i64)> {
        let frame = |&index: &i32| {
            let [line] = &dictionary.location_table[index as usize].lines[..] else { panic!("one line") };
            let function = &dictionary.function_table[line.function_index as usize];
            (name(function.name_strindex).to_owned(), line.line)
        };
        stack.location_indices.iter().map(frame).collect()
    };
    let expected = |stack: usize| -> Vec<(String, i64)> {
        let frame = |(method, line): (i64, i64)| {
            // A method's key determines its class.
            let class = (method + 1) % 1_000;
            let package = (class + 2) % 50;
            (format!("com.example.package{package}.Class{class}.method{method}"), line)
        };
        frames_of(shape, stack).map(frame).collect()
    };
    let mut all: Vec<_> = dictionary.stack_table[1..].iter().map(written).collect();
    let mut recorded: Vec<_> = (1..=stacks(shape)).map(expected).collect();
    all.sort_unstable();
    recorded.sort_unstable();
    assert_eq!(all.len(), 90);
    assert_eq!(all, recorded);
    let mut locations: Vec<_> = dictionary.location_table.iter().map(|of| format!("{of:?}")).collect();
    locations.sort_unstable();
    let count = locations.len();
    locations.dedup();
    assert_eq!(locations.len(), count, "each location once");
}

/// Regression: each distinct frame was in four tables, which took 96 MiB at once.
#[test]
fn half_a_million_distinct_frames_fit_into_memory() {
    let _serial = SERIAL.lock();
    let recording = recording(LARGE);
    let (peak, message) = peak_of(|| converted(&recording));
    println!("peak {} MiB, of recording {} and result {} bytes", peak / MIB, recording.len(), message.len());
    assert!(peak <= 60 * MIB, "{} MiB at once", peak / MIB);
}
