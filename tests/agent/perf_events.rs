//! Sampling by perf events: the counts, compared with those of programs and of the kernel, and the messages
//! where there are no perf events.

use std::path::Path;

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::{Finished, Traces};
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::profiles;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::stacks::{Stack, cpu_stacks, stacks_of};

fn run(home: &Path, kind: &str, times: u32, options: &str) -> Finished {
    let run = JavaRun::new(home, "PerfEvents").argument(kind).argument(times);
    run.agent(&format!("file=FILE,{options}")).run().expect_success()
}

/// The events of a thread, as the program reports them.
struct Truth {
    thread: String,
    number: f64,
    /// The number of further events that may have occurred.
    more: f64,
    /// The number of times that the thread has gone to sleep, by the kernel's count.
    sleeps: f64,
}

fn truth(run: &Finished) -> Vec<Truth> {
    let line = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let [number, more, sleeps] = [1, 2, 3].map(|place: usize| words[place].parse().unwrap());
        Truth { thread: words[0].to_owned(), number, more, sleeps }
    };
    let truth: Vec<_> = run.stdout.lines().map(line).collect();
    assert_eq!(truth.len(), 2, "{}: {}", run.label, run.stdout);
    truth
}

/// The events below a method of the program, in one thread.
fn events(stacks: &[Stack], thread: &str, method: &str) -> f64 {
    let method = format!("programs.PerfEvents.{method}");
    let is_it = |stack: &&Stack| stack.thread == thread && stack.has(&method);
    stacks.iter().filter(is_it).map(|stack| (stack.value * stack.period_ns) as f64).sum()
}

/// Whether the event was counted. If not, checks that a single line says so and names `refusal`.
fn is_counted(run: &Finished, event: &str, refusal: &str) -> bool {
    let printed: Vec<_> = run.stderr.lines().filter(|line| line.contains("is off")).collect();
    if printed.is_empty() {
        return true;
    }
    assert_eq!(printed.len(), 1, "{}: {}", run.label, run.stderr);
    let is_the_line = printed[0].contains(&format!("event={event} is off: ")) && printed[0].contains(refusal);
    assert!(is_the_line, "{}: {}", run.label, run.stderr);
    false
}

#[test]
fn page_faults_are_those_that_the_kernel_counts() {
    for home in newest_or_all() {
        for (options, period) in [
            ("event=page-faults,cpu=off", 1),
            // At the same time as engines that signal the same threads.
            ("event=page-faults:7,cpu=1ms,wall=5ms", 7),
            ("event=minor-faults:u,event.period=7,event.signal=SIGUSR1", 7),
        ] {
            let run = run(&home, "faults", 20_000, options);
            let event = if options.contains("minor") { "minor-faults:u" } else { "page-faults" };
            if !is_counted(&run, event, "perf_event_paranoid") {
                not_tested("page faults, since perf events are not granted");
                continue;
            }
            let stacks = stacks_of(&run.messages(), event, ("samples", "count"));
            assert!(stacks.iter().all(|stack| stack.period_ns == period), "{options}");
            for Truth { thread, number, .. } in truth(&run) {
                let found = events(&stacks, &thread, "touch");
                // The kernel also counts the handler's faults. There are more of them if the buffer is
                // drained later. If it overflows, samples are dropped. Outside of the method the thread has
                // the faults of the program's own clock, which are some hundred. A last period may be open.
                let own = run.counter("event.own") as f64;
                let lost = own + (run.counter("event.samples_dropped") * period.unsigned_abs()) as f64;
                let expected = 0.97 * number - lost..1.01 * number;
                let label = format!("{} {options} {thread}", run.label);
                assert!(number >= 20_000.0 && lost < number / 4.0, "{label}: {lost} of {number} are lost");
                assert!(expected.contains(&found), "{label}: {found} of {number}, not in {expected:?}");
            }
        }
    }
}

