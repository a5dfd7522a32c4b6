//! The kinds of code of a JVM's samples, in `otlpprof report` and its relatives.

use otlpprof_otlp::wire::{
    Line, Location, Profile, ProfilesData, Resource, ResourceProfiles, Sample, ScopeProfiles,
};
use otlpprof_testkit::commands::run_otlpprof;
use otlpprof_testkit::otlp_fixture::{DURATION, Dictionary, TIME, inline};
use otlpprof_testkit::pages::{header, used};
use otlpprof_testkit::profile_files::{Files, json, stdout};
use serde_json::{Value, json as value};

/// A sample: its thread, its value, and its stack, leaf first. A frame is `OBJECT!FUNCTION`, where the object
/// is `jvm`, `kernel`, `go` or the path of a native one.
type Described<'s> = (&'s str, i64, &'s [&'s str]);

const START: [&str; 2] = ["/jdk/lib/server/libjvm.so!Thread::call_run", "/lib/libc.so.6!start_thread"];

/// Two threads of Java, and threads of the VM.
const SHOP: [Described<'_>; 10] = [
    ("main", 500, &["jvm!shop.Cart.sum", "jvm!shop.Main.main"]),
    (
        "main",
        100,
        &["/jdk/lib/server/libjvm.so!OptoRuntime::new_array_C", "jvm!shop.Cart.sum", "jvm!shop.Main.main"],
    ),
    ("http-1", 120, &["jvm!java.util.HashMap.get", "jvm!shop.Cart.sum", "jvm!java.lang.Thread.run"]),
    ("http-1", 15, &["/lib/libc.so.6!memcpy", "/app/libzstd.so!ZSTD_compress", "jvm!shop.Zip.close"]),
    ("http-1", 5, &["kernel!vfs_write", "/lib/libc.so.6!write", "jvm!shop.Zip.close"]),
    ("C2 CompilerThre", 150, &["/jdk/lib/server/libjvm.so!PhaseChaitin::Split", START[0], START[1]]),
    ("C1 CompilerThre", 30, &["/jdk/lib/server/libjvm.so!LinearScan::walk", START[0], START[1]]),
    ("GC Thread#0", 60, &["/jdk/lib/server/libjvm.so!G1ParScanThreadState::trim_queue", START[0], START[1]]),
    ("VM Thread", 12, &["/jdk/lib/server/libjvm.so!VM_GenCollectForAllocation::doit()", START[0], START[1]]),
    ("VM Thread", 8, &["kernel!futex_wait", START[0], START[1]]),
];

/// A message of these samples, of 1 ms of CPU time each.
fn message(process: &str, samples: &[Described<'_>]) -> ProfilesData {
    let mut tables = Dictionary::new();
    let samples = samples.iter().map(|(thread, value, stack)| {
        let locations = stack.iter().map(|frame| {
            let (object, function) = frame.split_once('!').unwrap();
            if ["jvm", "kernel", "go"].contains(&object) {
                return tables.frame(object, function, "", 0);
            }
            let line = Line { function_index: tables.function(function, ""), line: 0, column: 0 };
            let attribute_indices = vec![tables.text("profile.frame.type", "native")];
            let mapping_index = tables.mapping(object);
            tables.0.location_table.push(Location {
                mapping_index,
                lines: vec![line],
                attribute_indices,
                ..Default::default()
            });
            i32::try_from(tables.0.location_table.len() - 1).unwrap()
        });
        let locations = locations.collect();
        let stack_index = tables.stack(locations);
        let attribute_indices = vec![tables.text("thread.name", thread)];
        Sample { stack_index, attribute_indices, values: vec![*value], ..Default::default() }
    });
    let samples = samples.collect();
    let profile = Profile {
        sample_type: tables.value_type("samples", "count"),
        period_type: tables.value_type("cpu", "nanoseconds"),
        period: 1_000_000,
        time_unix_nano: TIME,
        duration_nano: DURATION,
        samples,
        ..Default::default()
    };
    let attributes = vec![inline("service.name", "shop"), inline("process.pid", process)];
    ProfilesData {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource { attributes, ..Default::default() }),
            scope_profiles: vec![ScopeProfiles { profiles: vec![profile], ..Default::default() }],
            ..Default::default()
        }],
        dictionary: Some(tables.0),
    }
}

