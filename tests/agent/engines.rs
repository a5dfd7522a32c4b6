//! The engines' values, compared with the programs' own counts.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::estimate::Estimate;
use otlpprof_model::attribute_keys::{EXCEPTION_TYPE, LOCK_KIND, MONITOR_CLASS, OBJECT_CLASS, THREAD_STATE};
use otlpprof_otlp::read::Message;
use otlpprof_sampling::wall::SIGNALS_PER_S;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_version, newest_or_all};
use otlpprof_testkit::profiles;
use otlpprof_testkit::stacks::{Stack, stacks_of};

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

/// The number of standard errors by which a right sum may miss the truth.
const STANDARD_ERRORS: f64 = 5.0;
/// A factor by which a wrong sum would be found.
const WRONG_FACTOR: f64 = 1.5;

fn assert_within(run: &Finished, what: &str, found: f64, range: RangeInclusive<f64>) {
    assert!(range.contains(&found), "{}: {what}: {found} is not within {range:?}", run.label);
}

/// Samples that were dropped, since a busy machine let the buffer overflow. The sums lack the events for
/// which they would stand.
fn dropped(run: &Finished, engine: &str) -> f64 {
    run.counter(&format!("{engine}.samples_dropped")) as f64
}

/// A single run is within five standard errors of the program's allocations, and so is the mean of all runs,
/// whose error is smaller.
#[test]
fn allocated_bytes_and_objects_are_right_by_class_and_site() {
    let mut runs = HashMap::<String, Vec<(f64, f64, f64)>>::new();
    for home in newest_or_all() {
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
                let excess = if is_picked_too_often { 0.33 } else { 0.0 };
                let error = relative_error(numbers[0] / numbers[1], numbers[1]);
                let lost = dropped(&run, "alloc") / (sampled(numbers[0] / numbers[1]) * numbers[1]);
                let least = 1.0 - lost - STANDARD_ERRORS * error;
                let most = 1.0 + excess + STANDARD_ERRORS * error;
                // A few missing samples may belong to a few large objects.
                let finds_errors = least > 1.0 / WRONG_FACTOR && most < WRONG_FACTOR;
                assert!(finds_errors || numbers[1] < 1_000.0, "{label}: {}", run.stderr);
                for (what, found, number) in
                    [("bytes", found[0], numbers[0]), ("objects", found[1], numbers[1])]
                {
                    let range = least * number..=most * number;
                    assert_within(&run, &format!("{label} {what}"), found, range);
                }
                if !is_picked_too_often {
                    runs.entry(method).or_default().push((found[0] / numbers[0], error, lost));
                }
            }
        }
    }
    for (method, runs) in runs {
        let mean_of =
            |value: fn(&(f64, f64, f64)) -> f64| runs.iter().map(value).sum::<f64>() / runs.len() as f64;
        let (mean, lost) = (mean_of(|run| run.0), mean_of(|run| run.2));
        let error = (mean_of(|run| run.1 * run.1) / runs.len() as f64).sqrt();
        let range = 1.0 - lost - STANDARD_ERRORS * error..=1.0 + STANDARD_ERRORS * error;
        assert!(range.contains(&mean), "{method}: {mean:.4} of {} runs, not {range:.4?}", runs.len());
    }
}

/// The probability that an object of this size is sampled with an interval of 4 KiB.
fn sampled(bytes_each: f64) -> f64 {
    1.0 - (-bytes_each / 4096.0).exp()
}

/// The relative standard error of the estimated number of objects of one size.
fn relative_error(bytes_each: f64, objects: f64) -> f64 {
    let sampled = sampled(bytes_each);
    // Objects that are always sampled deviate by rounding only.
    ((1.0 - sampled) / (sampled * objects)).sqrt().max(0.001)
}

