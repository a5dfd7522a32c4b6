//! With `-Xint`: a sample at the entry or the exit of a method is that method's, not its caller's; and its caller's are not
//! the method's.

mod agent_support;

use std::path::Path;

use agent_support::stacks::{Stack, cpu_stacks};
use agent_support::{JavaRun, everything, java_homes};
use otlpprof::core::stack_walker::StackWalker;

/// The method of a stack that was running, native code that it had called left out.
fn running_method(stack: &Stack) -> Option<&str> {
    stack.frames.iter().find(|frame| frame.frame_type == "jvm").map(|frame| frame.name.as_str())
}

/// What the program says of a method: which shares of its caller's time are its own at least, and at most.
fn known_shares(said: &str, method: &str) -> Option<[f64; 2]> {
    let line = said.lines().find_map(|line| line.strip_prefix(method)?.strip_prefix(' '))?;
    let (least, most) = line.split_once(' ')?;
    let share = |thousandths: &str| Some(thousandths.trim().parse::<f64>().ok()? / 1000.0);
    Some([share(least)?, share(most)?])
}

/// How long the program runs; and again for a longer time if others have had the machine.
const SECONDS: [u32; 2] = [4, 16];
/// Samples that each caller must have, to say anything.
const LEAST: i64 = 200;

fn assert_entries_and_exits_are_their_own(home: &Path, walker: StackWalker) {
    let is_enough = SECONDS.into_iter().any(|seconds| is_enough_and_their_own(home, walker, seconds));
    assert!(is_enough, "{} {walker:?}: too few samples", home.display());
}

/// Runs it, and holds each method to what is its own; whether there were enough samples for that.
fn is_enough_and_their_own(home: &Path, walker: StackWalker, seconds: u32) -> bool {
    let run = JavaRun::new(home, "InterpretedEntries").argument(seconds).jvm_option("-Xint");
    let options = format!("cpu=500us,file=FILE,cstack={}", walker.name());
    let run = run.agent(&options).run().expect_success();
    let stacks = cpu_stacks(&run.messages());
    let samples = |wanted: &dyn Fn(&Stack) -> bool| -> i64 {
        stacks.iter().filter(|stack| wanted(stack)).map(|stack| stack.value).sum()
    };
    for (method, caller) in [("roomy", "callRoomy"), ("locked", "callLocked")] {
        // What it costs more than a method that has nothing but the code is entry and exit; how much more of the
        // time is its own nobody can know who does not look at each instruction. What the caller's loop takes without
        // the call is not.
        let known = known_shares(&run.stdout, method);
        let [least, most] = known.unwrap_or_else(|| panic!("{}: {}", run.label, run.stdout));
        // Of the caller's samples, those in the method that it calls.
        let [own_name, caller] = [method, caller].map(|name| format!("programs.InterpretedEntries.{name}"));
        let all = samples(&|stack| stack.has(&caller));
        if all <= LEAST {
            return false;
        }
        let share = samples(&|stack| running_method(stack) == Some(&own_name)) as f64 / all as f64;
        let label = format!("{} {options}: {method} {share:.3}, {least:.3} to {most:.3}", run.label);
        println!("{label}");
        // Locks that cost little are hidden by the noise of a busy machine: then the little code that `locked` has
        // besides, a fifth of the time at most, is less than it must have.
        assert!(share >= least.max(0.3) - 0.03, "{label}");
        // A processor begins with the one while it waits for the other, and is seen where it waits: of the caller's time a
        // part only is seen in the caller.
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
