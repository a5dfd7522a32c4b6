//! `otlpprof export`: collapsed stacks and pprof files are compared with the files that they were made of, as
//! OpenTelemetry's Python package reads them; pprof files are read by Go's pprof.

use std::collections::BTreeMap;
use std::path::Path;

use otlpprof_otlp::wire::{Function, Line, ProfilesData};
use otlpprof_testkit::commands::run_otlpprof;
use otlpprof_testkit::exported::{Stacks, collapsed, functions, pprof, truth};
use otlpprof_testkit::java_run::under_all_engines;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::otlp_fixture::{BUILD_ID, DURATION, TIME, valid};
use otlpprof_testkit::profile_files::{CPU, Files, Spec, distinct_frames, message, stdout, three_states};

/// Two messages with different periods.
fn two_periods() -> [ProfilesData; 2] {
    let of = |period, start, samples| message("1", &[Spec { types: CPU, period, start, samples }]);
    [
        of(10_000_000, TIME, &[(&["Db.query", "Shop.cart"], "a", 3), (&["Shop.cart"], "b", 1)]),
        of(25_000_000, TIME + DURATION, &[(&["Db.query", "Shop.cart"], "a", 2)]),
    ]
}

/// Regression: `print` added the states up, in text and in JSON.
#[test]
fn print_adds_up_no_states() {
    let files = Files::new();
    let file = files.add("states.otlp", &three_states());
    let print = |arguments: &[&str]| stdout(&[&["print", &*file], arguments].concat());
    let text = print(&["--stacks", "1"]);
    assert!(text.contains("top 1 of 1 stacks: live-space, 9.00 KiB\n"), "{text}");
    let document: serde_json::Value = serde_json::from_str(&print(&["--format", "json"])).unwrap();
    assert_eq!(document["top"][0]["amount"], 1024 + 8192);
}

fn stacks(expected: &[(&[&str], i64)]) -> Stacks {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    expected.iter().map(|&(names, value)| (owned(names), value)).collect()
}

/// The stacks with the characters that collapsed stacks cannot have replaced.
fn as_collapsed(stacks: &Stacks) -> Stacks {
    let mut replaced = Stacks::new();
    for (stack, value) in stacks {
        let stack = if stack.is_empty() { vec!["[no_stack]".to_owned()] } else { stack.clone() };
        let stack = stack.iter().map(|name| name.replace(';', ":")).collect();
        *replaced.entry(stack).or_default() += value;
    }
    replaced
}

/// The name of a measure's values in a pprof file.
fn pprof_type(measure: &str) -> &str {
    match measure {
        "alloc-space" => "alloc_space",
        "alloc-objects" => "alloc_objects",
        "live-space" | "nativeleak-space" => "inuse_space",
        "live-objects" | "nativeleak-objects" => "inuse_objects",
        "nativemem-space" => "alloc_space",
        "nativemem-objects" => "alloc_objects",
        "lock-count" => "contentions",
        "wait-count" => "waits",
        "lock-time" | "wait-time" => "delay",
        "trace-count" => "calls",
        "trace-time" => "delay",
        other => other,
    }
}

/// Exports every type of a file in both formats, and compares each with the file.
fn check(files: &Files, file: &str, label: &str) {
    let Some(types) = truth(&[file]) else { return };
    for (measure, expected) in &types {
        let label = format!("{label}, {measure}");
        let (out, _) = files.export(&[file], "collapsed", &["--type", measure]);
        assert_eq!(collapsed(&out), as_collapsed(expected), "{label}");
        let (out, line) = files.export(&[file], "pprof", &["--type", measure]);
        let Some(raw) = pprof::raw(&out) else { return };
        assert_eq!(raw.stacks(pprof_type(measure)), *expected, "{label}: {line}");
        let unit = match raw.types.last().unwrap().rsplit('/').next().unwrap() {
            "nanoseconds" => "ns",
            "bytes" => "B",
            _ => "count",
        };
        let Some((top, total)) = pprof::top(&out, unit) else { return };
        assert_eq!(total, expected.values().sum::<i64>(), "{label}");
        // Frames that are left to a symbolizer have no name in pprof.
        let named = |name: &str| !name.contains("<remote>") && !name.starts_with('[');
        let mut ours = functions(expected);
        ours.retain(|name, _| named(name));
        let theirs: BTreeMap<_, _> = top.into_iter().filter(|(name, _)| named(name)).collect();
        assert_eq!(theirs, ours, "{label}");
    }
}

