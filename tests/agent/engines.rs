//! The engines' values, compared with the programs' own counts.

use std::collections::HashMap;
use std::path::Path;

use crate::agent_support::running::Finished;
use crate::agent_support::stacks::{Stack, stacks_of};
use crate::agent_support::{JavaRun, java_homes, java_version, oldest_and_newest, profiles};
use otlpprof::model::attribute_keys::{EXCEPTION_TYPE, LOCK_KIND, MONITOR_CLASS, OBJECT_CLASS, THREAD_STATE};
use otlpprof::otlp::read::Message;
use otlpprof::sampling::wall::SIGNALS_PER_S;

/// The program's arguments for platform threads and, if the JDK has them, for virtual threads.
fn kinds_of_threads(home: &Path) -> &'static [&'static [&'static str]] {
    if java_version(home) >= 21 { &[&[], &["virtual"]] } else { &[&[]] }
}

fn run(home: &Path, program: &'static str, arguments: &[&str], options: &str) -> Finished {
    let mut run = JavaRun::new(home, program).jvm_option("-XX:CompileCommand=quiet");
    run = run.jvm_option(&format!("-XX:CompileCommand=dontinline,programs.{program}::*"));
    for argument in arguments {
        run = run.argument(argument);
    }
    run.agent(&format!("cpu=off,file=FILE,{options}")).run().expect_success()
}

/// The work that the program reports: method, class, and numbers.
fn truth(run: &Finished) -> Vec<(String, String, Vec<f64>)> {
    let line = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let (method, class) = (words.next()?, words.next()?);
        let numbers: Vec<f64> = words.map(|word| word.parse().expect("a number")).collect();
        (!numbers.is_empty()).then_some((method, class, numbers))
    };
    let truth: Vec<_> = run.stdout.lines().filter_map(line).collect();
    assert!(!truth.is_empty(), "{}", run.stdout);
    truth
}

/// The sum of the values of stacks whose leaf is the program's method and whose attribute is the class. All
/// of them must reach their root.
fn sum(run: &Finished, stacks: &[Stack], method: &str, key: &str, class: &str) -> f64 {
    let is_it = |stack: &&Stack| {
        stack.frames[0].name.ends_with(&format!(".{method}"))
            && stack.labels.get(key).is_some_and(|c| c == class)
    };
    let found = stacks.iter().filter(is_it).inspect(|stack| {
        let is_whole = stack.frames.last().unwrap().name == "java.lang.Thread.run"
            || stack.has("java.lang.VirtualThread.run");
        assert!(is_whole, "{}: {stack:#?}", run.label);
    });
    found.map(|stack| stack.value as f64).sum()
}

fn assert_near(run: &Finished, what: &str, found: f64, expected: f64, tolerance: f64) {
    let ratio = found / expected;
    assert!((ratio - 1.0).abs() <= tolerance, "{}: {what}: {found} of {expected} ({ratio:.4})", run.label);
}

/// A single run is within five standard deviations of the program's allocations; the mean of all runs is
/// nearer.
#[test]
fn allocated_bytes_and_objects_are_right_by_class_and_site() {
    let mut ratios = HashMap::<String, Vec<f64>>::new();
    for home in java_homes() {
        // The VM samples for both engines at the shorter of the two intervals.
        let engines = ["alloc=4k", "alloc=4k,live=2k", "alloc=4k,live=64k"];
        for (arguments, engines) in
            kinds_of_threads(&home).iter().flat_map(|arguments| engines.map(|engines| (arguments, engines)))
        {
            let run = run(&home, "Allocations", arguments, engines);
            let (space, objects) = (
                stacks_of(&run.messages(), "alloc-space", ("alloc_space", "bytes")),
                stacks_of(&run.messages(), "alloc-objects", ("alloc_objects", "count")),
            );
            for (method, class, numbers) in truth(&run) {
                let found = [&space, &objects].map(|stacks| sum(&run, stacks, &method, OBJECT_CLASS, &class));
                let label = format!("{engines} {arguments:?} {method} {class}");
                // JDK 11 picks objects that are about as large as the interval too often.
                let is_picked_too_often =
                    java_version(&home) == 11 && ["arrays", "interval"].contains(&&*method);
                let deviation = relative_deviation(numbers[0] / numbers[1], numbers[1]);
                let tolerance = if is_picked_too_often { 0.35 } else { 5.0 * deviation };
                assert_near(&run, &format!("{label} bytes"), found[0], numbers[0], tolerance);
                assert_near(&run, &format!("{label} objects"), found[1], numbers[1], tolerance);
                if !is_picked_too_often {
                    ratios.entry(method).or_default().push(found[0] / numbers[0]);
                }
            }
        }
    }
    for (method, ratios) in ratios {
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        assert!((mean - 1.0).abs() <= 0.01, "{method}: {mean:.4} of {} runs", ratios.len());
    }
}

