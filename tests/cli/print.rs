//! `otlpprof print`, as a user runs it.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::Stdio;

use crate::packed::gzip;
use otlpprof_otlp::wire::{
    AnyValue, KeyValueAndUnit, ProfilesData, ProfilesDictionary, Sample, Stack, Value,
};
use otlpprof_testkit::commands::{error_of, otlpprof, quiet_output, run_otlpprof};
use otlpprof_testkit::otlp_fixture::{BUILD_ID, DURATION, Dictionary, TIME, framed, valid};
use otlpprof_testkit::this_build;
use prost::Message as _;
use tempfile::TempDir;

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn add(&self, name: &str, bytes: &[u8]) -> String {
        let path: PathBuf = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.into_os_string().into_string().unwrap()
    }
}

/// The table that `report` prints first.
fn report(file: &str) -> String {
    let text = quiet_output(&["report", file]);
    text.replace("also in the files (--type)", "also in the files (otlpprof report --type)")
}

/// Regression: the table began below forty lines of resource and counters for each message.
#[test]
fn the_report_comes_first_and_each_message_is_a_few_lines() {
    let files = Files::new();
    let bytes = framed(&valid());
    let file = files.add("app.otlp", &bytes.repeat(2));
    let size = bytes.len() - 4;
    let of_message = |index: usize| {
        format!(
            "{file}: message {index}: {size} bytes of length-prefixed protobuf at byte {}\n  \
             cpu: 420 ms in 2 samples, from 2023-11-14T22:13:20Z for 10 s\n  \
             wall: 150 ms in 2 samples, from 2023-11-14T22:13:20Z for 10 s\n",
            4 + index * bytes.len(),
        )
    };
    let table = report(&file);
    assert!(table.starts_with("cpu of fixture: 840 ms in "), "{table}");
    assert_eq!(quiet_output(&["print", &file]), format!("{table}\n{}{}", of_message(0), of_message(1)));
    assert!(!quiet_output(&["print", "--top-frames", "0", &file]).contains("FUNCTION"));
    let resource = quiet_output(&["print", "--resource", &file]);
    assert!(resource.contains("\nresource\n  service.name = \"fixture\"\n"), "{resource}");
    assert!(!resource.contains("otlpprof.samples.dropped"), "{resource}");
    let counters = quiet_output(&["print", "--counters", &file]);
    assert!(counters.contains("\n  otlpprof.samples.dropped = 3\n"), "{counters}");
    assert!(!counters.contains("service.name"), "{counters}");
}

#[test]
fn a_profile_is_shown_with_its_top_stacks() {
    let files = Files::new();
    let bytes = framed(&valid());
    let file = files.add("app.otlp", &bytes);
    let text = quiet_output(&["print", "--resource", "--counters", "--stacks", "10", &file]);
    let expected = format!(
        r#"{table}
{file}: message 0: {size} bytes of length-prefixed protobuf at byte 4
resource
  service.name = "fixture"
  process.pid = "7"
scope otlpprof 0.1.0
profile 0: samples/count by cpu/nanoseconds, period 10000000
  from 2023-11-14T22:13:20.000000000Z for 10 s
  2 samples, total 42
  id 01010101010101010101010101010101
  profile.type = "cpu"
  otlpprof.samples.dropped = 3
profile 1: samples/count by wall/nanoseconds, period 50000000
  from 2023-11-14T22:13:20.000000000Z for 10 s
  2 samples, total 3
  id 02020202020202020202020202020202
  original payload of 4 bytes, jfr
  profile.type = "wall"

top 2 of 2 stacks: cpu, 420 ms
      300 ms  71.43 %
      {BUILD_ID}.<remote>(0x1234)
      com.example.Burn.spin (Burn.java:42)
      java.lang.Thread.run (Thread.java:840)
    with thread.id = 17, thread.name = "worker", trace {trace} span {span}
      120 ms  28.57 %
      com.example.Burn.spin (Burn.java:42)
      com.example.Burn.main (Burn.java:7)
    with thread.id = 1, thread.name = "main"

top 2 of 2 stacks: wall, 150 ms
      100 ms  66.67 %
      com.example.Burn.spin (Burn.java:42)
      com.example.Burn.main (Burn.java:7)
    with thread.id = 1, thread.name = "main"
     50.0 ms  33.33 %
      {BUILD_ID}.<remote>(0x1234)
      com.example.Burn.spin (Burn.java:42)
      java.lang.Thread.run (Thread.java:840)
    with thread.id = 17, thread.name = "worker"

"#,
        table = report(&file),
        size = bytes.len() - 4,
        trace = "aa".repeat(16),
        span = "bb".repeat(8),
    );
    assert_eq!(text, expected);
}