/// The lines of a report above the first empty one.
fn heading(arguments: &[&str]) -> Vec<String> {
    let text = stdout(&[&["report"], arguments].concat());
    text.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Sums in ms, in the order of the kinds.
fn sums(of: [i64; 8]) -> Value {
    let [program, jdk, jit, gc, vm, native, kernel, other] = of.map(|ms| ms * 1_000_000);
    value!({
        "yourCode": program, "jdk": jdk, "jit": jit, "gc": gc, "otherVm": vm, "native": native,
        "kernel": kernel, "other": other,
    })
}

#[test]
fn the_second_line_has_the_share_of_each_kind_of_code() {
    let files = Files::new();
    let file = files.add("app.otlp", &[message("1", &SHOP), message("2", &SHOP)]);
    let line =
        "your code 60.0 %, JDK 12.0 %, JIT 18.0 %, GC 7.2 %, other VM 0.8 %, native 1.5 %, kernel 0.5 %";
    let first = "cpu of shop: 2.00 s in 20.0 s, from 2023-11-14T22:13:20Z";
    assert_eq!(heading(&[&file]), [first, line, "processes 1, 2; 0.10 cores on average"]);
    for form in [&["--tree"][..], &["--peek", "Cart"], &["--by", "process"], &["--lines"], &["--threads"]] {
        assert_eq!(heading(&[&[&*file], form].concat())[1], line, "{form:?}");
    }
    let document = json(&["report", &file]);
    assert_eq!(document["kinds"], sums([1200, 240, 360, 144, 16, 30, 10, 0]));
    let all: i64 = document["kinds"].as_object().unwrap().values().map(|sum| sum.as_i64().unwrap()).sum();
    assert_eq!(document["total"], all);
    // Each sample counts once.
    assert_eq!(json(&["report", &file, "--count"])["kinds"]["jit"], 360);
    let merged = files.path("merged.otlp");
    run_otlpprof(&["merge", &file, "-o", &merged]).success();
    assert_eq!(heading(&[&merged])[1], line);
    let printed = stdout(&["print", &file]);
    assert_eq!(printed.lines().nth(1), Some(line));
}

#[test]
fn the_kinds_are_those_of_the_selected_samples() {
    let files = Files::new();
    let file = files.add("app.otlp", &[message("1", &SHOP)]);
    for (options, expected) in [
        (&["--thread", "main"][..], "your code 100.0 %"),
        (&["--thread", "VM Thread"], "GC 60.0 %, other VM 40.0 %"),
        (&["--frame", "Zip"], "native 75.0 %, kernel 25.0 %"),
        (&["--without", "libjvm|Thread::|shop.Main"], "JDK 85.7 %, native 10.7 %, kernel 3.6 %"),
    ] {
        let lines = heading(&[&[&*file], options].concat());
        assert!(lines.len() == 4 && lines[1].starts_with("selected ("), "{lines:?}");
        assert_eq!(lines[2], expected, "{options:?}");
    }
    let kinds = &json(&["report", &file, "--frame", "Zip"])["kinds"];
    assert_eq!(*kinds, sums([0, 0, 0, 0, 0, 15, 5, 0]));
}

/// The page sums by tables of its own file; `report` is what it has to agree with.
#[test]
fn a_page_begins_with_the_line_of_the_report_and_follows_the_choice_of_labels() {
    let files = Files::new();
    let (file, page) = (files.add("app.otlp", &[message("1", &SHOP)]), files.path("page.html"));
    run_otlpprof(&["flamegraph", &file, "-o", &page]).success();
    let steps = value!([
        ["view"],
        ["choose", "thread.name", "http-1"],
        ["choose", "thread.name", "GC Thread#0"],
        ["choose", "thread.name", "VM Thread"]
    ]);
    let Some(answers) = used(page.as_ref(), &steps) else { return };
    let expected = &json(&["report", &file])["kinds"];
    for (name, key) in [
        ("your code", "yourCode"),
        ("JDK", "jdk"),
        ("JIT", "jit"),
        ("GC", "gc"),
        ("other VM", "otherVm"),
        ("native", "native"),
        ("kernel", "kernel"),
        ("other", "other"),
    ] {
        assert_eq!(answers[0]["kindSums"][0][name], expected[key], "{name}");
    }
    assert_eq!(answers[0]["kinds"], heading(&[&file])[1]);
    let about = "process 1; 10.0 s from 2023-11-14T22:13:20Z; 0.10 cores on average";
    assert_eq!(answers[0]["about"], about);
    // A further value is another choice of the same label.
    assert_eq!(answers[1]["kinds"], heading(&[&file, "--thread", "http-1"])[2]);
    assert_eq!(answers[3]["kinds"], "JDK 54.5 %, GC 32.7 %, other VM 3.6 %, native 6.8 %, kernel 2.3 %");
    // Once a page has too many threads for a label, their roles are still known.
    let many: Vec<_> = (0..2_001).map(|number| format!("worker-{number}")).collect();
    let workers = many.iter().map(|thread| (&**thread, 1, &["jvm!shop.Cart.sum"][..]));
    let samples: Vec<_> = SHOP.into_iter().chain(workers).collect();
    let file = files.add("many.otlp", &[message("1", &samples)]);
    run_otlpprof(&["flamegraph", &file, "-o", &page]).success();
    assert_eq!(header(&page)["labels"], value!([]));
    let answers = used(page.as_ref(), &value!([["view"]])).unwrap();
    assert_eq!(answers[0]["kinds"], heading(&[&file])[1]);
    let go = [("main", 7, &["go!runtime.mallocgc", "go!main.main"][..])];
    let file = files.add("go.otlp", &[message("1", &go)]);
    run_otlpprof(&["flamegraph", &file, "-o", &page]).success();
    assert_eq!(header(&page)["kinds"], Value::Null);
}

/// The functions of a table, each with its self value.
fn table(arguments: &[&str]) -> Vec<(String, String)> {
    let text = stdout(arguments);
    let lines = text.lines().skip_while(|line| !line.ends_with("FUNCTION")).skip(1);
    let rows = lines.take_while(|line| line.starts_with(' '));
    rows.map(|line| (line[48..].to_owned(), line[..10].trim().to_owned())).collect()
}

#[test]
fn threads_of_the_vm_are_a_row_for_each_kind_until_asked_for() {
    let files = Files::new();
    let file = files.add("app.otlp", &[message("1", &SHOP)]);
    let row = |function: &str, value: &str| (function.to_owned(), value.to_owned());
    let expected = [
        row("shop.Cart.sum", "500 ms"),
        row("(threads of the JIT compilers)", "180 ms"),
        row("java.util.HashMap.get", "120 ms"),
        row("OptoRuntime::new_array_C", "100 ms"),
        row("(threads of the garbage collector)", "72.0 ms"),
        row("memcpy", "15.0 ms"),
        row("(other threads of the VM)", "8.00 ms"),
        row("vfs_write", "5.00 ms"),
    ];
    let folded = stdout(&["report", &file]);
    let line = "--vm shows the functions of the VM's threads\n";
    assert!(folded.ends_with(&format!("\n{line}")), "{folded}");
    assert!(stdout(&["print", &file]).contains(&format!("\notlpprof report {line}")));
    assert_eq!(table(&["report", &file])[..8], expected);
    for options in
        [&["--by", "process"][..], &["--where", "process.pid=1"], &["--sort", "total"], &["--lines"]]
    {
        let rows = table(&[&["report", &file], options].concat());
        assert!(
            rows.contains(&expected[1]) && !rows.iter().any(|(name, _)| name.contains("Split")),
            "{rows:?}"
        );
    }
    assert_eq!(table(&["print", &file])[..8], expected);
    // Each of these asks for functions or threads of the VM.
    for options in [
        &["--vm"][..],
        &["--by", "thread"],
        &["--threads"],
        &["--thread", "C2 CompilerThre"],
        &["--where", "thread.name=C2 CompilerThre"],
        &["--frame", "Split"],
    ] {
        let text = stdout(&[&["report", &file], options].concat());
        assert!(
            text.contains("  PhaseChaitin::Split\n") && !text.contains("(threads"),
            "{options:?}: {text}"
        );
    }
    let rows = &json(&["report", &file])["rows"];
    let names: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| row["function"].as_str().unwrap()).collect();
    assert!(
        names.contains(&"PhaseChaitin::Split") && !names.iter().any(|name| name.starts_with('(')),
        "{names:?}"
    );
    let tree = stdout(&["report", &file, "--tree"]);
    assert!(tree.contains("PhaseChaitin::Split"), "{tree}");
    // Without such threads nothing is folded.
    let file = files.add("java.otlp", &[message("1", &SHOP[..5])]);
    assert!(!stdout(&["report", &file]).contains("--vm"));
    let refused = run_otlpprof(&["report", &file, "--tree", "--vm"]).code(2).get_output().clone();
    let line = "otlpprof: --vm with --tree: the functions of the VM's threads are there\n";
    assert_eq!(String::from_utf8_lossy(&refused.stderr), line);
}

