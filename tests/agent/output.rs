//! The agent's output files, in all forms. For all runs the tests' support checks that each file keeps every
//! rule, and that Python reads the same from it as our reader.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use otlpprof_otlp::wire::Value;
use otlpprof_signal::walk::WalkError;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::profiles;
use otlpprof_testkit::stacks::cpu_stacks;

/// Runs the sample program for several intervals.
fn run_for_intervals(options: &str, mut check: impl FnMut(&Finished)) {
    for home in newest_or_all() {
        let options = format!("cpu=2ms,interval=400ms,{options}");
        check(&run_until(&home, &options, "three messages", |run| run.messages().len() >= 3));
    }
}

/// Runs the sample program. On a busy machine intervals are longer, and so is the run, until a condition
/// holds.
fn run_until(home: &Path, options: &str, what: &str, condition: impl Fn(&Finished) -> bool) -> Finished {
    let runs = [1.6, 8.0, 40.0].into_iter();
    let mut runs = runs
        .map(|seconds| JavaRun::new(home, "Demo").argument(seconds).agent(options).run().expect_success());
    runs.find(condition).unwrap_or_else(|| panic!("{}, {options}: no {what}", home.display()))
}

#[test]
fn protobuf_messages_follow_their_lengths() {
    run_for_intervals("remotesym,file=FILE", |run| {
        assert_eq!(run.files().len(), 1, "{}", run.label);
        let first = fs::read(&run.files()[0]).unwrap()[0];
        assert!(first < 8, "{}: no length first: {first:#x}", run.label);
    });
}

/// So that not all processes of a fleet upload at the same time. The log has the random length; a profile's
/// own duration includes the start too.
#[test]
fn the_first_interval_is_another_part_of_a_whole_one_in_each_process() {
    let mut drawn = vec![];
    run_for_intervals("loglevel=debug,file=FILE", |run| {
        let (_, rest) = run.stderr.split_once("the first profile comes after ").expect(&run.stderr);
        let (first_ms, _) = rest.split_once("ms").expect(rest);
        let first_ns = (first_ms.parse::<f64>().expect(first_ms) * 1e6) as u64;
        assert!((40_000_000..=400_000_000).contains(&first_ns), "{}: {first_ns}", run.label);
        assert!(profiles::duration_ns(&run.messages()[0]) >= first_ns, "{}", run.label);
        drawn.push(first_ns);
    });
    let kinds: BTreeSet<_> = drawn.iter().collect();
    assert_eq!(kinds.len(), drawn.len(), "{drawn:?}");
}