/// Samples with one stack and different labels, in several messages.
#[test]
fn a_stack_is_shown_with_the_labels_that_most_of_its_samples_have() {
    let files = Files::new();
    let labelled = |labels: &[(&str, i64)], unlabelled: i64| {
        let mut data = valid();
        let dictionary = data.dictionary.take().unwrap();
        let mut tables = Dictionary(dictionary);
        let profiles = &mut data.resource_profiles[0].scope_profiles[0].profiles;
        profiles.truncate(1);
        let sample = profiles[0].samples[1].clone();
        let with = |indices: Vec<i32>, value| Sample {
            attribute_indices: indices,
            values: vec![value],
            link_index: 0,
            ..sample.clone()
        };
        let mut samples: Vec<_> = labels
            .iter()
            .map(|&(text, value)| with(vec![tables.text("rest_endpoint", text)], value))
            .collect();
        samples.push(with(Vec::new(), unlabelled));
        profiles[0].samples = samples;
        data.dictionary = Some(tables.0);
        framed(&data)
    };
    // Labels in a different order are equal.
    let in_order = |keys: [&str; 2]| {
        let mut data = valid();
        let mut tables = Dictionary(data.dictionary.take().unwrap());
        let labels = keys.map(|key| tables.text(key, "x"));
        data.resource_profiles[0].scope_profiles[0].profiles.truncate(1);
        let samples = &mut data.resource_profiles[0].scope_profiles[0].profiles[0].samples;
        samples.remove(0);
        samples[0].attribute_indices = labels.to_vec();
        data.dictionary = Some(tables.0);
        framed(&data)
    };
    let both = files.add("both", &[in_order(["a", "b"]), in_order(["b", "a"])].concat());
    let text = quiet_output(&["print", "--stacks", "10", &both]);
    assert!(text.contains("(Burn.java:7)\n    with a = \"x\", b = \"x\"\n"), "{text}");
    let messages = [labelled(&[("/a", 5), ("/b", 1), ("/c", 2)], 4), labelled(&[("/d", 1), ("/c", 8)], 0)];
    let file = files.add("file", &messages.concat());
    let text = quiet_output(&["print", "--stacks", "10", &file]);
    let expected = "
      210 ms 100.00 %
      com.example.Burn.spin (Burn.java:42)
      com.example.Burn.main (Burn.java:7)
    100 ms with rest_endpoint = \"/c\"
    50.0 ms with rest_endpoint = \"/a\"
    40.0 ms without labels
    20.0 ms with 2 other sets of labels
";
    assert!(text.contains(expected), "{text}");
    let document: serde_json::Value =
        serde_json::from_str(&quiet_output(&["print", "--format", "json", &file])).unwrap();
    let stack = &document["top"][0]["stacks"][0];
    assert_eq!((&stack["total"], &stack["labelSetCount"]), (&21.into(), &5.into()));
    assert_eq!(stack["labels"].as_array().unwrap().len(), 3);
    assert_eq!(stack["labels"][0]["attributes"]["rest_endpoint"], "/c");
    assert_eq!(stack["labels"][0]["total"], 10);
    assert_eq!(stack["labels"][2]["link"], serde_json::Value::Null);
}

#[test]
fn sums_go_over_all_messages_and_files() {
    let files = Files::new();
    let two = files.add("two", &[framed(&valid()), framed(&valid())].concat());
    let one = files.add("one", &valid().encode_to_vec());
    let text = quiet_output(&["print", "--top", "1", &two, &one]);
    assert_eq!(text.matches(": message ").count(), 3);
    assert!(text.contains("top 1 of 2 stacks: cpu, 1.26 s\n      900 ms  71.43 %"), "{text}");
}

