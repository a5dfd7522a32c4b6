//! What the agent writes to files, in all its forms. That each file keeps every rule is checked for all runs.

mod agent_support;
mod python_support;

use std::fs;

use agent_support::running::Finished;
use agent_support::stacks::cpu_stacks;
use agent_support::{JavaRun, java_homes};
use python_support::{oracle, ours};

/// Runs the sample program long enough for several intervals on every JVM.
fn run_everywhere(options: &str, check: impl Fn(&Finished)) {
    for home in java_homes() {
        let options = format!("cpu=2ms,interval=400ms,{options}");
        let run = JavaRun::new(&home, "Demo").argument(1.6).agent(&options).run().expect_success();
        let all: i64 = cpu_stacks(&run.messages()).iter().map(|stack| stack.value).sum();
        assert!(all > 20, "{}: only {all} samples", run.label);
        check(&run);
    }
}

#[test]
fn protobuf_messages_behind_their_lengths() {
    run_everywhere("remotesym,file=FILE", |run| {
        assert_eq!(run.files().len(), 1, "{}", run.label);
        assert!(run.messages().len() >= 3, "{}", run.label);
        let first = fs::read(&run.files()[0]).unwrap()[0];
        assert!(first < 8, "{}: no length first: {first:#x}", run.label);
    });
}

#[test]
fn a_file_for_each_interval() {
    run_everywhere("remotesym,timestamps,file=DIR/of-%p-at-%t.otlp", |run| {
        let files = run.files();
        assert!(files.len() >= 3, "{}: {files:?}", run.label);
        for file in &files {
            let first = fs::read(file).unwrap()[0];
            assert!(first >= 8, "{}: {}: a length first: {first:#x}", run.label, file.display());
        }
        assert_eq!(run.messages().len(), files.len(), "{}", run.label);
        assert_times_are_inside(run);
    });
}

#[test]
fn json_documents_of_a_line_each() {
    run_everywhere("format=json,remotesym,native_frames=name,timestamps,file=FILE", |run| {
        let text = fs::read_to_string(&run.files()[0]).unwrap();
        assert!(text.ends_with('\n') && text.lines().count() >= 3, "{}", run.label);
        for line in text.lines() {
            let document: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(document["resourceProfiles"].is_array(), "{}", run.label);
        }
        assert_times_are_inside(run);
        let stacks = cpu_stacks(&run.messages());
        let mut frames = stacks.iter().flat_map(|stack| &stack.frames);
        assert!(frames.any(|frame| frame.name.contains(".<remote>(0x")), "{}", run.label);
    });
}

#[test]
fn python_reads_the_same() {
    run_everywhere("file=FILE", |run| {
        let files = run.files();
        let Some(counts) = oracle(&files) else { return };
        assert_eq!(counts[0], ours(&fs::read(&files[0]).unwrap()), "{}", run.label);
    });
}

/// Every sample's time lies in its profile's window, and stands in place of a value.
fn assert_times_are_inside(run: &Finished) {
    for message in run.messages() {
        let scopes = message.data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        for profile in scopes.flat_map(|scope| &scope.profiles) {
            let window = profile.time_unix_nano..=profile.time_unix_nano + profile.duration_nano;
            for sample in &profile.samples {
                assert!(sample.values.is_empty(), "{}", run.label);
                assert!(!sample.timestamps_unix_nano.is_empty(), "{}", run.label);
                for time in &sample.timestamps_unix_nano {
                    assert!(window.contains(time), "{}: {time} outside {window:?}", run.label);
                }
            }
        }
    }
}
