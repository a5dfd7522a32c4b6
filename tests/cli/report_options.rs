//! `otlpprof report`: no option is ignored, and none that has a mistake gives an empty result.

use otlpprof_testkit::commands::run_otlpprof;
use otlpprof_testkit::otlp_fixture::{Dictionary, TIME, inline};
use otlpprof_testkit::profile_files::{CPU, Files, Spec, json, message, shop, stdout};

/// The only line on standard error of a command that is refused.
fn refused(arguments: &[&str]) -> String {
    let output = run_otlpprof(arguments).code(2).get_output().clone();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    stderr.trim_end().to_owned()
}

/// Regression: `--by` was refused with `--tree` and `--peek`.
#[test]
fn trees_and_callers_are_grouped() {
    let files = Files::new();
    let file = files.add("app.otlp", &shop());
    let text = stdout(&["report", &file, "--tree", "--by", "thread"]);
    let lines: Vec<_> = text.lines().skip(4).map(|line| line.trim_start()).collect();
    assert_eq!(
        lines,
        [
            "thread.name = http-2: 60.0 ms, 85.7 %",
            "TOTAL   SHARE       SELF  CALLS",
            "60.0 ms  85.7 %       0 ns  Server.run (Server.java)",
            "40.0 ms  57.1 %       0 ns  │ Shop.pay (Shop.java)",
            "40.0 ms  57.1 %    40.0 ms  │ │ Db.query (Db.java)",
            "20.0 ms  28.6 %       0 ns  │ Shop.cart (Shop.java)",
            "20.0 ms  28.6 %    20.0 ms  │ │ Json.write (Json.java)",
            "",
            "thread.name = http-1: 10.0 ms, 14.3 %",
            "TOTAL   SHARE       SELF  CALLS",
            "10.0 ms  14.3 %       0 ns  Server.run (Server.java)",
            "10.0 ms  14.3 %       0 ns  │ Shop.cart (Shop.java)",
            "10.0 ms  14.3 %    10.0 ms  │ │ Db.query (Db.java)",
        ]
    );
    let text = stdout(&["report", &file, "--peek", "Db", "--by", "thread"]);
    assert_eq!(text.matches("Db.query (Db.java) (self").count(), 2, "{text}");
    let document = json(&["report", &file, "--tree", "--by", "thread"]);
    let groups = document["groups"].as_array().unwrap();
    let calls: Vec<_> = groups.iter().map(|group| group["calls"].as_array().unwrap().len()).collect();
    assert_eq!(calls, [5, 3]);
}

/// Regression: some commands knew `--json`, and `report` did not.
#[test]
fn json_has_one_word_in_all_commands() {
    let files = Files::new();
    let file = files.add("app.otlp", &shop());
    let store = files.path("store");
    for command in [
        &["report", &*file][..],
        &["report", &file, "--labels"],
        &["report", &file, "--diff", &file],
        &["print", &file],
        &["validate", &file],
        &["check-stacks", &file],
        &["symbols", "list", "--store", &store],
        &["symbols", "check", &file],
    ] {
        let of = |form: &[&str]| {
            let output = run_otlpprof(&[command, form].concat()).get_output().stdout.clone();
            serde_json::from_slice::<serde_json::Value>(&output).unwrap()
        };
        assert_eq!(of(&["--json"]), of(&["--format", "json"]), "{command:?}");
        let both = run_otlpprof(&[command, &["--json", "--format", "text"]].concat()).code(2);
        assert!(String::from_utf8_lossy(&both.get_output().stderr).contains("cannot be used with"));
    }
}

/// A time before the end begins with a hyphen, as an option does.
#[test]
fn times_before_the_end_may_be_words_of_their_own() {
    let files = Files::new();
    let file = files.add("app.otlp", &shop());
    let out = files.path("out");
    for command in [
        &["report", &*file][..],
        &["report", &file, "--diff", &file],
        &["flamegraph", &file, "-o", &out],
        &["diff", &file, &file, "-o", &out],
        &["export", &file, "--to", "collapsed", "-o", &out],
    ] {
        let end = if command[0] == "export" { "--until" } else { "--to" };
        run_otlpprof(&[command, &["--from", "-15s", end, "-5s"]].concat()).success();
    }
    // The end of a recording is not known beforehand.
    for option in ["--from", "--start", "--to", "--until", "--end"] {
        let output =
            run_otlpprof(&["convert", &file, "-o", &out, option, "-5m"]).code(2).get_output().clone();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("the end of a recording is not known"), "{option}: {stderr}");
    }
}