#[test]
fn a_file_for_each_interval() {
    run_for_intervals("remotesym,timestamps,file=DIR/of-%p-at-%t.otlp", |run| {
        let files = run.files();
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
    run_for_intervals("format=json,remotesym,native_frames=name,timestamps,file=FILE", |run| {
        let text = fs::read_to_string(&run.files()[0]).unwrap();
        assert!(text.ends_with('\n'), "{}", run.label);
        assert_eq!(text.lines().count(), run.messages().len(), "{}", run.label);
        for line in text.lines() {
            let document: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(document["resourceProfiles"].is_array(), "{}", run.label);
        }
        assert_times_are_inside(run);
        let stacks = cpu_stacks(&run.messages());
        let mut frames = stacks.iter().flat_map(|stack| stack.frames.iter());
        assert!(frames.any(|frame| frame.name.contains(".<remote>(0x")), "{}", run.label);
    });
}

#[test]
fn files_that_are_cut_empty_or_warned_of_do_not_pass() {
    let passes =
        |bytes: &[u8]| std::panic::catch_unwind(|| profiles::assert_valid_bytes("cut", bytes)).is_ok();
    let warned = [0x12, 0x00];
    for bytes in [&b""[..], &[0, 0, 0, 9, 0x0a], &[0, 0, 0], &warned] {
        assert!(!passes(bytes), "{bytes:?}");
    }
}

/// Every profile has the metadata, also the last one and a single one.
#[test]
fn every_profile_names_its_clock_and_counts_its_samples() {
    for options in [
        "cpu=2ms,interval=400ms,file=FILE",
        "cpu=100us,interval=100ms,file=FILE",
        "cpu=1ms,cpu.clock=timer,file=FILE",
    ] {
        for home in newest_or_all() {
            let run = JavaRun::new(&home, "Demo").argument(1.5).agent(options).run().expect_success();
            for message in run.messages() {
                let attribute = |key: &str| profiles::profile_attribute(&message, key);
                let held: i64 =
                    cpu_stacks(std::slice::from_ref(&message)).iter().map(|stack| stack.value).sum();
                let clock = attribute("otlpprof.cpu.clock");
                // The same clock as in the log at the start.
                let Some(Value::StringValue(clock)) = clock else { panic!("{}: {clock:?}", run.label) };
                if options.contains("cpu.clock=timer") {
                    assert_eq!(clock, "timer", "{}", run.label);
                }
                let printed = format!(" of CPU time by {clock} (");
                assert!(run.stderr.contains(&printed), "{}: {options}: {clock}: {}", run.label, run.stderr);
                let recorded = attribute("otlpprof.handler.periods_recorded");
                assert_eq!(recorded, Some(Value::IntValue(held)), "{}: {options}", run.label);
            }
            // Only the sum is checked: handlers' counts may be ahead of a profile by the samples in the
            // buffer.
            let handler_ns = run
                .messages()
                .into_iter()
                .map(|message| profiles::profile_counter(&message, "handler.handler_ns"));
            assert!(handler_ns.sum::<i64>() > 0, "{}: {options}", run.label);
            let [taken, recorded, dropped] =
                ["taken", "recorded", "dropped"].map(|what| run.counter(&format!("handler.samples_{what}")));
            assert_eq!(taken, recorded + dropped, "{}: {}", run.label, run.stderr);
            let reasons = ["held", "full", "not_ready", "small_stack"]
                .map(|reason| run.counter(&format!("handler.samples_dropped_{reason}")));
            assert_eq!(reasons.iter().sum::<u64>(), dropped, "{}: {}", run.label, run.stderr);
            assert_eq!(run.counter("handler.periods_dropped") > 0, dropped > 0, "{}", run.stderr);
            assert_marks_are_counted(&run);
        }
    }
}

/// At this rate each tick of a kernel with 250 Hz weighs eighty periods.
#[test]
fn merged_ticks_at_a_high_rate_do_not_give_a_sample_several_values() {
    for home in newest_or_all() {
        let options = "cpu=50us,cpu.clock=timer,timestamps,interval=500ms,file=FILE";
        let run = JavaRun::new(&home, "Demo").argument(1.5).agent(options).run().expect_success();
        assert_times_are_inside(&run);
    }
}

#[test]
fn samples_that_no_message_can_hold_are_counted_and_reported_once() {
    let resource: Vec<_> = (0..70).map(|number| format!("key{number}={}", "v".repeat(1_000))).collect();
    let options = format!(
        "cpu=2ms,interval=300ms,file=FILE,endpoint=http://127.0.0.1:1,upload.limit=64k,resource={}",
        resource.join("+")
    );
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "Demo").argument(1.5).agent(&options).run().expect_success();
        let label = format!("{}: {}", run.label, run.stderr);
        assert!(run.files().is_empty(), "{label}");
        let recorded = run.counter("handler.periods_recorded");
        assert!(recorded > 0, "{label}");
        assert_eq!(run.counter("encode.over_limit.periods"), recorded, "{label}");
        assert!(run.counter("encode.over_limit.samples") > 0, "{label}");
        for printed_once in ["over the size limit", "labels (resource attributes"] {
            // The log may repeat the line at `debug`, where it is not a warning.
            let warnings = run.stderr.lines().filter(|line| line.contains("warning: "));
            let lines = warnings.filter(|line| line.contains(printed_once));
            assert_eq!(lines.count(), 1, "{printed_once}: {label}");
        }
    }
}