/// Each signal wakes the thread, which has just gone to sleep, and makes it switch once more.
#[test]
fn context_switches_are_the_programs_own() {
    for home in newest_or_all() {
        for (event, period, refusal) in
            [("context-switches", 1, "perf_event_paranoid"), ("sched:sched_switch:3", 3, "tracefs")]
        {
            let run = run(&home, "parks", 1_000, &format!("event={event},cpu=off"));
            let name = event.trim_end_matches(":3");
            if !is_counted(&run, name, refusal) {
                if name == "context-switches" {
                    not_tested("context switches, since perf events are not granted");
                }
                continue;
            }
            let stacks = stacks_of(&run.messages(), name, ("samples", "count"));
            let (mut all_found, mut all_sleeps) = (0.0, 0.0);
            for Truth { thread, number, more, sleeps } in truth(&run) {
                let found = events(&stacks, &thread, "park");
                let label = format!("{} {event} {thread}", run.label);
                assert!(found > 0.0 && found <= number * 1.05 + more, "{label}: {found}, {more} more");
                all_found += found;
                all_sleeps += sleeps;
            }
            // A thread that gets no processor until its park is over does not wait, and is not switched away.
            // By the kernel's count, each time that a thread has gone to sleep is an event, or is the
            // profiler's own, or has no sample, or is in a last period that is not over. A few sleeps are
            // outside of the method, and a few stacks may not reach it.
            let lost = (run.counter("event.own") + run.counter("event.samples_dropped") * period) as f64;
            let least = 0.95 * (all_sleeps - lost) - 20.0;
            assert!(all_found >= least, "{} {event}: {all_found}, not {least}", run.label);
        }
    }
}

#[test]
fn a_function_that_is_probed_is_counted_by_its_calls() {
    for home in newest_or_all() {
        let library = otlpprof_testkit::this_build::libraries()[0];
        let event = format!("uprobe:{library}:ddprof_spin");
        let run = run(&home, "calls", 5_000, &format!("event={event},cpu=off"));
        if !is_counted(&run, &event, "CAP_PERFMON") {
            not_tested("uprobes, since the process may not have them");
            continue;
        }
        let stacks = stacks_of(&run.messages(), &event, ("samples", "count"));
        for Truth { thread, number, .. } in truth(&run) {
            assert_eq!(events(&stacks, &thread, "call"), number, "{}: {thread}", run.label);
        }
        let is_there = |stack: &Stack| stack.frames[0].name == "ddprof_spin";
        assert!(stacks.iter().all(is_there), "{}: {stacks:#?}", run.label);
    }
}

#[test]
fn a_refused_event_is_one_line_and_the_other_engines_run() {
    for home in newest_or_all() {
        let base = || JavaRun::new(&home, "UserLoop").argument("1");
        let run = base().agent("file=FILE,event=page-faults,cpu=1ms").without_perf_events();
        let run = run.run().expect_success();
        assert!(!is_counted(&run, "page-faults", "the process may not count it; allow it by CAP_PERFMON"));
        assert_only_cpu(&run);
        for (event, device, refusal) in [
            ("cycles", "cpu", "virtual PMU"),
            ("kprobe:do_exit", "kprobe", "CONFIG_KPROBE_EVENTS"),
            ("nosuch:tracepoint", "none", "trace"),
            ("uprobe:/no/such/file:main", "none", "/no/such/file: No such file"),
        ] {
            let has_it = Path::new("/sys/bus/event_source/devices").join(device).exists();
            let run = base().agent(&format!("file=FILE,event={event},cpu=1ms")).run().expect_success();
            assert!(is_counted(&run, event, refusal) == has_it, "{}: {}", run.label, run.stderr);
            match has_it {
                true => assert!(!cpu_stacks(&run.messages()).is_empty(), "{}", run.label),
                false => assert_only_cpu(&run),
            }
        }
    }
}

/// Asserts that no other event is counted in place of the refused one.
fn assert_only_cpu(run: &Finished) {
    let types = profiles::profile_types(&run.messages());
    assert_eq!(types.into_iter().collect::<Vec<_>>(), ["cpu"], "{}: {}", run.label, run.stderr);
}

#[test]
fn an_event_begins_and_ends_with_its_session() {
    for home in newest_or_all() {
        let jvm = JavaRun::new(&home, "UserLoop").argument(100).start();
        jvm.load_agent_by_jcmd("status");
        for file in ["first", "second"] {
            let options = format!("cpu=off,event=page-faults,interval=1h,file=DIR/{file}");
            jvm.load_agent(&options);
            // All threads of a running JVM existed before the session.
            if jvm.traces().perf_events < 5 {
                assert!(jvm.stderr().contains("event=page-faults is off"), "{}: {}", jvm.label, jvm.stderr());
                not_tested("the ends of perf events, since they are not granted");
            }
            let traces = jvm.traces();
            // If kernel frames are granted, each event has a ring.
            assert!([0, traces.perf_events].contains(&traces.event_rings), "{}: {traces:?}", jvm.label);
            jvm.load_agent("stop");
            assert_eq!(jvm.traces(), Traces::default(), "{}", jvm.label);
        }
        jvm.terminate();
        jvm.finish();
    }
}
