//! Java frames in the profiles of a real JVM: names, lines, inlining, and methods of classes that are gone.

mod agent_support;

use agent_support::stacks::cpu_stacks;
use agent_support::{JavaRun, java_homes, line_marked};

#[test]
fn two_inlined_callees_split_as_they_burn() {
    let lines = ["seventy", "thirty"].map(|name| line_marked("InlineSplit", &format!("burns: {name}")));
    for home in java_homes() {
        let run =
            JavaRun::new(&home, "InlineSplit").argument(6).agent("cpu=1ms,file=FILE").run().expect_success();
        let mut burned = [0; 2];
        let mut elsewhere = 0;
        for stack in cpu_stacks(&run.messages()).iter().filter(|stack| stack.thread == "main") {
            let Some(leaf) = stack.frames.first() else { continue };
            for (index, name) in
                ["programs.InlineSplit.seventy", "programs.InlineSplit.thirty"].iter().enumerate()
            {
                // The loop's own line is the one before: counting and comparing.
                if leaf.name == *name && (lines[index] - 1..=lines[index]).contains(&leaf.line) {
                    assert_eq!(leaf.file, "InlineSplit.java");
                    burned[index] += stack.value;
                } else if leaf.name == *name {
                    elsewhere += stack.value;
                }
            }
        }
        let all = burned[0] + burned[1];
        let share = burned[0] as f64 / all as f64;
        let label = format!("{}: {burned:?}, {elsewhere} on other lines", home.display());
        assert!(all > 1000, "{label}");
        assert!((0.67..=0.73).contains(&share), "{label}: {share:.3} in place of 0.7");
        assert!(elsewhere * 50 <= all, "{label}");
    }
}

/// Class, method, file and line of a storm's class agree by construction.
#[test]
fn methods_of_classes_that_are_gone_keep_their_names() {
    for home in java_homes() {
        let run = JavaRun::new(&home, "HiddenClassStorm")
            .argument(8)
            .agent("cpu=1ms,file=FILE")
            .run()
            .expect_success();
        let (mut right, mut without_line, mut wrong) = (0, 0, Vec::new());
        for stack in cpu_stacks(&run.messages()) {
            for frame in &stack.frames {
                let Some((class, method)) =
                    frame.name.strip_prefix("programs.").and_then(|name| name.split_once('.'))
                else {
                    continue;
                };
                // StormClass, which makes them, is no class of the storm.
                let Some(number) = class.strip_prefix("Storm").filter(|digits| digits.parse::<i64>().is_ok())
                else {
                    continue;
                };
                let agrees = method == format!("burn{number}") && frame.file == format!("Storm{number}.java");
                // In a few instructions of the interpreter the bytecode is not known, and so no line is given.
                if agrees && frame.line == 0 {
                    without_line += 1;
                } else if agrees && number.parse() == Ok(frame.line) {
                    right += 1;
                } else {
                    wrong.push(frame.clone());
                }
            }
        }
        assert!(
            wrong.is_empty(),
            "{}: {} of {} wrong: {wrong:?}",
            home.display(),
            wrong.len(),
            wrong.len() + right
        );
        assert!(without_line * 100 <= right, "{}: {without_line} of {right} without line", home.display());
        assert!(right > 200, "{}: only {right} frames of the storm ({})", home.display(), run.stdout);
    }
}

/// A layout that is wrong is found at start, not by walking with it.
#[test]
fn a_vm_that_describes_itself_wrongly_is_profiled_without_java_frames() {
    for home in java_homes() {
        for field in ["Method::_constMethod", "CodeBlob::_name", "JavaThread::_thread_state"] {
            let run = JavaRun::new(&home, "UserLoop")
                .argument(1)
                .variable("JAVA_TOOL_OPTIONS", &format!("-agentpath:{}={field}", env!("OTLPPROF_VM_DAMAGE")))
                .agent("cpu=1ms,file=FILE")
                .run()
                .expect_success();
            let said = run.stderr.lines().filter(|line| line.contains("not one that can be walked")).count();
            let label = format!("{} {field}: {}", run.label, run.stderr);
            assert_eq!(said, 1, "{label}");
            let stacks = cpu_stacks(&run.messages());
            let frames = || stacks.iter().flat_map(|stack| &stack.frames);
            assert!(frames().all(|frame| frame.frame_type != "jvm"), "{label}");
            assert!(frames().any(|frame| frame.frame_type == "native"), "{label}");
        }
    }
}
