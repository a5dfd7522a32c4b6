//! Waits of the VM's threads and of native ones: left out of the wall-clock time that commands show, and
//! never of what they pass on.

use std::fs;

use otlpprof_otlp::wire::{ProfilesData, Value};
use otlpprof_testkit::commands::run_otlpprof;
use otlpprof_testkit::otlp_fixture::{Dictionary, TIME};
use otlpprof_testkit::pages::{data_text, header};
use otlpprof_testkit::profile_files::{CPU, Files, Spec, json, message, rows, stdout};

const WALL: [&str; 4] = ["samples", "count", "wall", "nanoseconds"];

/// The id of a sampled thread.
enum Id {
    Java(i64),
    Native(i64),
    /// A virtual thread has none.
    None,
}

/// Threads with their functions, states and milliseconds: 70 ms of busy threads and of the program's Java
/// threads, 490 ms of others that wait.
const THREADS: [(&str, &str, Id, &str, i64); 13] = [
    ("main", "Shop.cart", Id::Java(1), "running", 30),
    ("pool-1", "Unsafe.park", Id::Java(30), "parked", 13),
    // A finalizer that waits for a lock holds up all others.
    ("Finalizer", "Shop.finalize", Id::Java(12), "blocked", 6),
    ("Signal Dispatcher", "JVM_RaiseSignal", Id::Java(13), "running", 1),
    // A cleaning action of the program that waits for a lock.
    ("Common-Cleaner", "ReentrantLock.lock", Id::Java(14), "parked", 2),
    ("C2 CompilerThre", "Compile::Compile", Id::Native(11), "running", 10),
    ("C1 CompilerThre", "Compilation::compile", Id::Native(12), "runnable", 5),
    ("virtual", "Socket.read", Id::None, "native", 3),
    ("G1 Conc#0", "futex_wait", Id::Native(13), "native", 300),
    ("Finalizer", "Object.wait0", Id::Java(12), "waiting", 60),
    // Regression: JDK 21 parks where others wait, and the thread was shown.
    ("Common-Cleaner", "java.lang.ref.ReferenceQueue.remove0", Id::Java(14), "parked", 50),
    ("Reference Handler", "Reference.waitForPending", Id::Java(11), "blocked", 40),
    ("VM Thread", "pthread_cond_wait", Id::Native(14), "blocked", 40),
];

/// A message with samples of all threads, of the wall clock or of another one.
fn threads(types: [&str; 4]) -> ProfilesData {
    let stacks: Vec<_> = THREADS.iter().map(|&(_, function, ..)| [function, "start"]).collect();
    let samples: Vec<_> = THREADS
        .iter()
        .zip(&stacks)
        .map(|(&(thread, .., value), stack)| (&stack[..], thread, value))
        .collect();
    let mut data = message("1", &[Spec { types, period: 1_000_000, start: TIME, samples: &samples }]);
    let mut tables = Dictionary(data.dictionary.take().unwrap());
    let samples = &mut data.resource_profiles[0].scope_profiles[0].profiles[0].samples;
    for (sample, (_, _, id, state, _)) in samples.iter_mut().zip(&THREADS) {
        let id = match id {
            Id::Java(id) => Some(tables.attribute("thread.id", Value::IntValue(*id))),
            Id::Native(id) => Some(tables.attribute("otlpprof.thread.os_id", Value::IntValue(*id))),
            Id::None => None,
        };
        sample.attribute_indices.extend(id);
        sample.attribute_indices.push(tables.text("otlpprof.thread.state", state));
    }
    data.dictionary = Some(tables.0);
    data
}

const LEFT_OUT: &str = "idle VM and native threads left out (--idle shows them): 87.5 % of 560 ms";

