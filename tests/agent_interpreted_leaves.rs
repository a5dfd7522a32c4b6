//! With `-Xint`: a sample at the entry or the exit of a method is that method's, not its caller's.

mod agent_support;

use agent_support::stacks::{Stack, cpu_stacks};
use agent_support::{JavaRun, java_homes};

/// The method of a stack that was running, native code that it had called left out.
fn running_method(stack: &Stack) -> Option<&str> {
    stack.frames.iter().find(|frame| frame.frame_type == "jvm").map(|frame| frame.name.as_str())
}

#[test]
fn entries_and_exits_of_interpreted_methods_are_their_own() {
    for home in java_homes() {
        let run = JavaRun::new(&home, "InterpretedEntries").argument(4).jvm_option("-Xint");
        let run = run.agent("cpu=500us,file=FILE").run().expect_success();
        let stacks = cpu_stacks(&run.messages());
        let samples = |wanted: &dyn Fn(&Stack) -> bool| -> i64 {
            stacks.iter().filter(|stack| wanted(stack)).map(|stack| stack.value).sum()
        };
        // Of a caller's samples, those in the method that it calls.
        let own_share = |method: &str, caller: &str| {
            let [method, caller] = [method, caller].map(|name| format!("programs.InterpretedEntries.{name}"));
            let all = samples(&|stack| stack.has(&caller));
            let own = samples(&|stack| running_method(stack) == Some(&method));
            assert!(all > 200, "{}: only {all} samples below {caller}", run.label);
            own as f64 / all as f64
        };
        for (method, caller) in [("roomy", "callRoomy"), ("locked", "callLocked")] {
            let said =
                run.stdout.lines().find_map(|line| line.strip_prefix(method)?.trim().parse::<f64>().ok());
            // What it costs more than a method that has nothing but the code is entry and exit; how much more of the
            // time is its own nobody can know who does not look at each instruction.
            let known = said.expect("the program says what it knows") / 1000.0;
            let share = own_share(method, caller);
            let label = format!("{}: {method} {share:.3}, known {known:.3}", run.label);
            println!("{label}");
            // Locks that cost little are hidden by the noise of a busy machine: then the little code that `locked` has
            // besides, a fifth of the time at most, is less than it must have.
            assert!(share >= known.max(0.3) - 0.03, "{label}");
        }
    }
}
