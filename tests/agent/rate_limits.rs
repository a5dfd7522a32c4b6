//! Engines take at most the allowed number of samples a second, report the limit, and their sums stay right.

use std::path::Path;

use crate::estimate::Estimate;
use otlpprof_model::attribute_keys::{EXCEPTION_TYPE, MONITOR_CLASS, OBJECT_CLASS};
use otlpprof_otlp::read::Message;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_version, newest_or_all};
use otlpprof_testkit::profiles;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::stacks::{Stack, stacks_of};

/// The library of native allocations.
const ALLOCATING: &str = otlpprof_testkit::products::ALLOCATING;

fn run(home: &Path, program: &'static str, arguments: &[&str], options: &str) -> Finished {
    let options = format!("cpu=off,budget=off,file=FILE,{options}");
    let run = JavaRun::new(home, program).agent(&options);
    arguments.iter().fold(run, JavaRun::argument).run().expect_success()
}

/// The largest factor by which the engine has sampled less often in a message; 0: as often as was asked for.
fn limit_in(message: &Message, engine: &str) -> i64 {
    profiles::profile_counter(message, &format!("limit.{engine}"))
}

/// The largest factor by which the engine has sampled less often.
fn limit_of(run: &Finished, engine: &str) -> i64 {
    run.messages().iter().map(|message| limit_in(message, engine)).max().unwrap_or(0)
}

fn sum(stacks: &[Stack], is_it: impl Fn(&Stack) -> bool) -> f64 {
    stacks.iter().filter(|stack| is_it(stack)).map(|stack| stack.value as f64).sum()
}

/// The largest number of events for which a sample stands that is one of several by its amount: none has less
/// than half of the mean chance (`signal::stretch`).
fn twice(limit: i64) -> f64 {
    2.0 * limit.max(1) as f64
}

/// As few samples as there can be if none has a larger weight, so that the error is overstated.
fn fewest_samples(sum: f64, largest_weight: f64) -> Option<(i64, f64)> {
    let samples = (sum / largest_weight).ceil();
    (sum > 0.0).then(|| (samples as i64, sum / samples))
}

/// Samples that were dropped. The sums lack the events for which they would stand.
fn dropped(run: &Finished, engine: &str) -> f64 {
    run.counter(&format!("{engine}.samples_dropped")) as f64
}

/// Asserts that there are no more samples than the limit allows in the time of the profiles, however unsteady
/// the program's storm is. Each tenth of a second has a tenth of the limit. A storm that begins anew has half
/// as many again each time that it doubles the factor.
fn assert_within_limit(run: &Finished, engine: &str, per_second: f64) {
    let taken = run.counter(&format!("{engine}.samples_taken")) as f64;
    let seconds = run.messages().iter().map(profiles::duration_ns).sum::<u64>() as f64 / 1e9;
    let doublings = (limit_of(run, engine).max(1) as f64).log2().ceil();
    let most = (10.0 * seconds + 1.0) * per_second / 10.0 * (1.0 + 0.5 * doublings);
    assert!(taken <= most, "{}: {taken} in {seconds} s", run.label);
}

/// Asserts that in the message in which the storm was steadiest the samples were within the limit. In each
/// tenth of a second they may exceed it by the half that precedes the next doubling of the factor, but hardly
/// do: a steady storm has a ninth less.
fn assert_keeps_to_limit_if_steady(run: &Finished, engine: &str, per_second: f64) {
    let messages = run.messages();
    let shares = messages.iter().filter(|message| limit_in(message, engine) >= 2).map(|message| {
        let taken = profiles::profile_counter(message, &format!("{engine}.samples_taken"));
        taken as f64 / (profiles::duration_ns(message) as f64 / 1e9 * per_second)
    });
    // In a message with fewer samples the program has hardly run.
    let shares: Vec<f64> = shares.filter(|share| *share >= 0.5).collect();
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(least <= 1.2, "{}: {shares:.2?} of the limit", run.label);
}

