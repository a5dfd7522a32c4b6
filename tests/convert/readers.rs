//! Recordings from readers that return less than requested: short pieces, interruptions, or failures halfway.

use std::io::{self, Read};

use otlpprof_convert::{AddError, ConvertOptions, JfrToOtlp, RequestedTime};
use otlpprof_otlp::validate::rules::Severity;
use otlpprof_otlp::validate::validate;
use otlpprof_otlp::wire::ProfilesData;
use otlpprof_otlp::{EncodeOptions, encode};
use otlpprof_testkit::recordings::recordings;
use otlpprof_testkit::recordings::synthetic::{START_NANOS, Shape, recording};
use proptest::prelude::*;
use prost::Message as _;

const SHAPE: Shape =
    Shape { events: 40, depth: 5, repeated_percent: 50, contexts: 3, remote_frames: 1, compressed: true };

/// A reader that returns at most `most` bytes at a time, and is interrupted before each read.
struct Short<'a> {
    rest: &'a [u8],
    most: usize,
    was_interrupted: bool,
}

impl Read for Short<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.was_interrupted = !self.was_interrupted;
        if self.was_interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let most = self.most.min(into.len());
        self.rest.read(&mut into[..most])
    }
}

/// A reader that fails after these bytes.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.0.read(into)? {
            0 => Err(io::Error::new(io::ErrorKind::ConnectionReset, "the other side is gone")),
            count => Ok(count),
        }
    }
}

fn converter() -> JfrToOtlp {
    JfrToOtlp::new(ConvertOptions { times: true, ..ConvertOptions::default() })
}

fn bytes_of(converter: &mut JfrToOtlp) -> Vec<u8> {
    encode(&converter.convert(), &EncodeOptions { timestamps: true, ..EncodeOptions::default() })
}

/// The converter's batch without the profiles' ids, which are random.
fn data_of(converter: &mut JfrToOtlp) -> ProfilesData {
    let mut data = ProfilesData::decode(&*bytes_of(converter)).unwrap();
    let scopes = data.resource_profiles.iter_mut().flat_map(|of| &mut of.scope_profiles);
    scopes.flat_map(|scope| &mut scope.profiles).for_each(|profile| profile.profile_id.clear());
    data
}

fn whole(recording: &[u8]) -> ProfilesData {
    let mut converter = converter();
    converter.add(recording).unwrap();
    data_of(&mut converter)
}

#[test]
fn short_reads_give_the_same_as_the_whole() {
    let two = [recording(SHAPE), recording(Shape { events: 7, compressed: false, ..SHAPE })].concat();
    let expected = whole(&two);
    for most in [1, 2, 7, 67, 68, 69, 4_096] {
        let mut converter = converter();
        converter.add_reader(Short { rest: &two, most, was_interrupted: false }).unwrap();
        assert!(data_of(&mut converter) == expected, "{most} at a time");
    }
    for (name, bytes) in recordings(|name| ["chunks", "datadog", "async-profiler"].contains(&name)) {
        let mut converter = converter();
        converter.add_reader(Short { rest: &bytes, most: 1_021, was_interrupted: false }).unwrap();
        assert!(data_of(&mut converter) == whole(&bytes), "{name}");
    }
}

#[test]
fn a_failing_reader_is_reported_and_its_bytes_until_then_are_added() {
    let first = recording(SHAPE);
    let two = [first.clone(), recording(Shape { events: 7, ..SHAPE })].concat();
    for end in [0, 1, 67, 68, first.len() - 1, first.len(), first.len() + 68, first.len() + 500, two.len()] {
        let mut converter = converter();
        let added = converter.add_reader(Failing(&two[..end]));
        let Err(AddError::Io(error)) = added else { panic!("{end}: {added:?}") };
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{end}");
        let converted: u64 = converter.counts().map(|(_, count)| count.converted).sum();
        assert!(converted >= if end < first.len() { 0 } else { 40 }, "{end}: {converted}");
        let mut cut = self::converter();
        let _ = cut.add(&two[..end]);
        assert!(data_of(&mut converter) == data_of(&mut cut), "{end}");
        // The converter can continue with another recording.
        converter.add(&two).unwrap();
        assert!(data_of(&mut converter) == whole(&two), "{end}");
    }
}

/// Regression: each batch with the beginning of a chunk covered the whole requested window.
#[test]
fn windows_of_a_stream_follow_one_another() {
    const SECOND: i64 = 1_000_000_000;
    let at = |seconds: i64| START_NANOS + seconds * SECOND;
    let chunk = |seconds: i64| {
        let mut chunk = recording(SHAPE);
        chunk[32..40].copy_from_slice(&at(seconds).to_be_bytes());
        chunk
    };
    let asked_for = |start: i64, end: i64| RequestedTime {
        start_unix_nano: Some(at(start)),
        end_unix_nano: Some(at(end)),
    };
    let mut converter = converter();
    converter.set_window(asked_for(-60, 60));
    let mut window_of = |seconds: i64| {
        converter.push(&chunk(seconds)).unwrap();
        let batch = converter.convert();
        let profile = &batch.profiles[0];
        let start = profile.start_unix_nano as i64;
        (start - START_NANOS, start + profile.duration_nano as i64 - START_NANOS)
    };
    let (first, second) = (window_of(0), window_of(10));
    assert!(first.0 == 0 && first.1 > 0 && first.1 < SECOND, "{first:?}");
    assert!(second.0 == first.1 && second.1 > 10 * SECOND && second.1 < 11 * SECOND, "{second:?}");
    // A recording that is added as a whole has the requested window.
    let mut converter = self::converter();
    converter.set_window(asked_for(-60, 60));
    converter.add(&chunk(0)).unwrap();
    let profile = &converter.convert().profiles[0];
    assert_eq!(profile.start_unix_nano as i64, at(-60));
    assert_eq!(profile.duration_nano as i64, 120 * SECOND);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn damage_that_comes_bit_by_bit_becomes_no_invalid_profile(
        places in prop::collection::vec((0usize..1 << 16, any::<u8>()), 0..8),
        length in 1usize..3_000,
        compressed: bool,
    ) {
        let mut bytes = recording(Shape { compressed, ..SHAPE });
        for (place, byte) in places {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        let mut converter = converter();
        for part in bytes.chunks(length) {
            let _ = converter.push(part);
            let message = bytes_of(&mut converter);
            let report = validate(&message, 1);
            prop_assert!(report.breaches().all(|(rule, _)| rule.rule().severity <= Severity::Warning));
        }
        let _ = converter.finish();
    }
}
