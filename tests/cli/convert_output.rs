//! The output of `otlpprof convert`: several inputs, windows, indented JSON, and the included recordings,
//! which `otlpprof payload` extracts again.

use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use otlpprof_convert::{ConvertOptions, JfrToOtlp};
use otlpprof_otlp::validate::rules::Severity;
use otlpprof_otlp::validate::validate;
use otlpprof_otlp::wire::{Profile, ProfilesData};
use otlpprof_otlp::{EncodeOptions, encode};
use otlpprof_testkit::commands::{otlpprof, printed_by_otlpprof, text};
use otlpprof_testkit::recordings::synthetic::{self, Shape, VALUE_TYPES, crafted, recording};
use proptest::prelude::*;
use prost::Message as _;

const SHAPE: Shape =
    Shape { events: 40, depth: 5, repeated_percent: 50, contexts: 3, remote_frames: 0, compressed: true };
/// The time of a recording's first event; the next constant is the time between two events.
const FIRST_NANO: u64 = synthetic::START_NANOS as u64 + 1_000;
const STEP_NANOS: u64 = 10_000;

/// A directory with the recordings `a.jfr` (40 events) and `b.jfr` (10 events), and a place for the output.
struct Files {
    directory: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.jfr"), recording(SHAPE)).unwrap();
        std::fs::write(directory.path().join("b.jfr"), recording(Shape { events: 10, ..SHAPE })).unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs `convert` on these inputs, which must succeed. Returns its messages.
    fn convert(&self, inputs: &[&str], more: &[&str]) -> String {
        let inputs: Vec<_> = inputs.iter().map(|name| self.path(name)).collect();
        let output = self.path("out");
        let mut arguments = vec!["convert", "-o", text(&output)];
        arguments.extend(inputs.iter().map(|path| text(path)));
        arguments.extend(more);
        let (code, printed) = printed_by_otlpprof(&arguments);
        assert_eq!(code, 0, "{printed}");
        printed
    }

    fn profile(&self) -> Profile {
        let mut data = ProfilesData::decode(&*std::fs::read(self.path("out")).unwrap()).unwrap();
        let mut profiles = data.resource_profiles.remove(0).scope_profiles.remove(0).profiles;
        assert_eq!(profiles.len(), 1);
        profiles.remove(0)
    }
}

fn sum(profile: &Profile) -> i64 {
    profile.samples.iter().flat_map(|sample| &sample.values).sum()
}

#[test]
fn several_inputs_become_one_profile_of_their_sums() {
    let files = Files::new();
    files.convert(&["a.jfr"], &[]);
    let one = files.profile();
    files.convert(&["a.jfr", "a.jfr", "b.jfr"], &[]);
    let all = files.profile();
    let of_b = synthetic::sum_of_weights(Shape { events: 10, ..SHAPE });
    assert_eq!(sum(&all), 2 * synthetic::sum_of_weights(SHAPE) + of_b);
    assert!(sum(&one) == synthetic::sum_of_weights(SHAPE) && all.samples.len() < 2 * one.samples.len());
}

#[test]
fn each_input_may_have_a_window_of_its_own() {
    let files = Files::new();
    let at = |event: u64| {
        // A time between the previous event and this one.
        let nanos = FIRST_NANO + event * STEP_NANOS - STEP_NANOS / 2;
        format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
    };
    // Seconds as floating-point numbers are accurate to a quarter of a microsecond in these years.
    let printed = files.convert(
        &["a.jfr", "b.jfr"],
        &["--start", &at(3), "--end", &at(13), "--start", &at(0), "--end", &at(4), "--timestamps"],
    );
    assert!(
        printed.contains("datadog.ExecutionSample: 14 converted, 0 without a stack, 36 outside"),
        "{printed}"
    );
    let profile = files.profile();
    let window = profile.time_unix_nano..profile.time_unix_nano + profile.duration_nano;
    assert_eq!(profile.samples.iter().flat_map(|sample| &sample.timestamps_unix_nano).count(), {
        let weights = |events: std::ops::Range<i64>| events.map(|event| 1 + event % 3).sum::<i64>();
        (weights(3..13) + weights(0..4)) as usize
    });
    assert!(
        profile.samples.iter().flat_map(|sample| &sample.timestamps_unix_nano).all(|at| window.contains(at))
    );
    assert!(window.start.abs_diff(FIRST_NANO - 5_000) < 1_000, "{window:?}");

    let (code, printed) =
        printed_by_otlpprof(&["convert", "-o", "/dev/null", "a", "b", "c", "--start", "1", "--start", "2"]);
    assert!(code == 2 && printed.contains("2 --from for 3 recordings"), "{printed}");
}