#[test]
fn allocations_beyond_the_limit_are_compensated() {
    for home in newest_or_all() {
        let options = "interval=500ms,alloc=256,limit=100000+alloc:2000";
        let run = run(&home, "AllocationLoop", &["4"], options);
        assert!(limit_of(&run, "alloc") >= 2, "{}: {}", run.label, run.stderr);
        assert_within_limit(&run, "alloc", 2_000.0);
        assert_keeps_to_limit_if_steady(&run, "alloc", 2_000.0);
        let taken = run.counter("alloc.samples_taken");
        assert!(run.counter("alloc.samples_thinned") > taken, "{}", run.stderr);
        // An array of 1,040 bytes is sampled at first with this probability.
        let sampled = -(-1_040.0_f64 / 256.0).exp_m1();
        let groups: Vec<_> = run
            .messages()
            .iter()
            .filter_map(|message| {
                let limit = limit_in(message, "alloc").max(1);
                let kind = ("alloc_objects", "count");
                let objects = stacks_of(std::slice::from_ref(message), "alloc-objects", kind);
                assert!(objects.iter().all(|stack| stack.period_ns == 256 * limit), "{}: {limit}", run.label);
                let found = sum(&objects, |stack| stack.has("programs.AllocationLoop.allocate"));
                fewest_samples(found, twice(limit) / sampled)
            })
            .collect();
        let expected: f64 = run.stdout.trim().parse().unwrap();
        let lost = dropped(&run, "alloc") * twice(limit_of(&run, "alloc")) / sampled;
        // JDK 11 picks some objects too often.
        let most = if java_version(&home) == 11 { 1.33 * expected } else { expected };
        Estimate::of(groups).assert_near(expected - lost..=most, &run.label);
    }
}

#[test]
fn exceptions_beyond_the_limit_are_compensated() {
    for home in newest_or_all() {
        let run = run(&home, "Throws", &["300000"], "exceptions,limit=exceptions:10000");
        let limit = limit_of(&run, "exceptions");
        assert!(limit >= 2, "{}", run.label);
        assert_within_limit(&run, "exceptions", 10_000.0);
        let exceptions = stacks_of(&run.messages(), "exceptions", ("exceptions", "count"));
        let mut all = 0.0;
        for line in run.stdout.lines() {
            let [method, class, times] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let found = sum(&exceptions, |stack| {
                stack.labels.get(EXCEPTION_TYPE).is_some_and(|found| found == class)
                    && stack.frames[0].name.ends_with(&format!(".{method}"))
            });
            let times: f64 = times.parse().unwrap();
            all += times;
            // All exceptions have the same amount, and so the same chance.
            let lost = dropped(&run, "exceptions") * limit as f64;
            let label = format!("{} {line}", run.label);
            Estimate::of(fewest_samples(found, limit as f64)).assert_near(times - lost..=times, &label);
        }
        // Each exception is sampled, or another stands for it. The VM has thrown some more.
        let counted = run.counter("exceptions.samples_taken") + run.counter("exceptions.samples_thinned");
        assert!(counted as f64 >= all, "{}: {counted} of {all}", run.label);
    }
}

#[test]
fn calls_beyond_the_limit_are_compensated() {
    for home in newest_or_all() {
        let options = "interval=500ms,trace=programs.AllocationLoop.allocate,limit=trace:1000";
        let run = run(&home, "AllocationLoop", &["4"], options);
        let limit = limit_of(&run, "trace");
        assert!(limit >= 2, "{}: {limit}", run.label);
        assert_within_limit(&run, "trace", 1_000.0);
        assert_keeps_to_limit_if_steady(&run, "trace", 1_000.0);
        assert!(run.counter("trace.samples_thinned") > 0, "{}", run.stderr);
        let groups: Vec<_> = run
            .messages()
            .iter()
            .filter_map(|message| {
                let calls = stacks_of(std::slice::from_ref(message), "trace", ("calls", "count"));
                fewest_samples(sum(&calls, |_| true), twice(limit_in(message, "trace")))
            })
            .collect();
        // A call makes a hundred objects.
        let expected = run.stdout.trim().parse::<f64>().unwrap() / 100.0;
        let lost = dropped(&run, "trace") * twice(limit);
        Estimate::of(groups).assert_near(expected - lost..=expected, &run.label);
    }
}

