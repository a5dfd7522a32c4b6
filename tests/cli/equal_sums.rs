//! Equal filters give equal sums, whatever shows them: `otlpprof report`, and the page, whose own code reads
//! the page and sums.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use otlpprof_otlp::wire::ProfilesData;
use otlpprof_testkit::commands::run_otlpprof;
use otlpprof_testkit::otlp_fixture::{DURATION, TIME, valid};
use otlpprof_testkit::profile_files::{ALLOC_SPACE, CPU, Files, LIVE_SPACE, Spec, json, message};
use otlpprof_testkit::skipped::not_tested;
use serde_json::Value;

/// Self and total of each function, by name and detail.
type Sums = BTreeMap<(String, String), (i64, i64)>;

/// The sums of one type: unit, total, functions.
type TypeSums = (String, i64, Sums);

/// The sums of a page by type, for each side. `None` if Node is not available, which is reported.
fn page_sums(page: &str) -> Option<[BTreeMap<String, TypeSums>; 2]> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(root.join("scripts/page.sh"));
    let output =
        command.args(["node", "page/test/support/sums.mjs", page]).current_dir(root).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("cannot be installed") {
        not_tested(&format!("sums of pages, for want of Node: {error}"));
        return None;
    }
    assert!(output.status.success(), "{error}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let types = document["types"].as_array().unwrap();
    Some([0, 1].map(|side| {
        let of_side = |values: &Value| values.get(side).map_or(0, whole);
        let types = types.iter().map(|of_type| {
            let functions = of_type["functions"].as_array().unwrap().iter();
            let sums = functions.map(|function| {
                let sums = (of_side(&function["self"]), of_side(&function["total"]));
                ((text(&function["name"]), text(&function["detail"])), sums)
            });
            let sums = sums.filter(|(_, sums)| *sums != (0, 0)).collect();
            (text(&of_type["name"]), (text(&of_type["unit"]), of_side(&of_type["totals"]), sums))
        });
        types.collect()
    }))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// A number of the page, which has no type for whole ones.
fn whole(value: &Value) -> i64 {
    let number = value.as_f64().unwrap();
    assert_eq!(number.fract(), 0.0, "{number}");
    number as i64
}

/// The rows of a document of `report`.
fn sums_of_rows(document: &Value, sums_of: impl Fn(&Value) -> (i64, i64)) -> Sums {
    let rows = document["rows"].as_array().unwrap().iter().map(|row| {
        let detail = match (text(&row["file"]), row["line"].as_i64().unwrap()) {
            (file, 0) => file,
            (file, line) => format!("{file}:{line}"),
        };
        ((text(&row["function"]), detail), sums_of(row))
    });
    let count = document["rows"].as_array().unwrap().len();
    let sums: Sums = rows.collect();
    assert_eq!(sums.len(), count, "a row for each function");
    sums.into_iter().filter(|(_, sums)| *sums != (0, 0)).collect()
}

fn sums_of(value: &Value) -> (i64, i64) {
    (value["self"].as_i64().unwrap(), value["total"].as_i64().unwrap())
}

/// Three messages of one process with three periods and three states, one of which lacks a thread, and a
/// state of another process. Functions recur.
fn shop(start: u64) -> Vec<ProfilesData> {
    let fib = &["A.fib", "A.fib", "A.fib", "A.main"][..];
    let (query, write) =
        (&["Db.query", "Shop.cart", "A.main"][..], &["Json.write", "Shop.cart", "A.main"][..]);
    let of = |process: &str, at: u64, period: i64, cpu: &[_], live: &[_]| {
        let start = start + at * DURATION;
        let of_types = |types, period, samples| Spec { types, period, start, samples };
        let specs =
            [of_types(CPU, period, cpu), of_types(LIVE_SPACE, 512, live), of_types(ALLOC_SPACE, 512, live)];
        message(process, &specs)
    };
    vec![
        of(
            "1",
            0,
            10_000_000,
            &[(fib, "http-1", 3), (query, "http-2", 5)],
            &[(fib, "http-1", 4096), (query, "http-2", 100)],
        ),
        of("1", 1, 25_000_000, &[(fib, "http-1", 2), (write, "http-2", 7)], &[(write, "http-2", 200)]),
        of("2", 0, 10_000_000, &[(query, "http-1", 1)], &[(fib, "http-1", 50)]),
        of("1", 2, 40_000_000, &[(query, "http-1", 11)], &[(query, "http-2", 300), (write, "http-2", 7)]),
    ]
}

const TYPES: [&str; 4] = ["cpu", "wall", "live-space", "alloc-space"];

#[test]
fn report_and_page_have_equal_sums_for_equal_filters() {
    let files = Files::new();
    let mut messages = shop(TIME);
    messages.push(valid());
    let file = files.add("app.otlp", &messages);
    let page = files.path("page.html");
    let trace = "aa".repeat(16);
    let filters: [&[&str]; 19] = [
        &[],
        &["--lines"],
        &["--threads"],
        &["--threads", "--frame", "http"],
        &["--total"],
        &["--count"],
        &["--count", "--threads", "--lines"],
        &["--thread", "http-1"],
        &["--thread", "http-2", "--frame", "cart"],
        &["--where", "process.pid=2"],
        &["--where", "thread.id=17"],
        &["--frame", "fib$"],
        &["--frame", "^A", "--without", "query"],
        &["--trace", &trace],
        &["--from", "2023-11-14T22:13:30Z"],
        &["--to", "2023-11-14T22:13:30Z"],
        &["--from=-20s", "--to=-10s", "--thread", "http-2"],
        &["--type", "live-space", "--at", "2023-11-14T22:13:31Z"],
        &["--type", "live-space", "--at=-25s", "--thread", "http-1"],
    ];
    for filter in filters {
        for steps in ["360", "0"] {
            run_otlpprof(&[&["flamegraph", &file, "-o", &page, "--steps", steps], filter].concat()).success();
            let Some([mut on_page, _]) = page_sums(&page) else { return };
            let wanted = filter.iter().position(|&option| option == "--type").map(|at| filter[at + 1]);
            for name in TYPES.into_iter().filter(|&name| wanted.is_none_or(|wanted| wanted == name)) {
                let options = if wanted.is_some() { &[][..] } else { &["--type", name] };
                let document = json(&[&["report", &file], options, filter].concat());
                let (unit, total) = (text(&document["unit"]), document["total"].as_i64().unwrap());
                let sums = sums_of_rows(&document, sums_of);
                let of_page = on_page.remove(name).unwrap_or_else(|| (unit.clone(), 0, Sums::new()));
                assert_eq!((unit, total, sums), of_page, "{filter:?}, {steps} steps: {name}");
            }
            assert!(on_page.is_empty(), "{filter:?}: {on_page:?}");
        }
    }
}

/// The expected values of some filters, so that both being wrong would be seen.
#[test]
fn sums_are_of_values_times_periods_and_of_last_states() {
    let files = Files::new();
    let file = files.add("app.otlp", &shop(TIME));
    let total = |options: &[&str]| json(&[&["report", &file], options].concat())["total"].as_i64().unwrap();
    let of_periods = 10_000_000 * (3 + 5 + 1) + 25_000_000 * (2 + 7) + 40_000_000 * 11;
    assert_eq!(total(&[]), of_periods);
    assert_eq!(total(&["--total"]), of_periods);
    assert_eq!(total(&["--count"]), 3 + 5 + 1 + 2 + 7 + 11);
    // Allocations are added up, states are not: the last one of each process.
    assert_eq!(total(&["--type", "alloc-space"]), 4096 + 100 + 200 + 50 + 307);
    assert_eq!(total(&["--type", "alloc-space", "--count"]), 6);
    // An engine's or a `profile.type`'s name stands for sizes and durations.
    assert_eq!(total(&["--type", "alloc"]), 4096 + 100 + 200 + 50 + 307);
    assert_eq!(total(&["--type", "live-heap"]), 307 + 50);
    assert_eq!(total(&["--type", "live-space"]), 307 + 50);
    assert_eq!(total(&["--type", "live-space", "--count"]), 3);
    // The objects of this thread are gone by then.
    assert_eq!(total(&["--type", "live-space", "--thread", "http-1"]), 50);
    assert_eq!(total(&["--type", "live-space", "--at", "2023-11-14T22:13:31Z"]), 200 + 50);
    run_otlpprof(&["report", &file, "--total", "--count"]).code(2);
    run_otlpprof(&["flamegraph", &file, "-o", "-", "--total", "--count"]).code(2);
}

#[test]
fn report_and_page_have_equal_sums_of_both_sides() {
    let files = Files::new();
    let base = files.add("base.otlp", &shop(TIME)[..3]);
    let new = files.add("new.otlp", &shop(TIME + 1_000 * DURATION));
    let page = files.path("diff.html");
    for filter in [&[][..], &["--threads"], &["--count"], &["--thread", "http-1"], &["--from=-15s"]] {
        run_otlpprof(&[&["diff", &base, &new, "-o", &page], filter].concat()).success();
        let Some(sides) = page_sums(&page) else { return };
        for name in ["cpu", "live-space", "alloc-space"] {
            // Without a change a function has no row, so the sums of each side come from the report on it.
            for (file, on_page) in [&base, &new].into_iter().zip(&sides) {
                let document = json(&[&["report", file, "--type", name], filter].concat());
                let (unit, total) = (text(&document["unit"]), document["total"].as_i64().unwrap());
                let sums = sums_of_rows(&document, sums_of);
                assert_eq!((unit, total, sums), on_page[name], "{filter:?}: {name} of {file}");
            }
            let document = json(&[&["report", &new, "--diff", &base, "--type", name], filter].concat());
            for (side, on_page) in ["base", "new"].into_iter().zip(&sides) {
                assert_eq!(document[side]["total"], on_page[name].1, "{filter:?}: {name} of {side}");
                for (function, sums) in sums_of_rows(&document, |row| sums_of(&row[side])) {
                    assert_eq!(on_page[name].2.get(&function), Some(&sums), "{filter:?}: {function:?}");
                }
            }
        }
    }
}

/// Regression: a state without a selected sample was not on the page, which showed the state before as the
/// last one.
#[test]
fn a_state_that_a_filter_empties_is_the_last_one_on_the_page() {
    let files = Files::new();
    let file = files.add("app.otlp", &shop(TIME));
    let page = files.path("page.html");
    let options = ["--thread", "http-1", "--type", "live-space"];
    run_otlpprof(&[&["flamegraph", &file, "-o", &page], &options[..]].concat()).success();
    let Some([on_page, _]) = page_sums(&page) else { return };
    assert_eq!(on_page["live-space"].1, 50);
}