#[test]
fn indented_json_says_the_same() {
    let files = Files::new();
    files.convert(&["a.jfr"], &["--format", "json-pretty", "--include-payload", "--validate"]);
    let pretty = std::fs::read_to_string(files.path("out")).unwrap();
    assert!(pretty.starts_with("{\n  \"resourceProfiles\": [\n    {\n"), "{pretty:.80}");
    let (code, printed) = printed_by_otlpprof(&["validate", "--strict", text(&files.path("out"))]);
    assert_eq!(code, 0, "{printed}");
    let (code, printed) =
        printed_by_otlpprof(&["payload", text(&files.path("out")), "-o", text(&files.path("back.jfr"))]);
    assert_eq!(code, 0, "{printed}");
    assert!(std::fs::read(files.path("back.jfr")).unwrap() == recording(SHAPE));
}

#[test]
fn recordings_go_in_and_come_out_byte_for_byte() {
    let files = Files::new();
    let both = [recording(SHAPE), recording(Shape { events: 10, ..SHAPE })].concat();
    for format in ["proto", "json"] {
        files.convert(&["a.jfr", "b.jfr"], &["--include-payload", "--validate", "--format", format]);
        let (code, printed) = printed_by_otlpprof(&["validate", "--strict", text(&files.path("out"))]);
        assert_eq!(code, 0, "{printed}");
        let (code, printed) =
            printed_by_otlpprof(&["payload", text(&files.path("out")), "-o", text(&files.path("back.jfr"))]);
        assert_eq!(code, 0, "{printed}");
        assert!(std::fs::read(files.path("back.jfr")).unwrap() == both, "{format}");
    }
    files.convert(&["a.jfr"], &["--include-payload"]);
    let profile = files.profile();
    assert_eq!((&*profile.original_payload_format, profile.original_payload), ("jfr", recording(SHAPE)));
    files.convert(&["a.jfr"], &[]);
    let (code, printed) =
        printed_by_otlpprof(&["payload", text(&files.path("out")), "-o", text(&files.path("none.jfr"))]);
    assert!(code == 2 && printed.contains("no profile has an original payload"), "{printed}");
    assert!(!files.path("none.jfr").exists());
}

/// A file with the recording's one chunk, followed by gigabytes of zeros. The file is sparse, so the disk
/// does not store them.
fn large(files: &Files, length: u64) -> PathBuf {
    let path = files.path("large.jfr");
    let mut file = File::create(&path).unwrap();
    file.write_all(&recording(SHAPE)).unwrap();
    file.seek(SeekFrom::Start(length - 1)).unwrap();
    file.write_all(b"\0").unwrap();
    path
}

