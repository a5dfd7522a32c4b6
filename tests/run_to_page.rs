//! From a program to the answer, by the real commands: `otlpprof run` on a JVM whose requests have labels and
//! spans, the report on one endpoint, the page in headless Chromium as a person uses it, and the comparison
//! with a run of a changed program. Sums come from a reader in Python, which is independent of otlpprof.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use otlpprof_testkit::commands::{parts, run_otlpprof, text};
use otlpprof_testkit::exported::{Functions, functions, truth};
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::pages::{compare, used};
use otlpprof_testkit::profile_files::json;
use otlpprof_testkit::run_folder::{CLASSES, RunFolder};
use otlpprof_testkit::this_build::libraries;
use serde_json::{Value, json};

/// The functions of the program, as they are named in profiles.
const PRICE: &str = "programs.Endpoints.price";
const DISCOUNT: &str = "programs.Endpoints.discount";
const SEARCH: &str = "programs.Endpoints.search";
const NATIVE: &str = "ddprof_hash";
const HASH: &str = "hash_block";

fn java() -> PathBuf {
    newest_or_all().pop().unwrap().join("bin/java")
}

/// Runs the program, which must leave its profiles in `NAME.otlp` and its page in `NAME.html`. Returns the
/// report that the command has printed.
fn run(place: &RunFolder, name: &str) -> String {
    let mut command = place.run();
    command.args(["cpu=1ms,context=endpoint", "--keep", &format!("{name}.otlp")]);
    command.args(["-o", &format!("{name}.html"), "--"]).arg(java());
    command.arg("-cp").arg(format!("{CLASSES}:{}", otlpprof_testkit::products::API_CLASSES));
    // Each function of the program is called, so that no compiled caller has its work.
    command.args(["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,programs.Endpoints::*"]);
    command.arg(format!("-Dddproftest={}", libraries()[0])).args(["programs.Endpoints", name]);
    let (code, stdout, stderr) = parts(&command.output().unwrap());
    assert_eq!((code, &*stdout), (0, ""), "{stderr}");
    place.assert_clean();
    stderr
}

/// Self and total of each function in a document of `report`, of one side of a comparison or of the only one.
fn in_report(document: &Value, side: Option<&str>) -> Functions {
    let mut sums = Functions::new();
    for row in document["rows"].as_array().unwrap() {
        let values = side.map_or(row, |side| &row[side]);
        let value = |name: &str| values[name].as_i64().unwrap();
        let of_function = sums.entry(row["function"].as_str().unwrap().to_owned()).or_default();
        *of_function = (of_function.0 + value("self"), of_function.1 + value("total"));
    }
    sums.retain(|_, sums| *sums != (0, 0));
    sums
}

/// Self and total of each function on a page, of the side of this number.
fn on_page(answer: &Value, side: usize, sides: usize) -> Functions {
    let mut sums = Functions::new();
    for row in answer["functions"].as_array().unwrap() {
        let value = |at: usize| row[at].as_f64().unwrap() as i64;
        let of_function = sums.entry(row[0].as_str().unwrap().to_owned()).or_default();
        *of_function = (of_function.0 + value(1 + side), of_function.1 + value(1 + sides + side));
    }
    sums.retain(|_, sums| *sums != (0, 0));
    sums
}

/// The report on an endpoint. Its sums must equal the sums of Python's reader.
fn report(file: &str, endpoint: &str) -> Value {
    let filter = format!("endpoint={endpoint}");
    let document = json(&["report", file, "--where", &filter]);
    assert_eq!((&document["type"], &document["unit"]), (&"cpu".into(), &"nanoseconds".into()));
    if let Some(mut types) = truth(&[file, "--where", &filter]) {
        let stacks = types.remove("cpu").unwrap();
        assert_eq!(in_report(&document, None), functions(&stacks), "{filter}");
        assert_eq!(document["total"], stacks.values().sum::<i64>(), "{filter}");
    }
    document
}

/// The report must have this function and no other on top, and lack those of the other endpoint.
fn assert_leads_to(document: &Value, function: &str, code: &str, others: &[&str]) {
    let top = &document["rows"][0];
    assert_eq!((&top["function"], &top["code"]), (&function.into(), &code.into()), "{document}");
    let sums = in_report(document, None);
    for other in others {
        assert!(!sums.contains_key(*other), "{other}: {document}");
    }
}

