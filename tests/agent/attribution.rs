//! The share of CPU time of each endpoint, compared with the program's own count.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use crate::agent_support::stacks::{Stack, cpu_stacks};
use crate::agent_support::{JavaRun, oldest_and_newest};

/// Requests that arrive in a second.
const WANTED_PER_S: f64 = 10_000.0;
/// The least part of the requests that must be served, so that the shares are those of a busy service.
const SERVED: f64 = 0.9;
/// The total cost of a request, as a multiple of the CPU time that the request itself uses. The rest is for
/// the queue, the switches between 200 threads, the VM's own work, and the samples.
const COST: f64 = 1.5;

/// The endpoints by the methods that serve them.
const SERVED_BY: [(&str, &str); 4] = [
    ("programs.ContextRequests.getItems", "GET /items"),
    ("programs.ContextRequests.getCart", "GET /cart"),
    ("programs.ContextRequests.postCart", "POST /cart"),
    ("programs.ContextRequests.postOrders", "POST /orders"),
];

/// The methods of `SERVED_BY` are called where the context is set: none of their code runs before or after.
const APART: [&str; 4] = [
    "-XX:CompileCommand=dontinline,programs.ContextRequests::getItems",
    "-XX:CompileCommand=dontinline,programs.ContextRequests::getCart",
    "-XX:CompileCommand=dontinline,programs.ContextRequests::postCart",
    "-XX:CompileCommand=dontinline,programs.ContextRequests::postOrders",
];

/// The machine's state while the program served, as the program reports it.
struct Machine {
    elapsed_ns: f64,
    /// CPU time that other programs have left to this program.
    left_ns: f64,
}

/// Judgement of the number of requests that were served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Enough,
    /// There was no CPU time for more requests.
    Starved,
    TooFew,
}

impl Machine {
    /// Judges a number of served requests that have used `used_ns` of CPU time themselves.
    fn load(&self, served: u64, used_ns: f64) -> Load {
        let wanted = self.elapsed_ns / 1e9 * WANTED_PER_S * SERVED;
        if served as f64 >= wanted {
            Load::Enough
        } else if self.left_ns < used_ns / served as f64 * wanted * COST {
            Load::Starved
        } else {
            Load::TooFew
        }
    }
}

/// Prints a message even if the test passes, whose output would be dropped otherwise.
fn warn_loudly(what: &str) {
    // With a single write, lines of tests that run side by side do not mix.
    let _ = io::stderr().write_all(format!("\n*** {what} ***\n").as_bytes());
}

/// The shares of the amounts in their sum.
fn shares(amounts: &BTreeMap<String, i64>) -> BTreeMap<&str, f64> {
    let all: i64 = amounts.values().sum();
    amounts.iter().map(|(name, &amount)| (name.as_str(), amount as f64 / all as f64)).collect()
}

#[test]
fn a_load_is_too_low_only_where_there_was_cpu_time_for_more() {
    // 10 s of two CPUs; each request takes 80 us.
    let load = |served: u64, left_s: f64| {
        Machine { elapsed_ns: 10e9, left_ns: left_s * 1e9 }.load(served, served as f64 * 80e3)
    };
    assert_eq!([load(99_000, 20.0), load(90_000, 1.0)], [Load::Enough; 2]);
    assert_eq!([load(89_000, 20.0), load(100, 11.0)], [Load::TooFew; 2]);
    assert_eq!([load(89_000, 10.0), load(100, 1.0)], [Load::Starved; 2]);
}

#[test]
fn endpoints_of_200_threads_have_the_shares_that_the_program_knows() {
    for home in oldest_and_newest() {
        // A second run is longer, for the case that other programs have used the CPU: a thread's clock then
        // counts a part of their time for a request.
        assert!(
            ["15", "40"].into_iter().any(|seconds| has_right_shares(&home, seconds)),
            "{}: wrong shares",
            home.display()
        );
    }
}

/// The endpoint whose method is in the stack.
fn serving(stack: &Stack) -> Option<&'static str> {
    SERVED_BY.into_iter().find(|(method, _)| stack.has(method)).map(|(_, endpoint)| endpoint)
}

/// Whether each endpoint's share is within 2 % of the program's own count, and as many requests were served
/// as the machine allowed.
fn has_right_shares(home: &Path, seconds: &str) -> bool {
    let program = JavaRun::new(home, "ContextRequests").jvm_option("-XX:CompileCommand=quiet");
    let run = APART
        .into_iter()
        .fold(program, JavaRun::jvm_option)
        .argument(seconds)
        .agent("cpu=100us,context=rest_endpoint+traceid+spanid,file=FILE")
        .run()
        .expect_success();
    let mut served = 0;
    let mut known = BTreeMap::new();
    let mut machine = None;
    for line in run.stdout.lines() {
        if let Some(numbers) = line.strip_prefix("machine ") {
            machine = numbers.split_once(' ').map(|(elapsed, left)| Machine {
                elapsed_ns: elapsed.parse().unwrap(),
                left_ns: left.parse().unwrap(),
            });
            continue;
        }
        let [name, requests, cpu_ns] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{}: {line}", run.label)
        };
        served += requests.parse::<u64>().unwrap();
        known.insert(name.replace('_', " "), cpu_ns.parse::<i64>().unwrap());
    }
    let (mut found, mut periods, mut linked, mut in_methods) = (BTreeMap::<_, i64>::new(), 0, 0, 0);
    for stack in cpu_stacks(&run.messages()) {
        if let Some(endpoint) = serving(&stack) {
            let label = stack.labels.get("rest_endpoint").map(String::as_str);
            assert_eq!(label, Some(endpoint), "{}: {stack:#?}", run.label);
            in_methods += stack.value;
        }
        if let Some(endpoint) = stack.labels.get("rest_endpoint") {
            *found.entry(endpoint.clone()).or_default() += stack.value;
            periods += stack.value;
            linked += if stack.link.is_some() { stack.value } else { 0 };
        }
    }
    assert_eq!(known.len(), 4, "{}: {}", run.label, run.stdout);
    assert!(known.keys().eq(found.keys()), "{}: {found:?}", run.label);
    // Nearly all samples with a label are in one of the methods, so that the labels are really checked.
    assert!(in_methods * 10 > periods * 9, "{}: {in_methods} of {periods} in methods", run.label);
    // A label is set right after the span, and the end of a scope removes both at once.
    assert!(linked == periods, "{}: {linked} of {periods} have a span", run.label);
    let used_ns: i64 = known.values().sum();
    let machine = machine.expect("a line about the machine");
    let load = machine.load(served, used_ns as f64);
    let (found, known) = (shares(&found), shares(&known));
    eprintln!(
        "{}: {served} requests, {load:?}, {periods} periods, {in_methods} in methods, {found:.4?}, known \
         {known:.4?}",
        run.label
    );
    if load == Load::Starved {
        warn_loudly(&format!(
            "{}: {served} requests in {:.1} s, and not {WANTED_PER_S}/s: other programs left {:.1} s of CPU \
             time",
            run.label,
            machine.elapsed_ns / 1e9,
            machine.left_ns / 1e9
        ));
    }
    load != Load::TooFew
        && known.into_iter().all(|(endpoint, known)| (found[endpoint] / known - 1.0).abs() < 0.02)
}