/// Asserts that each kind of mark in place of a frame has a counter, and each counter its marks.
fn assert_marks_are_counted(run: &Finished) {
    let stacks = cpu_stacks(&run.messages());
    let periods = |mark: &str| -> i64 {
        let marked = stacks.iter().filter(|stack| stack.frames.iter().any(|frame| frame.name == mark));
        marked.map(|stack| stack.value).sum()
    };
    let walk_errors = WalkError::ALL.iter().map(|error| error.name());
    let walk_errors = walk_errors.map(|name| (format!("[unwalkable: {name}]"), format!("walk_error.{name}")));
    let others = [
        ("[unwalkable: unknown_method]", "resolve.unknown_methods"),
        ("[unknown_object]", "resolve.unknown_objects"),
        ("[truncated]", "handler.truncated"),
    ];
    let others = others.map(|(mark, counter)| (mark.to_owned(), counter.to_owned()));
    for (mark, counter) in walk_errors.chain(others) {
        let (periods, count) = (periods(&mark), run.counter(&counter) as i64);
        let label = format!("{}: {periods} periods of {mark}, {counter} {count}", run.label);
        assert_eq!(periods > 0, count > 0, "{label}");
        assert!(periods >= count, "{label}");
    }
}

#[test]
fn the_resource_names_the_java_runtime() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "Demo").argument(1).agent("file=FILE").run().expect_success();
        let messages = run.messages();
        let resource = messages[0].data.resource_profiles[0].resource.as_ref().unwrap();
        for key in ["process.runtime.name", "process.runtime.version"] {
            let found = resource.attributes.iter().find(|attribute| attribute.key == key);
            let value = found.and_then(|attribute| attribute.value.as_ref()?.value.as_ref());
            let named = matches!(value, Some(Value::StringValue(text)) if !text.is_empty());
            assert!(named, "{}: {key}: {value:?}", run.label);
        }
    }
}

/// Asserts that every sample's time lies in its profile's window, the window's end excluded, and replaces the
/// sample's value.
fn assert_times_are_inside(run: &Finished) {
    for message in run.messages() {
        let scopes = message.data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        for profile in scopes.flat_map(|scope| &scope.profiles) {
            let window = profile.time_unix_nano..profile.time_unix_nano + profile.duration_nano;
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

/// Regression: messages were counted, but not the samples in them.
#[test]
fn samples_that_could_not_be_written_are_counted() {
    for home in newest_or_all() {
        let run = run_until(&home, "cpu=2ms,interval=300ms,file=/dev/full", "two messages", |run| {
            run.counter("file.failed.messages") >= 2
        });
        let label = format!("{}: {}", run.label, run.stderr);
        assert!(run.stderr.contains("file=/dev/full: No space left on device"), "{label}");
        let [messages, samples] =
            ["messages", "samples"].map(|what| run.counter(&format!("file.failed.{what}")));
        assert!(samples >= messages, "{label}");
        assert_eq!(run.counter("file.written.messages"), 0, "{label}");
        let says = format!("{messages} profiles of {samples} samples could not be written, and are lost");
        assert!(run.stderr.contains(&says), "{label}");
    }
}

#[test]
fn a_second_run_with_the_same_file_says_that_it_appends() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.otlp");
    for home in newest_or_all().into_iter().take(1) {
        for turn in 0..2 {
            let bytes = file.metadata().map_or(0, |metadata| metadata.len());
            let options = format!("cpu=2ms,file={}", file.display());
            let run = JavaRun::new(&home, "Demo").argument(0.5).agent(&options).run().expect_success();
            let says = format!(
                "file={}: has {bytes} bytes of profiles already; this run appends to it",
                file.display()
            );
            assert_eq!(run.stderr.contains("appends to it"), turn == 1, "{}", run.stderr);
            assert_eq!(run.stderr.contains(&says), turn == 1, "{}", run.stderr);
            assert!(file.metadata().unwrap().len() > bytes, "{}", run.stderr);
        }
    }
}