#[test]
fn every_stack_has_the_sum_that_the_files_have() {
    let files = Files::new();
    let mut later = valid();
    for profile in &mut later.resource_profiles[0].scope_profiles[0].profiles {
        profile.time_unix_nano += DURATION;
        profile.period *= 3;
        for sample in &mut profile.samples {
            sample.timestamps_unix_nano.iter_mut().for_each(|time| *time += DURATION);
        }
    }
    check(&files, &files.add("valid.otlp", &[valid(), later]), "fixture");
    check(&files, &files.add("periods.otlp", &two_periods()), "periods");
    check(&files, &files.add("states.otlp", &three_states()), "states");
    check(&files, &files.add("distinct.otlp", &[distinct_frames()]), "distinct frames");
}

#[test]
fn exports_of_real_jvms_have_the_samples_of_all_engines() {
    for home in newest_or_all() {
        let run = under_all_engines(&home, 2);
        let files = Files::new();
        for file in run.files() {
            check(&files, file.to_str().unwrap(), &run.label);
        }
    }
}

/// `report`, pprof and collapsed stacks select alike.
#[test]
fn equal_filters_give_equal_sums() {
    let files = Files::new();
    let periods = files.add("periods.otlp", &two_periods());
    let states = files.add("states.otlp", &three_states());
    for (file, options, expected, shown) in [
        (&periods, &[][..], 90_000_000, "90.0 ms"),
        (&periods, &["--thread", "a"], 80_000_000, "80.0 ms"),
        (&periods, &["--where", "thread.name=b"], 10_000_000, "10.0 ms"),
        (&periods, &["--frame", "^Db"], 80_000_000, "80.0 ms"),
        (&periods, &["--without", "^Db"], 10_000_000, "10.0 ms"),
        (&periods, &["--from", "2023-11-14T22:13:30Z"], 50_000_000, "50.0 ms"),
        (&periods, &["--until=-10s"], 40_000_000, "40.0 ms"),
        (&states, &[], 1024 + 8192, "9.00 KiB"),
        (&states, &["--at", "2023-11-14T22:13:26Z"], 65_536 + 8192, "72.0 KiB"),
        (&states, &["--where", "process.pid=1"], 1024, "1.00 KiB"),
        (&periods, &["--count"], 6, "6"),
        (&periods, &["--count", "--thread", "a"], 5, "5"),
        (&states, &["--count"], 2, "2"),
    ] {
        let file = file.as_str();
        let report = stdout(&[&["report", file], options].concat());
        assert!(report.lines().next().unwrap().contains(&format!(": {shown} in ")), "{options:?}: {report}");
        let (out, _) = files.export(&[file], "collapsed", options);
        assert_eq!(collapsed(&out).values().sum::<i64>(), expected, "{options:?}");
        let (out, _) = files.export(&[file], "pprof", options);
        // The command reads its own result.
        let head = stdout(&["report", out.to_str().unwrap()]);
        assert!(head.lines().next().unwrap().contains(&format!(": {shown}")), "{options:?}: {head}");
        let Some(raw) = pprof::raw(&out) else { continue };
        assert_eq!(raw.samples.iter().map(|sample| sample.values[0]).sum::<i64>(), expected, "{options:?}");
    }
}

#[test]
fn threads_and_lines_are_frames_of_collapsed_stacks() {
    let files = Files::new();
    let file = files.add("periods.otlp", &two_periods());
    let export = |options: &[&str]| collapsed(&files.export(&[&file], "collapsed", options).0);
    assert_eq!(
        export(&["--threads"]),
        stacks(&[(&["a", "Shop.cart", "Db.query"], 80_000_000), (&["b", "Shop.cart"], 10_000_000)])
    );
    assert_eq!(
        export(&["--lines"]),
        stacks(&[(&["Shop.cart:1", "Db.query:1"], 80_000_000), (&["Shop.cart:2"], 10_000_000)])
    );
}

