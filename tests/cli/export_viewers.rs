//! `otlpprof export` to speedscope and the Firefox Profiler: both viewers read the files themselves, and have
//! the sums that collapsed stacks have, thread by thread.

use std::collections::BTreeMap;

use otlpprof_otlp::wire::ProfilesData;
use otlpprof_testkit::exported::{Functions, Stacks, collapsed, functions, viewer};
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::otlp_fixture::{BUILD_ID, DURATION, TIME, valid};
use otlpprof_testkit::profile_files::{CPU, Files, Spec, distinct_frames, message, three_states};
use serde_json::{Value, json};

/// Characters that collapsed stacks replace, as collapsed stacks have them.
fn as_collapsed(name: &str) -> String {
    name.replace(';', ":").replace(|letter: char| letter.is_control(), " ")
}

/// The name of a thread, as collapsed stacks have it: they do not tell threads without a name apart.
fn thread_as_collapsed(name: &str) -> String {
    let is_id = name.strip_prefix("thread ").is_some_and(|id| id.parse::<u64>().is_ok());
    if is_id || name == "samples without a thread" { "[no_thread]".to_owned() } else { as_collapsed(name) }
}

/// The stacks of each thread, as collapsed stacks have them.
fn expected(files: &Files, file: &str, measure: &str) -> BTreeMap<String, Stacks> {
    expected_with(files, file, &["--type", measure])
}

/// As [`expected`], with other options.
fn expected_with(files: &Files, file: &str, options: &[&str]) -> BTreeMap<String, Stacks> {
    let (out, _) = files.export(&[file], "collapsed", &[&["--threads"], options].concat());
    let mut threads: BTreeMap<String, Stacks> = BTreeMap::new();
    for (mut stack, value) in collapsed(&out) {
        let thread = stack.remove(0);
        threads.entry(thread).or_default().insert(stack, value);
    }
    threads
}

/// The stacks of each thread, of the profiles of a measure, as speedscope has read them.
fn in_speedscope(read: &Value, measure: &str) -> BTreeMap<String, Stacks> {
    let mut threads: BTreeMap<String, Stacks> = BTreeMap::new();
    for profile in read["profiles"].as_array().unwrap() {
        let name = profile["name"].as_str().unwrap();
        let Some(thread) = name.strip_prefix(&format!("{measure}: ")) else { continue };
        let stacks = threads.entry(thread_as_collapsed(thread)).or_default();
        for row in profile["stacks"].as_array().unwrap() {
            let names = row[0].as_array().unwrap().iter();
            let stack = names.map(|name| as_collapsed(name.as_str().unwrap())).collect();
            *stacks.entry(stack).or_default() += row[1].as_f64().unwrap() as i64;
        }
    }
    threads
}

/// Self and total of each function of each thread, in units of which `scale` are one of the profiler's, as
/// the Firefox Profiler has read them.
fn in_firefox(read: &Value, scale: f64) -> BTreeMap<String, Functions> {
    let mut threads: BTreeMap<String, Functions> = BTreeMap::new();
    for thread in read["threads"].as_array().unwrap() {
        let functions = threads.entry(thread_as_collapsed(thread["name"].as_str().unwrap())).or_default();
        for row in thread["functions"].as_array().unwrap() {
            let value = |at: usize| (row[at].as_f64().unwrap() * scale).round() as i64;
            let sums = functions.entry(as_collapsed(row[0].as_str().unwrap())).or_default();
            *sums = (sums.0 + value(1), sums.1 + value(2));
        }
    }
    threads
}

/// Two intervals of two threads, without times of samples.
fn untimed() -> [ProfilesData; 2] {
    let of = |period, start, samples| message("1", &[Spec { types: CPU, period, start, samples }]);
    [
        of(10_000_000, TIME, &[(&["Db.query", "Shop.cart"], "main", 3), (&["Shop.cart"], "b", 1)]),
        of(25_000_000, TIME + DURATION, &[(&["Db.query", "Shop.cart", "Db.query"], "main", 2)]),
    ]
}

#[test]
#[ignore = "long: viewers of other projects are fetched, in a browser"]
fn speedscope_reads_every_thread_and_type() {
    let files = Files::new();
    let file = files.add("app.otlp", &[valid(), untimed()[0].clone()]);
    let (out, line) = files.export(&[&file], "speedscope", &[]);
    assert!(
        line.contains("has cpu in nanoseconds, wall in nanoseconds; left out: labels but threads"),
        "{line}"
    );
    let Some(read) = viewer("speedscope.mjs", &[out.to_str().unwrap()]) else { return };
    assert_eq!(read["dialogs"].as_array().unwrap().len(), 0, "{read}");
    assert!(read["title"].as_str().unwrap().contains("fixture, shop"), "{read}");
    for measure in ["cpu", "wall"] {
        let with_process = in_speedscope(&read, measure);
        let mut threads: BTreeMap<String, Stacks> = BTreeMap::new();
        for (name, stacks) in with_process {
            // Two processes: the name says which.
            let name = name.split_once(" (pid ").unwrap().0.to_owned();
            for (stack, value) in stacks {
                *threads.entry(name.clone()).or_default().entry(stack).or_default() += value;
            }
        }
        assert_eq!(threads, expected(&files, &file, measure), "{measure}");
    }
    for profile in read["profiles"].as_array().unwrap() {
        assert_eq!(profile["unit"], "nanoseconds");
    }
}

