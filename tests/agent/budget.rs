//! The profiler keeps to its budget, reports how much less often it samples, and its sums stay right.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::estimate::Estimate;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_version, newest_or_all};
use otlpprof_testkit::profiles;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::stacks::{Stack, stacks_of};

/// The library of native allocations.
const ALLOCATING: &str = otlpprof_testkit::products::ALLOCATING;
/// The seconds for which work is measured after an engine has been stretched. The longer runs are for
/// machines on which a sample costs so much that the first run has too few of them.
const MEASURED_S: [u32; 3] = [3, 12, 48];
/// The line that the log has once, where the budget stretches an engine for the first time.
const WARNING: &str = "more than `budget`";

/// The factor by which the engine sampled less often, at most, in each message; 0: as often as was asked for.
fn limits(run: &Finished, engine: &str) -> Vec<i64> {
    let key = format!("limit.{engine}");
    run.messages().iter().map(|message| profiles::profile_counter(message, &key)).collect()
}

/// A run of a program that worked until the budget stretched the engine, however long that took, and that
/// then measured its work.
struct Stretched {
    run: Finished,
    /// The bounds of the measured work: events, or nanoseconds.
    least: f64,
    most: f64,
    /// Samples that were dropped during the measured work. They stand for a part of it.
    dropped: f64,
    limits: Vec<i64>,
}

impl Stretched {
    /// The first run in which the samples are enough to judge, or else the last.
    fn with_enough(home: &Path, engine: &str, options: &str, is_enough: impl Fn(&Self) -> bool) -> Self {
        let [first, second, last] =
            MEASURED_S.map(|seconds| move || Self::of(home, engine, options, seconds));
        Some(first()).filter(&is_enough).or_else(|| Some(second()).filter(is_enough)).unwrap_or_else(last)
    }

    fn of(home: &Path, engine: &str, options: &str, seconds: u32) -> Self {
        // Preloaded: the allocations of a library before its imports are redirected are neither seen nor
        // slowed down.
        let run = JavaRun::new(home, "Stretched").variable("LD_PRELOAD", ALLOCATING);
        let run = run.argument(engine).argument(seconds);
        let run = if engine == "nativemem" { run.argument(ALLOCATING) } else { run };
        let run = run.agent(&format!("file=FILE,limit=off,{options}")).run().expect_success();
        let numbers: Vec<f64> = run.stdout.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [least, most, dropped] = numbers[..] else { panic!("{}: {}", run.label, run.stdout) };
        let limits = limits(&run, engine);
        assert!(limits.iter().any(|&limit| limit >= 2), "{} {options}: {limits:?}", run.label);
        assert_eq!(run.stderr.matches(WARNING).count(), 1, "{} {options}: {}", run.label, run.stderr);
        Self { run, least, most, dropped, limits }
    }

    fn label(&self) -> String {
        format!("{}: {:?}", self.run.label, self.limits)
    }

    /// The largest factor by which the engine sampled less often.
    fn longest(&self) -> f64 {
        *self.limits.iter().max().unwrap() as f64
    }

    /// The stacks of the measured threads in each message, with the message's factor.
    fn stacks(&self, profile_type: &str, sample_type: (&str, &str)) -> Vec<(f64, Vec<Stack>)> {
        let of_message = |message| {
            let mut stacks = stacks_of(std::slice::from_ref(message), profile_type, sample_type);
            stacks.retain(|stack| stack.thread == "measured");
            stacks
        };
        let limits = self.limits.iter().map(|limit| (*limit).max(1) as f64);
        limits.zip(self.run.messages().iter().map(of_message)).collect()
    }

