//! Virtual threads that wait for a monitor begin on one carrier and may end on another, since JDK 24.

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::java_homes_from;
use otlpprof_testkit::stacks::stacks_of;

#[test]
fn waits_that_change_carriers_have_their_whole_time() {
    for home in java_homes_from(24) {
        let run = JavaRun::new(&home, "CrowdAtMonitor")
            .jvm_option("-Djdk.virtualThreadScheduler.parallelism=2")
            .agent("cpu=off,lock=1ns,limit=off,budget=off,file=FILE")
            .run()
            .expect_success();
        let numbers: Vec<f64> = run.stdout.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let [waited_ns, entries, switched] = numbers[..] else { panic!("{}", run.stdout) };
        assert!(switched >= 100.0, "{}: {}", run.label, run.stdout);
        let [found_ns, waits] = [("delay", "nanoseconds"), ("contentions", "count")].map(|sample_type| {
            let stacks = stacks_of(&run.messages(), "lock-contention", sample_type);
            let own = stacks.iter().filter(|stack| stack.has("programs.CrowdAtMonitor.enter"));
            own.map(|stack| stack.value as f64).sum::<f64>()
        });
        let label = format!("{}: {found_ns} of {waited_ns} ns, {waits} of {entries}", run.label);
        // A thread that leaves the monitor may enter it again before the others.
        assert!(waits <= entries && waits >= switched, "{label}");
        assert!((found_ns / waited_ns - 1.0).abs() < 0.01, "{label}");
    }
}
