//! Sandboxes that restrict the profiler: a restriction is reported once in plain English, and avoided where
//! there is a way.

use std::path::Path;

use crate::estimate::Estimate;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::stacks::{cpu_stacks, stacks_of};

/// The number of times that a line is printed.
fn count_of(stderr: &str, part: &str) -> usize {
    stderr.lines().filter(|line| line.contains(part)).count()
}

/// Regression: with the /proc of another PID namespace, the threads that existed before the session had no
/// clock, and no message said so: half of the CPU time was missing.
#[test]
fn threads_are_found_where_proc_is_another_pid_namespace_s() {
    // SAFETY: geteuid takes no arguments, has no memory effects and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return not_tested("a PID namespace of its own, which root alone may make");
    }
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "FixedWork").argument(50).argument(20_000).in_pid_namespace();
        let run = run.agent("cpu=1ms,wall=10ms,file=FILE").run().expect_success();
        assert_eq!(count_of(&run.stderr, "PID namespace"), 1, "{}: {}", run.label, run.stderr);
        let stacks = cpu_stacks(&run.messages());
        let sampled = |thread: &str| {
            let of_thread = stacks.iter().filter(|stack| thread.is_empty() || stack.thread == thread);
            Estimate::of(of_thread.map(|stack| (stack.value, stack.period_ns as f64)))
        };
        // The CPU time of the process, without the VM's start.
        let used_ns: f64 = {
            let first = run.stdout.split_whitespace().next().unwrap();
            first.strip_prefix("cpu_ns=").unwrap().parse().unwrap()
        };
        let [main, all] = ["main", ""].map(sampled);
        let label = format!("{}: {main:?} of main and {all:?} of {used_ns}", run.label);
        assert!(main.sum() > 0.0, "{label}");
        all.assert_near(used_ns..=f64::INFINITY, &label);
        let wall = stacks_of(&run.messages(), "wall", ("samples", "count"));
        assert!(wall.iter().any(|stack| stack.thread == "main"), "{label}");
        // Regression: threads of the VM had no names, which were looked for under the inner ids.
        let is_periodic = |name: &str| ["VM Periodic Tas", "VM Peri..Thread"].contains(&name);
        assert!(wall.iter().any(|stack| is_periodic(&stack.thread)), "{label}");
    }
}

/// Regression: in a sandbox that rejects rt_tgsigqueueinfo there was no wall-clock sample, and no message.
#[test]
fn threads_are_signalled_by_tgkill_where_their_signals_may_carry_nothing() {
    for home in newest_or_all() {
        // Each thread must handle a signal in its time. The longer runs are for the case that other programs
        // have used the CPU.
        let has_all_time = [2, 10, 50].into_iter().any(|seconds| has_time_of_all_threads(&home, seconds));
        assert!(has_all_time, "{}: time is missing", home.display());
    }
}

/// Whether wall-clock samples stand for all of the time that threads of a program wait.
fn has_time_of_all_threads(home: &Path, seconds: u32) -> bool {
    const THREADS: u32 = 20;
    let run = JavaRun::new(home, "IdleCrowd").argument(THREADS).argument(seconds);
    let run = run.without_call(libc::SYS_rt_tgsigqueueinfo);
    let run = run.agent("cpu=off,wall=10ms,file=FILE").run().expect_success();
    assert_eq!(count_of(&run.stderr, "rt_tgsigqueueinfo"), 1, "{}: {}", run.label, run.stderr);
    let stacks = stacks_of(&run.messages(), "wall", ("samples", "count"));
    let idle = stacks.iter().filter(|stack| stack.thread == "idle");
    let idle_ns: f64 = idle.map(|stack| (stack.value * stack.period_ns) as f64).sum();
    // All threads existed for the seconds that the program has waited by its own clock.
    let times: Vec<f64> = run.stdout.lines().map(|line| line.parse().unwrap()).collect();
    let least_ns = f64::from(THREADS) * (times[1] - times[0]);
    println!("{}: {idle_ns} of {least_ns}", run.label);
    // A value is a whole number of periods.
    idle_ns > 0.98 * least_ns
}

#[test]
fn a_line_reports_that_wall_clock_samples_are_impossible_without_signals() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "IdleCrowd").argument(20).argument(1);
        let run = run.without_call(libc::SYS_rt_tgsigqueueinfo).without_call(libc::SYS_tgkill);
        let run = run.agent("cpu=1ms,wall=10ms,file=FILE").run().expect_success();
        let printed = count_of(&run.stderr, "there are no wall-clock samples");
        assert_eq!(printed, 1, "{}: {}", run.label, run.stderr);
        assert!(stacks_of(&run.messages(), "wall", ("samples", "count")).is_empty(), "{}", run.label);
        assert!(!cpu_stacks(&run.messages()).is_empty(), "{}", run.label);
    }
}

/// Regression: where no signal may be queued, those of wall-clock sampling come without their data. They were
/// ignored, and no line said so.
#[test]
fn threads_are_sampled_by_signals_that_the_system_cannot_queue() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "IdleCrowd").argument(20).argument(1).without_queued_signals();
        let run = run.agent("cpu=off,wall=10ms,file=FILE").run().expect_success();
        let stacks = stacks_of(&run.messages(), "wall", ("samples", "count"));
        assert!(stacks.iter().any(|stack| stack.thread == "idle"), "{}: {}", run.label, run.stderr);
        assert_eq!(count_of(&run.stderr, "no sample of wall"), 0, "{}: {}", run.label, run.stderr);
    }
}

/// A real-time signal that cannot be queued is not sent.
#[test]
fn a_line_says_why_an_engine_has_taken_nothing() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "IdleCrowd").argument(20).argument(1).without_queued_signals();
        let options = format!("cpu=1ms,wall=10ms,wall.signal={},file=FILE", libc::SIGRTMAX());
        let run = run.agent(&options).run().expect_success();
        let printed =
            count_of(&run.stderr, "warning: no sample of wall: the system has no room for the signals");
        assert_eq!(printed, 1, "{}: {}", run.label, run.stderr);
        assert!(run.counter("wall.signals_refused") > 0, "{}: {}", run.label, run.stderr);
        assert!(!cpu_stacks(&run.messages()).is_empty(), "{}", run.label);
    }
}
