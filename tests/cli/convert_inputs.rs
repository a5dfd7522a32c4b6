//! Inputs of `otlpprof convert`: recordings that are compressed, of an old version, truncated, or without
//! anything to convert. Also the options that set resource attributes of the result.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::packed::{gzip, zstd};
use flate2::read::MultiGzDecoder;
use otlpprof_convert::JfrToOtlp;
use otlpprof_otlp::wire::{self, ProfilesData};
use otlpprof_otlp::{EncodeOptions, encode};
use otlpprof_testkit::commands::{otlpprof, printed_by_otlpprof, text};
use otlpprof_testkit::recordings::converted::profiles;
use otlpprof_testkit::recordings::recordings;
use otlpprof_testkit::recordings::synthetic::{
    CONSTANT_POOLS, FieldOf, LONG, STACK_TRACE, START_NANOS, STRING, Shape, THREAD, TypeOf, VALUE_TYPES,
    Writer, crafted, pools_of_constants, recording, sum_of_weights,
};
use prost::Message as _;

const SHAPE: Shape =
    Shape { events: 40, depth: 5, repeated_percent: 50, contexts: 3, remote_frames: 0, compressed: true };
const OTHER: Shape = Shape { events: 9, ..SHAPE };

const START: FieldOf = ("startTime", LONG, false, false);
const DURATION: FieldOf = ("duration", LONG, false, false);
const EVENT_THREAD: FieldOf = ("eventThread", THREAD, true, false);
const STACK: FieldOf = ("stackTrace", STACK_TRACE, true, false);

/// A directory for inputs and results of conversions.
struct ConversionDir {
    directory: tempfile::TempDir,
}

impl ConversionDir {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Converts a recording in a file. Returns the exit code and the messages.
    fn convert(&self, recording: &[u8], more: &[&str]) -> (i32, String) {
        let input = self.file("in.jfr", recording);
        let out = self.path("out");
        let _ = std::fs::remove_file(&out);
        printed_by_otlpprof(&[&["convert", text(&input), "-o", text(&out)], more].concat())
    }

    fn data(&self) -> ProfilesData {
        ProfilesData::decode(&*std::fs::read(self.path("out")).unwrap()).unwrap()
    }

    /// The sum of all values in the result.
    fn sum(&self) -> i64 {
        let data = self.data();
        let samples = profiles(&data).flat_map(|profile| &profile.samples);
        samples.flat_map(|sample| &sample.values).sum()
    }
}