/// Waits for monitors, parks and waits for notifications: their number, and their duration.
#[test]
fn waits_beyond_the_limit_are_compensated() {
    for home in newest_or_all() {
        let run = run(&home, "WaitStorm", &[], "interval=1h,lock=1ns,wait=1ns,limit=lock:5000+wait:5000");
        let messages = run.messages();
        let of = |engine: &str, counts: &str| {
            [(counts, "count"), ("delay", "nanoseconds")].map(|kind| stacks_of(&messages, engine, kind))
        };
        let (lock, wait) = (of("lock-contention", "contentions"), of("wait", "waits"));
        for line in run.stdout.lines() {
            let [method, class, ns, times] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let (engine, [counts, delays]) =
                if method == "await" { ("wait", &wait) } else { ("lock", &lock) };
            let limit = limit_of(&run, engine);
            assert!(limit >= 2, "{}: {engine}: {}", run.label, run.stderr);
            let is_it = |stack: &Stack| stack.labels.get(MONITOR_CLASS).is_some_and(|found| found == class);
            let (times, ns): (f64, f64) = (times.parse().unwrap(), ns.parse().unwrap());
            let (found, delay) = (sum(counts, is_it), sum(delays, is_it));
            let label = format!("{} {line}", run.label);
            let samples = fewest_samples(found, twice(limit));
            // The part of the waits that is missing with dropped samples.
            let lost = dropped(&run, engine) * twice(limit) / times;
            Estimate::of(samples).assert_near((1.0 - lost) * times..=times, &label);
            // A long wait has a greater chance, so that durations are as accurate as counts. The threads' own
            // measurement includes the time for which they wait for a processor afterwards.
            let delays = samples.map(|(samples, _)| (samples, delay / samples as f64));
            Estimate::of(delays).assert_near((0.85 - lost) * ns..=ns, &format!("{label}: duration"));
        }
        for engine in ["lock", "wait"] {
            assert_within_limit(&run, engine, 5_000.0);
            assert!(run.counter(&format!("{engine}.samples_thinned")) > 0, "{}", run.stderr);
        }
    }
}

/// The leaks are as accurate as the allocations.
#[test]
fn native_allocations_beyond_the_limit_are_compensated() {
    for home in newest_or_all() {
        let options = "interval=1h,nativemem=1k,nativemem.leaks,limit=nativemem:20000";
        let run = run(&home, "NativeMemory", &[ALLOCATING], options);
        let limit = limit_of(&run, "nativemem");
        assert!(limit >= 2, "{}: {}", run.label, run.stderr);
        assert!(run.counter("nativemem.samples_thinned") > 0, "{}", run.stderr);
        assert_within_limit(&run, "nativemem", 20_000.0);
        let messages = run.messages();
        let of = |profile, prefix: &str| {
            [("space", "bytes"), ("objects", "count")]
                .map(|(name, unit)| stacks_of(&messages, profile, (&format!("{prefix}_{name}"), unit)))
        };
        let found = [of("nativemem", "alloc"), of("nativemem-leak", "inuse")];
        // All allocations were sampled in the single interval.
        let is_as_rare = |stack: &Stack| stack.period_ns == 1024 * limit;
        assert!(found.iter().flatten().flatten().all(is_as_rare), "{}: {limit}: {found:#?}", run.label);
        let not_remembered = run.counter("nativemem.not_remembered") as f64;
        for line in run.stdout.lines() {
            let (function, numbers) = line.split_once(' ').unwrap();
            let numbers: Vec<f64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
            let sampled = -(-numbers[0] / 1_024.0).exp_m1();
            let weight = twice(limit) / sampled;
            for ((stacks, expected), missing) in
                found.iter().zip(numbers[1..].chunks(2)).zip([0.0, not_remembered])
            {
                let (bytes, count) = (expected[0], expected[1]);
                if count == 0.0 {
                    continue;
                }
                let [found_bytes, found_count] =
                    stacks.each_ref().map(|stacks| sum(stacks, |stack| stack.frames[0].name == function));
                let label = format!("{} {line}, limit {limit}", run.label);
                // Some hundred allocations that are much larger than the mean have at least a third of the
                // chance of 1, with such a limit. The standard error is then 6.5 % at most.
                if count < 1_000.0 {
                    let is_near = |ratio: f64| (1.0 / 1.5..1.5).contains(&ratio);
                    assert!(limit > 20 || is_near(found_bytes / bytes), "{label}: {found_bytes}");
                    assert!(limit > 20 || is_near(found_count / count), "{label}: {found_count}");
                    continue;
                }
                // The part of the allocations that is missing with dropped samples.
                let lost = (dropped(&run, "nativemem") + missing) * weight / count;
                let samples = fewest_samples(found_count, weight);
                Estimate::of(samples).assert_near((1.0 - lost) * count..=count, &label);
                let bytes_each = samples.map(|(samples, _)| (samples, found_bytes / samples as f64));
                Estimate::of(bytes_each).assert_near((1.0 - lost) * bytes..=bytes, &label);
            }
        }
    }
}