    /// The sum over the samples below a function. `weight_of` returns the largest number of events for which
    /// a sample stands, by the factor of its message.
    fn estimate(&self, kind: [&str; 3], function: &str, weight_of: impl Fn(f64) -> f64) -> Estimate {
        let [profile_type, sample_type, unit] = kind;
        let groups =
            self.stacks(profile_type, (sample_type, unit)).into_iter().filter_map(|(limit, stacks)| {
                let is_it = |stack: &&Stack| stack.has(function);
                let sum: i64 = stacks.iter().filter(is_it).map(|stack| stack.value).sum();
                // As few samples as there can be: the error is overstated.
                let samples = (sum as f64 / weight_of(limit)).ceil();
                (sum > 0).then(|| (samples as i64, sum as f64 / samples))
            });
        Estimate::of(groups)
    }
}

/// Asserts that in a stretched engine the samples below a function stand for all events. `weight_of` returns
/// the largest number of events for which a sample stands, by the factor of its message. `excess` is the
/// factor by which the VM may sample too often.
fn assert_stands_for_all(
    home: &Path,
    engine: &str,
    options: &str,
    (kind, function): ([&str; 3], &str),
    weight_of: impl Fn(f64) -> f64,
    excess: f64,
) -> Stretched {
    let estimate_of = |stretched: &Stretched| stretched.estimate(kind, function, &weight_of);
    let stretched = Stretched::with_enough(home, engine, options, |run| estimate_of(run).is_enough());
    let lost = stretched.dropped * weight_of(stretched.longest());
    let estimate = estimate_of(&stretched);
    eprintln!("{}: {estimate:?} of {}, {lost} dropped", stretched.label(), stretched.most);
    estimate.assert_near(stretched.least - lost..=stretched.most * excess, &stretched.label());
    stretched
}

/// A sample of a single event that is one of several by its amount: none has less than half of the mean
/// chance (`signal::stretch`).
fn twice(limit: f64) -> f64 {
    2.0 * limit
}

#[test]
fn cpu_samples_are_as_many_as_were_asked_for_without_a_budget() {
    for home in newest_or_all() {
        // The budget is compared with the cost after three seconds for the first time.
        let options = "interval=1s,file=FILE,cpu=50us,cpu.clock=timer,budget=off";
        let run = JavaRun::new(&home, "UserLoop").argument(4).agent(options).run().expect_success();
        assert!(limits(&run, "cpu").iter().all(|&limit| limit == 0), "{}", run.label);
        assert!(!run.stderr.contains(WARNING), "{}: {}", run.label, run.stderr);
        let stacks = stacks_of(&run.messages(), "cpu", ("samples", "count"));
        assert!(stacks.iter().all(|stack| stack.period_ns == 50_000), "{}", run.label);
    }
}

#[test]
fn cpu_samples_are_fewer_within_a_budget_and_stand_for_all_time() {
    for home in newest_or_all() {
        // Even the longest stretch of so short an interval is a fifth of a second. The program goes on until
        // a sample stands for more time than a tick of the timers.
        let options = "interval=1s,cpu=50us,cpu.clock=timer,budget=0.05";
        // Each of the two threads has a last sample that is not due yet. Another thread of the VM may have
        // ended and left the like to them, and rounding leaves as much to the next message.
        let open_ns_of = |run: &Stretched| (4.0 + run.dropped) * 50e3 * run.longest();
        let stretched =
            Stretched::with_enough(&home, "cpu", options, |run| open_ns_of(run) < run.least / 3.0);
        let label = stretched.label();
        let stacks = stretched.stacks("cpu", ("samples", "count"));
        let stacks: Vec<_> = stacks.into_iter().flat_map(|(_, stacks)| stacks).collect();
        let sampled_ns: f64 = stacks.iter().map(|stack| (stack.value * stack.period_ns) as f64).sum();
        let open_ns = open_ns_of(&stretched);
        assert!(open_ns < stretched.least / 3.0, "{label}: {} ns are too few to judge", stretched.least);
        let expected = stretched.least - open_ns..=stretched.most + open_ns;
        assert!(expected.contains(&sampled_ns), "{label}: {sampled_ns} ns are not within {expected:?}");
        let periods: BTreeSet<_> = stacks.iter().map(|stack| stack.period_ns).collect();
        assert!(periods.iter().any(|period| *period > 50_000), "{label}: {periods:?}");
        assert!(periods.iter().all(|period| period % 50_000 == 0), "{label}: {periods:?}");
    }
}