/// Regression: values were added up, although the period changes from message to message under a budget.
#[test]
fn sums_are_of_values_times_periods() {
    let files = Files::new();
    let with_period = |period: i64, stack: usize| {
        let mut data = valid();
        let profile = &mut data.resource_profiles[0].scope_profiles[0].profiles[0];
        profile.period = period;
        profile.samples.swap_remove(1 - stack);
        framed(&data)
    };
    // 30 periods of 10 ms, 12 periods of 100 ms.
    let file = files.add("two", &[with_period(10_000_000, 0), with_period(100_000_000, 1)].concat());
    let text = quiet_output(&["print", "--stacks", "1", &file]);
    assert!(text.contains("top 1 of 2 stacks: cpu, 1.50 s\n      1.20 s  80.00 %\n"), "{text}");
    let arguments = ["print", "--format", "json", "--stacks", "9", "--top-frames", "9", &file];
    let document: serde_json::Value = serde_json::from_str(&quiet_output(&arguments)).unwrap();
    let cpu = &document["top"][0];
    assert_eq!((&cpu["type"], &cpu["unit"]), (&"cpu".into(), &"nanoseconds".into()));
    assert_eq!((&cpu["total"], &cpu["amount"]), (&42.into(), &1_500_000_000_i64.into()));
    let stack = &cpu["stacks"][0];
    assert_eq!((&stack["total"], &stack["amount"]), (&12.into(), &1_200_000_000.into()));
    assert_eq!(stack["labels"][0]["amount"], 1_200_000_000);
    let spin = &cpu["frames"][0];
    assert_eq!(spin["frame"], "com.example.Burn.spin (Burn.java)");
    assert_eq!((&spin["self"], &spin["total"]), (&12.into(), &42.into()));
    let amounts = (&spin["selfAmount"], &spin["totalAmount"]);
    assert_eq!(amounts, (&1_200_000_000.into(), &1_500_000_000_i64.into()));
    let profile = &document["messages"][1]["resources"][0]["scopes"][0]["profiles"][0];
    assert_eq!((&profile["total"], &profile["amount"]), (&12.into(), &1_200_000_000.into()));
}

#[test]
fn frames_are_summed_with_and_without_their_callees() {
    let files = Files::new();
    let file = files.add("app", &valid().encode_to_vec());
    let text = quiet_output(&["print", "--top-frames", "2", "--lines", &file]);
    assert!(!text.contains(" stacks: "), "stacks were not asked for");
    let cpu = text.lines().skip_while(|line| !line.ends_with("FUNCTION")).skip(1);
    let rows: Vec<Vec<_>> = cpu.take(2).map(|line| line.split_whitespace().collect()).collect();
    let remote = format!("{BUILD_ID}.<remote>(0x1234)");
    assert_eq!(rows[0], ["300", "ms", "71.4", "%", "300", "ms", "71.4", "%", "native", &remote]);
    assert_eq!(rows[1].join(" "), "120 ms 28.6 % 420 ms 100.0 % Java com.example.Burn.spin (Burn.java:42)");
    let json = quiet_output(&["print", "--format", "json", "--top-frames", "2", "--lines", &file]);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let frames = &document["top"][0]["frames"];
    assert_eq!((&frames[0]["frame"], &frames[0]["self"]), (&remote.into(), &30.into()));
    assert_eq!(frames[1]["frame"], "com.example.Burn.spin (Burn.java:42)");
    assert_eq!((&frames[1]["self"], &frames[1]["total"]), (&12.into(), &42.into()));
}

