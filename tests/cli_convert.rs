//! `otlpprof convert`, as a user runs it: recordings of every JDK become valid profiles that lose nothing.

#[allow(clippy::duplicate_mod, reason = "other support modules of a test binary need it too")]
mod jfr_support;

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use jfr_support::recordings;
use otlpprof::jfr::recording::Chunks;
use otlpprof::otlp::wire::ProfilesData;
use prost::Message as _;

fn otlpprof(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_otlpprof")).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// How many events of each type have a stack with frames, by the parser alone.
fn events_with_stacks(bytes: &[u8]) -> HashMap<String, i64> {
    let mut counts = HashMap::new();
    for chunk in Chunks::new(bytes).map(Result::unwrap) {
        let contents = chunk.contents();
        for event in contents.events().map(Result::unwrap) {
            let trace = event.values().get("stackTrace").and_then(|stack| stack.as_struct(contents));
            let frames = trace.and_then(|trace| trace.get("frames"));
            if let Some(otlpprof::jfr::values::Value::Array(frames)) = frames
                && !frames.is_empty()
            {
                *counts.entry(event.type_of().name.to_string()).or_default() += 1;
            }
        }
    }
    counts
}

/// The sums of the values of each profile, by its sample type and its event where it names one.
fn sums(data: &ProfilesData) -> HashMap<(String, String), i64> {
    let dictionary = data.dictionary.as_ref().unwrap();
    let string = |index: i32| dictionary.string_table[index as usize].clone();
    let mut sums = HashMap::new();
    let scopes = data.resource_profiles.iter().flat_map(|of| &of.scope_profiles);
    for profile in scopes.flat_map(|scope| &scope.profiles) {
        let sample_type = string(profile.sample_type.as_ref().unwrap().type_strindex);
        let mut event = String::new();
        for &index in &profile.attribute_indices {
            let attribute = &dictionary.attribute_table[index as usize];
            if string(attribute.key_strindex) == "otlpprof.jfr.event" {
                event = format!("{:?}", attribute.value);
            }
        }
        let event = event.split('"').nth(1).unwrap_or_default().to_owned();
        let values = profile.samples.iter().flat_map(|sample| &sample.values);
        *sums.entry((sample_type, event)).or_default() += values.sum::<i64>();
    }
    sums
}

fn convert(recording: &Path, more: &[&str]) -> (ProfilesData, String) {
    let out = tempfile::NamedTempFile::new().unwrap();
    let arguments = [&["convert", text(recording), "-o", text(out.path())], more].concat();
    let (code, said) = otlpprof(&arguments);
    assert_eq!(code, 0, "{said}");
    let (code, report) = otlpprof(&["validate", text(out.path())]);
    assert_eq!(code, 0, "{report}");
    (ProfilesData::decode(&*std::fs::read(out.path()).unwrap()).unwrap(), said)
}

#[test]
fn recordings_of_every_jdk_become_valid_profiles_that_lose_no_event() {
    for (name, bytes) in recordings(|name| name.ends_with("-rich")) {
        let (data, said) = convert(&jfr_support::corpus()[name], &[]);
        let (sums, events) = (sums(&data), events_with_stacks(&bytes));
        let event = |name: &str| events.get(name).copied().unwrap_or(0);
        for sampled in ["jdk.ExecutionSample", "jdk.NativeMethodSample", "jdk.CPUTimeSample"] {
            let sum = sums.get(&("samples".to_owned(), sampled.to_owned())).copied().unwrap_or(0);
            assert_eq!(sum, event(sampled), "{name}: {sampled}\n{said}");
        }
        let of = |sample_type: &str| sums.get(&(sample_type.to_owned(), String::new())).copied().unwrap_or(0);
        assert_eq!(of("contentions"), event("jdk.JavaMonitorEnter") + event("jdk.ThreadPark"), "{name}");
        assert_eq!(of("exceptions"), event("jdk.JavaExceptionThrow"), "{name}");
        assert_eq!(of("waits"), event("jdk.JavaMonitorWait"), "{name}");
        assert!(of("exceptions") > 10 && of("waits") > 10 && of("delay") > 1_000_000, "{name}: {sums:?}");
    }
}

#[test]
fn times_lie_in_the_window() {
    for (name, _) in recordings(|name| name.starts_with("17-") && name.ends_with("-rich")) {
        let (data, _) = convert(&jfr_support::corpus()[name], &["--timestamps"]);
        let scopes = data.resource_profiles.iter().flat_map(|of| &of.scope_profiles);
        for profile in scopes.flat_map(|scope| &scope.profiles) {
            let window = profile.time_unix_nano..profile.time_unix_nano + profile.duration_nano;
            let mut times = profile.samples.iter().flat_map(|sample| &sample.timestamps_unix_nano).peekable();
            assert!(times.peek().is_some(), "{name}");
            assert!(times.all(|time| window.contains(time)), "{name}");
        }
    }
}

#[test]
fn json_is_valid_too() {
    for (name, _) in recordings(|name| name == "async-profiler") {
        let out = tempfile::NamedTempFile::new().unwrap();
        let recording = &jfr_support::corpus()[name];
        let (code, said) =
            otlpprof(&["convert", text(recording), "-o", text(out.path()), "--format", "json"]);
        assert_eq!(code, 0, "{said}");
        let (code, report) = otlpprof(&["validate", text(out.path())]);
        assert_eq!(code, 0, "{report}");
    }
}

#[test]
fn what_is_no_recording_is_refused_and_a_cut_one_is_converted_as_far_as_it_goes() {
    let directory = tempfile::tempdir().unwrap();
    let (input, output) = (directory.path().join("in.jfr"), directory.path().join("out.otlp"));
    std::fs::write(&input, "no recording").unwrap();
    let (code, said) = otlpprof(&["convert", text(&input), "-o", text(&output)]);
    assert_eq!(code, 2);
    assert!(said.contains("byte 0: not a JFR chunk"), "{said}");
    assert!(!output.exists());

    let (_, bytes) = recordings(|name| name.ends_with("-killed")).swap_remove(0);
    std::fs::write(&input, &bytes[..bytes.len() - 3]).unwrap();
    let (code, said) = otlpprof(&["convert", text(&input), "-o", text(&output)]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("the recording ends here, within a chunk"), "{said}");
    let (code, report) = otlpprof(&["validate", text(&output)]);
    assert_eq!(code, 0, "{report}");
}