/// The relative deviation of the estimated number of objects of one size, each of which is sampled at random
/// with an interval of 4 KiB.
fn relative_deviation(bytes_each: f64, objects: f64) -> f64 {
    let sampled = 1.0 - (-bytes_each / 4096.0).exp();
    // Objects that are always sampled deviate by rounding only.
    ((1.0 - sampled) / (sampled * objects)).sqrt().max(0.001)
}

#[test]
fn time_in_front_of_monitors_and_in_waits_is_within_what_the_threads_know() {
    for home in java_homes() {
        for arguments in kinds_of_threads(&home) {
            let run = run(&home, "Waits", arguments, "lock=1ms,wait=1ms");
            let messages = run.messages();
            let profiles: HashMap<&str, [Vec<Stack>; 2]> = HashMap::from([
                (
                    "enter",
                    [
                        stacks_of(&messages, "lock-contention", ("delay", "nanoseconds")),
                        stacks_of(&messages, "lock-contention", ("contentions", "count")),
                    ],
                ),
                (
                    "await",
                    [
                        stacks_of(&messages, "wait", ("delay", "nanoseconds")),
                        stacks_of(&messages, "wait", ("waits", "count")),
                    ],
                ),
            ]);
            for (method, class, numbers) in truth(&run) {
                let [times, counts] = &profiles[&*method];
                let leaf = if method == "await" { "wait0" } else { "enter" };
                let leaf = if method == "await" && java_version(&home) < 21 { "wait" } else { leaf };
                let time = sum(&run, times, leaf, MONITOR_CLASS, &class);
                let label = format!("{} {arguments:?} {method}", run.label);
                assert!((numbers[0]..=numbers[1]).contains(&time), "{label}: {time} ns, {numbers:?}");
                let count = sum(&run, counts, leaf, MONITOR_CLASS, &class);
                assert_eq!(count, numbers[2], "{label}");
            }
        }
    }
}

/// The monitors that the program holds and waits for are of other classes, or no thread waits for them.
#[test]
fn time_parked_for_locks_is_within_what_the_threads_know() {
    for home in java_homes() {
        for arguments in kinds_of_threads(&home) {
            let run = run(&home, "Parks", arguments, "lock=1ms");
            let warnings = run.stderr.lines().chain(run.stdout.lines());
            let warned: Vec<_> = warnings.filter(|line| line.to_lowercase().contains("warn")).collect();
            assert!(warned.is_empty(), "{}: {warned:#?}", run.label);
            let messages = run.messages();
            let times = stacks_of(&messages, "lock-contention", ("delay", "nanoseconds"));
            let counts = stacks_of(&messages, "lock-contention", ("contentions", "count"));
            for (method, class, numbers) in truth(&run) {
                let of = |stacks: &[Stack]| {
                    let is_inside = |stack: &Stack| stack.has("programs.Parks.acquireInside");
                    let is_it = |stack: &&Stack| {
                        stack.labels.get(LOCK_KIND).is_some_and(|kind| kind == "park")
                            && stack.has(&format!("programs.Parks.{method}"))
                            && is_inside(stack) == (method == "acquireInside")
                            && stack.labels.get(MONITOR_CLASS) == Some(&class)
                    };
                    stacks.iter().filter(is_it).map(|stack| stack.value as f64).sum::<f64>()
                };
                let label = format!("{} {arguments:?} {method}", run.label);
                let time = of(&times);
                assert!((numbers[0]..=numbers[1]).contains(&time), "{label}: {time} ns, {numbers:?}");
                assert_eq!(of(&counts), numbers[2], "{label}");
            }
            assert!(times.iter().all(|stack| !stack.has("programs.Parks.parkForNothing")), "{}", run.label);
        }
    }
}