#[test]
fn time_in_front_of_monitors_and_in_waits_is_within_what_the_threads_know() {
    for home in newest_or_all() {
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
    for home in newest_or_all() {
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
    for home in newest_or_all() {
        for arguments in kinds_of_threads(&home) {
            // The program throws with a period of four. The choice of the sampled exceptions must not follow
            // that period.
            for (period, thrown) in [(1, false), (2, false), (4, false), (7, false), (1, true), (4, true)] {
                let options = &format!("exceptions={period},exceptions.thrown={thrown},limit=off");
                let run = run(&home, "Throws", arguments, options);
                let stacks = stacks_of(&run.messages(), "exceptions", ("exceptions", "count"));
                let dropped = dropped(&run, "exceptions") * f64::from(period);
                for (method, class, numbers) in truth(&run) {
                    let found = sum(&run, &stacks, &method, EXCEPTION_TYPE, &class);
                    let label = format!("{options} {arguments:?} {method}");
                    let error = STANDARD_ERRORS * (f64::from(period - 1) * numbers[0]).sqrt();
                    let (least, most) = (numbers[0] - dropped - error, numbers[0] + error);
                    assert!(least > numbers[0] / WRONG_FACTOR, "{label}: {}", run.stderr);
                    assert_within(&run, &label, found, least..=most);
                }
            }
        }
    }
}

/// Exceptions that are created once and thrown often, created and never thrown, rethrown after they were
/// caught, created in constructors, and created by the VM. Checks where they are created, or where they are
/// thrown, however much of the code is compiled and verified. `way` is the place of the number that is right.
fn assert_exceptions_are_counted(option: &str, way: usize) {
    for home in newest_or_all() {
        for arguments in kinds_of_threads(&home) {
            for flags in
                ["-XX:-OmitStackTraceInFastThrow", "-Xint", "-XX:TieredStopAtLevel=1", "-Xverify:all"]
            {
                let mut run = JavaRun::new(&home, "MadeAndThrown").jvm_option(flags);
                run = run.jvm_option("-XX:-OmitStackTraceInFastThrow");
                for argument in *arguments {
                    run = run.argument(argument);
                }
                let run = run.agent(&format!("cpu=off,limit=off,file=FILE,{option}"));
                let run = run.run().expect_success();
                let stacks = stacks_of(&run.messages(), "exceptions", ("exceptions", "count"));
                let dropped = dropped(&run, "exceptions");
                for (method, class, numbers) in truth(&run) {
                    let found = sum(&run, &stacks, &method, EXCEPTION_TYPE, &class);
                    let label = format!("{option} {flags} {arguments:?} {method} {class}");
                    assert_within(&run, &label, found, numbers[way] - dropped..=numbers[way]);
                    // The program has 5,000 exceptions of a kind.
                    assert!(dropped < 1_000.0, "{label}: {}", run.stderr);
                    // No exception of the class is reported at another place.
                    let is_class = |stack: &&Stack| stack.labels.get(EXCEPTION_TYPE) == Some(&class);
                    let of_class: f64 = stacks.iter().filter(is_class).map(|stack| stack.value as f64).sum();
                    let all = truth(&run).into_iter().filter(|(_, other, _)| *other == class);
                    let all: f64 = all.map(|(_, _, numbers)| numbers[way]).sum();
                    // An exception that is kept has been created once.
                    let kept = if class.ends_with("Kept") && way == 0 { 1.0 } else { 0.0 };
                    assert_within(&run, &label, of_class - kept, all - dropped..=all);
                }
            }
        }
    }
}

#[test]
fn exceptions_are_counted_where_created() {
    assert_exceptions_are_counted("exceptions", 0);
}

#[test]
fn exceptions_are_counted_where_thrown_if_asked_for() {
    assert_exceptions_are_counted("exceptions,exceptions.thrown", 1);
}

/// Another agent, such as the JVM's own recorder, may have Throwable retransformed while exceptions are
/// sampled.
#[test]
fn exceptions_are_sampled_while_another_agent_retransforms_throwable() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "Throws").jvm_option("-XX:StartFlightRecording=filename=/dev/null");
        let run =
            run.agent("cpu=off,exceptions,limit=off,trace=java.lang.Throwable.fillInStackTrace:1h,file=FILE");
        let mut run = run.run().expect_success();
        // The recorder also reports its start on stdout.
        let is_reported = |line: &&str| ["explicit ", "bare "].iter().any(|method| line.starts_with(method));
        run.stdout = run.stdout.lines().filter(is_reported).collect::<Vec<_>>().join("\n");
        let stacks = stacks_of(&run.messages(), "exceptions", ("exceptions", "count"));
        let dropped = dropped(&run, "exceptions");
        assert!(dropped < 1_000.0, "{}: {}", run.label, run.stderr);
        for (method, class, numbers) in truth(&run) {
            let found = sum(&run, &stacks, &method, EXCEPTION_TYPE, &class);
            assert_within(&run, &method, found, numbers[0] - dropped..=numbers[0]);
        }
    }
}