/// Regression: nine tenths of a wall-clock report were waits of the VM's own threads.
#[test]
fn a_report_leaves_out_idle_threads_of_the_vm() {
    let files = Files::new();
    let file = files.add("app.otlp", &[threads(WALL)]);
    let text = stdout(&["report", &file, "--vm"]);
    assert!(text.starts_with("wall of shop: 70.0 ms in 10.0 s"), "{text}");
    assert_eq!(text.lines().nth(1), Some(LEFT_OUT));
    let mut functions: Vec<_> = rows(&text).into_iter().map(|row| row[9].to_owned()).collect();
    functions.sort_unstable();
    let busy = [
        "Compilation::compile",
        "Compile::Compile",
        "JVM_RaiseSignal",
        "ReentrantLock.lock",
        "Shop.cart",
        "Shop.finalize",
        "Socket.read",
        "Unsafe.park",
        "start",
    ];
    assert_eq!(functions, busy);
    for form in [&["--tree"][..], &["--peek", "Shop"], &["--labels"], &["--by", "thread"], &["--threads"]] {
        let text = stdout(&[&["report", &*file], form].concat());
        assert!(text.contains(LEFT_OUT) && !text.contains("futex_wait"), "{form:?}: {text}");
        assert!(!text.contains("G1 Conc#0"), "{form:?}: {text}");
    }
    let counted = stdout(&["report", &file, "--count"]);
    assert!(counted.contains(&LEFT_OUT.replace("560 ms", "560")), "{counted}");
    let all = stdout(&["report", &file, "--idle"]);
    assert!(all.starts_with("wall of shop: 560 ms in 10.0 s"), "{all}");
    assert!(all.contains("futex_wait") && !all.contains("left out"), "{all}");
    let printed = stdout(&["print", &file]);
    let line = LEFT_OUT.replace("--idle", "otlpprof report --idle");
    assert!(printed.contains(&line) && printed.contains("wall of shop: 70.0 ms"), "{printed}");
}

/// The time that a processor has worked is nobody's wait.
#[test]
fn other_measures_have_all_threads() {
    let files = Files::new();
    let file = files.add("app.otlp", &[threads(CPU)]);
    let text = stdout(&["report", &file]);
    assert!(text.starts_with("cpu of shop: 560 ms in ") && !text.contains("left out"), "{text}");
}

/// A user who names a thread or a state means the idle ones too.
#[test]
fn conditions_on_threads_keep_idle_threads() {
    let files = Files::new();
    let file = files.add("app.otlp", &[threads(WALL)]);
    for (condition, total) in [
        (&["--thread", "VM Thread"][..], "40.0 ms"),
        (&["--where", "thread.name=VM Thread"], "40.0 ms"),
        (&["--where", "otlpprof.thread.os_id=13"], "300 ms"),
        (&["--where", "otlpprof.thread.state=native"], "303 ms"),
        (&["--where", "thread.id=1"], "30.0 ms"),
        (&["--where", "service.name=shop"], "70.0 ms"),
        (&["--frame", "start"], "70.0 ms"),
        (&["--thread", "VM Thread", "--no-idle"], "0 ns"),
        (&["--idle", "--no-idle"], "70.0 ms"),
        (&["--no-idle", "--idle"], "560 ms"),
    ] {
        let text = stdout(&[&["report", &*file], condition].concat());
        assert!(text.starts_with(&format!("wall of shop: {total} in ")), "{condition:?}: {text}");
    }
}

/// The line counts the idle threads that the other options select, and the share of those options is one of
/// what is shown without them.
#[test]
fn the_line_and_the_share_of_a_selection_agree_with_what_is_shown() {
    let files = Files::new();
    let file = files.add("app.otlp", &[threads(WALL)]);
    let second_line = |options: &[&str]| {
        let text = stdout(&[&["report", &*file], options].concat());
        text.lines().skip(1).take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        second_line(&["--frame", "futex|cart"]),
        [
            "selected (with futex|cart): 42.9 % of 70.0 ms",
            "idle VM and native threads left out (--idle shows them): 90.9 % of 330 ms"
        ]
    );
    let busy = second_line(&["--frame", "cart"]);
    assert!(
        busy[0] == "selected (with cart): 42.9 % of 70.0 ms" && !busy[1].contains("left out"),
        "{busy:?}"
    );
    assert_eq!(second_line(&["--frame", "cart", "--idle"])[0], "selected (with cart): 5.4 % of 560 ms");
    // Nothing but idle threads is no empty selection.
    let output = run_otlpprof(&["report", &file, "--frame", "futex"]).success().get_output().clone();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let later = second_line(&["--from", "2023-11-14T22:13:31Z"]);
    assert!(!later.concat().contains("left out"), "{later:?}");
}

#[test]
fn json_has_the_sum_of_idle_threads() {
    let files = Files::new();
    let file = files.add("app.otlp", &[threads(WALL)]);
    let of = |options: &[&str]| {
        let document = json(&[&["report", &*file], options].concat());
        ["total", "totalOfAll", "idleLeftOut"].map(|field| document[field].as_i64().unwrap() / 1_000_000)
    };
    assert_eq!(of(&[]), [70, 70, 490]);
    assert_eq!(of(&["--tree", "--frame", "cart|futex"]), [30, 70, 300]);
    assert_eq!(of(&["--labels"]), [70, 70, 490]);
    assert_eq!(of(&["--idle"]), [560, 560, 0]);
}

