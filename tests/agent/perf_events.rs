//! Sampling by perf events: the counts, compared with those of programs and of the kernel, and the messages
//! where there are no perf events.

use std::path::Path;

use crate::agent_support::running::{Finished, Traces};
use crate::agent_support::stacks::{Stack, cpu_stacks, stacks_of};
use crate::agent_support::{JavaRun, java_homes, oldest_and_newest, profiles};
use crate::loud_support::not_tested;

fn run(home: &Path, kind: &str, times: u32, options: &str) -> Finished {
    let run = JavaRun::new(home, "PerfEvents").argument(kind).argument(times);
    run.agent(&format!("file=FILE,{options}")).run().expect_success()
}

/// The events of each thread as the program reports them: their number, and the number of further events that
/// may have occurred.
fn truth(run: &Finished) -> Vec<(String, f64, f64)> {
    let line = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        (words[0].to_owned(), words[1].parse().unwrap(), words[2].parse().unwrap())
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
    for home in java_homes() {
        for (options, period) in [
            ("event=page-faults,cpu=off", 1),
            // At the same time as engines that signal the same threads.
            ("event=page-faults:7,cpu=1ms,wall=5ms", 7),
            ("event=minor-faults:u,event.period=7,event.signal=SIGUSR1", 7),
        ] {
            let run = run(&home, "faults", 10_000, options);
            let event = if options.contains("minor") { "minor-faults:u" } else { "page-faults" };
            if !is_counted(&run, event, "perf_event_paranoid") {
                not_tested("page faults, since perf events are not granted");
                continue;
            }
            let stacks = stacks_of(&run.messages(), event, ("samples", "count"));
            assert!(stacks.iter().all(|stack| stack.period_ns == period), "{options}");
            for (thread, number, _) in truth(&run) {
                let found = events(&stacks, &thread, "touch");
                // The kernel also counts the handler's faults. There are more of them if the buffer is
                // drained later.
                let own = run.counter("event.own") as f64;
                assert!(
                    number >= 10_000.0 && (0.97 * number - own..1.03 * number).contains(&found),
                    "{} {options} {thread}: {found} of {number}, {own} of the profiler's",
                    run.label
                );
            }
        }
    }
}

/// Each signal wakes the thread, which has just gone to sleep, and makes it switch once more.
#[test]
fn context_switches_are_the_programs_own() {
    for home in java_homes() {
        for (event, refusal) in
            [("context-switches", "perf_event_paranoid"), ("sched:sched_switch:3", "tracefs")]
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
            for (thread, number, more) in truth(&run) {
                let found = events(&stacks, &thread, "park");
                // A thread that gets no processor until its park is over does not wait, and is not switched
                // away.
                let (least, most) = (number * 0.9, number * 1.05 + more);
                let label = format!("{} {event} {thread}", run.label);
                assert!((least..=most).contains(&found), "{label}: {found}, not {least} to {most}");
            }
        }
    }
}

#[test]
fn a_function_that_is_probed_is_counted_by_its_calls() {
    for home in java_homes() {
        let library = crate::agent_support::LIBRARIES[0];
        let event = format!("uprobe:{library}:ddprof_spin");
        let run = run(&home, "calls", 5_000, &format!("event={event},cpu=off"));
        if !is_counted(&run, &event, "CAP_PERFMON") {
            not_tested("uprobes, since the process may not have them");
            continue;
        }
        let stacks = stacks_of(&run.messages(), &event, ("samples", "count"));
        for (thread, number, _) in truth(&run) {
            assert_eq!(events(&stacks, &thread, "call"), number, "{}: {thread}", run.label);
        }
        let is_there = |stack: &Stack| stack.frames[0].name == "ddprof_spin";
        assert!(stacks.iter().all(is_there), "{}: {stacks:#?}", run.label);
    }
}

#[test]
fn a_refused_event_is_one_line_and_the_other_engines_run() {
    for home in oldest_and_newest() {
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
    for home in oldest_and_newest() {
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
