//! `otlpprof merge`: the merged message has the sums of its parts, as `report` and OpenTelemetry's Python
//! package read them, and passes `validate`.

use otlpprof_otlp::read::read;
use otlpprof_otlp::wire::{KeyValueAndUnit, Profile, ProfilesData, Value};
use otlpprof_testkit::commands::run_otlpprof;
use otlpprof_testkit::exported::{pprof, truth};
use otlpprof_testkit::java_run::under_all_engines;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::otlp_fixture::{DURATION, TIME, valid};
use otlpprof_testkit::profile_files::{CPU, Files, LIVE_SPACE, Spec, message, stdout};

/// The fixture one interval later, with another period and other values.
fn later() -> ProfilesData {
    let mut data = valid();
    for profile in &mut data.resource_profiles[0].scope_profiles[0].profiles {
        profile.time_unix_nano += DURATION;
        profile.period = profile.period * 5 / 2;
        for sample in &mut profile.samples {
            sample.values.iter_mut().for_each(|value| *value += 1);
            sample.timestamps_unix_nano.iter_mut().for_each(|time| *time += DURATION);
        }
    }
    data
}

/// Merges files; returns the merged one.
fn merge(files: &Files, parts: &[&str], options: &[&str]) -> String {
    let out = files.path("merged.otlp");
    let arguments = [&["merge", "-o", &out], parts, options].concat();
    let output = run_otlpprof(&arguments).success().get_output().clone();
    assert_eq!(output.stdout, b"", "nothing on stdout");
    assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1);
    stdout(&["validate", &out]);
    out
}

/// The only message of a file.
fn message_of(file: &str) -> ProfilesData {
    let bytes = std::fs::read(file).unwrap();
    let mut messages: Vec<_> = read(&bytes).map(|message| message.unwrap().data).collect();
    assert_eq!(messages.len(), 1);
    messages.remove(0)
}

fn profiles(data: &ProfilesData) -> Vec<&Profile> {
    let scopes = data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
    scopes.flat_map(|scope| &scope.profiles).collect()
}

/// Compares the reports of files, and the sums of all stacks.
fn assert_equal_reports(parts: &[&str], merged: &str, options: &[&[&str]]) {
    for &options in options {
        let of_parts = stdout(&[&["report"], parts, options].concat());
        assert_eq!(stdout(&[&["report", merged], options].concat()), of_parts, "{options:?}");
    }
    let (Some(expected), Some(found)) = (truth(parts), truth(&[merged])) else { return };
    assert_eq!(found, expected);
}