/// Labels, spans, times, periods, inlined calls, mappings with build-ids.
#[test]
fn a_pprof_file_has_everything_that_the_format_can_hold() {
    let files = Files::new();
    let mut data = valid();
    let tables = data.dictionary.as_mut().unwrap();
    // The location of `spin` has a second, inlined line.
    let name = i32::try_from(tables.string_table.len()).unwrap();
    tables.string_table.push("com.example.Burn.inlined".into());
    let function_index = i32::try_from(tables.function_table.len()).unwrap();
    tables.function_table.push(Function { name_strindex: name, ..Function::default() });
    let spin = tables.location_table.iter_mut().find(|location| !location.lines.is_empty()).unwrap();
    spin.lines.insert(0, Line { function_index, line: 5, column: 9 });
    let file = files.add("valid.otlp", &[data]);
    let (out, line) = files.export(&[&file], "pprof", &[]);
    let path = out.display();
    assert_eq!(line, format!("{path} has cpu in nanoseconds; left out: kinds of code, wall (--type)\n"));
    let Some(raw) = pprof::raw(&out) else { return };
    for part in [
        "PeriodType: cpu nanoseconds\n",
        "Period: 10000000\n",
        "Time: 2023-11-14 22:13:20",
        "Duration: 10s\n",
        "com.example.Burn.inlined :5:9 s=0",
        "com.example.Burn.spin Burn.java:42:0 s=0",
        &format!("1: 0x1000/0x3000/0x1000 /opt/app/libburn.so {BUILD_ID} \n"),
    ] {
        assert!(raw.text.contains(part), "{part:?} in {}", raw.text);
    }
    let remote = format!("{BUILD_ID}.<remote>(0x1234)");
    let native = raw.samples.iter().find(|sample| sample.stack.last() == Some(&remote)).unwrap();
    let (inlined, spin) = ("com.example.Burn.inlined", "com.example.Burn.spin");
    assert_eq!(native.stack, ["java.lang.Thread.run", spin, inlined, &remote]);
    let (trace, span) = ("aa".repeat(16), "bb".repeat(8));
    for label in [
        "thread.name:[worker]",
        "thread.id:[17]",
        &format!("trace_id:[{trace}]"),
        &format!("span_id:[{span}]"),
    ] {
        assert!(native.labels.contains(label), "{label}: {}", native.labels);
    }
    // Resource attributes that all processes share are comments.
    assert!(raw.text.contains("service.name=fixture"), "{}", raw.text);
    let (_, line) = files.export(&[&file], "pprof", &["--type", "wall"]);
    assert!(line.contains("times of samples"), "{line}");
}

/// Types that are measured at the same events share a file; processes that differ are labels.
#[test]
fn types_of_the_same_events_share_a_pprof_file() {
    let files = Files::new();
    let count = ["contentions", "count", "contentions", "count"];
    let time = ["delay", "nanoseconds", "contentions", "count"];
    let of = |process, first, second| {
        let (first, second) = ([(&["A.a"][..], "t", first)], [(&["A.a"][..], "t", second)]);
        let spec = |types, samples| Spec { types, period: 1, start: TIME, samples };
        message(process, &[spec(count, &first), spec(time, &second), spec(CPU, &first)])
    };
    let file = files.add("locks.otlp", &[of("1", 2, 500), of("2", 3, 700)]);
    let (out, line) = files.export(&[&file], "pprof", &["--type", "lock-time"]);
    assert!(line.contains("has lock-count in count, lock-time in nanoseconds; "), "{line}");
    let Some(raw) = pprof::raw(&out) else { return };
    assert_eq!(raw.types, ["contentions/count", "delay/nanoseconds"]);
    let mut samples: Vec<_> =
        raw.samples.iter().map(|sample| (sample.values.clone(), &*sample.labels)).collect();
    samples.sort();
    assert_eq!(samples.len(), 2);
    assert!(samples[0].0 == [2, 500] && samples[0].1.contains("process.pid:[1]"), "{samples:?}");
    assert!(samples[1].0 == [3, 700] && samples[1].1.contains("process.pid:[2]"), "{samples:?}");
}

#[test]
fn names_are_text_in_every_format() {
    let files = Files::new();
    let names = ["<script>alert(1)</script>", "a;b\nc\u{1b}[31m", "\"quoted\\\"", "größe.λ日本\u{202e}"];
    let samples = [(&names[..], "t;\n<b>", 4)];
    let spec = Spec { types: CPU, period: 1_000_000, start: TIME, samples: &samples };
    let file = files.add("names.otlp", &[message("1", &[spec])]);
    let (out, _) = files.export(&[&file], "collapsed", &["--threads"]);
    let expected =
        ["t: <b>", "größe.λ日本\u{202e}", "\"quoted\\\"", "a:b c [31m", "<script>alert(1)</script>"];
    assert_eq!(collapsed(&out), stacks(&[(&expected, 4_000_000)]));
    let (out, _) = files.export(&[&file], "pprof", &[]);
    let Some((_, total)) = pprof::top(&out, "ns") else { return };
    assert_eq!(total, 4_000_000);
    let Some(page) = pprof::web_page(&out, "/ui/flamegraph") else { return };
    assert!(page.contains("200 OK") && !page.contains("<script>alert"), "{page}");
}