/// The kernel counts longer periods, and each sample stands for as many events as it has counted.
#[test]
fn perf_events_have_longer_periods_within_a_budget() {
    for home in newest_or_all() {
        let options = "interval=1s,file=FILE,event=page-faults,cpu=off,budget=0.1";
        // Each fault is signalled at first. So the program takes longer than the three seconds after which
        // the budget is compared with the cost.
        let run = JavaRun::new(&home, "PerfEvents").argument("faults").argument(400_000);
        let run = run.agent(options).run().expect_success();
        if run.stderr.contains("event=page-faults is off") {
            not_tested("page faults within a budget, since perf events are not granted");
            continue;
        }
        let limits = limits(&run, "event");
        assert!(limits.iter().any(|&limit| limit >= 8), "{}: {limits:?}", run.label);
        let touched = |message| {
            let mut stacks = stacks_of(std::slice::from_ref(message), "page-faults", ("samples", "count"));
            stacks.retain(|stack| stack.has("programs.PerfEvents.touch"));
            stacks.iter().map(|stack| (stack.value * stack.period_ns) as f64).sum::<f64>()
        };
        let messages = run.messages();
        let found: Vec<f64> = messages.iter().map(touched).collect();
        // The program prints a line for each of two threads. The number is the second word.
        let counted = run.stdout.lines().map(|line| line.split(' ').nth(1).unwrap().parse::<f64>().unwrap());
        let counted: f64 = counted.sum();
        // The kernel also counts the handler's faults, and the program those of its own clock. Whenever its
        // periods get another length, and at its end, a thread has a period that is not over.
        let longest = *limits.iter().max().unwrap() as f64;
        let changes = limits.windows(2).filter(|pair| pair[0] != pair[1]).count() as f64;
        let open = 2.0 * (changes + 1.0) * longest;
        let lost = run.counter("event.own") as f64 + run.counter("event.samples_dropped") as f64 * longest;
        assert!(open + lost < counted / 4.0, "{}: {open} and {lost} of {counted}", run.label);
        let expected = 0.99 * counted - lost - open..=counted + open;
        let sum: f64 = found.iter().sum();
        assert!(expected.contains(&sum), "{}: {sum} is not within {expected:?}, {limits:?}", run.label);
        assert!((run.counter("event.samples") as f64) < sum, "{}: {sum}, {limits:?}", run.label);
        // Where the engine is stretched from the beginning of a message to its end, each sample stands for
        // several events.
        for (number, message) in messages.iter().enumerate().skip(1) {
            let taken = profiles::profile_counter(message, "event.samples_taken");
            let is_stretched = limits[number - 1..=number].iter().all(|&limit| limit >= 16);
            let is_whole = number + 1 < messages.len() && found[number] >= 10_000.0;
            let is_fewer = (taken * 4) as f64 <= found[number];
            assert!(!is_stretched || !is_whole || is_fewer, "{}: {taken} of {found:?}", run.label);
        }
    }
}

fn engine_keeps_to_the_budget(engine: &str, options: &str, kind: [&str; 3], weight_of: fn(f64) -> f64) {
    // Native.call allocates memory as well.
    let function = if engine == "nativemem" { "allocating_medium" } else { "programs.EventStorm.repeat" };
    for home in newest_or_all() {
        let options = format!("interval=1s,cpu=off,{options}");
        assert_stands_for_all(&home, engine, &options, (kind, function), weight_of, 1.0);
    }
}

#[test]
fn exceptions_keep_to_the_budget_and_stand_for_all_exceptions() {
    let kind = ["exceptions", "exceptions", "count"];
    // All exceptions have the same amount, and so the same chance.
    engine_keeps_to_the_budget("exceptions", "budget=5,exceptions", kind, |limit| limit);
}

