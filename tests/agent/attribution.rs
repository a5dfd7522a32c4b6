//! The share of CPU time of each endpoint, compared with the program's own count.

use std::collections::BTreeMap;
use std::path::Path;

use crate::estimate::{Estimate, assert_share};
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::stacks::{Stack, cpu_stacks};

/// Requests that the program serves for each second of its argument.
const SERVED_PER_S: u64 = 10_000;

/// The part of a known share by which a right share may differ, whatever the number of samples. A request's
/// first microseconds, in which its thread wakes up and takes the request, have no label yet, and its clock
/// counts a part of the time that the host takes from the machine.
const UNKNOWN: f64 = 0.02;

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

/// The shares of the amounts in their sum.
fn shares(amounts: &BTreeMap<String, f64>) -> BTreeMap<&str, f64> {
    let all: f64 = amounts.values().sum();
    amounts.iter().map(|(name, amount)| (name.as_str(), amount / all)).collect()
}

/// The number of equal samples with which a sum has the same relative error.
fn equal_samples(estimate: &Estimate) -> f64 {
    (estimate.sum() / estimate.standard_error()).powi(2)
}

#[test]
fn as_many_equal_samples_have_the_same_error() {
    assert!((equal_samples(&Estimate::of([(400, 10.0)])) - 400.0).abs() < 1e-6);
    assert!(equal_samples(&Estimate::of([(400, 10.0), (1, 1_000.0)])) < 30.0);
}

#[test]
fn endpoints_of_200_threads_have_the_shares_that_the_program_knows() {
    for home in newest_or_all() {
        // Timers sample once per tick of some milliseconds: on a fast machine the first run may have too few
        // samples.
        let are_enough = [4, 16].into_iter().any(|seconds| has_right_shares(&home, seconds));
        assert!(are_enough, "{}: too few samples", home.display());
    }
}

/// The endpoint whose method is in the stack.
fn serving(stack: &Stack) -> Option<&'static str> {
    SERVED_BY.into_iter().find(|(method, _)| stack.has(method)).map(|(_, endpoint)| endpoint)
}

/// The CPU time that each endpoint has used by the program's own count. Asserts that all requests were
/// served.
fn known_times(run: &Finished, seconds: u64) -> BTreeMap<String, f64> {
    let (mut served, mut known) = (0, BTreeMap::new());
    for line in run.stdout.lines() {
        let [name, requests, cpu_ns] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{}: {line}", run.label)
        };
        served += requests.parse::<u64>().unwrap();
        known.insert(name.replace('_', " "), cpu_ns.parse().unwrap());
    }
    assert_eq!(known.len(), 4, "{}: {}", run.label, run.stdout);
    assert_eq!(served, seconds * SERVED_PER_S, "{}: {}", run.label, run.stdout);
    known
}

/// Asserts that each endpoint's share is the program's own count. Returns `false` if there are too few
/// samples to judge.
fn has_right_shares(home: &Path, seconds: u64) -> bool {
    let program = JavaRun::new(home, "ContextRequests").jvm_option("-XX:CompileCommand=quiet");
    let run = APART
        .into_iter()
        .fold(program, JavaRun::jvm_option)
        .argument(seconds)
        .agent("cpu=100us,context=rest_endpoint+traceid+spanid,timestamps,file=FILE")
        .run()
        .expect_success();
    let known = known_times(&run, seconds);
    let (mut found, mut groups) = (BTreeMap::<_, f64>::new(), Vec::new());
    let (mut periods, mut linked, mut in_methods) = (0, 0, 0);
    for stack in cpu_stacks(&run.messages()) {
        if let Some(endpoint) = serving(&stack) {
            let label = stack.labels.get("rest_endpoint").map(String::as_str);
            assert_eq!(label, Some(endpoint), "{}: {stack:#?}", run.label);
            in_methods += stack.value;
        }
        if let Some(endpoint) = stack.labels.get("rest_endpoint") {
            assert!(stack.times > 0, "{}: no times: {stack:#?}", run.label);
            groups.push((stack.times, stack.value as f64 / stack.times as f64));
            *found.entry(endpoint.clone()).or_default() += stack.value as f64;
            periods += stack.value;
            linked += if stack.link.is_some() { stack.value } else { 0 };
        }
    }
    assert!(known.keys().eq(found.keys()), "{}: {found:?}", run.label);
    // Nearly all samples with a label are in one of the methods, so that the labels are really checked.
    assert!(in_methods * 10 > periods * 9, "{}: {in_methods} of {periods} in methods", run.label);
    // A label is set right after the span, and the end of a scope removes both at once.
    assert!(linked == periods, "{}: {linked} of {periods} have a span", run.label);
    let samples = equal_samples(&Estimate::of(groups));
    let (found, known) = (shares(&found), shares(&known));
    eprintln!(
        "{}: {periods} periods, {in_methods} in methods, as good as {samples:.0} equal samples, {found:.4?}, \
         known {known:.4?}",
        run.label
    );
    // Five standard errors of the smallest share must be less than a third of it, which a factor of 1.5
    // exceeds.
    let smallest = known.values().copied().fold(1.0, f64::min) * (1.0 - UNKNOWN);
    if samples < 25.0 * 9.0 * (1.0 - smallest) / smallest * 1.05 {
        return false;
    }
    for (endpoint, share) in known {
        let expected = (1.0 - UNKNOWN) * share..=(1.0 + UNKNOWN) * share;
        let part = (found[endpoint] * samples).round() as i64;
        assert_share(part, samples.round() as i64, expected, &format!("{} {endpoint}", run.label));
    }
    true
}
