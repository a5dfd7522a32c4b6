//! With `-Xint`, a sample at the entry or the exit of a method belongs to that method, not to its caller; and
//! a sample of the caller does not belong to the method.

use std::path::Path;

use crate::agent_support::stacks::{Stack, cpu_stacks};
use crate::agent_support::{JavaRun, everything, java_homes};
use otlpprof::core::stack_walker::StackWalker;

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

/// The seconds for which the program runs. The second run is for the case that other programs have used the
/// CPU.
const SECONDS: [u32; 2] = [4, 16];
/// The least number of samples of each caller for a verdict.
const LEAST: i64 = 200;

fn assert_entries_and_exits_are_their_own(home: &Path, walker: StackWalker) {
    let is_enough = SECONDS.into_iter().any(|seconds| is_enough_and_their_own(home, walker, seconds));
    assert!(is_enough, "{} {walker:?}: too few samples", home.display());
}

/// Runs the program, and checks each method's share. Returns whether there were enough samples for that.
fn is_enough_and_their_own(home: &Path, walker: StackWalker, seconds: u32) -> bool {
    let run = JavaRun::new(home, "InterpretedEntries").argument(seconds).jvm_option("-Xint");
    let options = format!("cpu=500us,file=FILE,cstack={}", walker.name());
    let run = run.agent(&options).run().expect_success();
    let stacks = cpu_stacks(&run.messages());
    let samples = |wanted: &dyn Fn(&Stack) -> bool| -> i64 {
        stacks.iter().filter(|stack| wanted(stack)).map(|stack| stack.value).sum()
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
        let share = samples(&|stack| running_method(stack) == Some(&own_name)) as f64 / all as f64;
        let label = format!("{} {options}: {method} {share:.3}, {least:.3} to {most:.3}", run.label);
        println!("{label}");
        // On a busy machine the noise hides locks of little cost. The other code of `locked`, at most a fifth
        // of the time, is then less than the required share.
        assert!(share >= least.max(0.3) - 0.03, "{label}");
        // A processor executes the caller's instructions early, while it waits for the method's, and is
        // sampled where it waits. So only a part of the caller's time is seen in the caller.
        assert!(1.0 - share >= (1.0 - most) / 3.0, "{label}");
    }
    true
}

#[test]
fn entries_and_exits_of_interpreted_methods_are_their_own() {
    for (number, home) in java_homes().iter().enumerate() {
        assert_entries_and_exits_are_their_own(home, StackWalker::Vm);
        // Whichever walks it, the frame is found in the same way.
        if number == 0 || everything() {
            assert_entries_and_exits_are_their_own(home, StackWalker::Vmx);
        }
    }
}