#[test]
#[ignore = "long: viewers of other projects are fetched, in a browser"]
fn speedscope_reads_stacks_without_a_common_frame() {
    let files = Files::new();
    let file = files.add("distinct.otlp", &[distinct_frames()]);
    let (out, _) = files.export(&[&file], "speedscope", &[]);
    let Some(mut read) = viewer("speedscope.mjs", &[out.to_str().unwrap()]) else { return };
    for profile in read["profiles"].as_array_mut().unwrap() {
        profile["name"] = format!("cpu: {}", profile["name"].as_str().unwrap()).into();
    }
    assert_eq!(in_speedscope(&read, "cpu"), expected(&files, &file, "cpu"));
}

/// Viewers take long to read a file that repeats its frames.
#[test]
fn no_table_of_a_file_repeats_an_entry() {
    let files = Files::new();
    let [first, second] = untimed();
    let all = [first, second, distinct_frames(), distinct_frames()];
    let file = files.add("all.otlp", &all);
    let written = |format: &str| -> Value {
        let (out, _) = files.export(&[&file], format, &["--lines"]);
        serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap()
    };
    let assert_distinct = |what: &str, entries: Vec<String>| {
        let distinct: std::collections::BTreeSet<_> = entries.iter().collect();
        assert_eq!(distinct.len(), entries.len(), "{what}: {entries:?}");
    };
    let speedscope = written("speedscope");
    let frames = speedscope["shared"]["frames"].as_array().unwrap();
    assert!(frames.len() > 8_000, "{}", frames.len());
    assert_distinct("frames", frames.iter().map(Value::to_string).collect());
    for thread in written("firefox")["threads"].as_array().unwrap() {
        for (table, columns) in [
            ("funcTable", &["name", "fileName", "resource"][..]),
            ("frameTable", &["func", "line", "address"]),
            ("stackTable", &["frame", "prefix"]),
        ] {
            let entry = |at: u64| {
                let cells = columns.iter().map(|column| thread[table][column][at as usize].to_string());
                cells.collect::<Vec<_>>().join(" ")
            };
            let length = thread[table]["length"].as_u64().unwrap();
            assert!(length > 0, "{table}");
            assert_distinct(table, (0..length).map(entry).collect());
        }
    }
}

#[test]
#[ignore = "long: viewers of other projects are fetched, in a browser"]
fn the_firefox_profiler_reads_every_thread() {
    let files = Files::new();
    for (name, messages, options, scale, spread) in [
        ("untimed.otlp", &untimed()[..], &["--type", "cpu"][..], 1e6, true),
        ("timed.otlp", &[valid()], &["--type", "wall"], 1e6, false),
        ("counted.otlp", &untimed(), &["--count"], 1.0, true),
        ("distinct.otlp", &[distinct_frames()], &[], 1e6, true),
    ] {
        let file = files.add(name, messages);
        let (out, line) = files.export(&[&file], "firefox", options);
        assert_eq!(line.contains("spread evenly"), spread, "{line}");
        let Some(read) = viewer("firefox.mjs", &[out.to_str().unwrap()]) else { return };
        let expected = expected_with(&files, &file, options);
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(thread, stacks)| (thread.clone(), functions(stacks))).collect();
        assert_eq!(in_firefox(&read, scale), expected, "{options:?}");
    }
}

#[test]
#[ignore = "long: viewers of other projects are fetched, in a browser"]
fn both_viewers_have_the_last_state_of_each_process() {
    let files = Files::new();
    let file = files.add("states.otlp", &three_states());
    let read = |format: &str| {
        let (out, _) = files.export(&[&file], format, &[]);
        viewer(&format!("{format}.mjs"), &[out.to_str().unwrap()])
    };
    let (Some(speedscope), Some(firefox)) = (read("speedscope"), read("firefox")) else { return };
    let profiles = speedscope["profiles"].as_array().unwrap().iter();
    let stacks = profiles.flat_map(|profile| profile["stacks"].as_array().unwrap());
    assert_eq!(stacks.map(|row| row[1].as_f64().unwrap()).sum::<f64>(), 9216.0, "{speedscope}");
    let threads = in_firefox(&firefox, 1.0);
    let own = threads.values().flat_map(|functions| functions.values()).map(|&(own, _)| own);
    assert_eq!(own.sum::<i64>(), 1024 + 8192, "{threads:?}");
}