/// Regression: `--sort` and `--top` were ignored by `--peek`.
#[test]
fn functions_with_callers_are_sorted_and_bounded() {
    let files = Files::new();
    let file = files.add("app.otlp", &shop());
    let peek = |options: &[&str]| {
        let text = stdout(&[&["report", &*file, "--peek", "Shop|Json"], options].concat());
        let lines = text.lines().filter(|line| line.contains(" (self ") || line.starts_with("and "));
        let names = |line: &str| line.split_whitespace().find(|word| word.contains('.')).map(str::to_owned);
        lines
            .map(|line| names(&line[20.min(line.len())..]).unwrap_or_else(|| line.to_owned()))
            .collect::<Vec<_>>()
    };
    let by_total = ["Shop.pay", "Shop.cart", "Json.write"];
    assert_eq!(peek(&[]), by_total);
    assert_eq!(peek(&["--sort", "total"]), by_total);
    assert_eq!(peek(&["--sort", "self"]), ["Json.write", "Shop.pay", "Shop.cart"]);
    assert_eq!(peek(&["--top", "1"]), ["Shop.pay", "and 2 more; --top 3 shows them"]);
}

/// Regression: options were ignored in silence.
#[test]
fn options_without_a_use_are_refused_by_name() {
    let files = Files::new();
    let file = files.add("app.otlp", &shop());
    for (options, says) in [
        (&["--tree", "--sort", "self"][..], "--sort with --tree: calls are in the order of their totals"),
        (&["--tree", "--top", "3"], "--top with --tree: a tree is bounded by --least and --depth"),
        (&["--tree", "--peek", "Db"], "--tree and --peek: a report has one of these forms; choose one"),
        (&["--tree", "--diff", &file], "--tree and --diff: a report has one of these forms; choose one"),
        (&["--labels", "--sort", "self"], "--sort with --labels: values are in the order of their sums"),
        (
            &["--diff", &file, "--by", "thread"],
            "--by with --diff: a comparison has no groups; choose one with --where",
        ),
    ] {
        let arguments = [&["report", &*file], options].concat();
        assert_eq!(refused(&arguments), format!("otlpprof: {says}"), "{options:?}");
    }
    let out = files.path("out");
    for (format, says) in
        [("pprof", "a label"), ("speedscope", "a profile of its own"), ("firefox", "a track of its own")]
    {
        let line = refused(&["export", &file, "--threads", "--to", format, "-o", &out]);
        assert!(line.starts_with("otlpprof: --threads: ") && line.contains(says), "{line}");
    }
    assert!(!std::path::Path::new(&out).exists());
}

/// Regression: a misspelt key or value gave "0 ns" and the exit code 0.
#[test]
fn keys_and_values_that_do_not_exist_are_refused_with_those_that_do() {
    let files = Files::new();
    let file = files.add("app.otlp", &shop());
    let (out, page) = (files.path("out"), files.path("page.html"));
    let of_keys =
        "no sample has the attribute thred.name; the files have thread.name, service.name, process.pid";
    let of_values = "no sample has this value of thread.name; the files have http-1, http-2";
    for (options, says) in [
        (["--where", "thred.name=http-1"], format!("--where thred.name=http-1: {of_keys}")),
        (["--by", "thred.name"], format!("--by thred.name: {of_keys}")),
        (["--where", "thread.name=http1"], format!("--where thread.name=http1: {of_values}")),
        (["--thread", "http1"], format!("--thread http1: {of_values}")),
    ] {
        let says = format!("otlpprof: {says}");
        assert_eq!(refused(&[&["report", &*file], &options[..]].concat()), says);
        if options[0] == "--by" {
            continue;
        }
        assert_eq!(refused(&[&["report", &*file, "--diff", &file], &options[..]].concat()), says);
        assert_eq!(refused(&[&["report", &*file, "--labels"], &options[..]].concat()), says);
        assert_eq!(refused(&[&["flamegraph", &*file, "-o", &page], &options[..]].concat()), says);
        assert_eq!(refused(&[&["diff", &*file, &file, "-o", &page], &options[..]].concat()), says);
        for format in ["pprof", "collapsed", "speedscope", "firefox"] {
            let export = ["export", &*file, "--to", format, "-o", &out];
            assert_eq!(refused(&[&export, &options[..]].concat()), says);
        }
    }
    assert!(![out, page].iter().any(|file| std::path::Path::new(file).exists()));
    // Each exists, and no sample has both.
    let text = stdout(&["report", &file, "--thread", "http-1", "--from=-10s"]);
    assert!(text.starts_with("cpu: 0 ns\n"), "{text}");
}

