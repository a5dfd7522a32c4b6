//! The profiler keeps to its budget, says by how much it samples more seldom, and its sums stay right.

mod agent_support;
mod loud_support;

use agent_support::running::Finished;
use agent_support::stacks::stacks_of;
use agent_support::{JavaRun, java_version, oldest_and_newest, profiles};
use loud_support::not_tested;

fn run(home: &std::path::Path, program: &'static str, argument: &str, options: &str) -> Finished {
    let options = format!("interval=1s,file=FILE,{options}");
    JavaRun::new(home, program).argument(argument).agent(&options).run().expect_success()
}

/// How many samples were taken for each second of the CPU time that they stand for, in the last messages: the first seconds
/// are sampled as was asked for. Not what handlers took by the clock: on a machine with more to do than it has CPUs one that
/// was switched out takes as long as a thousand.
fn late_samples_per_s(run: &Finished) -> f64 {
    let messages = run.messages();
    let late = &messages[messages.len() * 2 / 3..];
    let taken: i64 =
        late.iter().map(|message| profiles::profile_counter(message, "handler.samples_taken")).sum();
    let stacks = stacks_of(late, "cpu", ("samples", "count"));
    let sampled: i64 = stacks.iter().map(|stack| stack.value * stack.period_ns).sum();
    taken as f64 / sampled as f64 * 1e9
}

fn limits(run: &Finished, engine: &str) -> Vec<i64> {
    let key = format!("limit.{engine}");
    run.messages().iter().map(|message| profiles::profile_counter(message, &key)).collect()
}

#[test]
fn cpu_samples_are_fewer_within_a_budget_and_stand_for_all_time() {
    for home in oldest_and_newest() {
        let [free, held] = ["off", "0.1"]
            .map(|budget| run(&home, "Demo", "8", &format!("cpu=100us,cpu.clock=timer,budget={budget}")));
        assert!(limits(&free, "cpu").iter().all(|&limit| limit == 0), "{}", free.label);
        let limits = limits(&held, "cpu");
        assert!(limits.iter().any(|&limit| limit >= 2), "{}: {limits:?}\n{}", held.label, held.stderr);
        assert_eq!(held.stderr.matches("more than `budget`").count(), 1, "{}: {}", held.label, held.stderr);
        let (without, with) = (late_samples_per_s(&free), late_samples_per_s(&held));
        assert!(with < without / 1.5, "{}: {with} of {without}, {limits:?}", held.label);
        // Value times period is CPU time as ever.
        let stacks = stacks_of(&held.messages(), "cpu", ("samples", "count"));
        let sampled_ns: f64 = stacks.iter().map(|stack| (stack.value * stack.period_ns) as f64).sum();
        let used_ns = held.cpu.as_nanos() as f64;
        // Some of what the process uses is the profiler's own, and the VM's before the agent was there.
        let ratio = sampled_ns / used_ns;
        assert!((0.75..1.05).contains(&ratio), "{}: {ratio:.3}, {limits:?}", held.label);
        let periods: std::collections::BTreeSet<_> = stacks.iter().map(|stack| stack.period_ns).collect();
        assert!(periods.iter().any(|period| *period > 100_000), "{}: {periods:?}", held.label);
        assert!(periods.iter().all(|period| period % 100_000 == 0), "{}: {periods:?}", held.label);
    }
}

/// The kernel counts longer periods, of which each sample stands for as many as it has counted.
#[test]
fn perf_events_have_longer_periods_within_a_budget() {
    for home in oldest_and_newest() {
        let options = "interval=1s,file=FILE,event=page-faults,cpu=off,budget=0.1";
        let run = JavaRun::new(&home, "PerfEvents").argument("faults").argument(400_000);
        let run = run.agent(options).run().expect_success();
        if run.stderr.contains("event=page-faults is off") {
            not_tested("page faults within a budget, since perf events are not granted");
            continue;
        }
        let limits = limits(&run, "event");
        assert!(limits.iter().any(|&limit| limit >= 8), "{}: {limits:?}", run.label);
        let stacks = stacks_of(&run.messages(), "page-faults", ("samples", "count"));
        let found: f64 = stacks
            .iter()
            .filter(|stack| stack.has("programs.PerfEvents.touch"))
            .map(|stack| (stack.value * stack.period_ns) as f64)
            .sum();
        // One line for each of two threads: name, number, and what else there may have been.
        let counted = run.stdout.lines().map(|line| line.split(' ').nth(1).unwrap().parse::<f64>().unwrap());
        let ratio = found / counted.sum::<f64>();
        assert!((ratio - 1.0).abs() < 0.05, "{}: {ratio:.3}, {limits:?}", run.label);
        let samples: i64 = run.counter("event.samples").cast_signed();
        assert!((samples as f64) < 0.8 * found, "{}: {samples} of {found}, {limits:?}", run.label);
    }
}

#[test]
fn sampled_events_stand_for_those_that_the_budget_leaves_out() {
    for home in oldest_and_newest() {
        let run = run(&home, "AllocationLoop", "6", "cpu=off,alloc=256,budget=0.1");
        let limits = limits(&run, "alloc");
        assert!(limits.iter().any(|&limit| limit >= 16), "{}: {limits:?}", run.label);
        // It is the VM that samples more seldom: what it does not tell of costs nothing.
        let taken: Vec<i64> = run
            .messages()
            .iter()
            .map(|message| profiles::profile_counter(message, "handler.samples_taken"))
            .collect();
        let (most, last) = (taken.iter().max().unwrap(), taken[taken.len() - 2]);
        assert!(last < most / 4, "{}: {taken:?}", run.label);
        let thinned: u64 = run.counter("handler.samples_thinned");
        assert!(thinned < most.unsigned_abs() / 4, "{}: {thinned}, {taken:?}", run.label);
        let stacks = stacks_of(&run.messages(), "alloc-objects", ("alloc_objects", "count"));
        let found: f64 = stacks
            .iter()
            .filter(|stack| stack.has("programs.AllocationLoop.allocate"))
            .map(|stack| stack.value as f64)
            .sum();
        let allocated: f64 = run.stdout.trim().parse().unwrap();
        let ratio = found / allocated;
        // A stretch of thousands leaves some thousand samples a second. JDK 11 picks some objects too often.
        let tolerance = if java_version(&home) == 11 { 0.3 } else { 0.1 };
        assert!((ratio - 1.0).abs() < tolerance, "{}: {ratio:.3}, {limits:?}", run.label);
    }
}
