//! The agent reads the kernel's clocks, whatever other functions of their names are in the process.

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::profiles;
use otlpprof_testkit::stacks::stacks_of;

/// The distance by which the preloaded clock jumps again and again.
const JUMP_NS: f64 = 3_600e9;

/// Regression: under a preloaded library whose clock_gettime jumps, as in libfaketime, a profile had 1.5
/// billion samples, each of which stood for time that had not passed.
#[test]
fn jumps_of_a_preloaded_clock_are_in_no_sample() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "FixedWork").argument(50).argument(20_000);
        let run = run.variable("LD_PRELOAD", otlpprof_testkit::products::JUMPING_CLOCK);
        let run = run.agent("cpu=1ms,wall=10ms,interval=500ms,file=FILE").run().expect_success();
        let messages = run.messages();
        let covered_ns: u64 = messages.iter().map(profiles::duration_ns).sum();
        assert!((covered_ns as f64) < JUMP_NS, "{}: {covered_ns}", run.label);
        for profile_type in ["cpu", "wall"] {
            let stacks = stacks_of(&messages, profile_type, ("samples", "count"));
            let sum_ns: f64 = stacks.iter().map(|stack| (stack.value * stack.period_ns) as f64).sum();
            assert!(sum_ns > 0.0 && sum_ns < JUMP_NS, "{}: {profile_type}: {sum_ns}", run.label);
        }
    }
}
