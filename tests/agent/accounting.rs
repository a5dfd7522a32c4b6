//! The CPU time in profiles, compared with the kernel's own count for the process.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::{everything, newest_or_all};
use otlpprof_testkit::stacks::cpu_stacks;
use otlpprof_testkit::stolen_time::{Measured, Verdict, judge, measure};
use otlpprof_testkit::this_build::agent;

/// The CPU time of a run with the default period of 10 ms, however long the machine takes for it. Samples are
/// an account of CPU time, and no estimate: each thread has a last period that is not over. 2 % are ten
/// periods, and so few threads use any time.
const CPU_SECONDS: &str = "5cpu";
/// The CPU time of a run with a period of 1 ms, for which timers count ticks of up to 4 ms.
const SHORT_CPU_SECONDS: &str = "2cpu";

/// Asserts that the profile's sum is within 2 % of the program's CPU time, with the clock that `auto` chooses
/// and with timers.
fn assert_adds_up(program: &'static str, seconds: &str, options: &str) {
    // The kernel counts in the same way under every JDK: the oldest and the newest stand for all, each with
    // one clock.
    let homes = newest_or_all();
    for (number, home) in homes.iter().enumerate() {
        for (turn, clock) in ["auto", "timer"].into_iter().enumerate() {
            if !everything() && (number + turn) % homes.len().min(2) != 0 {
                continue;
            }
            let options = format!("cpu.clock={clock}{options}");
            let what = format!("{program} on {} with {options}", home.display());
            let by_perf_events = clock == "auto" && *RUNS_BY_PERF_EVENTS;
            let verdict = measure(by_perf_events, 0.02, &what, || measured(home, program, seconds, &options));
            assert_eq!(verdict, Verdict::Holds, "{what}");
        }
    }
}

/// Whether `auto` chooses perf events on this machine, which depends on the kernel.
static RUNS_BY_PERF_EVENTS: LazyLock<bool> = LazyLock::new(|| {
    let run = JavaRun::new(&newest_or_all()[0], "Hello").agent("file=FILE").run().expect_success();
    run.stderr.contains("of CPU time by perf (")
});

/// The samples of the program, and the CPU time that the same process used from the session's start to its
/// stop.
fn measured(home: &Path, program: &'static str, seconds: &str, options: &str) -> Measured {
    let run = JavaRun::new(home, "Accounted")
        .argument(agent().display())
        .argument(options)
        .argument(program)
        .argument(seconds)
        .variable("OTLPPROF_FILE", "FILE")
        .run()
        .expect_success();
    let used = run.stdout.lines().find_map(|line| line.strip_prefix("used_ns=")).expect("what it used");
    let stacks = cpu_stacks(&run.messages());
    let sampled_ns: i64 = stacks.iter().map(|stack| stack.value * stack.period_ns).sum();
    Measured {
        sampled: Duration::from_nanos(sampled_ns.unsigned_abs()),
        used: Duration::from_nanos(used.parse().unwrap()),
    }
}

#[test]
fn stolen_time_excuses_perf_events_that_count_too_much_and_nothing_else() {
    use Verdict::{Fails, Holds, Unknown};
    for (sampled_ms, stolen_ms, by_perf_events, verdict) in [
        (1019, 0, false, Holds),
        (981, 0, false, Holds),
        (1021, 0, true, Fails),
        (1021, 5, true, Holds),
        (1028, 5, true, Fails),
        (1021, 50, true, Unknown),
        (1021, 5, false, Fails),
        (1021, 50, false, Fails),
        (979, 5, true, Fails),
        (979, 50, true, Fails),
        (979, 50, false, Fails),
    ] {
        let measured = Measured { sampled: Duration::from_millis(sampled_ms), used: Duration::from_secs(1) };
        let judged = judge(measured, Duration::from_millis(stolen_ms), by_perf_events, 0.02);
        assert_eq!(judged, verdict, "{sampled_ms} {stolen_ms} {by_perf_events}");
    }
}

#[test]
fn user_mode_adds_up() {
    assert_adds_up("UserLoop", CPU_SECONDS, "");
}

#[test]
fn user_mode_with_a_short_period_adds_up() {
    assert_adds_up("UserLoop", SHORT_CPU_SECONDS, ",cpu=1ms");
}

#[test]
fn system_calls_add_up() {
    assert_adds_up("SyscallLoop", CPU_SECONDS, "");
}

#[test]
fn short_threads_add_up() {
    assert_adds_up("ShortThreads", CPU_SECONDS, "");
}

#[test]
fn threads_that_were_never_attached_add_up() {
    assert_adds_up("NativePthreads", CPU_SECONDS, "");
}