/// Converts standard input. Returns the exit code and the messages.
fn convert_stdin(bytes: &[u8], out: &Path, more: &[&str]) -> (i32, String) {
    let mut child = otlpprof()
        .args(["convert", "-", "-o", text(out)])
        .args(more)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// Regression: compressed recordings were refused, with the advice to decompress them first.
#[test]
fn compressed_recordings_are_read_as_those_that_are_not() {
    let dir = ConversionDir::new();
    let (one, two) = (recording(SHAPE), recording(OTHER));
    let both = sum_of_weights(SHAPE) + sum_of_weights(OTHER);
    let skipped = [&0x184d_2a53_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"any"].concat();
    let whole = [&one[..], &two].concat();
    for (form, bytes) in [
        ("gzip", gzip(&whole)),
        ("gzip members", [gzip(&one), gzip(&two)].concat()),
        ("gzip members that part a chunk", [gzip(&whole[..1_000]), gzip(&whole[1_000..])].concat()),
        ("zstd", zstd(&whole)),
        ("zstd frames", [&skipped[..], &zstd(&one), &skipped, &zstd(&two)].concat()),
        ("zstd frames that part a chunk", [zstd(&whole[..1_000]), zstd(&whole[1_000..])].concat()),
    ] {
        let (code, printed) = dir.convert(&bytes, &[]);
        assert_eq!((code, dir.sum()), (0, both), "{form}: {printed}");
        let out = dir.path("from-stdin");
        let (code, followed) = convert_stdin(&bytes, &out, &[]);
        assert_eq!((code, &followed), (0, &printed), "{form}");
        let (code, printed) = convert_stdin(&bytes, &out, &["--follow"]);
        assert!(code == 0 && printed.contains("49 converted"), "{form}: {printed}");
        // The payload is the recordings after decompression.
        let (code, printed) = dir.convert(&bytes, &["--include-payload"]);
        assert_eq!(code, 0, "{form}: {printed}");
        let back = dir.path("back.jfr");
        assert_eq!(
            printed_by_otlpprof(&["payload", text(&dir.path("out")), "-o", text(&back)]).0,
            0,
            "{form}"
        );
        assert!(std::fs::read(&back).unwrap() == whole, "{form}");
    }
    let mut converter = JfrToOtlp::default();
    converter.add_file(dir.file("library.jfr.zst", &zstd(&one))).unwrap();
    let data = ProfilesData::decode(&*encode(&converter.convert(), &EncodeOptions::default())).unwrap();
    assert!(profiles(&data).count() > 0);
}

#[test]
fn compressed_recordings_that_are_cut_are_converted_as_far_as_they_go() {
    let dir = ConversionDir::new();
    let (one, two) = (recording(SHAPE), recording(OTHER));
    for (form, mut bytes) in
        [("gzip", [gzip(&one), gzip(&two)].concat()), ("zstd", [zstd(&one), zstd(&two)].concat())]
    {
        bytes.truncate(bytes.len() - 30);
        let (code, printed) = dir.convert(&bytes, &[]);
        let expected = format!("in.jfr: the {form} stream is cut or damaged");
        assert!(code == 2 && printed.matches(&expected).count() == 1, "{printed}");
        assert!(dir.sum() >= sum_of_weights(SHAPE), "{form}");
        // Other inputs are converted all the same.
        let other = dir.file("other.jfr", &one);
        let (code, printed) = dir.convert(&bytes, &[text(&other)]);
        assert!(code == 2 && printed.matches(&expected).count() == 1, "{printed}");
        assert!(dir.sum() >= 2 * sum_of_weights(SHAPE), "{form}");
    }
}

/// Regression: the second recording was lost although it is complete.
#[test]
fn a_whole_recording_after_a_truncated_one_is_converted() {
    let dir = ConversionDir::new();
    let (first, whole) = (recording(SHAPE), recording(Shape { events: 500, ..SHAPE }));
    let expected = sum_of_weights(Shape { events: 500, ..SHAPE });
    let mut cuts: Vec<usize> = (68..first.len()).step_by(first.len() / 23).collect();
    cuts.extend([69, 70, first.len() - 40]);
    for cut in cuts {
        let bytes = [&first[..cut], &whole].concat();
        let (code, printed) = dir.convert(&bytes, &[]);
        assert_eq!(code, 2, "{cut}: {printed}");
        // The part before the cut has no metadata.
        assert_eq!(dir.sum(), expected, "{cut}: {printed}");
        assert_eq!(convert_stdin(&bytes, &dir.path("from-stdin"), &[]).0, 2, "{cut}");
        assert!(printed.contains("in.jfr: byte "), "{cut}: {printed}");
        let mut converter = JfrToOtlp::default();
        assert!(converter.add(&bytes).is_err(), "{cut}");
        let counts: Vec<_> = converter.counts().map(|(_, count)| count.converted).collect();
        assert_eq!(counts, [500], "{cut}");
        // The same holds for a truncated recording between two complete ones.
        let (code, printed) = dir.convert(&[&whole[..], &bytes].concat(), &[]);
        assert_eq!((code, dir.sum()), (2, 2 * expected), "{cut}: {printed}");
    }
}

/// The sum of the converter's values, by type.
fn sums(converter: &mut JfrToOtlp) -> Vec<(String, i64)> {
    let batch = converter.convert();
    let sum = |profile: &otlpprof_model::Profile| {
        let source = profile.profile_type;
        let values = profile.samples().iter().map(|sample| sample.value).sum();
        (format!("{}/{}/{}", source.name, source.sample_type, source.period_type), values)
    };
    batch.profiles.iter().map(sum).collect()
}

/// HotSpot's chunks contain copies of their headers, and metadata in several places.
#[test]
fn real_recordings_that_are_cut_do_not_hide_what_follows() {
    for (name, bytes) in recordings(|name| name.ends_with("-rich") || name == "async-profiler") {
        for cut in [bytes.len() / 3, bytes.len() * 2 / 3 + 1, bytes.len() - 10] {
            let mut apart = JfrToOtlp::default();
            assert!(apart.add(&bytes[..cut]).is_err(), "{name} {cut}");
            apart.add(&bytes).unwrap();
            let mut joined = JfrToOtlp::default();
            let joined_bytes = [&bytes[..cut], &bytes].concat();
            assert!(joined.add_reader(&*joined_bytes).is_err(), "{name} {cut}");
            assert_eq!(sums(&mut joined), sums(&mut apart), "{name} {cut}");
        }
    }
}

/// Regression: version 1.0, which the JDK's own reader accepts, was refused.
#[test]
fn recordings_of_jdk_9_and_10_are_read() {
    const READ: i64 = 200;
    const SETTING: i64 = 201;
    const SAMPLE: i64 = 202;
    const PROPERTY: i64 = 203;
    let texts = |names: [&'static str; 2]| names.map(|name| (name, STRING, false, false));
    let [name, value] = texts(["name", "value"]);
    let [key, of] = texts(["key", "value"]);
    let setting: &'static [FieldOf] = vec![START, ("id", LONG, false, false), name, value].leak();
    let property: &'static [FieldOf] = vec![START, key, of].leak();
    let types: [TypeOf; 4] = [
        (
            READ,
            "com.oracle.jdk.SocketRead",
            "jdk.jfr.Event",
            &[START, DURATION, EVENT_THREAD, STACK, ("bytesRead", LONG, false, false)],
        ),
        (SETTING, "com.oracle.jdk.ActiveSetting", "jdk.jfr.Event", setting),
        (SAMPLE, "com.oracle.jdk.ExecutionSample", "jdk.jfr.Event", &[START, STACK]),
        (PROPERTY, "com.oracle.jdk.InitialSystemProperty", "jdk.jfr.Event", property),
    ];
    let events = |out: &mut Writer| {
        out.event(SETTING, |out| {
            [1, SAMPLE].into_iter().for_each(|field| out.long(field));
            ["period", "10 ms"].into_iter().for_each(|text| out.text(text));
        });
        out.event(PROPERTY, |out| {
            out.long(1);
            ["java.vm.version", "9+181"].into_iter().for_each(|text| out.text(text));
        });
        out.event(READ, |out| [10, 700, 1, 1, 50].into_iter().for_each(|field| out.long(field)));
        out.event(SAMPLE, |out| [10, 1].into_iter().for_each(|field| out.long(field)));
    };
    let constants = |out: &mut Writer| pools_of_constants(out, SHAPE, 3);
    let mut bytes = crafted(&[VALUE_TYPES, &types].concat(), events, CONSTANT_POOLS, constants);
    bytes[4..8].copy_from_slice(&[0, 1, 0, 0]);
    let dir = ConversionDir::new();
    let two = [&bytes[..], &bytes].concat();
    let (code, printed) = dir.convert(&two, &["--event", "com.oracle.jdk.SocketRead:bytesRead"]);
    assert_eq!(code, 0, "{printed}");
    assert!(
        printed.contains("jdk.SocketRead: 2 converted") && printed.contains("jdk.ExecutionSample: 2 conv"),
        "{printed}"
    );
    assert_eq!(dir.sum(), 2 * (700 + 50 + 1 + 50));
    let data = dir.data();
    assert!(profiles(&data).any(|profile| profile.period == 10_000_000), "{printed}");
    let resource = data.resource_profiles[0].resource.as_ref().unwrap();
    assert!(resource.attributes.iter().any(|attribute| attribute.key == "process.runtime.version"));
    // A recording that arrives in small parts is read, too.
    let (code, printed) = convert_stdin(&two, &dir.path("followed"), &["--follow"]);
    assert!(code == 0 && printed.contains("jdk.SocketRead: 2 converted"), "{printed}");
    let mut old = bytes;
    old[5] = 0;
    let (code, printed) = dir.convert(&old, &[]);
    assert!(code == 2 && printed.contains("JFR version 0.0 is not supported, only 1.x and 2.x"), "{printed}");
}

/// Regression: an empty profile was written, and the exit code was 0.
#[test]
fn a_recording_with_nothing_to_convert_is_reported() {
    const STARTED: i64 = 200;
    let types: [TypeOf; 1] = [(STARTED, "jdk.ThreadStart", "jdk.jfr.Event", &[START, STACK])];
    let events = |out: &mut Writer| {
        out.event(STARTED, |out| [1, 1].into_iter().for_each(|field| out.long(field)));
    };
    let constants = |out: &mut Writer| pools_of_constants(out, SHAPE, 3);
    let bytes = crafted(&[VALUE_TYPES, &types].concat(), events, CONSTANT_POOLS, constants);
    let dir = ConversionDir::new();
    let (code, printed) = dir.convert(&bytes, &[]);
    let input = dir.path("in.jfr");
    let why = "none of its events is converted by default; --event NAME converts others";
    let nothing = format!("otlpprof: nothing to convert in {}: {why}\n", input.display());
    assert_eq!((code, printed), (2, format!("not converted: jdk.ThreadStart 1\n{nothing}")));
    assert!(!dir.path("out").exists());
    let (code, printed) = convert_stdin(&bytes, &dir.path("out"), &["--follow"]);
    assert!(
        code == 2 && printed.contains(&format!("otlpprof: nothing to convert in -: {why}\n")),
        "{printed}"
    );
    assert_eq!(dir.convert(&bytes, &["--event", "jdk.ThreadStart"]).0, 0);
}

/// Regression: the result was empty, without any message.
#[test]
fn a_window_without_events_is_reported() {
    let dir = ConversionDir::new();
    let (code, printed) = dir.convert(&recording(SHAPE), &["--end", "1000"]);
    assert_eq!(code, 2, "{printed}");
    let nothing = "the window of --from and --to has no event, and 40 lie outside; the recording spans \
                   2023-11-14T22:13:20.000Z to 2023-11-14T22:13:20.000Z\n";
    assert!(
        printed.contains("0 converted, 0 without a stack, 40 outside") && printed.ends_with(nothing),
        "{printed}"
    );
    assert!(!dir.path("out").exists());
    let (_, printed) = convert_stdin(&recording(SHAPE), &dir.path("out"), &["--follow", "--end", "1000"]);
    assert!(
        printed.contains("nothing to convert in -: the window of --from and --to has no event"),
        "{printed}"
    );
}

/// The events of the synthetic recordings are 10 µs apart; the first is 1 µs after the start.
#[test]
fn windows_may_be_given_by_spans_and_with_offsets_from_utc() {
    let dir = ConversionDir::new();
    let converted = |more: &[&str]| {
        let (code, printed) = dir.convert(&recording(SHAPE), more);
        assert_eq!(code, 0, "{printed}");
        let count = printed.split(": ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        count.parse::<u32>().unwrap()
    };
    assert_eq!(converted(&["--start", "+15us", "--end", "+95us"]), 8);
    assert_eq!(converted(&["--start", "+385us"]), 1);
    let local = ["2023-11-15T00:13:20+02:00", "2023-11-14T18:43:20.000095-0330"];
    assert_eq!(converted(&["--start", local[0], "--end", local[1]]), 10);
    assert_eq!(START_NANOS, 1_700_000_000_000_000_000);
    // Each recording has its own start.
    let mut later = recording(SHAPE);
    later[32..40].copy_from_slice(&(START_NANOS + 3_600_000_000_000).to_be_bytes());
    let later = dir.file("later.jfr.gz", &gzip(&later));
    assert_eq!(converted(&[text(&later), "--end", "+95us"]), 20);
    for more in
        [&["--start", "+"][..], &["--start", "2023-11-15T00:13:20+2"], &["--start", "+1s", "--follow"]]
    {
        let (code, printed) = dir.convert(&recording(SHAPE), more);
        assert_eq!(code, 2, "{more:?}: {printed}");
    }
}

#[test]
fn a_result_has_the_resource_attributes_that_are_asked_for() {
    let dir = ConversionDir::new();
    let (code, printed) = dir.convert(
        &recording(SHAPE),
        &["--service", "shop", "--resource", "deployment.environment.name=test", "--resource", "note=a=b"],
    );
    assert_eq!(code, 0, "{printed}");
    let check = |data: &ProfilesData| {
        let attributes = &data.resource_profiles[0].resource.as_ref().unwrap().attributes;
        for (key, value) in
            [("service.name", "shop"), ("deployment.environment.name", "test"), ("note", "a=b")]
        {
            let found: Vec<_> = attributes.iter().filter(|attribute| attribute.key == key).collect();
            let [attribute] = found[..] else { panic!("{key}: {attributes:?}") };
            let of = attribute.value.as_ref().and_then(|value| value.value.clone());
            assert_eq!(of, Some(wire::Value::StringValue(value.to_owned())), "{key}");
        }
    };
    check(&dir.data());
    let followed = ["--follow", "--service", "shop", "--resource", "deployment.environment.name=test"];
    let out = dir.path("out");
    let (code, printed) =
        convert_stdin(&recording(SHAPE), &out, &[&followed[..], &["--resource", "note=a=b"]].concat());
    assert_eq!(code, 0, "{printed}");
    check(&ProfilesData::decode(&std::fs::read(&out).unwrap()[4..]).unwrap());
    for wrong in [["--resource", "novalue"], ["--resource", "=x"], ["--service", ""]] {
        assert_eq!(dir.convert(&recording(SHAPE), &wrong).0, 2, "{wrong:?}");
    }
}

/// Regression: a result with a name for compressed files was not compressed.
#[test]
fn results_are_compressed_as_their_name_says() {
    let dir = ConversionDir::new();
    let input = dir.file("in.jfr", &recording(SHAPE));
    for (name, more) in [
        ("out.otlp.gz", &[][..]),
        ("out.json.gz", &["--format", "json-pretty", "--include-payload"][..]),
        ("out.GZ", &["--follow"][..]),
    ] {
        let out = dir.path(name);
        let (code, printed) = match more {
            ["--follow"] => convert_stdin(&recording(SHAPE), &out, more),
            _ => printed_by_otlpprof(&[&["convert", text(&input), "-o", text(&out)], more].concat()),
        };
        assert_eq!(code, 0, "{printed}");
        let bytes = std::fs::read(&out).unwrap();
        assert_eq!(bytes[..2], [0x1f, 0x8b], "{name}");
        let mut unpacked = Vec::new();
        MultiGzDecoder::new(&*bytes).read_to_end(&mut unpacked).unwrap();
        assert!(unpacked.len() > bytes.len(), "{name}");
        let (code, printed) = printed_by_otlpprof(&["validate", "--strict", text(&out)]);
        assert_eq!(code, 0, "{name}: {printed}");
    }
    for name in ["out.zst", "out.xz"] {
        let (code, printed) = printed_by_otlpprof(&["convert", text(&input), "-o", text(&dir.path(name))]);
        assert!(code == 2 && printed.lines().count() == 1 && printed.contains("only as .gz"), "{printed}");
        assert!(!dir.path(name).exists());
    }
}

/// Regression: `validate --strict` rejected a result that `convert --timestamps --validate` accepted.
#[test]
fn validation_before_writing_agrees_with_validation_of_the_file() {
    const SLEPT: i64 = 200;
    let types: [TypeOf; 1] =
        [(SLEPT, "jdk.ThreadSleep", "jdk.jfr.Event", &[START, DURATION, EVENT_THREAD, STACK])];
    let events = |out: &mut Writer| {
        for time in [10, 60] {
            out.event(SLEPT, |out| [time, 30, 1, 1].into_iter().for_each(|field| out.long(field)));
        }
    };
    let constants = |out: &mut Writer| pools_of_constants(out, SHAPE, 3);
    let bytes = crafted(&[VALUE_TYPES, &types].concat(), events, CONSTANT_POOLS, constants);
    let dir = ConversionDir::new();
    let out = dir.path("out");
    for times in [&[][..], &["--timestamps"]] {
        for strict in [&[][..], &["--strict"]] {
            let (code, printed) = dir.convert(&bytes, &[&["--validate"], times, strict].concat());
            let (of_result, report) = printed_by_otlpprof(&[&["validate", text(&out)], strict].concat());
            assert_eq!(code, of_result, "{times:?} {strict:?}: {printed}{report}");
            let of_convert: Vec<_> = printed.lines().filter(|line| line.starts_with(text(&out))).collect();
            assert_eq!(of_convert, report.lines().collect::<Vec<_>>(), "{times:?} {strict:?}");
        }
    }
}
