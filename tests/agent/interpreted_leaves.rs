//! With `-Xint`, a sample at the entry or the exit of a method belongs to that method, not to its caller; and
//! a sample of the caller does not belong to the method.

use std::path::Path;

use crate::estimate::assert_share;
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::{everything, newest_or_all};
use otlpprof_testkit::stacks::{Stack, cpu_stacks};

/// The method of a stack that was running, without native code that it had called.
fn running_method(stack: &Stack) -> Option<&str> {
    stack.frames.iter().find(|frame| frame.frame_type == "jvm").map(|frame| frame.name.as_str())
}

/// The least and the largest share of the caller's time that belong to a method, as the program has measured
/// them.
fn known_shares(printed: &str, method: &str) -> Option<[f64; 2]> {
    let line = printed.lines().find_map(|line| line.strip_prefix(method)?.strip_prefix(' '))?;
    let (least, most) = line.split_once(' ')?;
    let share = |thousandths: &str| Some(thousandths.trim().parse::<f64>().ok()? / 1000.0);
    Some([share(least)?, share(most)?])
}

/// The seconds for which the program runs. The longer runs are for the case that other programs have used the
/// CPU.
const SECONDS: [u32; 3] = [4, 16, 64];
/// The least number of samples of each caller for a verdict: five standard errors of a share of 0.3 are then
/// 0.09.
const LEAST: i64 = 600;

fn assert_entries_and_exits_are_their_own(home: &Path, walker: StackWalker) {
    let is_enough = SECONDS.into_iter().any(|seconds| is_enough_and_their_own(home, walker, seconds));
    assert!(is_enough, "{} {walker:?}: too few samples", home.display());
}

/// Runs the program, and checks each method's share. Returns whether there were enough samples for that.
fn is_enough_and_their_own(home: &Path, walker: StackWalker, seconds: u32) -> bool {
    let run = JavaRun::new(home, "InterpretedEntries").argument(seconds).jvm_option("-Xint");
    let options = format!("cpu=250us,timestamps,file=FILE,cstack={}", walker.name());
    let run = run.agent(&options).run().expect_success();
    let stacks = cpu_stacks(&run.messages());
    let samples = |wanted: &dyn Fn(&Stack) -> bool| -> i64 {
        stacks.iter().filter(|stack| wanted(stack)).map(|stack| stack.times).sum()
    };
    for (method, caller) in [("roomy", "callRoomy"), ("locked", "callLocked")] {
        // The least share is the additional cost over a method with the same code alone: the cost of entry
        // and exit. The exact share could only be known by looking at each instruction. The largest share
        // excludes the time that the caller's loop takes without the call.
        let known = known_shares(&run.stdout, method);
        let [least, most] = known.unwrap_or_else(|| panic!("{}: {}", run.label, run.stdout));
        // The samples of the caller, and of these the samples in the method that it calls.
        let [own_name, caller] = [method, caller].map(|name| format!("programs.InterpretedEntries.{name}"));
        let all = samples(&|stack| stack.has(&caller));
        if all <= LEAST {
            return false;
        }
        let own = samples(&|stack| running_method(stack) == Some(&own_name));
        let label = format!("{} {options}: {method} {own} of {all}, {least:.3} to {most:.3}", run.label);
        println!("{label}");
        // The program measures its shortest times. Beside other programs the caller's own instructions take
        // a larger share than in those, and the noise hides locks of little cost. The other code of
        // `locked`, at most a fifth of the time, is less than the required share.
        let least = (0.85 * least).max(0.3);
        // A processor executes the caller's instructions early, while it waits for the method's, and is
        // sampled where it waits. So only a part of the caller's time is seen in the caller.
        let most = (1.0 - (1.0 - most) / 3.0).max(least);
        assert_share(own, all, least..=most, &label);
    }
    true
}

#[test]
fn entries_and_exits_of_interpreted_methods_are_their_own() {
    for (number, home) in newest_or_all().iter().enumerate() {
        assert_entries_and_exits_are_their_own(home, StackWalker::Vm);
        // Whichever walks it, the frame is found in the same way.
        if number == 0 || everything() {
            assert_entries_and_exits_are_their_own(home, StackWalker::Vmx);
        }
    }
}