/// Regression: frames were summed by line, so a method with samples in many lines was not at the top.
#[test]
fn top_frames_are_functions_whatever_line_they_were_at() {
    let files = Files::new();
    let mut tables = Dictionary::new();
    let leaf = tables.java("com.example.Other.leaf", 1);
    let main = tables.java("com.example.Many.main", 7);
    let mut samples = Vec::new();
    // One method has samples in fifty lines, recursively. Another method has samples in one line, and more
    // than the first has in any line.
    for line in 0..50 {
        let many =
            [tables.java("com.example.Many.lines", 100 + line), tables.java("com.example.Many.lines", 9)];
        let stack_index = tables.stack(vec![many[0], many[1], main]);
        samples.push(Sample { stack_index, values: vec![2], ..Default::default() });
    }
    let stack_index = tables.stack(vec![leaf, main]);
    samples.push(Sample { stack_index, values: vec![20], ..Default::default() });
    let file = files.add("many", &of_samples(tables, samples));
    let rows = |arguments: &[&str]| -> Vec<String> {
        let text = quiet_output(&[&["print", "--top-frames", "3"], arguments, &[&file]].concat());
        let lines = text.lines().skip_while(|line| !line.ends_with("FUNCTION")).skip(1).take(3);
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(
        rows(&[]),
        [
            "1.00 s 83.3 % 1.00 s 83.3 % Java com.example.Many.lines (Many.java)",
            "200 ms 16.7 % 200 ms 16.7 % Java com.example.Other.leaf (Other.java)",
            "0 ns 0.0 % 1.20 s 100.0 % Java com.example.Many.main (Many.java)",
        ]
    );
    let lines = rows(&["--lines"]);
    assert_eq!(lines[0], "200 ms 16.7 % 200 ms 16.7 % Java com.example.Other.leaf (Other.java:1)");
    assert!(lines[1].starts_with("20.0 ms 1.7 % 20.0 ms 1.7 % Java com.example.Many.lines"), "{lines:?}");
    // The sums of scripts are by function, too.
    let sums = |arguments: &[&str]| -> Vec<(String, i64, i64)> {
        let options = [&["print", "--format", "json", "--top-frames", "3"], arguments, &[&file]].concat();
        let document: serde_json::Value = serde_json::from_str(&quiet_output(&options)).unwrap();
        assert_eq!(document["top"][0]["total"], 120);
        let frames = document["top"][0]["frames"].as_array().unwrap();
        let sum = |frame: &serde_json::Value, name: &str| frame[name].as_i64().unwrap();
        let name = |frame: &serde_json::Value| frame["frame"].as_str().unwrap().to_owned();
        frames.iter().map(|frame| (name(frame), sum(frame, "self"), sum(frame, "total"))).collect()
    };
    let named = |name: &str, own, total| (name.to_owned(), own, total);
    assert_eq!(
        sums(&[]),
        [
            named("com.example.Many.lines (Many.java)", 100, 100),
            named("com.example.Other.leaf (Other.java)", 20, 20),
            named("com.example.Many.main (Many.java)", 0, 120),
        ]
    );
    let lines = sums(&["--lines"]);
    assert_eq!(lines[0], named("com.example.Other.leaf (Other.java:1)", 20, 20));
    assert_eq!((lines[1].1, lines[1].2), (2, 2));
}

/// A message with one CPU profile.
fn of_samples(mut tables: Dictionary, samples: Vec<Sample>) -> Vec<u8> {
    let mut data = valid();
    let profiles = &mut data.resource_profiles[0].scope_profiles[0].profiles;
    profiles.truncate(1);
    profiles[0].samples = samples;
    profiles[0].attribute_indices.clear();
    profiles[0].sample_type = tables.value_type("samples", "count");
    profiles[0].period_type = tables.value_type("cpu", "nanoseconds");
    data.dictionary = Some(tables.0);
    framed(&data)
}

#[test]
fn of_too_many_stacks_the_highest_are_kept_and_totals_are_exact() {
    const STACKS: u64 = 8_000;
    let files = Files::new();
    // Stacks of 100 frames that differ from their roots on, each with one sample. Two others are frequent.
    let message = |first: u64| {
        let mut tables = Dictionary::new();
        let frames: Vec<_> =
            (0..50).map(|number| tables.java(&format!("a.Many.f{number}"), number)).collect();
        let [hot, warm] = [("a.Hot.hot", 5), ("a.Warm.warm", 7)].map(|(name, line)| {
            let leaf = tables.java(name, line);
            tables.stack(vec![leaf, frames[0]])
        });
        let mut samples = Vec::new();
        for number in first..first + STACKS {
            // The digits of the number choose the frames at the root.
            let frame = |at: u32| frames[(number / 50_u64.pow(at.min(3)) + u64::from(at / 4)) as usize % 50];
            let stack_index = tables.0.stack_table.len() as i32;
            tables.0.stack_table.push(Stack { location_indices: (0..100).rev().map(frame).collect() });
            let of = |stack_index, value| Sample { stack_index, values: vec![value], ..Default::default() };
            samples.extend([of(stack_index, 1), of(hot, 3), of(warm, 2)]);
        }
        of_samples(tables, samples)
    };
    let file = files.add("many", &[message(0), message(STACKS)].concat());
    let options = ["--stacks", "2", "--top-frames", "3"];
    let document = quiet_output(&[&["print", "--json"][..], &options, &[&file]].concat());
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let top = &document["top"][0];
    assert_eq!((&top["total"], &top["stackCount"]), (&(12 * STACKS).into(), &(2 * STACKS + 2).into()));
    let stacks = [("a.Hot.hot (Hot.java:5)", 6 * STACKS), ("a.Warm.warm (Warm.java:7)", 4 * STACKS)];
    for (stack, (leaf, total)) in top["stacks"].as_array().unwrap().iter().zip(stacks) {
        assert_eq!((&stack["frames"][0], &stack["total"]), (&leaf.into(), &total.into()));
    }
    // Functions have the samples of evicted stacks too.
    let sums = top["frames"].as_array().unwrap().iter().map(|frame| (&frame["frame"], &frame["self"]));
    let functions = [
        ("a.Hot.hot (Hot.java)", 6 * STACKS),
        ("a.Warm.warm (Warm.java)", 4 * STACKS),
        ("a.Many.f24 (Many.java)", 2 * STACKS),
    ];
    for (found, (function, own)) in sums.zip(functions) {
        assert_eq!(found, (&function.into(), &own.into()));
    }
    let text = quiet_output(&[&["print"][..], &options, &[&file]].concat());
    assert!(text.contains(&format!("top 2 of {} stacks: cpu, 960 s\n", 2 * STACKS + 2)), "{text}");
}

#[test]
fn of_too_many_labels_the_most_frequent_are_kept_and_counted() {
    const LABELS: usize = 70_000;
    let files = Files::new();
    let mut tables = Dictionary::new();
    let leaf = tables.java("a.B.leaf", 1);
    let stack_index = tables.stack(vec![leaf]);
    let key = tables.string("request");
    let first = tables.0.attribute_table.len() as i32;
    tables.0.attribute_table.extend((0..LABELS as i64).map(|number| KeyValueAndUnit {
        key_strindex: key,
        value: Some(AnyValue { value: Some(Value::IntValue(number)) }),
        unit_strindex: 0,
    }));
    let of = |at: usize, value| Sample {
        stack_index,
        attribute_indices: vec![first + at as i32],
        values: vec![value],
        ..Default::default()
    };
    // Each label occurs once, and two of them again with each of the others.
    let samples = (0..LABELS).flat_map(|at| [of(at, 1), of(0, 2), of(1, 1)]).collect();
    let file = files.add("many", &of_samples(tables, samples));
    let text = quiet_output(&["print", "--stacks", "1", &file]);
    let frequent = [(2 * LABELS + 1, 0), (LABELS + 1, 1), (1, 2)];
    let [first, second, third] = frequent.map(|(periods, request)| match periods {
        1 => format!("    10.0 ms with request = {request}\n"),
        _ => format!("    {} s with request = {request}\n", periods / 100),
    });
    let rest = format!("    {} s with {} other sets of labels\n", LABELS / 100, LABELS - 3);
    assert!(text.contains(&[first, second, third, rest].concat()), "{text}");
    assert!(text.contains(&format!("top 1 of 1 stacks: cpu, {} s\n", 4 * LABELS / 100)), "{text}");
}

/// Regression: the contents of a file were written to the terminal without escaping.
#[test]
fn nothing_of_a_file_controls_the_terminal() {
    let files = Files::new();
    const EVIL: &str = "\u{1b}]0;owned\u{7}\u{9b}2J\r\nfake: line\u{202e}\u{2066}\u{200b}\u{2028}\u{7f}";
    let mut data = valid();
    let dictionary = data.dictionary.as_mut().unwrap();
    for text in dictionary.string_table.iter_mut().skip(1).filter(|text| !text.starts_with("otlpprof.")) {
        text.push_str(EVIL);
    }
    for attribute in &mut dictionary.attribute_table {
        if let Some(Value::StringValue(text)) =
            attribute.value.as_mut().and_then(|value| value.value.as_mut())
        {
            text.push_str(EVIL);
        }
    }
    let resource = &mut data.resource_profiles[0];
    for attribute in &mut resource.resource.as_mut().unwrap().attributes {
        attribute.key.push_str(EVIL);
    }
    let scope = resource.scope_profiles[0].scope.as_mut().unwrap();
    scope.name.push_str(EVIL);
    scope.version.push_str(EVIL);
    let profile = &mut resource.scope_profiles[0].profiles[1];
    profile.original_payload_format.push_str(EVIL);
    let plain = files.add("plain", &framed(&data));
    // Paths are escaped like the contents of files.
    let named = files.add("na\u{1b}[31mme\n\u{202e}", &framed(&data));
    let broken = files.add("broken\u{1b}c", &[framed(&data), vec![0, 0, 1, 0, 0x0a]].concat());
    let jfr = files.add("recording\u{9b}", b"FLR\0\0\x02\0\x01");
    let out = files.0.path().join("out\u{1b}");
    let out = out.to_str().unwrap();
    for arguments in [
        &["print", &plain][..],
        &["print", "--all", "--raw", "--resource", "--stacks", "9", "--top-frames", "99", &plain],
        &["print", "--counters", "--resource", "--stacks", "9", "--top-frames", "99", "--lines", &named],
        &["print", "--all", "--raw", "--top-frames", "99", "--format", "json", &named],
        &["print", "--keep-going", &broken],
        &["print", &broken],
        &["print", &jfr],
        &["validate", "--show", "1000", &named, &broken],
        &["validate", &jfr],
        &["check-stacks", &jfr],
        &["validate", "--format", "json", &named],
        &["check-stacks", &plain],
        &["check-stacks", "--format", "json", &named],
        &["check-stacks", &broken],
        &["convert", &named, "-o", out],
        &["payload", &broken, "-o", out],
        &["payload", &jfr, "-o", out],
        &["collect", "--out", &named],
    ] {
        let output = otlpprof().args(arguments).output().unwrap();
        for text in [output.stdout, output.stderr] {
            let text = String::from_utf8(text).unwrap();
            let harmful = |char: char| {
                char.is_control() && char != '\n'
                    || ['\u{202e}', '\u{2066}', '\u{200b}', '\u{2028}'].contains(&char)
            };
            assert!(!text.contains(harmful), "{arguments:?}: {text:?}");
            assert!(!text.lines().any(|line| line.starts_with("fake: line")), "{arguments:?}: {text}");
        }
    }
    let text = quiet_output(&["print", &plain]);
    assert!(
        text.contains("com.example.Burn.spin\\u{1b}]0;owned\\u{7}\\u{9b}2J\\u{d}\\u{a}fake: line"),
        "{text}"
    );
}

#[test]
fn every_sample_is_shown_on_request() {
    let files = Files::new();
    let file = files.add("app", &valid().encode_to_vec());
    let text = quiet_output(&["print", "--all", "--top", "0", &file]);
    let first = format!(
        "  sample 0: 30\n    thread.name = \"worker\"\n    thread.id = 17\n    trace {} \
         span {}\n      {BUILD_ID}.<remote>(0x1234)\n",
        "aa".repeat(16),
        "bb".repeat(8),
    );
    assert!(text.contains(&first), "{text}");
    assert!(text.contains("    at 2023-11-14T22:13:29.999999999Z\n"), "{text}");
}

#[test]
fn tables_are_shown_on_request() {
    let files = Files::new();
    let file = files.add("app", &valid().encode_to_vec());
    let text = quiet_output(&["print", "--raw", "--top", "0", &file]);
    for line in [
        "string_table[0] \"\"\n",
        "mapping_table[1] 0x1000..0x3000 from 0x1000 of ",
        "location_table[1] mapping 1 address 0x1234 attributes ",
        "link_table[0] trace \"\" span \"\"\n",
        "stack_table[1] [1, 2, 4]\n",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
}

#[test]
fn json_has_the_same_content() {
    let files = Files::new();
    let file = files.add("app", &valid().encode_to_vec());
    let text = quiet_output(&[
        "print",
        "--format",
        "json",
        "--all",
        "--raw",
        "--top-frames",
        "5",
        "--top",
        "1",
        &file,
    ]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let message = &document["messages"][0];
    assert_eq!(message["form"], "protobuf");
    let profile = &message["resources"][0]["scopes"][0]["profiles"][0];
    assert_eq!(profile["total"], 42);
    assert_eq!(profile["timeUnixNano"], TIME);
    assert_eq!(profile["durationNano"], DURATION);
    assert_eq!(profile["attributes"]["otlpprof.samples.dropped"], 3);
    let sample = &profile["samples"][0];
    assert_eq!(sample["attributes"]["thread.id"], 17);
    assert_eq!(sample["link"]["spanId"], "bb".repeat(8));
    assert_eq!(sample["frames"][1]["name"], "com.example.Burn.spin");
    assert_eq!(sample["frames"][1]["line"], 42);
    assert_eq!(message["dictionary"]["strings"][0], "");
    assert_eq!(document["top"][0]["stacks"][0]["total"], 30);
    let labels = &document["top"][0]["stacks"][0]["labels"][0];
    assert_eq!((&labels["total"], &labels["attributes"]["thread.id"]), (&30.into(), &17.into()));
    assert_eq!(labels["link"]["traceId"], "aa".repeat(16));
    assert_eq!(document["top"][0]["frames"][0]["self"], 30);
}

#[test]
fn standard_input_is_a_file() {
    let output = assert_cmd::Command::new(this_build::command())
        .args(["print", "-"])
        .write_stdin(framed(&valid()))
        .assert()
        .success();
    assert!(String::from_utf8_lossy(&output.get_output().stdout).contains("\n-: message 0: "));
}

/// Checks for one line on standard error, nothing on standard output, and exit code 2.
fn assert_refused(arguments: &[&str], says: &[&str]) {
    let stderr = error_of(arguments);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    for part in says {
        assert!(stderr.contains(part), "{part:?} in {stderr:?}");
    }
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let files = Files::new();
    let good = files.add("good", &framed(&valid()));
    let bytes = [framed(&valid()), vec![0, 0, 1, 0, 0x0a]].concat();
    let cut = files.add("cut", &bytes);
    let jfr = files.add("app.jfr", b"FLR\0\0\x02\0\x01");
    let missing = files.0.path().join("missing").into_os_string().into_string().unwrap();
    let offset = format!("at byte {} (message 1)", framed(&valid()).len());
    assert_refused(&["print", &cut], &[&cut, "truncated", &offset, "[frame-truncated]"]);
    assert_refused(&["print", &good, &cut], &[&cut]);
    assert_refused(&["print", &jfr], &[&jfr, "no event in"]);
    assert_refused(&["check-stacks", &jfr], &[&jfr, "a JFR recording"]);
    assert_refused(&["print", &missing], &[&missing, "No such file"]);
    assert_refused(&["check-stacks", &cut], &[&cut, "truncated"]);
}

/// Regression: offsets in compressed files count decompressed bytes, and only some messages said so.
#[test]
fn places_in_compressed_files_say_so() {
    let files = Files::new();
    let bytes = framed(&valid());
    let good = files.add("good.gz", &gzip(&bytes));
    let text = quiet_output(&["print", &good]);
    assert!(text.contains(" of length-prefixed protobuf at byte 4 after decompression\n"), "{text}");
    let cut = files.add("cut.gz", &gzip(&[&bytes[..], &[0, 0, 1, 0, 0x0a]].concat()));
    let place = format!("byte {} after decompression", bytes.len());
    assert_refused(&["print", &cut], &[&format!(" at {place} (message 1) ")]);
    assert_refused(&["validate", &cut], &[&format!("frame-truncated: {place}: truncated")]);
    // The field 2 of a message, `dictionary`, encoded as a number.
    let of_field = files.add("field.gz", &gzip(&[0x10, 1]));
    assert_refused(&["validate", &of_field], &["byte 0 after decompression"]);
    // An unknown field in a message with a length prefix.
    let unknown = files.add("unknown.gz", &gzip(&[&bytes[..], &[0, 0, 0, 3, 0xf8, 0x7f, 1]].concat()));
    let output = run_otlpprof(&["validate", &unknown]).get_output().clone();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&format!("at byte {} after decompression", bytes.len() + 4)), "{text}");
    let back = files.0.path().join("back").into_os_string().into_string().unwrap();
    for (name, bytes, place) in [
        ("bad.json.gz", &b"{\"resourceProfiles\":7}"[..], "byte 20: bad JSON, expected an array"),
        ("bad.otlp.gz", b"\x0a\x05\x12\xff\xff\xff\xff", "byte 3: not a field of a protobuf message"),
    ] {
        let file = files.add(name, &gzip(bytes));
        let says = format!("otlpprof: {file}: after decompression: {place}\n");
        assert_refused(&["payload", &file, "-o", &back], &[&says]);
        let plain = files.add("plain", bytes);
        let says = format!("otlpprof: {plain}: {place}\n");
        assert_refused(&["payload", &plain, "-o", &back], &[&says]);
    }
}

#[test]
fn a_file_without_any_message_is_refused() {
    let files = Files::new();
    let good = files.add("good", &framed(&valid()));
    let empty = files.add("empty", b"");
    let gzip = files.add("empty.gz", &gzip(b""));
    for command in ["print", "check-stacks"] {
        for file in [&*empty, &gzip, "/dev/null"] {
            let says = format!("otlpprof: {file}: no message in its ");
            assert_refused(&[command, file], &[&says]);
            assert_refused(&[command, &good, file], &[&says]);
        }
    }
    let arguments = ["print", "--counters", "--keep-going", &good, &empty];
    let output = run_otlpprof(&arguments).code(2).get_output().clone();
    assert!(String::from_utf8_lossy(&output.stdout).contains("total 42"));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        format!("otlpprof: {empty}: no message in its 0 bytes\n")
    );
}

