//! Wall-clock profiles: the sum of an interval is its length times the number of threads, however many there
//! are.

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::wall_sums::interval_sums;

/// Asserts the sums of all intervals that are within the program's time.
fn assert_sums(threads: u32, seconds: u32, options: &str) {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "IdleCrowd").argument(threads).argument(seconds);
        let run = run.agent(&format!("cpu=off,wall=50ms,{options},file=FILE"));
        let run = run.run().expect_success();
        let label = format!("{}: {threads} threads, {options}", run.label);
        let intervals = interval_sums(&run.messages(), &run.stdout);
        assert!(!intervals.is_empty(), "{label}: no whole interval\n{}", run.stderr);
        for interval in intervals {
            let ratio = interval.idle_ratio(threads);
            eprintln!("{label}: {ratio:.4}");
            // A thread of the JVM's own that runs may share in the time of the others.
            assert!((ratio - 1.0).abs() < 0.02, "{label}: {ratio:.4}\n{}", run.stderr);
        }
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

#[test]
#[ignore = "long: thousands of threads"]
fn the_sum_of_eight_thousand_threads_is_the_interval_times_the_threads() {
    for budget in ["off", "2"] {
        assert_sums(8_000, 15, &format!("interval=5s,budget={budget}"));
    }
}