/// Only the CPU engine needs the clock.
#[test]
fn a_clock_that_is_refused_is_one_line_and_the_other_engines_run() {
    for home in newest_or_all() {
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
    for home in newest_or_all() {
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
    for home in newest_or_all() {
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

/// Twenty threads, and five hundred threads, which are more than can be visited in each interval.
#[test]
fn wall_clock_time_is_that_of_all_threads_by_state() {
    for home in newest_or_all() {
        // Of more threads each is seen less often, above all during its start. So that run is longer.
        for (parked, seconds) in [(15, 2), (500, 5)] {
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
                let [state, least_ns, most_ns] = line.split(' ').collect::<Vec<_>>()[..] else {
                    panic!("{line}")
                };
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
                let (least_ns, most_ns): (f64, f64) = (least_ns.parse().unwrap(), most_ns.parse().unwrap());
                let error_ns = STANDARD_ERRORS * error_of_new_threads_ns(parked);
                let label = format!("{} {parked} {state}", run.label);
                assert!(error_ns < least_ns * (1.0 - 1.0 / WRONG_FACTOR), "{label}: {least_ns} ns");
                let range = least_ns - error_ns..=most_ns + error_ns;
                assert!(range.contains(&found_ns), "{label}: {found_ns} not within {range:?}\n{stacks:#?}");
            }
        }
    }
}

/// The standard error of a thread's time, in ns. New threads have to be asked for a sample twice, and fewer
/// can be asked than there are: meanwhile each sample stands for as many threads as its turn comes after.
/// The time of a thread is then the sum of some two such samples.
fn error_of_new_threads_ns(parked: u32) -> f64 {
    /// The other threads of the program, and those of the JVM.
    const OTHERS: u32 = 30;
    let weight_ns = f64::from(parked + OTHERS) / SIGNALS_PER_S * 1e9;
    2.0_f64.sqrt() * weight_ns
}

/// Asserts the cost: threads that do not run are woken at most once in each interval of profiles, and once
/// more in the first interval in which they are visited, when the engine checks whether they are still at the
/// same place.
fn assert_cost_is_bounded(run: &Finished, messages: &[Message], parked: u32, sleeps: u64) {
    let intervals = messages.len() as u64;
    let seconds = messages.iter().map(profiles::duration_ns).sum::<u64>() as f64 / 1e9;
    let [signals, visits, lost] =
        ["signals", "visits", "signals_lost"].map(|what| run.counter(&format!("wall.{what}")));
    let label = format!(
        "{}: {parked} were woken {sleeps} times in {intervals} intervals; {signals} signals, {lost} of them \
         lost, and {visits} visits in {seconds} s",
        run.label
    );
    // A thread that gets no processor for a second is asked again.
    assert!(sleeps <= 2 * u64::from(parked) * intervals + lost, "{label}");
    // More than enough for the first round, which is planned before it is known how many are to be asked.
    assert!(signals as f64 <= SIGNALS_PER_S * (seconds + 0.5), "{label}");
    // A single thread of the program runs, beside the JVM's compilers. All others wait, and most visits find
    // a thread where it was.
    assert!(4 * signals < visits, "{label}");
}

/// The wall-clock time of these stacks, judged by its standard error. The samples have times: a stack has as
/// many samples as times.
fn time_ns<'s>(stacks: impl Iterator<Item = &'s Stack>) -> Estimate {
    Estimate::of(stacks.map(|stack| {
        assert!(stack.times > 0, "no times: {stack:#?}");
        (stack.times, (stack.value * stack.period_ns) as f64 / stack.times as f64)
    }))
}

/// The bounds in one of the program's lines: `STATE LEAST MOST`.
fn bounds(line: &str) -> (&str, RangeInclusive<f64>) {
    let [state, least, most] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
    (state, least.parse().unwrap()..=most.parse().unwrap())
}

/// Threads that run, and have a processor or wait for one, by the kernel's account.
#[test]
fn waiting_for_a_processor_is_distinguished_from_running() {
    for home in newest_or_all() {
        let run = run(&home, "Crowd", &["4"], "wall=2ms,timestamps");
        let stacks = stacks_of(&run.messages(), "wall", ("samples", "count"));
        for line in run.stdout.lines() {
            let (state, bounds) = bounds(line);
            let is_it = |stack: &&Stack| stack.thread == "crowd" && stack.labels[THREAD_STATE] == state;
            // The threads exist a little longer than they measure.
            let range = *bounds.start()..=1.02 * bounds.end();
            time_ns(stacks.iter().filter(is_it)).assert_near(range, &format!("{} {line}", run.label));
        }
    }
}

/// A virtual thread with a carrier has the state of the carrier: it runs for as long as it uses CPU time. A
/// virtual thread without a carrier is not visited.
#[test]
fn wall_clock_time_of_virtual_threads_is_that_on_their_carriers() {
    for home in newest_or_all().into_iter().filter(|home| java_version(home) >= 21) {
        let run = run(&home, "Crowd", &["4", "virtual"], "wall=2ms,timestamps");
        let stacks = stacks_of(&run.messages(), "wall", ("samples", "count"));
        let line = run.stdout.lines().find(|line| line.starts_with("running ")).unwrap();
        let (_, bounds) = bounds(line);
        let is_it = |stack: &&Stack| {
            stack.has("programs.Crowd.run")
                && stack.has("java.lang.VirtualThread.run")
                && stack.labels[THREAD_STATE] == "running"
        };
        // The program reads the kernel's account within the sampled method.
        let range = *bounds.start()..=1.02 * bounds.end();
        time_ns(stacks.iter().filter(is_it)).assert_near(range, &format!("{} {line}", run.label));
    }
}

/// Regression: a thread that lived shorter than the interval was credited with its time up to its visit, if
/// it was visited at all, and so with next to nothing.
#[test]
fn wall_clock_time_of_short_lives_is_as_long_as_they_were() {
    const INTERVAL_NS: f64 = 20e6;
    for home in newest_or_all() {
        let run = run(&home, "ShortSleepers", &["4", "5"], "wall=20ms,timestamps");
        let stacks = stacks_of(&run.messages(), "wall", ("samples", "count"));
        let slept_ns: f64 = run.stdout.trim().parse().unwrap();
        // A thread that ends before it has handled its signal gives no sample. At the end of the method it
        // may wait for a processor, which the program does not measure.
        let lost = run.counter("wall.signals").saturating_sub(run.counter("wall.samples_taken"));
        let lost_ns = (lost as f64 + dropped(&run, "wall")) * INTERVAL_NS;
        assert!(lost_ns < slept_ns / 4.0, "{}: {lost} signals without a sample", run.label);
        let estimate = time_ns(stacks.iter().filter(|stack| stack.has("programs.ShortSleepers.sleep")));
        estimate.assert_near(slept_ns - lost_ns..=1.05 * slept_ns, &run.label);
    }
}
