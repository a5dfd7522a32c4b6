//! Wall-clock profiles: the sum of an interval is its length times the number of threads, however many there
//! are.

use otlpprof_otlp::read::Message;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::stacks::stacks_of;

/// The start and the end of the message's first profile.
fn window_ns(message: &Message) -> (u64, u64) {
    let profile = &message.data.resource_profiles[0].scope_profiles[0].profiles[0];
    (profile.time_unix_nano, profile.time_unix_nano + profile.duration_nano)
}

/// Asserts the sums of all intervals that are within the program's time. The last thread begins to wait, and
/// a second later each thread has been sampled, however many there are: until then their time is credited to
/// all threads together, which includes some twenty of the JVM's own.
fn assert_sums(threads: u32, seconds: u32, options: &str) {
    const SETTLED_NS: u64 = 1_000_000_000;
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "IdleCrowd").argument(threads).argument(seconds);
        let run = run.agent(&format!("cpu=off,wall=50ms,{options},file=FILE"));
        let run = run.run().expect_success();
        let label = format!("{}: {threads} threads, {options}", run.label);
        let times: Vec<u64> = run.stdout.lines().map(|line| line.parse().unwrap()).collect();
        let messages = run.messages();
        let whole = messages.iter().filter(|message| {
            let (start_ns, end_ns) = window_ns(message);
            times[0] + SETTLED_NS <= start_ns && end_ns <= times[1]
        });
        let mut intervals = 0;
        for message in whole {
            let (start_ns, end_ns) = window_ns(message);
            let stacks = stacks_of(std::slice::from_ref(message), "wall", ("samples", "count"));
            let idle = stacks.iter().filter(|stack| stack.thread == "idle");
            let found_ns: f64 = idle.map(|stack| (stack.value * stack.period_ns) as f64).sum();
            let ratio = found_ns / ((end_ns - start_ns) as f64 * f64::from(threads));
            eprintln!("{label}: {ratio:.4}");
            // A thread of the JVM's own that runs may share in the time of the others.
            assert!((ratio - 1.0).abs() < 0.02, "{label}: {ratio:.4}\n{}", run.stderr);
            intervals += 1;
        }
        assert!(intervals > 0, "{label}: no whole interval\n{}", run.stderr);
    }
}

#[test]
fn an_interval_s_sum_is_its_length_times_the_threads() {
    for threads in [100, 2_000] {
        assert_sums(threads, 3, "interval=500ms,budget=off");
    }
}

/// Regression: with thousands of threads and the default budget, the intervals' sums fell to a twentieth of
/// the time, since a round over all threads took longer than an interval. The budget is compared with the
/// cost after three seconds for the first time.
#[test]
fn a_stretched_interval_s_sum_is_its_length_times_the_threads() {
    for budget in ["2", "0.01"] {
        assert_sums(2_000, 6, &format!("interval=1s,budget={budget}"));
    }
}