#[test]
fn messages_before_a_damaged_one_are_shown_on_request() {
    let files = Files::new();
    let cut = files.add("cut", &[framed(&valid()), vec![0, 0, 1, 0, 0x0a]].concat());
    let output = run_otlpprof(&["print", "--counters", "--keep-going", &cut]).code(2).get_output().clone();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("cpu of fixture: 420 ms in ") && text.contains("total 42"), "{text}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("[frame-truncated]"));
}

#[test]
fn bad_usage_exits_with_2() {
    run_otlpprof(&[]).code(2);
    run_otlpprof(&["print"]).code(2);
    run_otlpprof(&["print", "--top", "many", "file"]).code(2);
    run_otlpprof(&["--help"]).success();
    run_otlpprof(&["print", "--help"]).success();
}

/// `otlpprof print … | head`.
#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    // More than a pipe can hold, so that the command is still writing when its reader closes the pipe.
    let string_table = (0..20_000).map(|number| format!("string {number}")).collect();
    let dictionary = Some(ProfilesDictionary { string_table, ..Default::default() });
    let files = Files::new();
    let file = files.add("large", &ProfilesData { dictionary, ..Default::default() }.encode_to_vec());
    let mut child = otlpprof()
        .args(["print", "--raw", &file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success(), "{}", output.status);
}
