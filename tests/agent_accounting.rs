//! The CPU time that profiles add up to, against what the kernel counted for the process.

mod agent_support;
mod steal_support;

use std::path::Path;

use agent_support::running::Finished;
use agent_support::stacks::cpu_stacks;
use agent_support::{JavaRun, java_homes};
use steal_support::stolen_since_boot;

const SECONDS: u32 = 6;

/// What a run was sampled for and what it used, in seconds of CPU time.
fn sampled_and_used(run: &Finished) -> (f64, f64) {
    let stacks = cpu_stacks(&run.messages());
    let sampled_ns: i64 = stacks.iter().map(|stack| stack.value * stack.period_ns).sum();
    (sampled_ns as f64 / 1e9, run.cpu.as_secs_f64())
}

/// Asserts that the profile's sum is within 2 % of the program's CPU time.
fn assert_adds_up(program: &'static str, options: &str) {
    // The kernel counts alike under every JDK: the oldest and the newest stand for all.
    let homes = java_homes();
    for home in [homes.first(), homes.last()].into_iter().flatten() {
        // What a VM's start takes differs by a tenth of a second on a busy machine. What is lost or invented is
        // so each time.
        let errors: Vec<_> = std::iter::repeat_with(|| error_of(home, program, options))
            .take(3)
            .scan(false, |done, error| (!std::mem::replace(done, error.abs() <= 0.02)).then_some(error))
            .collect();
        let best = errors.iter().copied().map(f64::abs).fold(f64::INFINITY, f64::min);
        assert!(best <= 0.02, "{program} on {}: off by {errors:.3?}", home.display());
    }
}

/// How far the profile's sum is from the program's CPU time, in parts of it. What the VM uses before the agent starts,
/// and the agent's own start, are in no profile: they are the same in a short run, and so in no difference.
fn error_of(home: &Path, program: &'static str, options: &str) -> f64 {
    let stolen_before = stolen_since_boot();
    let [(short_sampled, short_used), (sampled, used)] = [1, 1 + SECONDS].map(|seconds| {
        sampled_and_used(&JavaRun::new(home, program).argument(seconds).agent(options).run().expect_success())
    });
    let (sampled, used) = (sampled - short_sampled, used - short_used);
    println!("{program} on {}: sampled {sampled:.3} s of {used:.3} s", home.display());
    let stolen = (stolen_since_boot() - stolen_before).as_secs_f64();
    let error = sampled - used;
    (error.abs() - stolen).max(0.0).copysign(error) / used
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