#[test]
fn a_comparison_leaves_idle_threads_out_of_both_sides() {
    let files = Files::new();
    let file = files.add("app.otlp", &[threads(WALL)]);
    let line = "idle VM and native threads left out (--idle shows them): 87.5 % of base, 87.5 % of new";
    let text = stdout(&["report", &file, "--diff", &file]);
    assert!(text.starts_with(&format!("wall\nbase 70.0 ms, new 70.0 ms\n{line}\n")), "{text}");
    let document = json(&["report", &file, "--diff", &file]);
    assert_eq!(document["base"]["idleLeftOut"], 490_000_000);
    assert_eq!(document["new"]["idleLeftOut"], 490_000_000);
    let all = stdout(&["report", &file, "--diff", &file, "--idle"]);
    assert!(all.contains("base 560 ms, new 560 ms") && !all.contains("left out"), "{all}");
    let page = files.path("page.html");
    for comparison in [&["report", &*file, "--diff", &file][..], &["diff", &file, &file, "-o", &page]] {
        let refused =
            run_otlpprof(&[comparison, &["--frame", "futex"]].concat()).code(2).get_output().clone();
        let reason =
            "neither side has a value to compare except values of idle VM and native threads (--idle)";
        assert_eq!(String::from_utf8_lossy(&refused.stderr), format!("otlpprof: {reason}\n"));
    }
    let output = run_otlpprof(&["diff", &file, &file, "-o", &page]).success().get_output().clone();
    let lines = format!("wall: {line}\n{page} written: open it in a browser\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), lines);
    assert_eq!(header(&page)["notes"], serde_json::json!([format!("wall: {line}")]));
}

#[test]
fn a_page_leaves_out_idle_threads_and_says_so() {
    let files = Files::new();
    let (file, page) = (files.add("app.otlp", &[threads(WALL)]), files.path("page.html"));
    let lines = |options: &[&str]| {
        let command = ["flamegraph", &file, "-o", &page];
        let output = run_otlpprof(&[&command, options].concat()).success().get_output().clone();
        String::from_utf8(output.stderr).unwrap()
    };
    let written = format!("{page} written: open it in a browser\n");
    assert_eq!(lines(&["--threads"]), format!("wall: {LEFT_OUT}\n{written}"));
    assert_eq!(header(&page)["notes"], serde_json::json!([format!("wall: {LEFT_OUT}")]));
    let names = data_text(page.as_ref());
    assert!(names.contains("Compile::Compile") && !names.contains("futex_wait"), "{names}");
    assert!(!names.contains("G1 Conc#0"), "{names}");
    assert_eq!(lines(&["--idle"]), written);
    assert_eq!(header(&page)["notes"], serde_json::json!([]));
    assert!(data_text(page.as_ref()).contains("futex_wait"));
}

/// A file for another tool has everything, unless its user says otherwise.
#[test]
fn exports_and_merged_files_have_all_threads() {
    let files = Files::new();
    let file = files.add("app.otlp", &[threads(WALL)]);
    let (merged, collapsed) = (files.path("merged.otlp"), files.path("out.collapsed"));
    run_otlpprof(&["merge", &file, "-o", &merged]).success();
    for file in [&file, &merged] {
        let sum = |options: &[&str]| {
            let export = ["export", file, "--to", "collapsed", "-o", &collapsed];
            run_otlpprof(&[&export, options].concat()).success();
            let text = fs::read_to_string(&collapsed).unwrap();
            let values = text.lines().filter(|line| !line.starts_with('#'));
            let values = values.map(|line| line.rsplit(' ').next().unwrap().parse::<i64>().unwrap());
            values.sum::<i64>() / 1_000_000
        };
        assert_eq!([sum(&[]), sum(&["--idle"]), sum(&["--no-idle"])], [560, 560, 70]);
        assert!(stdout(&["report", file]).contains(LEFT_OUT));
    }
}

#[test]
fn the_view_of_the_present_says_that_it_lacks_idle_threads() {
    let files = Files::new();
    let file = files.add("app.otlp", &[threads(WALL)]);
    let arguments = ["top", &*file, "--count", "1", "-i", "100ms", "-w", "1h"];
    let text = stdout(&arguments);
    let head = text.lines().next().unwrap();
    assert!(
        head.contains(": 70.0 ms in ") && head.ends_with("  without idle VM and native threads (--idle)")
    );
    let text = stdout(&[&arguments[..], &["--idle"]].concat());
    assert!(text.contains(": 560 ms in ") && !text.contains("without idle"), "{text}");
}