#[test]
fn profiles_of_other_programs_have_no_kinds() {
    let files = Files::new();
    let go = [("main", 7, &["go!runtime.mallocgc", "go!main.main"][..]), ("", 2, &["kernel!vfs_read"])];
    let native = [("worker", 7, &["/lib/libc.so.6!memcpy", "/bin/program!main"][..])];
    let (go, native) = (message("1", &go), message("2", &native));
    let file = files.add("go.otlp", &[go.clone(), native]);
    assert!(heading(&[&file])[1].starts_with("processes 1, 2; "));
    assert_eq!(json(&["report", &file])["kinds"], Value::Null);
    // Beside a JVM they have one.
    let file = files.add("both.otlp", &[go, message("2", &SHOP[..1])]);
    assert_eq!(heading(&[&file])[1], "your code 98.2 %, kernel 0.4 %, other 1.4 %");
    assert_eq!(heading(&[&file, "--where", "process.pid=1"]).len(), 3);
    for (name, stacks, lines) in [
        ("go.collapsed", "main.main;runtime.mallocgc 3\n", 1),
        ("c.collapsed", "main;work;memcpy 3\n", 1),
        ("java.collapsed", "java/lang/Thread.run;shop/Cart.sum 3\n", 2),
    ] {
        std::fs::write(files.path(name), stacks).unwrap();
        assert_eq!(heading(&[&files.path(name)]).len(), lines, "{name}");
    }
}