#[test]
fn exceptions_are_counted_by_class_and_site() {
    for home in java_homes() {
        for arguments in kinds_of_threads(&home) {
            // The program throws with a period of four. The choice of the sampled exceptions must not follow
            // that period.
            for (period, thrown) in [(1, false), (2, false), (4, false), (7, false), (1, true), (4, true)] {
                let options = &format!("exceptions={period},exceptions.thrown={thrown},limit=off");
                let run = run(&home, "Throws", arguments, options);
                let stacks = stacks_of(&run.messages(), "exceptions", ("exceptions", "count"));
                for (method, class, numbers) in truth(&run) {
                    let found = sum(&run, &stacks, &method, EXCEPTION_TYPE, &class);
                    let label = format!("{options} {arguments:?} {method}");
                    let deviation = (f64::from(period - 1) / numbers[0]).sqrt();
                    assert_near(&run, &label, found, numbers[0], 5.0 * deviation);
                }
            }
        }
    }
}

/// Exceptions that are created once and thrown often, created and never thrown, rethrown after they were
/// caught, created in constructors, and created by the VM. Checks where they are created, and where they are
/// thrown, however much of the code is compiled and verified.
#[test]
fn exceptions_are_counted_where_created_or_where_thrown() {
    for home in java_homes() {
        for arguments in kinds_of_threads(&home) {
            for flags in
                ["-XX:-OmitStackTraceInFastThrow", "-Xint", "-XX:TieredStopAtLevel=1", "-Xverify:all"]
            {
                for (way, option) in ["exceptions", "exceptions,exceptions.thrown"].into_iter().enumerate() {
                    let mut run = JavaRun::new(&home, "MadeAndThrown").jvm_option(flags);
                    run = run.jvm_option("-XX:-OmitStackTraceInFastThrow");
                    for argument in *arguments {
                        run = run.argument(argument);
                    }
                    let run = run.agent(&format!("cpu=off,limit=off,file=FILE,{option}"));
                    let run = run.run().expect_success();
                    let stacks = stacks_of(&run.messages(), "exceptions", ("exceptions", "count"));
                    for (method, class, numbers) in truth(&run) {
                        let found = sum(&run, &stacks, &method, EXCEPTION_TYPE, &class);
                        let label = format!("{option} {flags} {arguments:?} {method} {class}");
                        assert_eq!(found, numbers[way], "{}: {label}", run.label);
                        // No exception of the class is reported at another place.
                        let is_class = |stack: &&Stack| stack.labels.get(EXCEPTION_TYPE) == Some(&class);
                        let of_class: f64 =
                            stacks.iter().filter(is_class).map(|stack| stack.value as f64).sum();
                        let all = truth(&run).into_iter().filter(|(_, other, _)| *other == class);
                        let all: f64 = all.map(|(_, _, numbers)| numbers[way]).sum();
                        // An exception that is kept has been created once.
                        let kept = if class.ends_with("Kept") && way == 0 { 1.0 } else { 0.0 };
                        assert_eq!(of_class - kept, all, "{}: {label}", run.label);
                    }
                }
            }
        }
    }
}

/// Another agent, such as the JVM's own recorder, may have Throwable retransformed while exceptions are
/// sampled.
#[test]
fn exceptions_are_sampled_while_another_agent_retransforms_throwable() {
    for home in java_homes() {
        let run = JavaRun::new(&home, "Throws").jvm_option("-XX:StartFlightRecording=filename=/dev/null");
        let run =
            run.agent("cpu=off,exceptions,limit=off,trace=java.lang.Throwable.fillInStackTrace:1h,file=FILE");
        let mut run = run.run().expect_success();
        // The recorder also reports its start on stdout.
        let is_reported = |line: &&str| ["explicit ", "bare "].iter().any(|method| line.starts_with(method));
        run.stdout = run.stdout.lines().filter(is_reported).collect::<Vec<_>>().join("\n");
        let stacks = stacks_of(&run.messages(), "exceptions", ("exceptions", "count"));
        for (method, class, numbers) in truth(&run) {
            assert_eq!(
                sum(&run, &stacks, &method, EXCEPTION_TYPE, &class),
                numbers[0],
                "{}: {method}",
                run.label
            );
        }
    }
}

