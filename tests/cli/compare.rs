//! `otlpprof report --diff` and `otlpprof diff`: shares, values per second, raw values, and the contents that
//! one side lacks.

use otlpprof_otlp::wire::ProfilesData;
use otlpprof_testkit::commands::run_otlpprof;
use otlpprof_testkit::otlp_fixture::{DURATION, TIME};
use otlpprof_testkit::pages::header;
use otlpprof_testkit::profile_files::{CPU, Files, LIVE_SPACE, Spec, json, message, rows, stdout};

const MILLISECOND: i64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// CPU samples of two functions below `A.main`.
fn cpu(start: u64, period: i64, values: [i64; 2]) -> ProfilesData {
    let samples =
        [(&["A.slow", "A.main"][..], "main", values[0]), (&["A.same", "A.main"], "main", values[1])];
    message("1", &[Spec { types: CPU, period, start, samples: &samples }])
}

/// A base of ten seconds, and a new set of twenty seconds, in which `A.same` takes the same time a second.
fn sets(files: &Files) -> [String; 2] {
    let base = files.add("base.otlp", &[cpu(TIME, MILLISECOND, [10, 90])]);
    let later = TIME + 1_000 * DURATION;
    // The period changes from message to message.
    let new = [cpu(later, MILLISECOND, [100, 90]), cpu(later + DURATION, 2 * MILLISECOND, [60, 45])];
    [base, files.add("new.otlp", &new)]
}

fn lines(text: &str) -> Vec<String> {
    rows(text).into_iter().map(|words| words.join(" ")).collect()
}

#[test]
fn shares_values_per_second_and_raw_values_are_compared() {
    let files = Files::new();
    let [base, new] = sets(&files);
    let text = stdout(&["report", &new, "--diff", &base]);
    let legend = "the change from base to new: of the values, and of their shares of the totals in points of \
                  percent";
    assert!(text.starts_with(&format!("cpu\nbase 100 ms, new 400 ms\n{legend}\n\n ")), "{text}");
    assert_eq!(
        lines(&text),
        [
            "+210 ms +45.0 points +210 ms +45.0 points A.slow (A.java)",
            "+90.0 ms -45.0 points +90.0 ms -45.0 points A.same (A.java)",
            "0 ns 0.0 points +300 ms 0.0 points A.main (A.java)",
        ]
    );
    let text = stdout(&["report", &new, "--diff", &new]);
    assert_eq!(text, "cpu\nbase 400 ms, new 400 ms\nno function has changed\n");
    let text = stdout(&["report", &new, "--diff", &base, "--per-second"]);
    assert!(text.starts_with("cpu\nbase 10.0 ms/s, new 20.0 ms/s\n"), "{text}");
    assert_eq!(
        lines(&text),
        [
            "+10.0 ms/s +45.0 points +10.0 ms/s +45.0 points A.slow (A.java)",
            "0 ns/s 0.0 points +10.0 ms/s 0.0 points A.main (A.java)",
            // As much a second as before, and a smaller share.
            "0 ns/s -45.0 points 0 ns/s -45.0 points A.same (A.java)",
        ]
    );
    let text = stdout(&["report", &new, "--diff", &base, "--raw", "--sort", "total"]);
    assert!(text.starts_with("cpu\nbase 100 ms, new 400 ms\n"), "{text}");
    assert_eq!(
        lines(&text),
        [
            "0 ns 0.0 points +300 ms 0.0 points A.main (A.java)",
            "+210 ms +45.0 points +210 ms +45.0 points A.slow (A.java)",
            "+90.0 ms -45.0 points +90.0 ms -45.0 points A.same (A.java)",
        ]
    );
}