#[test]
fn the_report_of_the_merged_message_is_that_of_its_parts() {
    let files = Files::new();
    let parts = [files.add("a.otlp", &[valid(), later()]), files.add("b.otlp", &[valid()])];
    let parts = [&*parts[0], &*parts[1]];
    let merged = merge(&files, &parts, &[]);
    let options: [&[&str]; 8] = [
        &[],
        &["--type", "wall"],
        &["--lines", "--top", "100"],
        &["--tree"],
        &["--by", "thread"],
        &["--thread", "worker"],
        &["--where", "service.name=fixture"],
        &["--trace", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"],
    ];
    assert_equal_reports(&parts, &merged, &options);
    let message = message_of(&merged);
    let profiles = profiles(&message);
    assert_eq!(profiles.len(), 2);
    // 5 ms is the greatest divisor of 10 ms and 25 ms: values are scaled to it.
    assert_eq!((profiles[0].period, profiles[0].samples.len()), (5_000_000, 2));
    let value = |at: usize| profiles[0].samples[at].values.clone();
    assert_eq!([value(0), value(1)], [vec![2 * 30 + 5 * 31 + 2 * 30], vec![2 * 12 + 5 * 13 + 2 * 12]]);
    assert_eq!((profiles[0].time_unix_nano, profiles[0].duration_nano), (TIME, 2 * DURATION));
}

#[test]
fn of_states_the_last_one_of_each_process_remains() {
    let files = Files::new();
    let of = |process, start, value, name: &str| {
        let names = [name, "A.main"];
        let samples = [(&names[..], "main", value)];
        message(process, &[Spec { types: LIVE_SPACE, period: 512, start, samples: &samples }])
    };
    let second = 1_000_000_000;
    let messages = [
        of("1", TIME, 4096, "A.first"),
        of("1", TIME + 10 * second, 1024, "A.last"),
        of("1", TIME + 5 * second, 65_536, "A.middle"),
        of("1", TIME + 10 * second, 2048, "A.last"),
        of("2", TIME, 8192, "A.other"),
    ];
    let parts = files.add("app.otlp", &messages);
    let merged = merge(&files, &[&parts], &[]);
    let message = message_of(&merged);
    let states: Vec<_> = profiles(&message)
        .iter()
        .map(|profile| (profile.time_unix_nano, profile.samples[0].values[0]))
        .collect();
    assert_eq!(states, [(TIME + 10 * second, 3072), (TIME, 8192)]);
    // Nothing of the earlier states is left.
    let strings = &message.dictionary.as_ref().unwrap().string_table;
    assert!(!strings.iter().any(|text| text == "A.first" || text == "A.middle"), "{strings:?}");
    let head = |file: &str| stdout(&["report", file]).split(" in ").next().unwrap().to_owned();
    assert_eq!(head(&merged), "live-space of shop: 11.0 KiB");
    assert_eq!(head(&merged), head(&parts));
    let (Some(expected), Some(found)) = (truth(&[&parts]), truth(&[&merged])) else { return };
    assert_eq!(found, expected);
}

#[test]
fn times_are_kept_on_demand() {
    let files = Files::new();
    let of = |period, start, value| {
        let samples = [(&["A.a", "A.main"][..], "main", value)];
        message("1", &[Spec { types: CPU, period, start, samples: &samples }])
    };
    let untimed = files.add("untimed.otlp", &[of(10_000_000, TIME, 3), of(20_000_000, TIME + DURATION, 4)]);
    let timed = files.add("timed.otlp", &[valid(), later()]);
    for (file, measure) in [(&untimed, "cpu"), (&timed, "cpu"), (&timed, "wall")] {
        let merged = merge(&files, &[file], &["--keep-times"]);
        for window in [["--from", "2023-11-14T22:13:30Z"], ["--to", "2023-11-14T22:13:21Z"]] {
            let options = [&["--type", measure], &window[..]].concat();
            let sums = |file: &str| {
                let report = stdout(&[&["report", file], &options[..]].concat());
                report.lines().next().unwrap().split(" in ").next().unwrap().to_owned()
            };
            assert_eq!(sums(&merged), sums(file), "{options:?}");
            assert_ne!(sums(&merged), format!("{measure} of fixture: 0 ns"), "{options:?}");
        }
        let merged = merge(&files, &[file], &[]);
        let message = message_of(&merged);
        let mut samples = profiles(&message).into_iter().flat_map(|profile| &profile.samples);
        assert!(samples.all(|sample| sample.timestamps_unix_nano.is_empty()));
    }
}

#[test]
fn counters_are_added_and_attributes_that_differ_are_counted_as_dropped() {
    let files = Files::new();
    let with_walker = |mut data: ProfilesData, walker: &str| {
        let tables = data.dictionary.as_mut().unwrap();
        let next = i32::try_from(tables.attribute_table.len()).unwrap();
        let key_strindex = i32::try_from(tables.string_table.len()).unwrap();
        tables.string_table.push("otlpprof.cstack".into());
        let value = Some(otlpprof_otlp::wire::AnyValue { value: Some(Value::StringValue(walker.into())) });
        tables.attribute_table.push(KeyValueAndUnit { key_strindex, value, unit_strindex: 0 });
        data.resource_profiles[0].scope_profiles[0].profiles[0].attribute_indices.push(next);
        data
    };
    let file = files.add("app.otlp", &[with_walker(valid(), "vm"), with_walker(later(), "fp")]);
    let message = message_of(&merge(&files, &[&file], &[]));
    let tables = message.dictionary.as_ref().unwrap();
    let profile = profiles(&message)[0];
    let attributes: Vec<_> = profile
        .attribute_indices
        .iter()
        .map(|&index| {
            let attribute = &tables.attribute_table[index as usize];
            let value = attribute.value.as_ref().unwrap().value.clone().unwrap();
            (&*tables.string_table[attribute.key_strindex as usize], value)
        })
        .collect();
    let expected = [
        ("otlpprof.samples.dropped", Value::IntValue(6)),
        ("profile.type", Value::StringValue("cpu".into())),
    ];
    assert_eq!(attributes, expected);
    assert_eq!(profile.dropped_attributes_count, 1);
}

#[test]
fn a_result_can_be_compressed_merged_again_and_exported() {
    let files = Files::new();
    let file = files.add("app.otlp", &[valid(), later()]);
    let once = merge(&files, &[&file], &[]);
    let compressed = files.path("merged.otlp.gz");
    let error = run_otlpprof(&["merge", &once, "-o", &compressed]).success().get_output().stderr.clone();
    let error = String::from_utf8(error).unwrap();
    assert!(error.starts_with(&format!("{compressed} has 1 message in one of ")), "{error}");
    assert!(std::fs::read(&compressed).unwrap().starts_with(&[0x1f, 0x8b]));
    assert_equal_reports(&[&file], &once, &[&[], &["--type", "wall"]]);
    let report = |file: &str| stdout(&["report", file, "--tree"]);
    assert_eq!(report(&compressed), report(&file));
    let sums = |file: &str| Some(pprof::raw(&files.export(&[file], "pprof", &[]).0)?.stacks("cpu"));
    assert_eq!(sums(&compressed), sums(&file));
}

#[test]
fn a_reference_to_nothing_is_one_line_and_leaves_the_old_file() {
    let files = Files::new();
    let mut broken = valid();
    broken.resource_profiles[0].scope_profiles[0].profiles[0].samples[1].stack_index = 77;
    let file = files.add("broken.otlp", &[valid(), broken]);
    let out = files.path("out");
    std::fs::write(&out, b"old").unwrap();
    let output = run_otlpprof(&["merge", &file, "-o", &out]).code(2).get_output().clone();
    let error = String::from_utf8(output.stderr).unwrap();
    let expected = "otlpprof: message 1: stack_table[77] does not exist; `otlpprof validate` shows all such \
                    references\n";
    assert_eq!(error, expected);
    assert_eq!(std::fs::read(&out).unwrap(), b"old");
}

#[test]
fn files_of_real_jvms_are_merged_without_loss() {
    for home in newest_or_all() {
        let run = under_all_engines(&home, 3);
        let files = Files::new();
        for file in run.files() {
            let file = file.to_str().unwrap();
            let merged = merge(&files, &[file], &[]);
            assert_eq!(message_of(&merged).resource_profiles.len(), 1, "{}", run.label);
            let (Some(expected), Some(found)) = (truth(&[file]), truth(&[&merged])) else { return };
            assert_eq!(found, expected, "{}", run.label);
            let size = |file: &str| std::fs::metadata(file).unwrap().len();
            // A single message has nothing to merge.
            assert!(run.messages().len() < 2 || size(&merged) < size(file), "{}", run.label);
            let all = |kind| ["--top", "1000000", "--type", kind];
            for options in [&all("cpu")[..], &["--tree"], &all("alloc-space"), &all("live-space")] {
                // The first line has the time: intervals have gaps, which the merged window includes. The
                // order of rows with equal values is the order of their first occurrence.
                let rest = |file: &str| {
                    let report = stdout(&[&["report", file], options].concat());
                    let mut lines: Vec<_> = report.lines().skip(1).map(str::to_owned).collect();
                    lines.sort_unstable();
                    lines
                };
                assert_eq!(rest(&merged), rest(file), "{}: {options:?}", run.label);
            }
        }
    }
}

/// Regression: the profiles of ten pods of a service stayed ten, since their resources differ.
#[test]
fn processes_become_one_by_an_attribute_and_what_differs_is_left_out() {
    let files = Files::new();
    let of = |process: &str, start, period, value, live| {
        let (cpu, live) = ([(&["A.a"][..], "main", value)], [(&["A.a"][..], "main", live)]);
        let cpu = Spec { types: CPU, period, start, samples: &cpu };
        message(process, &[cpu, Spec { types: LIVE_SPACE, period: 512, start, samples: &live }])
    };
    let later = TIME + DURATION;
    let pods = [of("1", TIME, 10, 3, 100), of("2", TIME, 15, 2, 200), of("2", later, 15, 2, 300)];
    let parts = files.add("pods.otlp", &pods);
    let out = files.path("merged.otlp");
    let output =
        run_otlpprof(&["merge", &parts, "--by", "service.name", "-o", &out]).success().get_output().clone();
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(line.ends_with("; left out: process.pid (differs)\n"), "{line}");
    stdout(&["validate", &out]);
    let merged = message_of(&out);
    let resource = merged.resource_profiles[0].resource.as_ref().unwrap();
    assert_eq!((merged.resource_profiles.len(), resource.attributes.len()), (1, 1));
    assert_eq!(resource.dropped_attributes_count, 1);
    let profiles = profiles(&merged);
    let sums: Vec<_> =
        profiles.iter().map(|profile| (profile.period, profile.samples[0].values[0])).collect();
    // 5 is the greatest divisor of 10 and 15. Of the heaps the last state of each process counts.
    assert_eq!(sums, [(5, 2 * 3 + 3 * 2 + 3 * 2), (512, 100 + 300)]);
    let refused =
        run_otlpprof(&["merge", &parts, "--by", "service.nam", "-o", &out]).code(2).get_output().clone();
    let says = "otlpprof: --by: no resource has the attribute service.nam; the resources have process.pid, \
                service.name\n";
    assert_eq!(String::from_utf8_lossy(&refused.stderr), says);
}