/// Name and total of a graph's root.
fn root_total(graph: &Value) -> (String, i64) {
    (graph[0][0].as_str().unwrap().to_owned(), graph[0][1].as_f64().unwrap() as i64)
}

fn has_node(graph: &Value, name: &str) -> bool {
    graph.as_array().unwrap().iter().any(|node| node[0] == name)
}

/// The classes of the cells of a function's row in the table.
fn tones(answer: &Value, function: &str) -> Vec<String> {
    let rows = answer["table"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == function);
    let row = row.unwrap_or_else(|| panic!("no row of {function}: {answer}"));
    let cells = row["cells"].as_array().unwrap().iter();
    cells.map(|cell| cell[0].as_str().unwrap().to_owned()).collect()
}

/// Uses the page of a run: chooses an endpoint by the page's selector, points at frames, and opens callers
/// and callees.
fn use_page(page: &Path, reports: &BTreeMap<&str, Value>) {
    let steps = json!([
        ["choose", "endpoint", "/cart"],
        ["point", PRICE, 0],
        ["sandwich", PRICE],
        ["press", "Escape"],
        // The first choice is taken back.
        ["choose", "endpoint", "/cart"],
        ["choose", "endpoint", "/search"],
        ["point", HASH, 0],
        ["search", "^hash_block$"],
        ["sandwich", HASH],
    ]);
    let Some(answers) = used(page, &steps) else { return };
    let [cart, price, around_price, _, all, search, hash, found, around_hash] = &answers[..] else {
        panic!("{answers:?}")
    };
    for (answer, endpoint) in [(cart, "/cart"), (search, "/search")] {
        assert_eq!(on_page(answer, 0, 1), in_report(&reports[endpoint], None), "{endpoint}");
        let graph = &answer["graphs"][0];
        assert_eq!(root_total(graph), ("all".into(), reports[endpoint]["total"].as_i64().unwrap()));
        let selector = Value::from(format!("endpoint: {endpoint} ▾"));
        assert!(answer["selectors"].as_array().unwrap().contains(&selector), "{answer}");
    }
    assert!(has_node(&cart["graphs"][0], PRICE) && !has_node(&cart["graphs"][0], HASH));
    assert!(!has_node(&search["graphs"][0], PRICE));
    for name in [SEARCH, NATIVE, HASH] {
        assert!(has_node(&search["graphs"][0], name), "{name}: {search}");
    }
    assert!(has_node(&all["graphs"][0], PRICE) && has_node(&all["graphs"][0], HASH));
    // The pointer shows the kind of code, and the place.
    let tooltip = price["tooltip"].as_str().unwrap();
    assert!(tooltip.contains(PRICE) && tooltip.contains("Java · Endpoints.java"), "{tooltip}");
    let tooltip = hash["tooltip"].as_str().unwrap();
    assert!(tooltip.contains(HASH) && tooltip.contains("native"), "{tooltip}");
    assert_eq!(found["table"].as_array().unwrap().len(), 1, "{found}");
    for (answer, function, endpoint, caller) in
        [(around_price, PRICE, "/cart", "programs.Endpoints.cart"), (around_hash, HASH, "/search", SEARCH)]
    {
        let [callers, callees] = &answer["graphs"].as_array().unwrap()[..] else { panic!("{answer}") };
        let total = in_report(&reports[endpoint], None)[function].1;
        assert_eq!(root_total(callers), (function.into(), total));
        assert_eq!(root_total(callees), (function.into(), total));
        assert!(has_node(callers, caller) && !has_node(callees, caller), "{callers}");
    }
}

