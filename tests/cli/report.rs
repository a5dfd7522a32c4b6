//! `otlpprof report`, as a user runs it.

use otlpprof_testkit::otlp_fixture::{BUILD_ID, DURATION, Dictionary, TIME, inline, valid};
use otlpprof_testkit::pages::header;
use otlpprof_testkit::profile_files::{CPU, Files, LIVE_SPACE, Spec, assert_quiet, message, rows, shop};
use otlpprof_testkit::this_build;
use serde_json::Value;

fn otlpprof(arguments: &[&str]) -> assert_cmd::assert::Assert {
    assert_cmd::Command::new(this_build::command()).arg("report").args(arguments).assert()
}

fn stdout(arguments: &[&str]) -> String {
    let output = otlpprof(arguments).success().get_output().clone();
    assert_quiet(&String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn error_of(arguments: &[&str]) -> String {
    let output = otlpprof(arguments).code(2).get_output().clone();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "nothing on stdout");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn functions_have_their_self_and_total_time_and_the_other_types_are_named() {
    let files = Files::new();
    let file = files.add("app.otlp", &[valid()]);
    let text = stdout(&[&file]);
    assert_eq!(
        text,
        format!(
            "cpu of fixture: 420 ms in 10.0 s, from 2023-11-14T22:13:20Z\n\
             your code 28.6 %, native 71.4 %\n\
             process 7; 0.04 cores on average\n\
             also in the files (--type): wall\n\
             \n              \
             SELF               TOTAL  CODE    FUNCTION\n    \
             300 ms  71.4 %      300 ms  71.4 %  native  {BUILD_ID}.<remote>(0x1234)\n    \
             120 ms  28.6 %      420 ms 100.0 %  Java    com.example.Burn.spin (Burn.java)\n      \
             0 ns   0.0 %      300 ms  71.4 %  Java    java.lang.Thread.run (Thread.java)\n      \
             0 ns   0.0 %      120 ms  28.6 %  Java    com.example.Burn.main (Burn.java)\n"
        )
    );
    let by_total = stdout(&[&file, "--sort", "total", "--top", "1"]);
    assert!(by_total.ends_with("com.example.Burn.spin (Burn.java)\nand 3 more; --top 4 shows them\n"));
    let lines = stdout(&[&file, "--lines"]);
    assert!(lines.contains("com.example.Burn.spin (Burn.java:42)"), "{lines}");
}

/// Under a budget the period changes from message to message.
#[test]
fn values_count_as_many_periods_as_their_own_profile_has() {
    let files = Files::new();
    let of = |period, value| {
        let samples = [(&["A.a"][..], "main", value)];
        message("1", &[Spec { types: CPU, period, start: TIME, samples: &samples }])
    };
    let file = files.add("app.otlp", &[of(10_000_000, 3), of(40_000_000, 2)]);
    assert!(stdout(&[&file]).starts_with("cpu of shop: 110 ms in "), "{}", stdout(&[&file]));
}

/// Regression: the VM's own code was shown as native code. The attribute survives a merge, and has a category
/// in the Firefox Profiler.
#[test]
fn stubs_are_told_apart_from_native_code() {
    let files = Files::new();
    let samples = [(&["itable stub", "malloc", "A.a"][..], "main", 4)];
    let mut data = message("1", &[Spec { types: CPU, period: 1_000_000, start: TIME, samples: &samples }]);
    let mut tables = Dictionary(data.dictionary.take().unwrap());
    let native = tables.text("profile.frame.type", "native");
    let stub = tables.text("otlpprof.frame.kind", "stub");
    for (name, attribute_indices) in [("itable stub", vec![native, stub]), ("malloc", vec![native])] {
        let function = tables.function(name, &format!("{name}.java"));
        let mut locations = tables.0.location_table.iter_mut();
        let location = locations
            .find(|location| location.lines.first().is_some_and(|line| line.function_index == function));
        location.unwrap().attribute_indices = attribute_indices;
    }
    data.dictionary = Some(tables.0);
    let file = files.add("app.otlp", &[data.clone(), data]);
    let (merged, firefox) = (files.path("merged.otlp"), files.path("firefox.json"));
    otlpprof_testkit::commands::run_otlpprof(&["merge", &file, "-o", &merged]).success();
    for file in [&file, &merged] {
        let text = stdout(&[file]);
        let mut kinds: Vec<_> = rows(&text).into_iter().map(|row| [row[8], row[9]]).collect();
        kinds.sort_unstable();
        assert_eq!(kinds, [["Java", "A.a"], ["native", "malloc"], ["stub", "itable"]], "{text}");
        otlpprof_testkit::commands::run_otlpprof(&["export", "--to", "firefox", file, "-o", &firefox])
            .success();
        let exported: Value = serde_json::from_slice(&std::fs::read(&firefox).unwrap()).unwrap();
        let category = |name: &str| {
            let strings = exported["threads"][0]["stringArray"].as_array().unwrap();
            let string = strings.iter().position(|text| text == name).unwrap();
            let of_thread = |table: &str, column: &str| exported["threads"][0][table][column].clone();
            let position = |column: Value, value: usize| {
                column.as_array().unwrap().iter().position(|entry| *entry == value).unwrap()
            };
            let function = position(of_thread("funcTable", "name"), string);
            let frame = position(of_thread("frameTable", "func"), function);
            let category = of_thread("frameTable", "category")[frame].as_u64().unwrap() as usize;
            exported["meta"]["categories"][category]["name"].as_str().unwrap().to_owned()
        };
        assert_eq!(["itable stub", "malloc", "A.a"].map(category), ["VM stub", "Native", "Java"]);
    }
}

/// Regression: functions in Python, Go and other languages were called Java.
#[test]
fn functions_in_other_languages_are_called_by_their_language() {
    let files = Files::new();
    let samples = [(&["handle", "goexit", "A.a"][..], "main", 4)];
    let mut data = message("1", &[Spec { types: CPU, period: 1_000_000, start: TIME, samples: &samples }]);
    let mut tables = Dictionary(data.dictionary.take().unwrap());
    for (name, language) in [("handle", "cpython"), ("goexit", "go")] {
        let attribute = tables.text("profile.frame.type", language);
        let function = tables.function(name, &format!("{name}.java"));
        let mut locations = tables.0.location_table.iter_mut();
        let location = locations
            .find(|location| location.lines.first().is_some_and(|line| line.function_index == function));
        location.unwrap().attribute_indices = vec![attribute];
    }
    data.dictionary = Some(tables.0);
    let file = files.add("app.otlp", &[data]);
    let text = stdout(&[&file]);
    let mut kinds: Vec<_> = rows(&text).into_iter().map(|row| [row[8], row[9]]).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, [["Go", "goexit"], ["Java", "A.a"], ["Python", "handle"]], "{text}");
}

/// The time in the first line is the time of the profiles in the window, as far as they can have samples
/// there.
#[test]
fn the_profiled_time_is_that_of_the_window() {
    let files = Files::new();
    let of = |process, start| {
        let samples = [(&["A.a"][..], "main", 1)];
        message(process, &[Spec { types: CPU, period: 10_000_000, start, samples: &samples }])
    };
    let later = TIME + DURATION;
    // A profile may be in several messages.
    let file = files.add("app.otlp", &[of("1", TIME), of("1", later), of("1", later), of("2", later)]);
    let [middle, end] = ["2023-11-14T22:13:25Z", "2023-11-14T22:13:35Z"];
    for (options, shown) in [
        (&[][..], "40.0 ms in 30.0 s"),
        // Samples without a time have the start of their profile.
        (&["--to", middle], "10.0 ms in 10.0 s"),
        (&["--from", middle, "--to", end], "30.0 ms in 25.0 s"),
        (&["--from", middle], "30.0 ms in 25.0 s"),
        (&["--from", end], "0 ns in 10.0 s"),
    ] {
        let text = stdout(&[&[&*file], options].concat());
        assert!(text.starts_with(&format!("cpu of shop: {shown}, ")), "{options:?}: {text}");
    }
}

#[test]
fn states_are_not_added_up_the_last_one_of_each_process_counts() {
    let files = Files::new();
    let of = |process: &str, start, value| {
        let samples = [(&["A.a"][..], "main", value)];
        message(process, &[Spec { types: LIVE_SPACE, period: 512, start, samples: &samples }])
    };
    let second = 1_000_000_000;
    let messages = [
        of("1", TIME, 4096),
        of("1", TIME + 10 * second, 1024),
        // Messages need not be in order, and one state may be in several messages.
        of("1", TIME + 5 * second, 65_536),
        of("1", TIME + 10 * second, 2048),
        of("2", TIME, 8192),
    ];
    let file = files.add("app.otlp", &messages);
    assert!(stdout(&[&file]).starts_with("live-space of shop: 11.0 KiB in "), "{}", stdout(&[&file]));
    let at = |time: &str| stdout(&[&file, "--at", time]);
    let first = at("2023-11-14T22:13:20Z");
    assert!(first.starts_with("live-space of shop: 12.0 KiB in "), "{first}");
    let second = at("2023-11-14T23:13:26+01:00");
    assert!(second.starts_with("live-space of shop: 72.0 KiB in "), "{second}");
}

#[test]
fn a_recursive_function_counts_once_in_total() {
    let files = Files::new();
    let samples = [(&["A.fib", "A.fib", "A.fib", "A.main"][..], "main", 5), (&["A.main"], "main", 1)];
    let file = files.add(
        "app.otlp",
        &[message("1", &[Spec { types: CPU, period: 1_000_000, start: TIME, samples: &samples }])],
    );
    let text = stdout(&[&file]);
    let rows = rows(&text);
    assert_eq!(rows[0].join(" "), "5.00 ms 83.3 % 5.00 ms 83.3 % Java A.fib (A.java)");
    assert_eq!(rows[1].join(" "), "1.00 ms 16.7 % 6.00 ms 100.0 % Java A.main (A.java)");
}

#[test]
fn samples_are_selected_by_every_condition_at_once() {
    let files = Files::new();
    let file = files.add("app.otlp", &shop());
    let total = |options: &[&str]| {
        let text = stdout(&[&[&*file], options].concat());
        let total = text.lines().next().unwrap().split(": ").nth(1).unwrap();
        total.split(" in ").next().unwrap().to_owned()
    };
    for (options, expected) in [
        (&[][..], "70.0 ms"),
        (&["--thread", "http-2"], "60.0 ms"),
        (&["--where", "thread.name=http-1"], "10.0 ms"),
        (&["--where", "process.pid=1"], "70.0 ms"),
        (&["--where", "service.name=shop", "--thread", "http-1"], "10.0 ms"),
        (&["--frame", "^Db"], "50.0 ms"),
        (&["--frame", "^Db", "--frame", "cart"], "10.0 ms"),
        (&["--frame", "^Db", "--without", "cart"], "40.0 ms"),
        (&["--from", "2023-11-14T22:13:30Z"], "40.0 ms"),
        (&["--to", "2023-11-14T22:13:30Z"], "30.0 ms"),
        (&["--from=-10s"], "40.0 ms"),
        (&["--from=-10s", "--thread", "http-1"], "0 ns"),
        (&["--trace", "00112233445566778899aabbccddeeff"], "0 ns"),
    ] {
        assert_eq!(total(options), expected, "{options:?}");
    }
    let file = files.add("valid.otlp", &[valid()]);
    let trace = "aa".repeat(16);
    assert!(stdout(&[&file, "--trace", &trace]).starts_with("cpu of fixture: 300 ms"));
    // Samples with times of their own.
    let text = stdout(&[&file, "--type", "wall", "--from", "2023-11-14T22:13:21Z"]);
    assert!(text.starts_with("wall of fixture: 50.0 ms"), "{text}");
}

#[test]
fn samples_are_grouped_by_thread_and_by_attribute() {
    let files = Files::new();
    let [first, mut second] = shop();
    second.resource_profiles[0].resource.as_mut().unwrap().attributes.push(inline("tenant", "acme"));
    let file = files.add("app.otlp", &[first, second]);
    let text = stdout(&[&file, "--by", "thread", "--top", "1"]);
    let groups: Vec<_> = text.lines().filter(|line| line.starts_with("thread.name")).collect();
    assert_eq!(groups, ["thread.name = http-2: 60.0 ms, 85.7 %", "thread.name = http-1: 10.0 ms, 14.3 %"]);
    let text = stdout(&[&file, "--by", "tenant", "--thread", "http-1"]);
    assert!(text.contains("tenant = (none): 10.0 ms, 100.0 %"), "{text}");
}

/// Samples of two processes may have equal labels, in one message too.
#[test]
fn samples_are_grouped_by_attributes_of_their_profile_and_resource() {
    let files = Files::new();
    let samples = [(&["A.a"][..], "main", 3)];
    let specs = [Spec { types: CPU, period: 1_000_000, start: TIME, samples: &samples }];
    let mut both = message("1", &specs);
    both.resource_profiles.extend(message("2", &specs).resource_profiles);
    // The attribute of the second process's sample is its profile's now.
    let profile = &mut both.resource_profiles[1].scope_profiles[0].profiles[0];
    profile.attribute_indices = std::mem::take(&mut profile.samples[0].attribute_indices);
    let file = files.add("app.otlp", &[both, message("2", &specs)]);
    let groups = |key: &str| {
        let text = stdout(&[&*file, "--by", key]);
        text.lines().filter(|line| line.contains(" = ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(groups("process"), ["process.pid = 2: 6.00 ms, 66.7 %", "process.pid = 1: 3.00 ms, 33.3 %"]);
    assert_eq!(groups("thread"), ["thread.name = main: 9.00 ms, 100.0 %"]);
    assert_eq!(groups("service.name"), ["service.name = shop: 9.00 ms, 100.0 %"]);
}

#[test]
fn the_tree_has_callers_above_callees_and_folds_small_shares() {
    let files = Files::new();
    let file = files.add("app.otlp", &shop());
    let calls = |options: &[&str]| {
        let text = stdout(&[&[&*file, "--tree"], options].concat());
        let lines = text.lines().skip_while(|line| !line.ends_with("CALLS")).skip(1);
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(
        calls(&[]),
        [
            "70.0 ms 100.0 % 0 ns Server.run (Server.java)",
            "40.0 ms 57.1 % 0 ns │ Shop.pay (Shop.java)",
            "40.0 ms 57.1 % 40.0 ms │ │ Db.query (Db.java)",
            "30.0 ms 42.9 % 0 ns │ Shop.cart (Shop.java)",
            "20.0 ms 28.6 % 20.0 ms │ │ Json.write (Json.java)",
            "10.0 ms 14.3 % 10.0 ms │ │ Db.query (Db.java)",
        ]
    );
    let some = calls(&["--least", "30"]);
    assert_eq!((some.len(), &*some[4]), (5, "2 calls below 30 % folded: --least 0 shows all"));
}

#[test]
fn callers_and_callees_of_a_function_are_shown() {
    let files = Files::new();
    let file = files.add("app.otlp", &shop());
    let text = stdout(&[&file, "--peek", "cart$"]);
    let lines: Vec<_> = text.lines().skip(4).map(|line| line.trim_start()).collect();
    assert_eq!(
        lines,
        [
            "30.0 ms 100.0 %    called by Server.run (Server.java)",
            "30.0 ms  42.9 %  Shop.cart (Shop.java) (self 0 ns)",
            "20.0 ms  66.7 %    calls Json.write (Json.java)",
            "10.0 ms  33.3 %    calls Db.query (Db.java)",
        ]
    );
    assert!(stdout(&[&file, "--peek", "nothing"]).ends_with("no function matches nothing\n"));
}

#[test]
fn a_comparison_shows_the_greatest_changes_of_shares_first() {
    let files = Files::new();
    let of = |values: [i64; 2]| {
        let samples =
            [(&["A.slow", "A.main"][..], "main", values[0]), (&["A.same", "A.main"], "main", values[1])];
        message("1", &[Spec { types: CPU, period: 1_000_000, start: TIME, samples: &samples }])
    };
    let (base, new) = (files.add("base.otlp", &[of([10, 90])]), files.add("new.otlp", &[of([110, 90])]));
    let text = stdout(&[&new, "--diff", &base]);
    assert!(text.starts_with("cpu\nbase 100 ms, new 200 ms\n"), "{text}");
    let rows: Vec<_> = rows(&text).into_iter().map(|words| words.join(" ")).collect();
    assert_eq!(
        rows,
        [
            "+100 ms +45.0 points +100 ms +45.0 points A.slow (A.java)",
            // The value is the same; its share is not.
            "0 ns -45.0 points 0 ns -45.0 points A.same (A.java)",
            "0 ns 0.0 points +100 ms 0.0 points A.main (A.java)",
        ]
    );
}

#[test]
fn a_mistake_is_one_line_that_says_what_there_is() {
    let files = Files::new();
    let file = files.add("app.otlp", &shop());
    assert_eq!(error_of(&[&file, "--type", "alloc"]), "otlpprof: --type alloc: the files have cpu\n");
    let message = "otlpprof: --at: this kind of profile is no state at a time; use --from and --to\n";
    assert_eq!(error_of(&[&file, "--at=-1s"]), message);
    // Regression: an empty table said nothing about the reason.
    let nobody = ["--thread", "http-1", "--frame", "nothing"];
    let nobody = otlpprof(&[&[&*file][..], &nobody].concat()).success().get_output().clone();
    let message = String::from_utf8(nobody.stderr).unwrap();
    assert!(message.starts_with("otlpprof: no sample is selected of the "), "{message}");
    let message = error_of(&[&file, "--at=-1s", "--to", "-2s"]);
    assert!(message.contains("cannot be used with"), "{message}");
    let empty = files.add("empty.otlp", &[]);
    assert!(error_of(&[&empty]).contains("no message in its 0 bytes"));
}

/// Regression: the heading named all processes and services of the files, and divided the CPU time of the
/// selected ones by the time of all.
#[test]
fn the_heading_is_about_the_processes_that_the_selection_leaves() {
    let files = Files::new();
    let of = |process, service: &str, start, stack: &[&str], thread, value| {
        let samples = [(stack, thread, value)];
        let mut data = message(process, &[Spec { types: CPU, period: 1_000_000, start, samples: &samples }]);
        let resource = data.resource_profiles[0].resource.as_mut().unwrap();
        resource.attributes[0] = inline("service.name", service);
        data
    };
    let shop = of("1", "shop", TIME, &["Shop.cart"], "http-1", 1_000);
    let mail = of("2", "mail", TIME + DURATION, &["Mail.send"], "sender", 2_000);
    let mut idle = of("3", "idle", TIME + DURATION, &["Idle.run"], "main", 1);
    idle.resource_profiles[0].scope_profiles[0].profiles[0].samples.clear();
    let (file, page) = (files.add("app.otlp", &[shop, mail, idle]), files.path("page.html"));
    let all = (&["idle", "mail", "shop"][..], &["1", "2", "3"][..], "3.00 s", "30.0 s", "20Z", "0.10");
    let of_mail = (&["mail"][..], &["2"][..], "2.00 s", "10.0 s", "30Z", "0.20");
    let later = (&["idle", "mail"][..], &["2", "3"][..], "2.00 s", "20.0 s", "30Z", "0.10");
    for (options, (services, pids, sum, during, second, cores)) in [
        (&[][..], all),
        (&["--where", "process.pid=2"], of_mail),
        (&["--where", "service.name=mail"], of_mail),
        (&["--thread", "sender"], of_mail),
        (&["--frame", "Mail"], of_mail),
        // A window has the processes that do nothing in it.
        (&["--from", "2023-11-14T22:13:30Z"], later),
    ] {
        let (start, cores) = (format!("2023-11-14T22:13:{second}"), format!("{cores} cores on average"));
        let plural = if pids.len() == 1 { "" } else { "es" };
        let (services, processes) = (services.join(", "), format!("process{plural} {}", pids.join(", ")));
        let lines = stdout(&[&[&*file], options].concat());
        let lines: Vec<_> = lines.lines().take_while(|line| !line.is_empty()).collect();
        assert_eq!(lines[0], format!("cpu of {services}: {sum} in {during}, from {start}"), "{options:?}");
        assert_eq!(*lines.last().unwrap(), format!("{processes}; {cores}"), "{options:?}");
        let json: Value = serde_json::from_str(&stdout(&[&[&*file, "--json"], options].concat())).unwrap();
        let found: Vec<_> = json["processes"].as_array().unwrap().iter().map(|of| &of["pid"]).collect();
        assert_eq!(found, pids, "{options:?}");
        otlpprof_testkit::commands::run_otlpprof(&[&["flamegraph", &file, "-o", &page], options].concat())
            .success();
        let about = &header(&page)["about"];
        assert_eq!(about, &format!("{processes}; {during} from {start}; {cores}"), "{options:?}");
    }
}

/// Text of a profile cannot control the terminal.
#[test]
fn names_are_escaped_on_the_terminal() {
    let files = Files::new();
    let samples = [(&["A.\u{1b}[31mred"][..], "main", 5)];
    let file = files.add(
        "app.otlp",
        &[message("1", &[Spec { types: CPU, period: 1_000_000, start: TIME, samples: &samples }])],
    );
    for options in [&[][..], &["--tree"], &["--by", "thread"], &["--peek", "red"]] {
        let text = stdout(&[&[&*file], options].concat());
        assert!(!text.contains('\u{1b}') && text.contains("A.\\u{1b}[31mred"), "{options:?}: {text}");
    }
}