#[test]
fn the_conditions_and_their_share_are_in_the_heading() {
    let files = Files::new();
    let file = files.add("app.otlp", &shop());
    let options = ["--thread", "http-2", "--frame", "Db", "--from", "2023-11-14T22:13:30Z"];
    let text = stdout(&[&["report", &*file], &options[..]].concat());
    let selected = "selected (thread.name=http-2, with Db, from 2023-11-14T22:13:30Z): 57.1 % of 70.0 ms";
    assert_eq!(text.lines().nth(1), Some(selected));
    let document = json(&[&["report", &*file], &options[..]].concat());
    let conditions = ["thread.name=http-2", "with Db", "from 2023-11-14T22:13:30Z"];
    assert_eq!(document["selection"], serde_json::json!(conditions));
    assert_eq!((&document["total"], &document["totalOfAll"]), (&40_000_000.into(), &70_000_000.into()));
    let document = json(&["report", &file]);
    assert_eq!(
        (&document["selection"], &document["totalOfAll"]),
        (&serde_json::json!([]), &document["total"])
    );
    // A comparison has the shares of both sides.
    let text = stdout(&["report", &file, "--diff", &file, "--thread", "http-1"]);
    assert_eq!(text.lines().nth(2), Some("selected (thread.name=http-1): 14.3 % of base, 14.3 % of new"));
    let document = json(&["report", &file, "--diff", &file, "--thread", "http-1"]);
    assert_eq!(document["selection"], serde_json::json!(["thread.name=http-1"]));
    assert_eq!(document["base"]["totalOfAll"], 70_000_000);
}

#[test]
fn labels_have_the_sums_of_their_values() {
    let files = Files::new();
    let [mut first, second] = shop();
    first.resource_profiles[0].resource.as_mut().unwrap().attributes.push(inline("host.name", "a"));
    let mut tables = Dictionary(first.dictionary.take().unwrap());
    let counter = tables.text("otlpprof.upload.sent", "5");
    let region = tables.text("region", "eu");
    first.dictionary = Some(tables.0);
    first.resource_profiles[0].scope_profiles[0].profiles[0].attribute_indices = vec![counter, region];
    let file = files.add("app.otlp", &[first, second]);
    let text = stdout(&["report", &file, "--labels"]);
    let lines: Vec<_> = text.lines().skip(3).map(str::trim_start).collect();
    assert_eq!(
        lines,
        [
            "70.0 ms 100.0 %  thread.name (of the sample)",
            "60.0 ms  85.7 %    http-2",
            "10.0 ms  14.3 %    http-1",
            "30.0 ms  42.9 %  region (of the profile)",
            "30.0 ms  42.9 %    eu",
            "30.0 ms  42.9 %  host.name (of the resource)",
            "30.0 ms  42.9 %    a",
            "70.0 ms 100.0 %  process.pid (of the resource)",
            "70.0 ms 100.0 %    1",
            "70.0 ms 100.0 %  service.name (of the resource)",
            "70.0 ms 100.0 %    shop",
            "the profiles have counters too; `otlpprof print --counters` shows them",
        ]
    );
    let text = stdout(&["report", &file, "--labels", "--top", "1", "--frame", "Db"]);
    assert!(
        text.contains("40.0 ms  80.0 %    http-2\n   10.0 ms  20.0 %    1 other value; --top 2 shows more\n"),
        "{text}"
    );
    let document = json(&["report", &file, "--labels", "--frame", "Db"]);
    let thread = serde_json::json!({
        "key": "thread.name", "of": "sample", "total": 50_000_000,
        "values": [{ "value": "http-2", "total": 40_000_000 }, { "value": "http-1", "total": 10_000_000 }],
        "others": { "count": 0, "isLeast": false, "total": 0 },
    });
    assert_eq!((&document["labels"][0], &document["totalOfAll"]), (&thread, &70_000_000.into()));
}