/// Compares two runs in the report and on a page. Each side must have the sums of its own report.
fn use_comparison(place: &RunFolder, base: &str, new: &str) {
    let documents = [base, new].map(|file| report(file, "/cart"));
    let compared = json(&["report", new, "--diff", base, "--where", "endpoint=/cart"]);
    let page = place.path("diff.html");
    run_otlpprof(&["diff", base, new, "-o", text(&page)]).success();
    let steps = json!([["choose", "endpoint", "/cart"], ["point", DISCOUNT, 0]]);
    let Some(answers) = used(&page, &steps) else { return };
    for (side, (name, document)) in ["base", "new"].into_iter().zip(&documents).enumerate() {
        let sums = in_report(document, None);
        assert_eq!(on_page(&answers[0], side, 2), sums, "{name}");
        assert_eq!(compared[name]["total"], document["total"], "{name}");
        for function in [PRICE, DISCOUNT] {
            assert_eq!(in_report(&compared, Some(name))[function], sums[function], "{name}: {function}");
        }
    }
    let total = |function: &str, side: &str| in_report(&compared, Some(side))[function].0;
    assert!(total(PRICE, "base") > total(PRICE, "new"), "{compared}");
    assert!(total(DISCOUNT, "base") < total(DISCOUNT, "new"), "{compared}");
    for (function, tone) in [(PRICE, "shrunk"), (DISCOUNT, "grown")] {
        let tones = tones(&answers[0], function);
        let [_, _, own, _, _, all] = &tones[..] else { panic!("{tones:?}") };
        assert_eq!([own, all], [&format!("number {tone}"); 2], "{function}");
    }
    let tooltip = answers[1]["tooltip"].as_str().unwrap();
    assert!(tooltip.contains("Change") && tooltip.contains('+'), "{tooltip}");
}

#[test]
fn a_run_leads_to_the_function_of_an_endpoint_and_a_second_run_to_its_change() {
    let place = RunFolder::new();
    let printed = run(&place, "before");
    for function in [PRICE, HASH] {
        assert!(printed.contains(function), "{function}: {printed}");
    }
    let before = place.path("before.otlp");
    let file = text(&before);
    let cart = report(file, "/cart");
    assert_leads_to(&cart, PRICE, "Java", &[SEARCH, NATIVE, HASH]);
    let search = report(file, "/search");
    assert_leads_to(&search, HASH, "native", &[PRICE, DISCOUNT]);
    // Endpoint and trace of a thread are set in one step.
    let of_trace = json(&["report", file, "--trace", "00000000000000ca0000000000000047"]);
    assert_eq!(in_report(&of_trace, None), in_report(&cart, None));
    use_page(&place.path("before.html"), &BTreeMap::from([("/cart", cart), ("/search", search)]));

    run(&place, "after");
    let after = place.path("after.otlp");
    assert_leads_to(&report(text(&after), "/cart"), DISCOUNT, "Java", &[SEARCH, NATIVE, HASH]);
    use_comparison(&place, file, text(&after));
}

/// A script starts two JVMs. Each can be chosen in the report and on the page of both.
#[test]
fn one_of_several_processes_is_chosen() {
    let place = RunFolder::new();
    let java = format!("'{}' -cp '{CLASSES}' programs.RunAndExit", java().display());
    let script = place.script("two.sh", &format!("#!/bin/sh\n{java} &\n{java}\nwait\n"));
    let mut command = place.run();
    command.args(["cpu=1ms", "--keep", "both.otlp", "-o", "both.html", "--"]).arg(script);
    let (code, stdout, stderr) = parts(&command.output().unwrap());
    assert_eq!(code, 0, "{stderr}");
    let pids: Vec<_> = stdout.lines().filter_map(|line| line.strip_prefix("pid ")).collect();
    assert_eq!(pids.len(), 2, "{stdout}");
    let (file, page) = (place.path("both.otlp"), place.path("both.html"));
    if let Some(compared) = compare("page", &page, &[text(&file)]) {
        compared.unwrap_or_else(|difference| panic!("{difference}"));
    }
    let by_process = json(&["report", text(&file), "--by", "process"]);
    let groups = by_process["groups"].as_array().unwrap();
    let mut steps = Vec::new();
    for pid in &pids {
        // The second choice of a value takes the first one back.
        steps.extend([json!(["choose", "process.pid", pid]), json!(["choose", "process.pid", pid])]);
    }
    let answers = used(&page, &Value::from(steps));
    for (at, pid) in pids.iter().enumerate() {
        let document = json(&["report", text(&file), "--where", &format!("process.pid={pid}")]);
        let sums = in_report(&document, None);
        assert!(sums.contains_key("programs.RunAndExit.burn"), "{pid}: {document}");
        let of_group = groups.iter().find(|group| group["value"] == *pid).unwrap();
        assert_eq!(in_report(of_group, None), sums, "{pid}");
        if let Some(answers) = &answers {
            assert_eq!(on_page(&answers[2 * at], 0, 1), sums, "{pid}");
        }
    }
}