#[test]
fn json_has_the_sums_of_both_sides() {
    let files = Files::new();
    let [base, new] = sets(&files);
    let document = json(&["report", &new, "--diff", &base, "--per-second"]);
    assert_eq!((&document["type"], &document["unit"]), (&"cpu".into(), &"nanoseconds".into()));
    assert_eq!(document["comparison"], "seconds");
    let side = |total: u64, profiled_ns: u64| {
        serde_json::json!({
            "total": total, "totalOfAll": total, "profiledNano": profiled_ns, "idleLeftOut": 0,
        })
    };
    assert_eq!(document["base"], side(100_000_000, DURATION));
    assert_eq!(document["new"], side(400_000_000, 2 * DURATION));
    let slow = &document["rows"][0];
    let named = (&slow["function"], &slow["file"], &slow["code"]);
    assert_eq!(named, (&"A.slow".into(), &"A.java".into(), &"Java".into()));
    assert_eq!(slow["base"], serde_json::json!({ "self": 10_000_000, "total": 10_000_000 }));
    assert_eq!(slow["new"], serde_json::json!({ "self": 220_000_000, "total": 220_000_000 }));
    assert_eq!(document["rows"].as_array().unwrap().len(), 3);
}

/// The last state of each side counts.
#[test]
fn states_are_compared_and_not_added_up() {
    let files = Files::new();
    let state = |start: u64, value: i64| {
        let samples = [(&["A.a"][..], "main", value)];
        message("1", &[Spec { types: LIVE_SPACE, period: 512, start, samples: &samples }])
    };
    let base = [state(TIME, 4096), state(TIME + 20 * SECOND, 1024), state(TIME + 10 * SECOND, 65_536)];
    let new = [state(TIME, 65_536), state(TIME + 10 * SECOND, 1024), state(TIME + 20 * SECOND, 4096)];
    let (base, new) = (files.add("base.otlp", &base), files.add("new.otlp", &new));
    let text = stdout(&["report", &new, "--diff", &base, "--raw"]);
    assert!(text.starts_with("live-space\nbase 1.00 KiB, new 4.00 KiB\n"), "{text}");
    let text = stdout(&["report", &new, "--diff", &base, "--at", "2023-11-14T22:13:31Z"]);
    assert!(text.starts_with("live-space\nbase 64.0 KiB, new 1.00 KiB\n"), "{text}");
}

/// Regression: the window of the new side was applied to the base, which has other times.
#[test]
fn times_before_the_end_are_before_the_end_of_each_side() {
    let files = Files::new();
    let of = |start: u64| [cpu(start, MILLISECOND, [1, 2]), cpu(start + DURATION, MILLISECOND, [3, 4])];
    let base = files.add("base.otlp", &of(TIME));
    let new = files.add("new.otlp", &of(TIME + 1_000 * DURATION));
    let text = stdout(&["report", &new, "--diff", &base, "--from=-10s"]);
    assert!(text.starts_with("cpu\nbase 7.00 ms, new 7.00 ms\n"), "{text}");
    let page = files.path("diff.html");
    run_otlpprof(&["diff", &base, &new, "-o", &page, "--from=-10s"]).success();
    assert_eq!(header(&page)["rows"], serde_json::json!([4]), "two stacks of each side");
}

