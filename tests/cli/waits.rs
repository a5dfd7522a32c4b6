//! The table of waits in reports of wall-clock time: the state of the threads, and what they wait for.

use std::collections::BTreeMap;
use std::process::Output;

use otlpprof_otlp::wire::{ProfilesData, Value};
use otlpprof_testkit::attach::ready;
use otlpprof_testkit::commands::{otlpprof as command, text_of};
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::otlp_fixture::{Dictionary, TIME};
use otlpprof_testkit::profile_files::{CPU, Files, Spec, json, message, stdout};
use otlpprof_testkit::run_folder::RunFolder;
use otlpprof_testkit::this_build::agent;
use otlpprof_testkit::waiting::wait_for;
use otlpprof_testkit::{profiles, stacks};
use serde_json::{Value as Json, json as value};

const WALL: [&str; 4] = ["samples", "count", "wall", "nanoseconds"];
const STATE: &str = "otlpprof.thread.state";

const PARKS: [&str; 2] = ["java.util.concurrent.locks.LockSupport.park", "jdk.internal.misc.Unsafe.park"];
const TAKE: &str = "java.util.concurrent.LinkedBlockingQueue.take";
const SLEEP: &str = "java.lang.Thread.sleep";
const GET: &str = "java.util.Hashtable.get";