/// Only the CPU engine needs the clock.
#[test]
fn a_clock_that_is_refused_is_one_line_and_the_other_engines_run() {
    for home in oldest_and_newest() {
        let run = JavaRun::new(&home, "MixedWork").argument(2).without_perf_events();
        let run = run.agent("cpu.clock=perf,wall,alloc=8k,lock,exceptions,file=FILE").run().expect_success();
        let warned: Vec<_> = run.stderr.lines().filter(|line| line.contains("warn")).collect();
        let [line] = warned[..] else { panic!("{}: {}", run.label, run.stderr) };
        assert!(
            line.contains("cpu is off: cpu.clock=perf is not available (Operation not permitted"),
            "{line}"
        );
        assert!(line.contains("allow it by CAP_PERFMON"), "{line}");
        let messages = run.messages();
        for (profile_type, sample_type) in [
            ("wall", ("samples", "count")),
            ("alloc-objects", ("alloc_objects", "count")),
            ("lock-contention", ("contentions", "count")),
            ("exceptions", ("exceptions", "count")),
        ] {
            let stacks = stacks_of(&messages, profile_type, sample_type);
            assert!(!stacks.is_empty(), "{}: {profile_type}: {}", run.label, run.stderr);
        }
        assert!(stacks_of(&messages, "cpu", ("samples", "count")).is_empty(), "{}", run.label);
    }
}

/// The VM reports throws only to agents that ask for this during its start.
#[test]
fn throws_are_refused_in_one_line_after_an_attach_and_the_other_engines_run() {
    for home in oldest_and_newest() {
        let mut jvm = JavaRun::new(&home, "AllocationLoop").argument(100).start();
        jvm.load_agent_by_jcmd("status");
        jvm.load_agent("cpu=off,exceptions,exceptions.thrown,alloc=8k,interval=1h,file=FILE");
        let file = jvm.profiles().join("profile.otlp");
        jvm.wait_for_profiles("profile.otlp", "allocations", |messages| {
            profiles::profile_types(messages).contains("alloc-objects")
        });
        let printed = jvm.stderr();
        let line =
            "exceptions.thrown is off: the VM reports throws only to agents that are loaded at its start";
        assert_eq!(printed.matches(line).count(), 1, "{}: {printed}", jvm.label);
        assert_eq!(printed.matches("is off").count(), 1, "{}: {printed}", jvm.label);
        let types = profiles::profile_types(&profiles::messages(&file));
        assert!(!types.contains("exceptions"), "{}: {types:?}", jvm.label);
        jvm.terminate();
        jvm.finish();
    }
}

#[test]
fn exceptions_are_sampled_by_an_attached_agent_until_it_stops() {
    for home in oldest_and_newest() {
        let mut jvm = JavaRun::new(&home, "EventStorm").argument("exceptions").argument(100).start();
        jvm.load_agent_by_jcmd("status");
        for turn in 0..2 {
            let file = format!("{turn}.otlp");
            jvm.load_agent(&format!("start,cpu=off,exceptions,interval=1h,file=DIR/{file}"));
            jvm.wait_for_profiles(&file, "exceptions", |messages| {
                let stacks = stacks_of(messages, "exceptions", ("exceptions", "count"));
                stacks.iter().any(|stack| stack.frames[0].name == "programs.EventStorm.fallThrough")
            });
            jvm.load_agent("stop");
        }
        jvm.terminate();
        jvm.finish();
    }
}

/// Twenty threads, and two thousand threads, which are more than can be visited in each interval.
#[test]
fn wall_clock_time_is_that_of_all_threads_by_state() {
    for home in java_homes() {
        // Of more threads each is seen less often, above all during its start. So that run is longer.
        for (parked, seconds) in [(15, "2"), (2000, "8")] {
            let run = JavaRun::new(&home, "ThreadStates").argument(seconds).argument(parked);
            // Before JDK 18 the revocation of a biased lock blocks threads during their start, as long as the
            // machine is busy.
            let run = run.jvm_option("-XX:+IgnoreUnrecognizedVMOptions").jvm_option("-XX:-UseBiasedLocking");
            let run = run.agent("cpu=off,file=FILE,wall=10ms").run().expect_success();
            let messages = run.messages();
            let stacks = stacks_of(&messages, "wall", ("samples", "count"));
            let (times, sleeps) = run.stdout.trim().rsplit_once("\nsleeps ").unwrap();
            assert_cost_is_bounded(&run, &messages, parked, sleeps.parse().unwrap());
            for line in times.lines() {
                let (state, expected_ns) = line.split_once(' ').unwrap();
                let found_ns: f64 = stacks
                    .iter()
                    .filter(|stack| {
                        // A running thread may wait for a processor while other programs use it, and for the
                        // end of a safepoint, in which the VM's thread may wait for a processor.
                        let found = &stack.labels[THREAD_STATE];
                        let is_stopped = || stack.frames.iter().any(|frame| frame.name.contains("Safepoint"));
                        let runs = found == "runnable" || found == "blocked" && is_stopped();
                        stack.thread == state && (found == state || state == "running" && runs)
                    })
                    .map(|stack| (stack.value * stack.period_ns) as f64)
                    .sum();
                // The threads existed a little longer than the program has measured, until it ended.
                let ratio = found_ns / expected_ns.parse::<f64>().unwrap();
                let label = format!("{} {parked} {state}", run.label);
                assert!((0.9..1.3).contains(&ratio), "{label}: {ratio:.3}\n{stacks:#?}");
            }
        }
    }
}