#[test]
fn contents_that_one_side_lacks_are_named() {
    let files = Files::new();
    let of = |types: &[[&'static str; 4]]| {
        let samples = [(&["A.a"][..], "main", 5)];
        let spec = |&types: &[&'static str; 4]| Spec { types, period: 1, start: TIME, samples: &samples };
        message("1", &types.iter().map(spec).collect::<Vec<_>>())
    };
    let base = files.add("base.otlp", &[of(&[CPU, LIVE_SPACE])]);
    let other_unit = ["samples", "count", "cpu", "ticks"];
    let mut of_new = of(&[other_unit, CPU, ["exceptions", "count", "exceptions", "count"]]);
    let dictionary = of_new.dictionary.as_mut().unwrap();
    let name = dictionary.string_table.iter_mut().find(|text| *text == "thread.name").unwrap();
    "tenant".clone_into(name);
    let new = files.add("new.otlp", &[of_new]);
    let expected = [
        "the base side has no exceptions",
        "the new side has no live-space",
        "cpu is in nanoseconds on the base side, and in nanoseconds and ticks on the new side",
        "the base side has no label tenant",
        "the new side has no label thread.name",
    ];
    let text = stdout(&["report", &new, "--diff", &base]);
    assert_eq!(text.lines().skip(2).take(5).collect::<Vec<_>>(), expected);
    assert_eq!(json(&["report", &new, "--diff", &base])["notes"], serde_json::json!(expected));
    let page = files.path("diff.html");
    let output = run_otlpprof(&["diff", &base, &new, "-o", &page]).success().get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.lines().take(5).collect::<Vec<_>>(), expected);
    assert_eq!(header(&page)["notes"], serde_json::json!(expected));
    // A type that only the base has is compared with nothing.
    let text = stdout(&["report", &new, "--diff", &base, "--type", "live-space"]);
    assert!(text.starts_with("live-space\nbase 5 B, new 0 B\n"), "{text}");
    assert_eq!(lines(&text), ["-5 B -100.0 points -5 B -100.0 points A.a (A.java)"]);
}

#[test]
fn the_page_begins_with_the_comparison_of_the_command() {
    let files = Files::new();
    let [base, new] = sets(&files);
    let page = files.path("diff.html");
    for (options, comparison) in [(&[][..], "share"), (&["--per-second"], "seconds"), (&["--raw"], "raw")] {
        run_otlpprof(&[&["diff", &base, &new, "-o", &page][..], options].concat()).success();
        let header = header(&page);
        assert_eq!(header["comparison"], comparison);
        assert_eq!(header["sideSeconds"], serde_json::json!([10.0, 20.0]));
    }
    run_otlpprof(&["flamegraph", &new, "-o", &page]).success();
    assert!(header(&page).get("comparison").is_none());
}

#[test]
fn a_comparison_that_cannot_be_made_is_refused_in_one_line() {
    let files = Files::new();
    let [base, new] = sets(&files);
    let mut without_times = cpu(TIME, MILLISECOND, [1, 2]);
    without_times.resource_profiles[0].scope_profiles[0].profiles[0].duration_nano = 0;
    let without_times = files.add("without-times.otlp", &[without_times]);
    let page = files.path("diff.html");
    let refused = "--per-second: the base side has no profiled time; compare shares, or use --raw";
    for (arguments, says) in [
        (&["report", &new, "--diff", &without_times, "--per-second"][..], refused),
        (&["diff", &without_times, &new, "--per-second", "-o", &page], refused),
        (&["report", &new, "--raw"], "--raw: there is nothing to compare with; name a file with --diff"),
    ] {
        let output = run_otlpprof(arguments).code(2).get_output().clone();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((stderr, output.stdout), (format!("otlpprof: {says}\n"), Vec::new()), "{arguments:?}");
    }
    assert!(!std::path::Path::new(&page).exists());
    for command in [&["report", &new, "--diff", &base][..], &["diff", &base, &new, "-o", &page]] {
        run_otlpprof(&[command, &["--per-second", "--raw"]].concat()).code(2);
    }
}

/// Regression: a page compared one file with one file.
#[test]
fn a_page_compares_several_files_of_each_side() {
    let files = Files::new();
    let [base, new] = sets(&files);
    let page = files.path("diff.html");
    run_otlpprof(&["diff", &new, &base, "--base", &base, "--base", &base, "-o", &page]).success();
    let header = header(&page);
    assert_eq!(
        header["sideNames"],
        serde_json::json!([format!("{base} and 1 more"), format!("{new} and 1 more")])
    );
    let output = run_otlpprof(&["diff", &new, "-o", &page]).code(2).get_output().clone();
    let says = "otlpprof: name two files, BASE and NEW; with several files a side, name those of the base by \
                --base\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), says);
}
