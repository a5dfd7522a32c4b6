//! The profiler keeps to its budget, reports how much less often it samples, and its sums stay right.

use crate::agent_support::running::Finished;
use crate::agent_support::stacks::{Stack, stacks_of};
use crate::agent_support::{JavaRun, java_version, oldest_and_newest, profiles};
use crate::loud_support::not_tested;

fn run(home: &std::path::Path, program: &'static str, argument: &str, options: &str) -> Finished {
    let options = format!("interval=1s,file=FILE,{options}");
    JavaRun::new(home, program).argument(argument).agent(&options).run().expect_success()
}

/// The number of samples that were taken for each second of the CPU time that they stand for, in the last
/// third of the messages: the first seconds are sampled at the requested rate. The wall-clock time of
/// handlers is no measure: on a machine with more to do than it has CPUs, a handler that was switched out
/// takes as long as a thousand others.
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
        // The product of value and period is still CPU time.
        let stacks = stacks_of(&held.messages(), "cpu", ("samples", "count"));
        let sampled_ns: f64 = stacks.iter().map(|stack| (stack.value * stack.period_ns) as f64).sum();
        let used_ns = held.cpu.as_nanos() as f64;
        // A part of the process's CPU time is the profiler's own, or was used by the VM before the agent was
        // loaded.
        let ratio = sampled_ns / used_ns;
        assert!((0.75..1.05).contains(&ratio), "{}: {ratio:.3}, {limits:?}", held.label);
        let periods: std::collections::BTreeSet<_> = stacks.iter().map(|stack| stack.period_ns).collect();
        assert!(periods.iter().any(|period| *period > 100_000), "{}: {periods:?}", held.label);
        assert!(periods.iter().all(|period| period % 100_000 == 0), "{}: {periods:?}", held.label);
    }
}

/// The kernel counts longer periods, and each sample stands for as many events as it has counted.
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
        // The program prints a line for each of two threads: name, number, and the number of further events
        // that may have occurred.
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
        // The VM itself samples less often: objects that it does not report cost nothing.
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

/// The library of native allocations.
const ALLOCATING: &str = env!("OTLPPROF_ALLOCATING");

/// The share of one processor's time that the profiler may use, in percent.
const SMALL_BUDGET: f64 = 0.5;
/// The factor by which samples may exceed the budget at the end. A processor is allowed for each that the
/// program uses, which are up to two here. The stretch doubles in steps, and is reduced when there has been
/// room for a while.
const MOST_TIMES: f64 = 4.0;

/// The CPU time that samples took in the last third of a run, as a part of a processor's time. Each sample is
/// counted with the average of the message in which samples took least: the wall-clock time of handlers
/// includes time that other programs took from the processor.
fn late_share_of_samples(run: &Finished) -> f64 {
    let messages = run.messages();
    let counters = |key| messages.iter().map(move |message| profiles::profile_counter(message, key));
    let taken: Vec<f64> = counters("handler.samples_taken").map(|taken| taken as f64).collect();
    let each_ns = counters("handler.handler_ns").zip(&taken).filter(|(_, taken)| **taken >= 20.0);
    let least_ns = each_ns.map(|(ns, taken)| ns as f64 / taken).fold(f64::INFINITY, f64::min);
    assert!(least_ns.is_finite(), "{}: {taken:?}", run.label);
    let late = messages.len() * 2 / 3;
    let late_taken: f64 = taken[late..].iter().sum();
    late_taken * least_ns / ((messages.len() - late) as f64 * 1e9)
}

/// Runs the program with the small budget, in which the engine samples less often, and checks the cost of its
/// samples.
fn held(
    home: &std::path::Path,
    program: &'static str,
    arguments: &[&str],
    engine: &str,
    how: &str,
) -> Finished {
    let options = format!("interval=1s,file=FILE,limit=off,budget={SMALL_BUDGET},{how}");
    // Preloaded: the allocations of a library before its imports are redirected are neither seen nor slowed
    // down.
    let run = JavaRun::new(home, program).variable("LD_PRELOAD", ALLOCATING).agent(&options);
    let run = arguments.iter().fold(run, JavaRun::argument);
    let run = run.run().expect_success();
    let limits = limits(&run, engine);
    assert!(limits.iter().any(|&limit| limit >= 2), "{} {how}: {limits:?}\n{}", run.label, run.stderr);
    let share = 100.0 * late_share_of_samples(&run);
    assert!(share <= MOST_TIMES * SMALL_BUDGET, "{} {how}: {share:.3} %, {limits:?}", run.label);
    run
}

