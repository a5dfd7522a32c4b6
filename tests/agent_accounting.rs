//! The CPU time that profiles add up to, against what the kernel counted for the process.

mod agent_support;

use agent_support::running::Finished;
use agent_support::stacks::cpu_stacks;
use agent_support::{JavaRun, java_homes};

const SECONDS: u32 = 6;

/// What a run was sampled for and what it used, in seconds of CPU time.
fn sampled_and_used(run: &Finished) -> (f64, f64) {
    let stacks = cpu_stacks(&run.messages());
    let sampled_ns: i64 = stacks.iter().map(|stack| stack.value * stack.period_ns).sum();
    (sampled_ns as f64 / 1e9, run.cpu.as_secs_f64())
}

/// Asserts that the profile's sum is within 2 % of the program's CPU time. What the VM uses before the agent starts,
/// and the agent's own start, are in no profile: they are the same in a short run, and so in no difference.
fn assert_adds_up(program: &'static str, options: &str) {
    // The kernel counts alike under every JDK: the oldest and the newest stand for all.
    let homes = java_homes();
    for home in [homes.first(), homes.last()].into_iter().flatten() {
        let [short, run] = [1, 1 + SECONDS].map(|seconds| {
            JavaRun::new(home, program).argument(seconds).agent(options).run().expect_success()
        });
        let ((short_sampled, short_used), (sampled, used)) =
            (sampled_and_used(&short), sampled_and_used(&run));
        let (sampled, used) = (sampled - short_sampled, used - short_used);
        let error = (sampled - used) / used;
        assert!(
            error.abs() <= 0.02,
            "{}: sampled {sampled:.3} s of {used:.3} s: {:+.1} %",
            run.label,
            error * 100.0
        );
    }
}

#[test]
fn user_mode_adds_up() {
    assert_adds_up("UserLoop", "file=FILE");
    assert_adds_up("UserLoop", "cpu=1ms,file=FILE");
}

#[test]
fn system_calls_add_up() {
    assert_adds_up("SyscallLoop", "file=FILE");
}

#[test]
fn short_threads_add_up() {
    assert_adds_up("ShortThreads", "file=FILE");
}

#[test]
fn threads_that_were_never_attached_add_up() {
    assert_adds_up("NativePthreads", "file=FILE");
}