#[test]
fn the_web_interface_of_pprof_shows_the_functions() {
    let files = Files::new();
    let file = files.add("periods.otlp", &two_periods());
    let (out, _) = files.export(&[&file], "pprof", &[]);
    let Some(page) = pprof::web_page(&out, "/ui/top") else { return };
    assert!(page.contains("200 OK"), "{page}");
    assert!(page.contains("Shop.cart") && page.contains("Db.query"), "{page}");
}

/// Regression: the commands replaced their own input, and `merge` lost its times; `symbolize` still did.
#[test]
fn an_output_that_is_an_input_is_refused() {
    let files = Files::new();
    let file = files.add("app.otlp", &[valid()]);
    let other = files.add("other.otlp", &[valid()]);
    let before = std::fs::read(&file).unwrap();
    let (symbolic, hard) = (files.path("symbolic"), files.path("hard"));
    std::os::unix::fs::symlink(&file, &symbolic).unwrap();
    std::fs::hard_link(&file, &hard).unwrap();
    for arguments in [
        &["export", &file, "--to", "collapsed"][..],
        &["flamegraph", &other, &file],
        &["diff", &file, &other],
        &["diff", &other, &file],
        &["diff", &other, "--base", &other, "--base", &file],
        &["merge", &file],
        &["symbolize", &other, &file],
    ] {
        for output in [&file, &symbolic, &hard] {
            let refused = run_otlpprof(&[arguments, &["-o", output]].concat()).code(2).get_output().clone();
            let message = format!("otlpprof: {output} is one of the inputs: write to another file\n");
            assert_eq!(String::from_utf8_lossy(&refused.stderr), message, "{arguments:?}");
            assert_eq!(std::fs::read(&file).unwrap(), before);
        }
    }
}

#[test]
fn a_mistake_is_one_line_and_leaves_the_old_file() {
    let files = Files::new();
    let (broken, out) = (files.path("broken.otlp"), files.path("out"));
    std::fs::write(&broken, b"no profile").unwrap();
    std::fs::write(&out, b"old").unwrap();
    let good = files.add("good.otlp", &two_periods());
    for (arguments, expected) in [
        (&["export", "--to", "pprof", &broken, "-o", &out][..], "broken.otlp: "),
        (
            &["export", "--to", "collapsed", &good, "-o", &out, "--type", "wall"],
            "--type wall: the files have cpu",
        ),
        (&["export", "--to", "svg", &good, "-o", &out], "possible values: "),
    ] {
        let output = run_otlpprof(arguments).code(2).get_output().clone();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(expected), "{error}");
        assert_eq!(std::fs::read(Path::new(&out)).unwrap(), b"old");
    }
}

/// Regression: nanoseconds that `export` had written were shown as numbers of samples.
#[test]
fn exported_stacks_are_read_back_in_their_unit() {
    let files = Files::new();
    let file = files.add("app.otlp", &[valid()]);
    let out = files.path("app.folded");
    run_otlpprof(&["export", &file, "--to", "collapsed", "-o", &out]).success();
    let head = |arguments: &[&str]| stdout(arguments).lines().next().unwrap().to_owned();
    assert!(
        head(&["report", &out]).starts_with("cpu of unknown_service: 420 ms"),
        "{}",
        head(&["report", &out])
    );
    run_otlpprof(&["export", &file, "--to", "collapsed", "--count", "-o", &out]).success();
    assert!(head(&["report", &out]).starts_with("cpu of unknown_service: 42"), "{}", head(&["report", &out]));
    std::fs::write(&out, "main;run 1500\n").unwrap();
    // Without a type and a unit of their own the stacks are as they were.
    let again = files.path("again.folded");
    run_otlpprof(&["export", &out, "--to", "collapsed", "-o", &again]).success();
    assert_eq!(std::fs::read_to_string(&again).unwrap(), "main;run 1500\n");
    assert!(head(&["report", &out]).ends_with(": 1,500"));
    assert!(head(&["report", &out, "--unit", "nanoseconds"]).ends_with(": 1.50 µs"));
    for (arguments, says) in [
        (&["report", &file, "--unit", "bytes"][..], "--unit bytes: none of the files has collapsed stacks"),
        (
            &["report", &files.path("fractions"), "--unit", "bytes"],
            "values with fractions cannot be in bytes",
        ),
    ] {
        std::fs::write(files.path("fractions"), "main;run 0.5\n").unwrap();
        let output = run_otlpprof(arguments).code(2).get_output().clone();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(says) && stderr.lines().count() == 1, "{stderr}");
    }
}