/// Asserts the cost: threads that do not run are woken at most once in each interval of profiles, and once
/// more in the first interval in which they are visited, when the engine checks whether they are still at the
/// same place.
fn assert_cost_is_bounded(run: &Finished, messages: &[Message], parked: u64, sleeps: u64) {
    let intervals = messages.len() as u64;
    let seconds = messages.iter().map(profiles::duration_ns).sum::<u64>() as f64 / 1e9;
    let [signals, idle] = ["signals", "idle"].map(|what| run.counter(&format!("wall.{what}")));
    let label = format!(
        "{}: {parked} were woken {sleeps} times in {intervals} intervals; {signals} signals and {idle} idle \
         visits in {seconds} s",
        run.label
    );
    assert!(sleeps <= 2 * parked * intervals, "{label}");
    assert!(signals as f64 <= 1.1 * SIGNALS_PER_S * seconds, "{label}");
    assert!(idle > 10 * signals, "{label}");
}

/// Threads that run, and have a processor or wait for one. Each of them measures both times.
#[test]
fn waiting_for_a_processor_is_distinguished_from_running() {
    for home in oldest_and_newest() {
        let run = run(&home, "Crowd", &["4"], "wall=5ms");
        let stacks = stacks_of(&run.messages(), "wall", ("samples", "count"));
        for line in run.stdout.lines() {
            let (state, expected_ns) = line.split_once(' ').unwrap();
            let found_ns: f64 = stacks
                .iter()
                .filter(|stack| stack.thread == "crowd" && stack.labels[THREAD_STATE] == state)
                .map(|stack| (stack.value * stack.period_ns) as f64)
                .sum();
            // There are more than a thousand samples. The threads run a little longer than they measure.
            assert_near(&run, line, found_ns, expected_ns.parse().unwrap(), 0.2);
        }
    }
}

/// A virtual thread with a carrier has the state of the carrier: it runs for as long as it uses CPU time. A
/// virtual thread without a carrier is not visited.
#[test]
fn wall_clock_time_of_virtual_threads_is_that_on_their_carriers() {
    for home in java_homes().into_iter().filter(|home| java_version(home) >= 21) {
        let run = run(&home, "Crowd", &["6", "virtual"], "wall=2ms");
        let stacks = stacks_of(&run.messages(), "wall", ("samples", "count"));
        let line = run.stdout.lines().find(|line| line.starts_with("running ")).unwrap();
        let expected_ns: f64 = line.split_once(' ').unwrap().1.parse().unwrap();
        let is_it = |stack: &&Stack| {
            stack.has("programs.Crowd.run")
                && stack.has("java.lang.VirtualThread.run")
                && stack.labels[THREAD_STATE] == "running"
        };
        let found_ns: f64 =
            stacks.iter().filter(is_it).map(|stack| (stack.value * stack.period_ns) as f64).sum();
        assert_near(&run, line, found_ns, expected_ns, 0.1);
    }
}

/// Regression: a thread that lived shorter than the interval was credited with its time up to its visit, if
/// it was visited at all, and so with next to nothing.
#[test]
fn wall_clock_time_of_short_lives_is_as_long_as_they_were() {
    for home in oldest_and_newest() {
        let run = run(&home, "ShortSleepers", &["4", "5"], "wall=50ms");
        let stacks = stacks_of(&run.messages(), "wall", ("samples", "count"));
        let found_ns: f64 = stacks
            .iter()
            .filter(|stack| stack.has("programs.ShortSleepers.sleep"))
            .map(|stack| (stack.value * stack.period_ns) as f64)
            .sum();
        let ratio = found_ns / run.stdout.trim().parse::<f64>().unwrap();
        // Some threads end before their signal reaches them. With about 300 threads that are visited, the
        // deviation is 6 %.
        assert!((0.65..1.25).contains(&ratio), "{}: {ratio:.3}", run.label);
    }
}
