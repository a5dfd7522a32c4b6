//! Wall-clock profiles: the sum of an interval is its length times the number of threads, however many there
//! are.

use crate::agent_support::stacks::stacks_of;
use crate::agent_support::{JavaRun, oldest_and_newest};
use otlpprof::otlp::read::Message;

/// The start and the end of the message's first profile.
fn window_ns(message: &Message) -> (u64, u64) {
    let profile = &message.data.resource_profiles[0].scope_profiles[0].profiles[0];
    (profile.time_unix_nano, profile.time_unix_nano + profile.duration_nano)
}

/// Regression: with thousands of threads and the default budget, the intervals' sums fell to a twentieth of
/// the time, since a round over all threads took longer than an interval.
#[test]
fn an_interval_s_sum_is_its_length_times_the_threads() {
    for home in oldest_and_newest() {
        for (threads, budget) in [(100, "off"), (2_000, "off"), (2_000, "2"), (2_000, "0.01")] {
            let run = JavaRun::new(&home, "IdleCrowd").argument(threads).argument(5);
            let run = run.agent(&format!("cpu=off,wall=50ms,interval=1s,budget={budget},file=FILE"));
            let run = run.run().expect_success();
            let label = format!("{}: {threads} threads, budget {budget}", run.label);
            let times: Vec<u64> = run.stdout.lines().map(|line| line.parse().unwrap()).collect();
            let messages = run.messages();
            let whole = messages.iter().filter(|message| {
                let (start_ns, end_ns) = window_ns(message);
                times[0] <= start_ns && end_ns <= times[1]
            });
            let mut intervals = 0;
            for message in whole {
                let (start_ns, end_ns) = window_ns(message);
                let stacks = stacks_of(std::slice::from_ref(message), "wall", ("samples", "count"));
                let idle = stacks.iter().filter(|stack| stack.thread == "idle");
                let found_ns: f64 = idle.map(|stack| (stack.value * stack.period_ns) as f64).sum();
                let ratio = found_ns / ((end_ns - start_ns) as f64 * f64::from(threads));
                eprintln!("{label}: {ratio:.4}");
                assert!((ratio - 1.0).abs() < 0.02, "{label}: {ratio:.4}\n{}", run.stderr);
                intervals += 1;
            }
            assert!(intervals > 0, "{label}: no whole interval\n{}", run.stderr);
        }
    }
}