/// The lines of a tree.
fn tree_of(file: &str, options: &[&str]) -> Vec<String> {
    let text = stdout(&[&["report", file, "--tree"], options].concat());
    let lines = text.lines().skip_while(|line| !line.ends_with("CALLS")).skip(1);
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn an_inverted_tree_has_the_callers_below_the_functions() {
    let files = Files::new();
    let file = files.add("app.otlp", &shop());
    assert_eq!(
        tree_of(&file, &["--inverted", "--least", "15"]),
        [
            "50.0 ms 71.4 % 0 ns Db.query (Db.java)",
            "40.0 ms 57.1 % 0 ns │ Shop.pay (Shop.java)",
            "40.0 ms 57.1 % 40.0 ms │ │ Server.run (Server.java)",
            "20.0 ms 28.6 % 0 ns Json.write (Json.java)",
            "20.0 ms 28.6 % 0 ns │ Shop.cart (Shop.java)",
            "20.0 ms 28.6 % 20.0 ms │ │ Server.run (Server.java)",
            "1 call below 15 % folded: --least 0 shows all",
        ]
    );
    let document = json(&["report", &file, "--tree", "--inverted"]);
    let first = &document["calls"][0];
    assert_eq!((&first["function"], &first["total"]), (&"Db.query".into(), &50_000_000.into()));
}

/// Regression: calls that were folded were missing without a word.
#[test]
fn calls_that_are_not_shown_are_counted() {
    let files = Files::new();
    let file = files.add("app.otlp", &shop());
    let last = |options: &[&str]| tree_of(&file, options).pop().unwrap();
    assert_eq!(last(&["--least", "30"]), "2 calls below 30 % folded: --least 0 shows all");
    assert_eq!(last(&["--depth", "2"]), "3 calls in deeper levels elided: --depth 3 shows all");
    assert_eq!(last(&["--depth", "3"]), "10.0 ms 14.3 % 10.0 ms │ │ Db.query (Db.java)");
    let document = json(&["report", &file, "--tree", "--least", "30"]);
    assert_eq!((&document["folded"], &document["elided"]), (&2.into(), &0.into()));
}

/// Regression: each level of a deep stack was indented further than the one above, so that the output grew
/// with the square of the depth.
#[test]
fn deep_stacks_are_elided_and_their_output_grows_with_their_depth_alone() {
    const DEPTH: usize = 60_000;
    let files = Files::new();
    let names: Vec<_> = (0..DEPTH).map(|at| format!("A.m{}", at % 100)).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let samples = [(&names[..], "main", 5)];
    let spec = Spec { types: CPU, period: 1_000_000, start: TIME, samples: &samples };
    let file = files.add("deep.otlp", &[message("1", &[spec])]);
    for inverted in [&[][..], &["--inverted"]] {
        let lines = tree_of(&file, inverted);
        assert_eq!(lines.len(), 257);
        let last = "59,744 calls in deeper levels elided: --depth 60000 shows all";
        assert_eq!(lines.last().map(String::as_str), Some(last));
        let text = stdout(&[&["report", &file, "--tree", "--depth", "60000"], inverted].concat());
        assert!(text.len() < 400 * DEPTH, "{} bytes", text.len());
        assert!(text.contains(" 59999: A.m"), "the deepest call has its level");
    }
    let document = json(&["report", &file, "--tree"]);
    assert_eq!(document["calls"].as_array().unwrap().len(), DEPTH);
}
