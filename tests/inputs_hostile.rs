//! Files in pprof's format and collapsed stacks, damaged or crafted to cost more than they should: an error
//! and no panic, in memory that is bounded by the length of the file.

use otlpprof_collapsed::{CollapsedError, is_collapsed};
use otlpprof_model::Batch;
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_otlp::{EncodeOptions, encode};
use otlpprof_pprof::{PprofError, is_pprof};
use otlpprof_testkit::peak_memory::{Counting, MIB, SERIAL, peak_of};
use otlpprof_testkit::pprof_fixture::{Profile, valid};
use proptest::prelude::*;
use prost::Message as _;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Every batch becomes a message that can be read.
fn check(batch: &Batch) {
    EncodedMessage::of_protobuf(encode(batch, &EncodeOptions::default())).unwrap();
}

fn read_pprof(bytes: &[u8]) -> Result<i64, PprofError> {
    let mut sum = 0_i64;
    otlpprof_pprof::read(bytes, |batch| {
        check(&batch);
        let samples = batch.profiles.iter().flat_map(|profile| profile.samples());
        sum = samples.fold(sum, |sum, sample| sum.saturating_add(sample.value));
        Ok::<_, PprofError>(())
    })
    .map(|_| sum)
}

fn read_collapsed(bytes: &[u8]) -> Result<i64, CollapsedError> {
    let mut sum = 0_i64;
    otlpprof_collapsed::read(bytes, None, |batch| {
        check(&batch);
        sum = batch.profiles[0].samples().iter().fold(sum, |sum, sample| sum.saturating_add(sample.value));
        Ok::<_, CollapsedError>(())
    })
    .map(|_| sum)
}

#[test]
fn a_profile_cut_anywhere_is_an_error() {
    let bytes = valid().encode_to_vec();
    assert_eq!(read_pprof(&bytes).unwrap(), 42 + 420_000_000);
    for end in 0..bytes.len() {
        let read = read_pprof(&bytes[..end]);
        // The times and the comments come last, and may be absent.
        assert!(read.is_err() || read == Ok(42 + 420_000_000), "cut at {end}: {read:?}");
    }
}

proptest! {
    #[test]
    fn changed_bytes_of_a_profile_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = valid().encode_to_vec();
        for (at, byte) in changes {
            *at.get_mut(&mut bytes) = byte;
        }
        let _ = is_pprof(&bytes);
        if let Err(error) = read_pprof(&bytes) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (is_pprof(&bytes), is_collapsed(&bytes));
        let _ = (read_pprof(&bytes), read_collapsed(&bytes));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "([;\\[\\]_ijk01 :a-z./=]{0,20}[ ;]?[0-9-]{0,3}\n?){0,6}") {
        let _ = (is_collapsed(text.as_bytes()), read_collapsed(text.as_bytes()));
    }
}

#[test]
fn sums_beyond_the_largest_number_are_refused() {
    let mut profile = valid();
    profile.sample.truncate(2);
    profile.sample[0].value = vec![1; 2];
    for (value, is_read) in [(i64::MAX - 1, true), (i64::MAX, false)] {
        profile.sample[1].value[1] = value;
        assert_eq!(read_pprof(&profile.encode_to_vec()).is_ok(), is_read);
        assert_eq!(read_collapsed(format!("a 1\nb {value}\n").as_bytes()).is_ok(), is_read);
    }
}

/// A profile with the parts that a valid one needs, and `unit` as often as fits in `MIBS`.
fn repeated(unit: &[u8]) -> Vec<u8> {
    const MIBS: usize = 16;
    let mut head = Profile::default();
    head.string("");
    head.sample_type = vec![head.value_type("samples", "count")];
    let mut bytes = head.encode_to_vec();
    bytes.extend(unit.iter().copied().cycle().take(MIBS * MIB / unit.len() * unit.len()));
    bytes
}

/// Each unit is a part of few bytes.
#[test]
fn many_small_parts_take_memory_in_proportion_to_their_bytes() {
    let _serial = SERIAL.lock();
    for (unit, name) in [
        (&[0x0a, 0][..], "sample types"),
        (&[0x12, 0], "samples"),
        (&[0x12, 3, 0x12, 1, 1], "samples without a stack"),
        (&[0x1a, 0], "mappings"),
        (&[0x22, 2, 8, 1], "locations with one id"),
        (&[0x2a, 0], "functions"),
        (&[0x32, 0], "strings"),
        (&[0x6a, 1, 1], "comments"),
        (&[0x68, 1], "comments that are not packed"),
        (&[0x7a, 0], "unknown fields"),
    ] {
        let bytes = repeated(unit);
        let (peak, read) = peak_of(|| read_pprof(&bytes));
        assert!(peak < 20 * bytes.len(), "{name}: {} MiB, {read:?}", peak / MIB);
    }
}

/// A location with many lines in stacks that repeat it: few bytes become many frames.
#[test]
fn stacks_that_expand_are_refused() {
    let _serial = SERIAL.lock();
    let mut profile = valid();
    let line = profile.location[0].line[0];
    profile.location[0].line = vec![line; 100_000];
    let of = |profile: &Profile| {
        let bytes = profile.encode_to_vec();
        let (peak, read) = peak_of(|| read_pprof(&bytes));
        assert!(peak < 32 * bytes.len() + 64 * MIB, "{} MiB", peak / MIB);
        read.unwrap_err().to_string()
    };
    let mut deep = profile.clone();
    deep.sample[0].location_id = vec![1; 1_000];
    assert_eq!(of(&deep), "sample 0: more than 262144 frames");
    let sample =
        otlpprof_testkit::pprof_fixture::Sample { location_id: vec![1, 1], ..profile.sample[2].clone() };
    profile.sample = vec![sample; 10_000];
    let error = of(&profile);
    assert!(error.contains("frames of all samples"), "{error}");
}

#[test]
fn long_lines_and_many_frames_of_collapsed_stacks_are_bounded() {
    let _serial = SERIAL.lock();
    let long = "x".repeat(64 * MIB);
    let (peak, read) = peak_of(|| read_collapsed(long.as_bytes()));
    assert_eq!(read.unwrap_err().to_string(), "line 1: longer than 4194304 bytes");
    assert!(peak < 32 * MIB, "{} MiB", peak / MIB);
    // Frames without a name: one byte each.
    let frames = format!("{} 1\n", ";".repeat(200_000)).repeat(100);
    let (peak, read) = peak_of(|| read_collapsed(frames.as_bytes()));
    assert_eq!(read.unwrap(), 100);
    assert!(peak < 64 * MIB, "{} MiB", peak / MIB);
}
