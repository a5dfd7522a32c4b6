//! `otlpprof check-stacks`, as a user runs it. The tests of `otlp::roots` cover the criteria for whole
//! stacks.

use std::process::Output;

use otlpprof_otlp::wire::*;
use otlpprof_testkit::commands::otlpprof;
use otlpprof_testkit::otlp_fixture::{Dictionary, TIME, valid};
use prost::Message as _;
use tempfile::NamedTempFile;

fn check(data: &ProfilesData, arguments: &[&str]) -> (i32, String) {
    let output = run(data, arguments);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

fn run(data: &ProfilesData, arguments: &[&str]) -> Output {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), data.encode_to_vec()).unwrap();
    otlpprof().arg("check-stacks").args(arguments).arg(file.path()).output().unwrap()
}

/// A profile of these Java stacks (leaf first) and their values, with this scope name. Frames have no type,
/// as in async-profiler's profiles.
fn profile(scope: &str, stacks: &[(&[&str], i64)]) -> ProfilesData {
    let mut tables = Dictionary::new();
    let sample_type = tables.value_type("samples", "count");
    let mut samples = Vec::new();
    for (frames, value) in stacks {
        let mut location_indices = Vec::new();
        for name in *frames {
            let function_index = tables.function(name, "");
            let lines = vec![Line { function_index, line: 0, column: 0 }];
            tables.0.location_table.push(Location { lines, ..Default::default() });
            location_indices.push(i32::try_from(tables.0.location_table.len() - 1).unwrap());
        }
        let stack_index = tables.stack(location_indices);
        samples.push(Sample { stack_index, values: vec![*value], ..Default::default() });
    }
    let profiles = vec![Profile { sample_type, samples, time_unix_nano: TIME, ..Default::default() }];
    let scope = Some(InstrumentationScope { name: scope.into(), ..Default::default() });
    let scope_profiles = vec![ScopeProfiles { scope, profiles, ..Default::default() }];
    ProfilesData {
        resource_profiles: vec![ResourceProfiles { scope_profiles, ..Default::default() }],
        dictionary: Some(tables.0),
    }
}

const STACKS: [(&[&str], i64); 4] = [
    (&["a.B.c", "java.lang.Thread.run"], 90),
    (&["memcpy", "start_thread", "clone3"], 5),
    (&["a.B.c", "[unwalkable: no frame]"], 3),
    (&["a.B.c", "a.B.onEvent"], 2),
];

#[test]
fn observations_are_counted_by_verdict() {
    let (code, text) = check(&profile("async-profiler", &STACKS), &[]);
    assert_eq!(code, 0);
    assert_eq!(
        text,
        "100 samples: 95 reach their root (95.000 %), 5 do not\n\
         reached java                   90   90.000 %\n\
         reached native                  5    5.000 %\n\
         broken marker                  3    3.000 %\n\
         broken java-end                2    2.000 %\n\
         \nroots:\n        90   90.000 %  java           java.lang.Thread.run\n\
         \u{20}        5    5.000 %  native         clone3\n\
         \nends of broken stacks:\n         3    3.000 %  marker         [unwalkable: no frame]\n\
         \u{20}        2    2.000 %  java-end       a.B.onEvent\n"
    );
}

/// Regression: the tables ended after 10 rows without a word, and so did JSON, unlike those of `report`.
#[test]
fn tables_have_as_many_rows_as_in_other_commands() {
    let names: Vec<_> = (0..25).map(|at| [format!("app.Main{at}.main"), format!("a.B.on{at}")]).collect();
    let stacks: Vec<_> = names.iter().flatten().map(|end| ["a.B.c", end.as_str()]).collect();
    let stacks: Vec<_> = stacks.iter().map(|stack| (&stack[..], 1)).collect();
    let data = profile("", &stacks);
    let grammar = NamedTempFile::new().unwrap();
    std::fs::write(grammar.path(), "a.B.c: a.B.nobody\n").unwrap();
    let with_grammar = ["--grammar", grammar.path().to_str().unwrap()];
    let (_, text) = check(&data, &with_grammar);
    let rows = |text: &str, mark: &str| text.lines().filter(|line| line.contains(mark)).count();
    let tables = |text: &str| {
        ["java           app.Main", "java-end       a.B.on", "a.B.c called by "].map(|mark| rows(text, mark))
    };
    assert_eq!(tables(&text), [20, 20, 20], "{text}");
    assert_eq!(rows(&text, "and 5 more; --top 25 shows them"), 2, "{text}");
    assert_eq!(rows(&text, "and 30 more; --top 50 shows them"), 1, "{text}");
    let (_, text) = check(&data, &[&with_grammar[..], &["--top", "50"]].concat());
    assert_eq!((tables(&text), rows(&text, " more; ")), ([25, 25, 50], 0), "{text}");
    let json = |options: &[&str]| {
        let (_, text) = check(&data, &[&with_grammar[..], &["--json"], options].concat());
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        ["roots", "brokenEnds", "topIllegalCalls"].map(|field| document[field].as_array().unwrap().len())
    };
    assert_eq!((json(&[]), json(&["--top", "3"])), ([25, 25, 50], [3, 3, 3]));
}