/// A sample: its thread, the thread's state, its milliseconds, and its stack, root first.
type Described<'s> = (&'s str, &'s str, i64, &'s [&'s str]);

/// 400 ms: 100 ms without a wait, and six different waits.
const SHOP: [Described<'_>; 10] = [
    ("main", "running", 99, &["shop.Main.main", "shop.Cart.sum"]),
    ("odd", "", 1, &["shop.Main.main"]),
    ("main", "runnable", 15, &["shop.Main.main", "shop.Cart.sum"]),
    ("http-1", "runnable", 5, &["shop.Main.main", SLEEP]),
    ("http-1", "parked", 100, &["java.util.concurrent.ThreadPoolExecutor.getTask", TAKE, PARKS[0], PARKS[1]]),
    ("http-2", "parked", 30, &["shop.Orders.next", TAKE, PARKS[0], PARKS[1]]),
    ("http-2", "sleeping", 60, &["shop.Main.main", "shop.Cart.pause", SLEEP]),
    ("main", "sleeping", 40, &["shop.Main.main", SLEEP]),
    ("http-1", "blocked", 42, &["shop.Main.main", "shop.Cart.price", GET]),
    ("http-2", "blocked", 8, &["shop.Main.main", "shop.Cart.lock"]),
];

/// A message of samples of the wall clock or of another one.
fn of_states(types: [&str; 4], described: &[Described<'_>]) -> ProfilesData {
    let stacks: Vec<Vec<&str>> =
        described.iter().map(|(.., stack)| stack.iter().rev().copied().collect()).collect();
    let samples: Vec<_> =
        described.iter().zip(&stacks).map(|((thread, _, ms, _), stack)| (&stack[..], *thread, *ms)).collect();
    let mut data = message("1", &[Spec { types, period: 1_000_000, start: TIME, samples: &samples }]);
    let mut tables = Dictionary(data.dictionary.take().unwrap());
    let samples = &mut data.resource_profiles[0].scope_profiles[0].profiles[0].samples;
    for (sample, (thread, state, ..)) in samples.iter_mut().zip(described) {
        // Compilers are no Java threads.
        let id = if thread.starts_with("C2 ") { "otlpprof.thread.os_id" } else { "thread.id" };
        sample.attribute_indices.push(tables.attribute(id, Value::IntValue(1)));
        if !state.is_empty() {
            sample.attribute_indices.push(tables.text(STATE, state));
        }
    }
    data.dictionary = Some(tables.0);
    data
}

/// The table of waits in a report, with the line above its rows.
fn table(text: &str) -> Vec<&str> {
    text.lines().skip_while(|line| !line.starts_with("waits: ")).take_while(|line| !line.is_empty()).collect()
}

#[test]
fn waits_are_named_by_state_and_by_what_is_waited_for() {
    let files = Files::new();
    let file = files.add("app.otlp", &[of_states(WALL, &SHOP), of_states(WALL, &SHOP)]);
    let expected = [
        "waits: 75.0 % of 800 ms",
        "    260 ms  32.5 %  parked    java.util.concurrent.LinkedBlockingQueue.take",
        "    120 ms  15.0 %  sleeping  java.lang.Thread.sleep in shop.Cart.pause",
        "   84.0 ms  10.5 %  blocked   java.util.Hashtable.get in shop.Cart.price",
        "   80.0 ms  10.0 %  sleeping  java.lang.Thread.sleep in shop.Main.main",
        "   40.0 ms   5.0 %  runnable",
        "   16.0 ms   2.0 %  blocked   shop.Cart.lock",
    ];
    for form in [&[][..], &["--tree"], &["--lines"], &["--threads"], &["--by", "thread"], &["--peek", "Cart"]]
    {
        let text = stdout(&[&["report", &*file], form].concat());
        assert_eq!(table(&text), expected, "{form:?}: {text}");
    }
    // The line by kinds of code is above.
    let text = stdout(&["report", &file]);
    let (head, below) = text.split_once("\n\nwaits: ").unwrap();
    assert!(head.contains("\nyour code ") && below.contains("\n\n              SELF "), "{text}");
    let counted = stdout(&["report", &file, "--count"]);
    assert!(counted.contains("\n       260  32.5 %  parked    "), "{counted}");
}

#[test]
fn rows_beyond_the_most_are_one_line() {
    let files = Files::new();
    let file = files.add("app.otlp", &[of_states(WALL, &SHOP)]);
    let text = stdout(&["report", &file, "--top", "2"]);
    let waits = table(&text);
    assert_eq!(waits.len(), 4, "{text}");
    assert_eq!(waits[3], "    110 ms  27.5 %  and 4 more; --top 6 shows them");
    let document = json(&["report", &file, "--top", "2"]);
    let sleep = "java.lang.Thread.sleep";
    let expected = value!({
        "total": 300_000_000,
        "rows": [
            { "state": "parked", "operation": TAKE, "in": null, "total": 130_000_000 },
            { "state": "sleeping", "operation": sleep, "in": "shop.Cart.pause", "total": 60_000_000 },
        ],
        "others": { "count": 4, "total": 110_000_000 },
    });
    assert_eq!(document["waits"], expected);
}

/// The sum of a document's rows and of the others.
fn sum(document: &Json) -> i64 {
    let waits = &document["waits"];
    let rows = waits["rows"].as_array().unwrap().iter().map(|row| row["total"].as_i64().unwrap());
    let sum = rows.sum::<i64>() + waits["others"]["total"].as_i64().unwrap();
    assert_eq!(waits["total"], sum);
    sum
}

#[test]
fn the_waits_are_those_of_the_selected_samples() {
    let files = Files::new();
    let file = files.add("app.otlp", &[of_states(WALL, &SHOP)]);
    let is_wait = |state: &str| !["", "running"].contains(&state);
    let threads = |wanted: &'static [&str]| move |sample: &Described<'_>| wanted.contains(&sample.0);
    let of = |selects: &dyn Fn(&Described<'_>) -> bool| -> i64 {
        let selected = SHOP.iter().filter(|sample| selects(sample) && is_wait(sample.1));
        selected.map(|sample| sample.2 * 1_000_000).sum()
    };
    for (options, expected) in [
        (&[][..], of(&|_| true)),
        (&["--top", "1"], of(&|_| true)),
        (&["--thread", "http-2"], of(&threads(&["http-2"]))),
        (&["--where", "otlpprof.thread.state=blocked"], of(&|sample| sample.1 == "blocked")),
        (&["--frame", "Cart"], of(&|sample| sample.3.iter().any(|frame| frame.contains("Cart")))),
        (&["--to", "+1s"], of(&|_| true)),
    ] {
        let document = json(&[&["report", &*file], options].concat());
        assert_eq!(sum(&document), expected, "{options:?}");
    }
    for options in [&["--thread", "odd"][..], &["--where", "otlpprof.thread.state=running"]] {
        let arguments = [&["report", &*file], options].concat();
        assert_eq!(json(&arguments)["waits"], Json::Null);
        assert!(!stdout(&arguments).contains("waits: "), "{options:?}");
    }
}

#[test]
fn reports_of_other_measures_have_no_waits() {
    let files = Files::new();
    let file = files.add("app.otlp", &[of_states(CPU, &SHOP)]);
    assert!(!stdout(&["report", &file]).contains("waits: "));
    assert_eq!(json(&["report", &file])["waits"], Json::Null);
    let file = files.add("wall.otlp", &[of_states(WALL, &SHOP)]);
    assert!(!stdout(&["report", &file, "--labels"]).contains("waits: "));
    assert_eq!(json(&["report", &file, "--labels"]).get("waits"), Some(&Json::Null));
}

#[test]
fn idle_threads_that_a_report_leaves_out_have_no_waits() {
    let files = Files::new();
    let idle = [("C2 CompilerThre", "native", 70, &["start"][..])];
    let samples = [&SHOP[..], &idle].concat();
    let file = files.add("app.otlp", &[of_states(WALL, &samples)]);
    let total = |options: &[&str]| sum(&json(&[&["report", &*file], options].concat())) / 1_000_000;
    assert_eq!([total(&[]), total(&["--idle"])], [300, 370]);
    let text = stdout(&["report", &file, "--idle"]);
    assert!(text.contains("\n   70.0 ms  14.9 %  native    (work for the JIT compilers)\n"), "{text}");
}

/// A recorder that calls running threads runnable does not say that they wait for a processor.
#[test]
fn runnable_threads_of_recordings_do_not_wait() {
    let files = Files::new();
    let mut data = of_states(WALL, &SHOP);
    let mut tables = Dictionary(data.dictionary.take().unwrap());
    let event = tables.text("otlpprof.jfr.event", "jdk.ExecutionSample");
    data.resource_profiles[0].scope_profiles[0].profiles[0].attribute_indices.push(event);
    data.dictionary = Some(tables.0);
    let file = files.add("app.otlp", &[data]);
    assert_eq!(sum(&json(&["report", &file])), 280_000_000);
}

/// The waits of the program, each as the end of a line.
const OF_PROGRAM: [&str; 6] = [
    "  blocked   programs.NamedWaits.enter\n",
    "  waiting   java.lang.Object.wait in programs.NamedWaits.await\n",
    "  parked    java.util.concurrent.LinkedBlockingQueue.take\n",
    "  sleeping  java.lang.Thread.sleep in programs.NamedWaits.pause\n",
    "SocketInputStream.read\n",
    "  native    java.net.ServerSocket.accept\n",
];

#[test]
fn waits_of_a_program_have_the_methods_that_it_called() {
    for home in newest_or_all() {
        let (place, jvm) = (RunFolder::new(), ready(JavaRun::new(&home, "NamedWaits")));
        let file = place.path("kept.otlp");
        let record = || -> Output {
            let mut record = command();
            record.args(["record", &jvm.pid().to_string(), "--type", "wall", "-d", "300ms", "--no-page"]);
            record.args(["cpu=off,wall=10ms", "-o"]).arg(&file).arg("--library").arg(agent());
            record.output().unwrap()
        };
        // Each thread is sampled once it waits, sooner or later.
        wait_for("a recording of all waits", || {
            let recorded = record();
            let table = text_of(&recorded.stdout);
            OF_PROGRAM.iter().all(|wait| table.contains(wait))
        });
        let path = file.to_str().unwrap();
        let report = |options: &[&str]| json(&[&["report", path, "--type", "wall"], options].concat());
        let mut by_thread = BTreeMap::new();
        for (thread, state) in [
            ("enters", "blocked"),
            ("awaits", "waiting"),
            ("takes", "parked"),
            ("pauses", "sleeping"),
            ("reads", "native"),
            ("accepts", "native"),
        ] {
            let document = report(&["--thread", thread]);
            let rows = document["waits"]["rows"].as_array().unwrap().clone();
            by_thread.insert(thread, rows.into_iter().find(|row| row["state"] == state).unwrap());
        }
        assert_eq!(by_thread["awaits"]["operation"], "java.lang.Object.wait");
        assert_eq!(by_thread["awaits"]["in"], "programs.NamedWaits.await");
        assert_eq!(by_thread["takes"]["operation"], TAKE);
        assert_eq!(by_thread["enters"]["operation"], "programs.NamedWaits.enter");
        // All waits, idle threads included, by the samples themselves.
        let samples = stacks::stacks_of(&profiles::messages(&file), "wall", ("samples", "count"));
        let waiting = samples.iter().filter(|sample| sample.labels[STATE] != "running");
        let expected: i64 = waiting.map(|sample| sample.value * sample.period_ns).sum();
        assert_eq!(sum(&report(&["--idle"])), expected);
        assert_eq!(sum(&report(&["--idle", "--top", "1"])), expected);
    }
}