/// Where many threads wait, the beginnings of waits cost as much as samples do, and no stretch reduces them.
#[test]
fn contentions_keep_to_the_budget_and_stand_for_all_contentions() {
    let kind = ["lock-contention", "contentions", "count"];
    engine_keeps_to_the_budget("lock", "budget=2,lock=1ns", kind, twice);
}

#[test]
fn waits_keep_to_the_budget_and_stand_for_all_waits() {
    engine_keeps_to_the_budget("wait", "budget=5,wait=1ns", ["wait", "waits", "count"], twice);
}

#[test]
fn traced_calls_keep_to_the_budget_and_stand_for_all_calls() {
    let options = "budget=5,trace=programs.EventStorm.traced:1ns";
    engine_keeps_to_the_budget("trace", options, ["trace", "calls", "count"], twice);
}

#[test]
fn native_allocations_keep_to_the_budget_and_stand_for_all_allocations() {
    let kind = ["nativemem", "alloc_objects", "count"];
    engine_keeps_to_the_budget("nativemem", "budget=5,nativemem=1k", kind, |limit| {
        // The program's allocations have 1,000 bytes.
        twice(limit) / -(-1_000.0_f64 / 1_024.0).exp_m1()
    });
}

#[test]
fn engines_of_the_heap_keep_to_the_budget() {
    for home in newest_or_all() {
        // JDK 11 picks some objects too often.
        let excess = if java_version(&home) == 11 { 1.33 } else { 1.0 };
        let kind = ["alloc-objects", "alloc_objects", "count"];
        // An array has 1,040 bytes.
        let weight_of = |limit: f64| -1.0 / (-1_040.0 / (256.0 * limit)).exp_m1();
        let of = (kind, "programs.EventStorm.allocate");
        let options = "interval=1s,cpu=off,budget=5,alloc=256";
        let stretched = assert_stands_for_all(&home, "alloc", options, of, weight_of, excess);
        // The VM itself samples less often: objects that it does not report cost nothing.
        assert_eq!(stretched.run.counter("alloc.samples_thinned"), 0, "{}", stretched.label());
        // None of the objects lives on: without another engine there would be no profile with the limit.
        Stretched::of(&home, "live", "interval=1s,cpu=100ms,budget=0.5,live=256", MEASURED_S[0]);
    }
}

#[test]
fn wall_clock_samples_keep_to_the_budget_and_stand_for_all_time() {
    for home in newest_or_all() {
        // In intervals of this length each thread is visited in each round, even with the longest stretch.
        let options = "interval=2s,cpu=off,wall=100us,budget=0.05";
        let threads_of = |run: &Stretched| {
            let mut threads = BTreeMap::<_, f64>::new();
            for stack in run.stacks("wall", ("samples", "count")).iter().flat_map(|(_, stacks)| stacks) {
                *threads.entry(stack.thread_id).or_default() += (stack.value * stack.period_ns) as f64;
            }
            threads
        };
        // Before its first sample a thread's time is credited to samples of other threads, for a round at
        // most.
        let open_ns_of = |run: &Stretched| threads_of(run).len() as f64 * 100e3 * run.longest();
        let stretched =
            Stretched::with_enough(&home, "wall", options, |run| open_ns_of(run) < run.least / 3.0);
        let label = stretched.label();
        let threads = threads_of(&stretched);
        let sampled_ns: f64 = threads.values().sum();
        let open_ns = open_ns_of(&stretched);
        assert!(open_ns < stretched.least / 3.0, "{label}: {} ns are too few to judge", stretched.least);
        let expected = stretched.least - open_ns..=stretched.most + open_ns;
        assert!(expected.contains(&sampled_ns), "{label}: {sampled_ns} ns are not within {expected:?}");
        // All threads existed for nearly the same time.
        assert_eq!(threads.len(), 4, "{label}: {threads:?}");
        for ns in threads.values() {
            let share = ns / sampled_ns * 4.0;
            assert!((1.0 / 1.5..1.5).contains(&share), "{label}: {threads:?}");
        }
    }
}
