//! Stacks that no walker can walk: the gap is a frame of the stack, and is counted in the log and in the
//! profiles.

use std::path::Path;

use otlpprof_core::stack_walker::StackWalker;
use otlpprof_signal::walk::WalkError;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::profiles::counted_in_profiles;
use otlpprof_testkit::stacks::{Stack, cpu_stacks};

/// The function whose caller cannot be found.
const LOST: &str = "ddprof_undescribed";

/// The index of the frame of this name in the stack.
fn place(stack: &Stack, name: &str) -> Option<usize> {
    stack.frames.iter().position(|frame| frame.name == name)
}

/// The number of times that these stacks were taken, and the number of times that they mark the gap
/// correctly.
fn times<'a>(stacks: impl Iterator<Item = &'a Stack>, is_right: impl Fn(&Stack) -> bool) -> [i64; 2] {
    stacks.fold([0, 0], |[all, right], stack| {
        [all + stack.times, right + if is_right(stack) { stack.times } else { 0 }]
    })
}

fn mark(error: WalkError) -> String {
    format!("[unwalkable: {}]", error.name())
}

fn assert_gaps_are_marked(home: &Path, walker: StackWalker) {
    let options = format!("cpu=500us,interval=400ms,timestamps,file=FILE,cstack={}", walker.name());
    let run = JavaRun::new(home, "BrokenStacks").argument(1).agent(&options).run().expect_success();
    let messages = run.messages();
    assert!(messages.len() > 1, "{}: one interval is no sum of several", run.label);
    let stacks = cpu_stacks(&messages);
    let label = format!("{} {options}", run.label);

    // Below the gap the walk goes on at the Java frame anchor.
    let lost = mark(WalkError::NativeFramesLost);
    let below_java = stacks.iter().filter(|stack| stack.thread == "main" && place(stack, LOST).is_some());
    let [all, right] = times(below_java, |stack| {
        let gap = place(stack, &lost);
        place(stack, LOST) == Some(0)
            && gap == Some(1)
            && place(stack, "programs.Native.undescribed") == Some(2)
            && place(stack, "programs.BrokenStacks.belowJava") == Some(3)
            && place(stack, "programs.BrokenStacks.main") == Some(4)
    });
    println!("{label}: {right} of {all} below Java");
    // At the first of its instructions the register still has the caller's frame pointer.
    assert!(all > 50 && right * 100 >= all * 98, "{label}: {right} of {all} below Java");

    // On a thread without Java frames the stack ends with the gap.
    let ends = mark(WalkError::NoUnwindRule);
    let native = stacks.iter().filter(|stack| stack.thread != "main" && place(stack, LOST).is_some());
    let [all, right] = times(native, |stack| {
        let names = stack.frames.iter().map(|frame| &*frame.name);
        names.eq([LOST, &ends])
    });
    println!("{label}: {right} of {all} without Java");
    assert!(all > 50 && right * 100 >= all * 98, "{label}: {right} of {all} without Java");

    for error in WalkError::ALL {
        let mark = mark(error);
        let counter = format!("walk_error.{}", error.name());
        let counted = run.counter(&counter) as i64;
        let label = format!("{label}: {mark} in the log");
        assert_eq!(counted_in_profiles(&messages, &counter), counted, "{label} and in the profiles");
        // A walk is counted once, has one time, and may stand for several periods.
        let with_mark = |of: fn(&Stack) -> i64| -> i64 {
            stacks.iter().map(|stack| of(stack) * marks(stack, &mark)).sum()
        };
        let [times, periods] = [with_mark(|stack| stack.times), with_mark(|stack| stack.value)];
        assert!(
            (times..=periods).contains(&counted),
            "{label} {counted}, in the samples {times} to {periods}"
        );
    }
}

/// The number of marks of this name in a stack.
fn marks(stack: &Stack, mark: &str) -> i64 {
    stack.frames.iter().filter(|frame| frame.name == mark).count() as i64
}

#[test]
fn code_that_no_walker_can_leave_is_marked_and_counted_by_reason() {
    for home in newest_or_all() {
        for walker in [StackWalker::Vm, StackWalker::Vmx, StackWalker::Fp, StackWalker::Dwarf] {
            assert_gaps_are_marked(&home, walker);
        }
    }
}

/// Without native frames a walk cannot be lost in them.
#[test]
fn without_native_frames_java_ones_have_no_gap_above_them() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "BrokenStacks").argument(1).agent("cpu=500us,file=FILE,cstack=no");
        let run = run.run().expect_success();
        let stacks = cpu_stacks(&run.messages());
        let below = stacks.iter().filter(|stack| stack.has("programs.Native.undescribed"));
        let (mut all, mut right) = (0, 0);
        for stack in below {
            all += stack.value;
            let is_marked = stack.frames.iter().any(|frame| frame.name.starts_with("[unwalkable"));
            if stack.has("programs.BrokenStacks.main") && !is_marked {
                right += stack.value;
            }
        }
        assert!(all > 50 && right == all, "{}: {right} of {all}", run.label);
    }
}