/// The live heap is as accurate as the allocations, and its period is the period of its rarest samples.
#[test]
fn live_objects_beyond_the_limit_are_compensated() {
    for home in newest_or_all() {
        let options = "interval=1h,live=256,limit=live:30000";
        let run = JavaRun::new(&home, "LiveObjects").jvm_option("-Xmx700m").jvm_option("-Xms700m");
        let run = run.jvm_option("-XX:CompileCommand=quiet");
        let run = run.jvm_option("-XX:CompileCommand=dontinline,programs.LiveObjects::*");
        let run = run.agent(&format!("cpu=off,budget=off,file=FILE,{options}")).run().expect_success();
        let limit = limit_of(&run, "live");
        assert!(limit >= 2, "{}: {limit}", run.label);
        assert!(run.counter("live.samples_thinned") > 0, "{}", run.stderr);
        assert_within_limit(&run, "live", 30_000.0);
        // If the program runs so slowly that the limit admits more objects than the table has room for, one
        // of two is kept.
        let kept = if run.counter("live.thinned") > 0 { 2.0 } else { 1.0 };
        let messages = run.messages();
        let profiles = [("inuse_space", "bytes"), ("inuse_objects", "count")]
            .map(|kind| stacks_of(&messages, "live-heap", kind));
        for line in run.stdout.lines() {
            let [method, class, bytes, objects, _] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let is_it = |stack: &Stack| {
                stack.frames[0].name.ends_with(&format!(".{method}"))
                    && stack.labels.get(OBJECT_CLASS).is_some_and(|found| found == class)
            };
            let (bytes, objects): (f64, f64) = (bytes.parse().unwrap(), objects.parse().unwrap());
            // Thirty large objects are too few samples, unless each of them is sampled.
            if objects == 0.0 || method == "large" {
                assert!(objects > 0.0 || !profiles[0].iter().any(is_it), "{}: {line}", run.label);
                continue;
            }
            let sampled = -(-bytes / objects / 256.0).exp_m1();
            // Arrays are allocated before anything that is larger, so they have the mean chance. Small
            // objects follow the large ones.
            let factor = if method == "small" { twice(limit) } else { 1.1 * limit as f64 };
            let weight = factor * kept / sampled;
            let [found_bytes, found] = profiles.each_ref().map(|stacks| sum(stacks, is_it));
            let label = format!("{} {line}, limit {limit}", run.label);
            // The part of the objects that is missing with dropped samples. JDK 11 picks some objects too
            // often.
            let lost = dropped(&run, "live") * weight / objects;
            let excess = if java_version(&home) == 11 { 1.33 } else { 1.0 };
            let samples = fewest_samples(found, weight);
            Estimate::of(samples).assert_near((1.0 - lost) * objects..=excess * objects, &label);
            let bytes_each = samples.map(|(samples, _)| (samples, found_bytes / samples as f64));
            Estimate::of(bytes_each).assert_near((1.0 - lost) * bytes..=excess * bytes, &label);
        }
        // All objects were sampled in the single interval.
        let is_as_rare = |stack: &Stack| stack.period_ns == 256 * limit || kept > 1.0;
        assert!(profiles.iter().flatten().all(is_as_rare), "{}: {limit}: {profiles:#?}", run.label);
    }
}

#[test]
fn perf_events_beyond_the_limit_are_compensated() {
    for home in newest_or_all() {
        let options = "interval=1h,event=page-faults,limit=event:10000";
        let run = run(&home, "PerfEvents", &["faults", "50000"], options);
        if run.stderr.contains("event=page-faults is off: ") {
            not_tested("the limit of perf events, since they are not granted");
            continue;
        }
        let limit = limit_of(&run, "event");
        assert!(limit >= 2, "{}: {limit}", run.label);
        assert!(run.counter("event.samples_thinned") > 0, "{}", run.stderr);
        assert_within_limit(&run, "event", 10_000.0);
        let faults = stacks_of(&run.messages(), "page-faults", ("samples", "count"));
        for line in run.stdout.lines() {
            let [thread, number, ..] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let is_it = |stack: &&Stack| stack.thread == thread && stack.has("programs.PerfEvents.touch");
            let found = faults.iter().filter(is_it).map(|stack| (stack.value * stack.period_ns) as f64).sum();
            let number: f64 = number.parse().unwrap();
            // The kernel also counts the handler's faults, and the program those of its own clock.
            let lost = run.counter("event.own") as f64 + dropped(&run, "event") * twice(limit);
            let label = format!("{} {line}, limit {limit}", run.label);
            let samples = fewest_samples(found, twice(limit));
            Estimate::of(samples).assert_near(0.99 * number - lost..=number, &label);
        }
        assert!(faults.iter().all(|stack| stack.period_ns == limit), "{}: {limit}", run.label);
    }
}

#[test]
fn exceptions_within_the_limit_are_reported_one_by_one() {
    let home = newest_or_all().pop().unwrap();
    let run = run(&home, "Throws", &[], "exceptions,limit=off");
    assert_eq!(limit_of(&run, "exceptions"), 0, "{}", run.label);
    assert_eq!(run.counter("handler.samples_thinned"), 0, "{}", run.stderr);
}