/// Regression: JSON, compressed files and standard input were read whole, and as a tree.
#[test]
fn payloads_larger_than_memory_go_into_every_form_and_come_out() {
    let files = Files::new();
    let (input, back) = (files.path("large.jfr"), files.path("back.jfr"));
    // Events of an unknown type are skipped.
    let chunk = crafted(VALUE_TYPES, |out| out.event(77, |out| out.bytes.resize(1 << 20, 7)), 0, |_| {});
    std::fs::write(&input, [recording(SHAPE), chunk.repeat(24)].concat()).unwrap();
    // In KiB: what the program itself needs, about 24 MiB, plus less than the recording's size.
    let limited = |command: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -v 40960; {command}"), env!("CARGO_BIN_EXE_otlpprof")]);
        let ran = shell.args([&files.path("out"), &back, &input]).output().unwrap();
        assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
    };
    for format in ["proto", "json", "json-pretty"] {
        limited(&format!(r#"exec "$0" convert "$3" -o "$1" --include-payload --validate --format {format}"#));
        for command in [
            r#"exec "$0" payload "$1" -o "$2""#,
            r#"cat "$1" | "$0" payload - -o "$2""#,
            r#"gzip -1 -c "$1" >"$1.gz" && "$0" payload "$1.gz" -o "$2""#,
            r#"cat "$1.gz" | "$0" payload - -o "$2""#,
            r#""$0" payload - -o - <"$1.gz" >"$2""#,
        ] {
            limited(command);
            let same = Command::new("cmp").args([&input, &back]).status().unwrap();
            assert!(same.success(), "{command}");
            std::fs::remove_file(&back).unwrap();
        }
    }
    let cut = files.path("cut");
    std::fs::write(&cut, [0x1f, 0x8b, 8, 0]).unwrap();
    let (code, printed) = printed_by_otlpprof(&["payload", text(&cut), "-o", text(&back)]);
    assert!(code == 2 && printed.starts_with(&format!("otlpprof: {}: ", cut.display())), "{printed}");
    assert!(printed.lines().count() == 1 && !back.exists(), "{printed}");
}

#[test]
fn payloads_that_cannot_follow_one_another_are_refused_in_a_line() {
    let files = Files::new();
    let with = |formats: &[&str]| {
        files.convert(&["a.jfr"], &["--include-payload"]);
        let mut data = ProfilesData::decode(&*std::fs::read(files.path("out")).unwrap()).unwrap();
        let profiles = &mut data.resource_profiles[0].scope_profiles[0].profiles;
        let one = profiles[0].clone();
        *profiles = formats
            .iter()
            .map(|format| Profile { original_payload_format: (*format).to_owned(), ..one.clone() })
            .collect();
        std::fs::write(files.path("out"), data.encode_to_vec()).unwrap();
        printed_by_otlpprof(&["payload", text(&files.path("out")), "-o", text(&files.path("back.jfr"))])
    };
    let refused = |count: usize, formats: &str| {
        let file = files.path("out");
        let why = format!(
            "{count} payloads cannot be written to one file, because their formats differ: {formats}"
        );
        (2, format!("otlpprof: {}: {why}\n", file.display()))
    };
    assert_eq!(with(&["jfr", "pprof", "jfr"]), refused(3, r#""jfr", "pprof""#));
    assert_eq!(with(&["a\nb", "e", "", "d", "c"]), refused(5, r#""", "a\nb", "c", "d" and others"#));
    assert!(!files.path("back.jfr").exists());
    assert_eq!(with(&["jfr", "jfr"]), (0, String::new()));
    assert!(std::fs::read(files.path("back.jfr")).unwrap() == recording(SHAPE).repeat(2));
    assert_eq!(with(&["pprof"]).0, 0, "a single one may be anything");
}

#[test]
fn a_payload_that_no_message_can_hold_is_refused_before_anything_is_written() {
    let files = Files::new();
    let input = large(&files, (2 << 30) + 1);
    let out = files.path("out");
    let (code, printed) =
        printed_by_otlpprof(&["convert", text(&input), "-o", text(&out), "--include-payload"]);
    assert!(code == 2 && printed.contains("a protobuf message ends at 2 GiB"), "{printed}");
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert!(!out.exists());
    let (code, printed) = printed_by_otlpprof(&["convert", "-", "-o", text(&out), "--include-payload"]);
    assert!(code == 2 && printed.contains("--include-payload needs files"), "{printed}");
}

#[test]
fn a_recording_gives_the_same_whichever_way_it_comes() {
    let bytes = [recording(SHAPE), recording(Shape { events: 10, ..SHAPE })].concat();
    let sums = |converter: &mut JfrToOtlp| {
        let batch = converter.convert();
        assert_eq!(batch.profiles.len(), 1);
        let samples = batch.profiles[0].samples().iter().map(|sample| (sample.value, sample.additions));
        (batch.profiles[0].start_unix_nano, batch.profiles[0].duration_nano, samples.collect::<Vec<_>>())
    };
    let mut converter = JfrToOtlp::new(ConvertOptions::default());
    converter.add(&bytes).unwrap();
    let whole = sums(&mut converter);
    assert!(whole.2.len() > 10);
    converter.add_reader(&bytes[..]).unwrap();
    assert_eq!(sums(&mut converter), whole, "by a reader, with a converter that was used before");
    for length in [1, 7, 4_096] {
        bytes.chunks(length).for_each(|part| converter.push(part).unwrap());
        converter.finish().unwrap();
        assert_eq!(sums(&mut converter), whole, "{length} at a time");
    }
    // Corruption of the first chunk does not hide the second.
    let mut damaged = bytes.clone();
    damaged[70..90].fill(0xff);
    let error = converter.add_reader(&damaged[..]).unwrap_err();
    assert!(error.to_string().starts_with("byte "), "{error}");
    assert!(converter.convert().profiles[0].additions() >= 10);
}

#[test]
fn standard_input_is_converted_as_a_file_is_to_standard_output() {
    let files = Files::new();
    let mut child = otlpprof()
        .args(["convert", "-", "-o", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&recording(SHAPE)).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::write(files.path("out"), output.stdout).unwrap();
    assert_eq!(sum(&files.profile()), synthetic::sum_of_weights(SHAPE));
}

/// Regression: only events of intervals that became profiles were reported, and requests for events that
/// never occurred were not.
#[test]
fn the_outcome_of_a_followed_recording_is_reported() {
    let files = Files::new();
    let follow = |bytes: &[u8], more: &[&str]| {
        let mut child = otlpprof()
            .args(["convert", "-", "--follow", "--interval", "1s", "-o", text(&files.path("out"))])
            .args(more)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let whole = recording(SHAPE);
    let (code, printed) = follow(&whole, &["--end", "1000"]);
    assert_eq!(code, 0, "{printed}");
    assert!(
        printed.contains("datadog.ExecutionSample: 0 converted, 0 without a stack, 40 outside"),
        "{printed}"
    );
    let (code, printed) = follow(&whole, &["--event", "no.Such"]);
    assert!(code == 2 && printed.ends_with("otlpprof: no event no.Such in the recordings\n"), "{printed}");
    let (code, printed) = follow(&[&whole[..], &b"no recording"[..]].concat(), &[]);
    assert!(code == 2 && printed.contains("datadog.ExecutionSample: 40 converted"), "{printed}");
    assert_eq!(printed.matches("otlpprof: -: ").count(), 1, "{printed}");
    let (code, printed) = follow(b"", &[]);
    assert_eq!((code, &*printed), (2, "otlpprof: no event in -\n"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_recordings_become_profiles_that_break_no_rule(
        places in prop::collection::vec((0usize..1 << 16, any::<u8>()), 1..8), timestamps: bool,
    ) {
        let mut bytes = recording(Shape { events: 6, depth: 3, remote_frames: 1, ..SHAPE });
        for (place, byte) in places {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        let mut converter = JfrToOtlp::new(ConvertOptions { times: timestamps, ..ConvertOptions::default() });
        let _ = converter.add(&bytes);
        let message = encode(&converter.convert(), &EncodeOptions { timestamps, ..EncodeOptions::default() });
        let report = validate(&message, 1);
        let errors = report.breaches().filter(|(rule, _)| rule.rule().severity > Severity::Warning);
        prop_assert_eq!(errors.map(|(rule, _)| rule.rule().name).collect::<Vec<_>>(), Vec::<&str>::new());
    }
}

/// Checks that the message is one line that names the place, and that no file is left behind.
fn refuses(files: &Files, output: &Path, reason: &str) {
    let before = std::fs::read_dir(files.directory.path()).unwrap().count();
    for arguments in [
        vec!["convert", text(&files.path("a.jfr")), "-o", text(output)],
        vec!["convert", text(&files.path("a.jfr")), "-o", text(output), "--format", "json-pretty"],
        vec!["convert", text(&files.path("a.jfr")), "-o", text(output), "--include-payload"],
        vec!["payload", text(&files.path("with-payload")), "-o", text(output)],
    ] {
        let (code, printed) = printed_by_otlpprof(&arguments);
        assert_ne!(code, 0, "{arguments:?}");
        assert_eq!(printed.trim_end(), format!("otlpprof: {}: {reason}", output.display()), "{arguments:?}");
        let after = std::fs::read_dir(files.directory.path()).unwrap().count();
        assert_eq!(after, before, "{arguments:?}");
    }
}

#[test]
fn a_write_error_is_one_line() {
    let files = Files::new();
    files.convert(&["a.jfr"], &["--include-payload"]);
    std::fs::rename(files.path("out"), files.path("with-payload")).unwrap();
    refuses(&files, Path::new("/dev/full"), "No space left on device (os error 28)");
    let directory = files.path("directory");
    std::fs::create_dir(&directory).unwrap();
    refuses(&files, &directory, "Is a directory (os error 21)");
    refuses(&files, &files.path("missing/out"), "No such file or directory (os error 2)");
}

#[test]
fn a_file_that_cannot_be_replaced_stays_as_it_was() {
    let files = Files::new();
    let output = files.path("out");
    std::fs::write(&output, "before").unwrap();
    // The shell's unit is 512 or 1,024 bytes.
    let limited = r#"trap '' XFSZ; ulimit -f 1; exec "$0" convert "$1" -o "$2""#;
    let mut command = Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_otlpprof")]).arg(files.path("a.jfr")).arg(&output);
    let ran = command.output().unwrap();
    let printed = String::from_utf8(ran.stderr).unwrap();
    assert!(!ran.status.success(), "{printed}");
    assert_eq!(printed.trim_end(), format!("otlpprof: {}: File too large (os error 27)", output.display()));
    assert_eq!(std::fs::read(&output).unwrap(), b"before");
    let names = std::fs::read_dir(files.directory.path()).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["a.jfr", "b.jfr", "out"]);
}

/// Regression: the profile overwrote the recording, and with `--follow` the recording was truncated before it
/// was read.
#[test]
fn an_input_is_not_overwritten() {
    let files = Files::new();
    let recording = std::fs::read(files.path("a.jfr")).unwrap();
    std::os::unix::fs::symlink("a.jfr", files.path("link.jfr")).unwrap();
    for (output, more) in [("a.jfr", &[][..]), ("link.jfr", &[]), ("a.jfr", &["--follow"])] {
        let (input, output) = (files.path("a.jfr"), files.path(output));
        let (code, printed) =
            printed_by_otlpprof(&[&["convert", text(&input), "-o", text(&output)], more].concat());
        let expected =
            format!("otlpprof: {} is one of the recordings: write to another file\n", output.display());
        assert_eq!((code, printed), (2, expected), "{more:?}");
        assert_eq!(std::fs::read(&input).unwrap(), recording, "{more:?}");
    }
    files.convert(&["a.jfr"], &["--include-payload"]);
    let (output, profile) = (files.path("out"), std::fs::read(files.path("out")).unwrap());
    let (code, printed) = printed_by_otlpprof(&["payload", text(&output), "-o", text(&output)]);
    let expected = format!("otlpprof: {} is the input: write to another file\n", output.display());
    assert_eq!((code, printed), (2, expected));
    assert_eq!(std::fs::read(&output).unwrap(), profile);
}

#[test]
fn a_links_target_is_replaced_and_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let files = Files::new();
    std::fs::write(files.path("real"), "before").unwrap();
    std::fs::set_permissions(files.path("real"), PermissionsExt::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("real", files.path("out")).unwrap();
    files.convert(&["a.jfr"], &[]);
    assert!(std::fs::symlink_metadata(files.path("out")).unwrap().is_symlink());
    let real = std::fs::metadata(files.path("real")).unwrap();
    assert_eq!(real.permissions().mode() & 0o777, 0o640);
    assert!(!files.profile().samples.is_empty());
}