/// Each type is a process. Native frames name their library, which the file identifies by its build-id.
#[test]
#[ignore = "long: viewers of other projects are fetched, in a browser"]
fn the_firefox_profiler_has_all_types_and_the_libraries() {
    let files = Files::new();
    let file = files.add("types.otlp", &[valid()]);
    let (out, line) = files.export(&[&file], "firefox", &[]);
    assert!(
        line.contains("has cpu in nanoseconds, wall in nanoseconds; left out: labels but threads"),
        "{line}"
    );
    let written: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let library = &written["libs"][0];
    assert_eq!((&library["path"], &library["codeId"]), (&json!("/opt/app/libburn.so"), &json!(BUILD_ID)));
    assert_eq!(library["breakpadId"], "67452301AB89EFCD0123456789ABCDEF0");
    let Some(read) = viewer("firefox.mjs", &[out.to_str().unwrap()]) else { return };
    for measure in ["cpu", "wall"] {
        let threads = read["threads"].as_array().unwrap().iter();
        let threads: Vec<_> = threads.filter(|thread| thread["pid"] == format!("7 {measure}")).collect();
        let expected = expected(&files, &file, measure);
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(thread, stacks)| (thread.clone(), functions(stacks))).collect();
        assert_eq!(in_firefox(&json!({ "threads": threads }), 1e6), expected, "{measure}: {read}");
        let functions = threads.iter().flat_map(|thread| thread["functions"].as_array().unwrap());
        let of_native: Vec<_> =
            functions.filter(|row| row[0].as_str().unwrap().contains("<remote>")).collect();
        assert!(!of_native.is_empty() && of_native.iter().all(|row| row[3] == "libburn.so"), "{read}");
    }
}

#[test]
#[ignore = "long: viewers of other projects are fetched, in a browser"]
fn names_are_text_in_both_viewers() {
    let files = Files::new();
    let names = ["<script>alert(1)</script>", "a;b\nc\u{1b}[31m", "\"quoted\\\"", "größe.λ日本\u{202e}"];
    let samples = [(&names[..], "t;\n<b>", 4)];
    let spec = Spec { types: CPU, period: 1_000_000, start: TIME, samples: &samples };
    let file = files.add("names.otlp", &[message("1", &[spec])]);
    let (out, _) = files.export(&[&file], "speedscope", &[]);
    let Some(read) = viewer("speedscope.mjs", &[out.to_str().unwrap()]) else { return };
    let profile = &read["profiles"][0];
    assert_eq!(read["dialogs"].as_array().unwrap().len(), 0);
    assert_eq!(profile["name"], "t;\n<b>");
    let root_first: Vec<_> = names.iter().rev().collect();
    assert_eq!(profile["stacks"], serde_json::json!([[root_first, 4_000_000]]));
    let (out, _) = files.export(&[&file], "firefox", &[]);
    let Some(read) = viewer("firefox.mjs", &[out.to_str().unwrap()]) else { return };
    let mut found: Vec<_> = read["threads"][0]["functions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row[0].as_str().unwrap())
        .collect();
    found.sort_unstable();
    let mut wanted = names;
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

#[test]
#[ignore = "long: viewers of other projects are fetched, in a browser"]
fn exports_of_a_real_jvm_are_read_by_both_viewers() {
    let home = newest_or_all().into_iter().next_back().unwrap();
    let run = JavaRun::new(&home, "MixedWork")
        .argument(2)
        .agent("cpu,wall,alloc=64k,lock,interval=1s,file=FILE")
        .run()
        .expect_success();
    let files = Files::new();
    for file in run.files() {
        let file = file.to_str().unwrap();
        let (out, _) = files.export(&[file], "speedscope", &[]);
        let Some(read) = viewer("speedscope.mjs", &[out.to_str().unwrap()]) else { return };
        for measure in ["cpu", "wall", "alloc-space", "lock-time"] {
            assert_eq!(in_speedscope(&read, measure), expected(&files, file, measure), "{measure}");
        }
        for (measure, scale) in [("cpu", 1e6), ("alloc-space", 1.0)] {
            let (out, _) = files.export(&[file], "firefox", &["--type", measure]);
            let Some(read) = viewer("firefox.mjs", &[out.to_str().unwrap()]) else { return };
            let expected = expected(&files, file, measure);
            let expected: BTreeMap<_, _> =
                expected.iter().map(|(thread, stacks)| (thread.clone(), functions(stacks))).collect();
            assert_eq!(in_firefox(&read, scale), expected, "{measure}");
        }
    }
}