/// Files of earlier versions spell some markers differently.
#[test]
fn markers_of_earlier_versions_are_read() {
    let stacks: [(&[&str], i64); 3] = [
        (&["[no_Java_frame]"], 7),
        (&["[unknown object]", "a.B.c", "java.lang.Thread.run"], 2),
        (&["[no stack]"], 1),
    ];
    for scope in ["otlpprof", ""] {
        let (code, text) = check(&profile(scope, &stacks), &["--walker", "no"]);
        assert_eq!(code, 0);
        assert!(text.starts_with("10 samples: 7 reach their root (70.000 %), 3 do not\n"), "{text}");
        assert!(text.contains("broken marker                  3   30.000 %\n"), "{text}");
        assert!(text.contains("native         [no_Java_frame]\n"), "{text}");
    }
}

#[test]
fn a_profiler_that_marks_broken_stacks_is_trusted_without_known_roots() {
    let reached = |arguments: &[&str]| {
        let (_, text) = check(&profile("otlpprof", &STACKS), &[arguments, &["--format", "json"]].concat());
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["reached"].as_u64()
    };
    assert_eq!(reached(&[]), Some(97));
    assert_eq!(reached(&["--known-roots"]), Some(95));
}

/// Regression: samples in the static initializer of the main class counted as broken. The launcher calls it
/// on an empty stack, before `main`.
#[test]
fn the_initializer_of_the_main_class_is_a_root() {
    let stacks: [(&[&str], i64); 4] = [
        (&["a.B.c", "app.Main.<clinit>"], 4),
        (&["a.B.c", "app.Main.main"], 3),
        (&["a.B.c", "app.Other.<clinit>"], 2),
        (&["a.B.c", "app.Main.helper"], 1),
    ];
    for walker in ["vm", "fp", "dwarf"] {
        let (_, text) = check(&profile("", &stacks), &["--walker", walker]);
        assert!(text.starts_with("10 samples: 7 reach their root"), "{walker}: {text}");
    }
    let (_, text) = check(&profile("", &stacks), &["--walker", "vmx"]);
    assert!(text.starts_with("10 samples: 0 reach their root"), "{text}");
}

#[test]
fn a_percentage_can_be_demanded() {
    let data = profile("", &STACKS);
    assert_eq!(check(&data, &["--at-least", "95"]).0, 0);
    assert_eq!(check(&data, &["--at-least", "95.1"]).0, 1);
}

/// Regression: the 100,000 samples reported after a soak test were periods. A sample of a timer stands for
/// several periods.
#[test]
fn a_sample_that_stands_for_several_periods_can_count_once() {
    let mut data = profile("", &STACKS[..3]);
    let samples = &mut data.resource_profiles[0].scope_profiles[0].profiles[0].samples;
    for (sample, times) in samples.iter_mut().zip([&[TIME, TIME, TIME, TIME + 5][..], &[TIME; 90], &[]]) {
        sample.timestamps_unix_nano = times.to_vec();
        if !times.is_empty() {
            sample.values.clear();
        }
    }
    assert!(check(&data, &[]).1.starts_with("97 samples: 94 reach"));
    assert!(check(&data, &["--distinct-times"]).1.starts_with("4 samples: 3 reach"));
    assert_eq!(check(&data, &["--distinct-times", "--at-least", "75.1"]).0, 1);
}

#[test]
fn times_cannot_be_counted_where_there_are_none() {
    let output = run(&profile("", &STACKS), &["--distinct-times"]);
    assert_eq!(output.status.code(), Some(2));
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("no sample has a time") && printed.lines().count() == 1, "{printed}");
    assert!(output.stdout.is_empty());
}

#[test]
fn values_that_are_no_counts_count_once() {
    let mut data = profile("", &STACKS);
    let scope = &mut data.resource_profiles[0].scope_profiles[0];
    let unit = &mut scope.profiles[0].sample_type.as_mut().unwrap().unit_strindex;
    *unit = 0;
    assert!(check(&data, &[]).1.starts_with("4 samples: 2 reach"));
    // Two values, 30 and 12, and three timestamps.
    assert!(check(&valid(), &[]).1.starts_with("45 samples: 45 reach"));
}