/// Asserts that the engine's samples stand for all events.
fn assert_sum(
    run: &Finished,
    kind: [&str; 3],
    is_it: impl Fn(&Stack) -> bool,
    expected: f64,
    tolerance: f64,
) {
    let [profile_type, sample_type, unit] = kind;
    let stacks = stacks_of(&run.messages(), profile_type, (sample_type, unit));
    let found: f64 = stacks.iter().filter(|stack| is_it(stack)).map(|stack| stack.value as f64).sum();
    let ratio = found / expected;
    let dropped = run.counter("handler.samples_dropped");
    eprintln!("{}: {kind:?}: {ratio:.3}, {dropped} dropped", run.label);
    assert!((ratio - 1.0).abs() < tolerance, "{}: {kind:?}: {ratio:.3}, {dropped} dropped", run.label);
}

/// The number that a program counted.
fn counted(run: &Finished) -> f64 {
    run.stdout.trim().parse().unwrap()
}

#[test]
fn every_engine_of_events_keeps_to_the_budget_and_stands_for_all_events() {
    let tolerance = 0.2;
    for home in oldest_and_newest() {
        for (engine, how, kind) in [
            ("exceptions", "cpu=off,exceptions", ["exceptions", "exceptions", "count"]),
            ("lock", "cpu=off,lock=1ns", ["lock-contention", "contentions", "count"]),
            ("wait", "cpu=off,wait=1ns", ["wait", "waits", "count"]),
            ("trace", "cpu=off,trace=programs.EventStorm.traced:1ns", ["trace", "calls", "count"]),
            ("nativemem", "cpu=off,nativemem=1k", ["nativemem", "alloc_objects", "count"]),
        ] {
            let arguments = [engine, "8", ALLOCATING];
            let number = if engine == "nativemem" { 3 } else { 2 };
            let run = held(&home, "EventStorm", &arguments[..number], engine, how);
            let is_it = |stack: &Stack| {
                let has = |part: &str| stack.frames.iter().any(|frame| frame.name.contains(part));
                has("programs.EventStorm.") && (engine != "nativemem" || has("allocating_medium"))
            };
            assert_sum(&run, kind, is_it, counted(&run), tolerance);
        }
    }
}

#[test]
fn engines_of_the_heap_keep_to_the_budget() {
    for home in oldest_and_newest() {
        // JDK 11 picks some objects too often.
        let tolerance = if java_version(&home) == 11 { 0.3 } else { 0.2 };
        let run = held(&home, "AllocationLoop", &["8"], "alloc", "cpu=off,alloc=256");
        let is_it = |stack: &Stack| stack.has("programs.AllocationLoop.allocate");
        assert_sum(&run, ["alloc-objects", "alloc_objects", "count"], is_it, counted(&run), tolerance);
        // None of the objects lives on: without another engine there would be no profile with the limit.
        held(&home, "AllocationLoop", &["8"], "live", "cpu=100ms,live=256");
    }
}

#[test]
fn wall_clock_samples_keep_to_the_budget_and_stand_for_all_time() {
    for home in oldest_and_newest() {
        let run = held(&home, "EventStorm", &["wall", "8"], "wall", "cpu=off,wall=100us");
        let stacks = stacks_of(&run.messages(), "wall", ("samples", "count"));
        let of_thread = stacks.iter().filter(|stack| stack.thread == "spins-0");
        let sampled_ns: f64 = of_thread.map(|stack| (stack.value * stack.period_ns) as f64).sum();
        let ratio = sampled_ns / counted(&run);
        assert!((ratio - 1.0).abs() < 0.1, "{}: {ratio:.3}", run.label);
    }
}
