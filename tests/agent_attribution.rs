//! How much of the CPU time each endpoint takes, beside what the program itself has counted.

mod agent_support;

use std::collections::BTreeMap;
use std::path::Path;

use agent_support::stacks::cpu_stacks;
use agent_support::{JavaRun, oldest_and_newest};

/// Shares of their sum.
fn shares(amounts: &BTreeMap<String, i64>) -> BTreeMap<&str, f64> {
    let all: i64 = amounts.values().sum();
    amounts.iter().map(|(name, &amount)| (name.as_str(), amount as f64 / all as f64)).collect()
}

#[test]
fn endpoints_of_200_threads_have_the_shares_that_the_program_knows() {
    for home in oldest_and_newest() {
        // For longer where others have had the machine: what a thread's clock says of a request is then theirs in part.
        assert!(
            ["10", "30"].into_iter().any(|seconds| has_right_shares(&home, seconds)),
            "{}: wrong shares",
            home.display()
        );
    }
}

/// Whether each endpoint's share is within 2 % of what the program has counted.
fn has_right_shares(home: &Path, seconds: &str) -> bool {
    let run = JavaRun::new(home, "ContextRequests")
        .argument(seconds)
        .agent("cpu=100us,context=rest_endpoint+traceid+spanid,file=FILE")
        .run()
        .expect_success();
    let mut served = 0;
    let mut known = BTreeMap::new();
    for line in run.stdout.lines() {
        let [name, requests, cpu_ns] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{}: {line}", run.label)
        };
        served += requests.parse::<u64>().unwrap();
        known.insert(name.replace('_', " "), cpu_ns.parse::<i64>().unwrap());
    }
    let (mut found, mut periods, mut linked) = (BTreeMap::<_, i64>::new(), 0, 0);
    for stack in cpu_stacks(&run.messages()) {
        if let Some(endpoint) = stack.labels.get("rest_endpoint") {
            *found.entry(endpoint.clone()).or_default() += stack.value;
            periods += stack.value;
            linked += if stack.link.is_some() { stack.value } else { 0 };
        }
    }
    assert_eq!(known.len(), 4, "{}: {}", run.label, run.stdout);
    assert!(known.keys().eq(found.keys()), "{}: {found:?}", run.label);
    // A label is set right after the span, and a scope's end takes both at once.
    assert!(linked == periods, "{}: {linked} of {periods} have a span", run.label);
    let (found, known) = (shares(&found), shares(&known));
    eprintln!("{}: {served} requests, {periods} periods, {found:.4?}, known {known:.4?}", run.label);
    known.into_iter().all(|(endpoint, known)| (found[endpoint] / known - 1.0).abs() < 0.02)
}
