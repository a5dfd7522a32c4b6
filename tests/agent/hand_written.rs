//! Hand-written native code on the stacks of a real JVM.

use std::path::Path;

use otlpprof_core::stack_walker::StackWalker;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::java_homes;
use otlpprof_testkit::stacks::{Stack, cpu_stacks};
use otlpprof_testkit::this_build::libraries;

/// The callers of every function in which `programs.HandWritten` burns.
const CALLERS: [&str; 4] =
    ["ddprof_call", "Java_programs_Native_call", "programs.Native.call", "programs.HandWritten.burn"];

/// Burns in these functions, and checks for each leaf that all stacks with it have its callers and no mark.
fn assert_callers(home: &Path, walker: StackWalker, functions: &[(&str, &[&str])]) {
    let options = format!("cpu=500us,file=FILE,cstack={}", walker.name());
    // Only one of the libraries keeps frame pointers.
    let library = libraries()[usize::from(walker == StackWalker::Fp)];
    let mut run = JavaRun::new(home, "HandWritten").argument(0.6).library(library).agent(&options);
    for (_, callers) in functions {
        run = run.argument(callers.last().unwrap());
    }
    let run = run.run().expect_success();
    let stacks = cpu_stacks(&run.messages());
    for (leaf, callers) in functions {
        // Each function has used so much CPU time that there must be samples.
        assert_called(&format!("{} {options}: {leaf}", run.label), &stacks, leaf, callers);
    }
}

fn assert_called(label: &str, stacks: &[Stack], leaf: &str, callers: &[&str]) {
    let expected: Vec<&str> =
        callers.iter().filter(|caller| **caller != leaf).chain(&CALLERS).copied().collect();
    let mut all = 0;
    for stack in stacks {
        let names: Vec<&str> = stack.frames.iter().map(|frame| &*frame.name).collect();
        let Some(at) = names.iter().position(|name| *name == leaf) else { continue };
        all += stack.value;
        assert_eq!(names.get(at + 1..=at + expected.len()), Some(&expected[..]), "{label}: {names:#?}");
        assert!(!names.iter().any(|name| name.starts_with("[unwalkable")), "{label}: {names:#?}");
    }
    assert!(all > 20, "{label}: {all} samples");
}

/// Regression: `_dl_runtime_resolve`, whose frame is found by rbx, was the end of its callees' stacks.
#[test]
fn a_caller_found_by_a_register_is_walked_while_its_callees_run() {
    for home in java_homes() {
        for walker in [StackWalker::Vm, StackWalker::Vmx, StackWalker::Dwarf] {
            assert_callers(&home, walker, &[("hash_block", &["ddprof_hash", "ddprof_by_register"])]);
        }
    }
}

/// Regression: zstd's Huffman decoder was the end of its stacks' native frames.
#[test]
fn assembly_without_call_frame_information_has_its_callers() {
    for home in java_homes() {
        for walker in [StackWalker::Vm, StackWalker::Vmx, StackWalker::Fp, StackWalker::Dwarf] {
            let functions: [(&str, &[&str]); 3] = [
                ("ddprof_pushing", &["ddprof_pushing"]),
                ("ddprof_aligning", &["ddprof_aligning"]),
                ("ddprof_jumping_back", &["ddprof_jumped_back_to"]),
            ];
            assert_callers(&home, walker, &functions);
        }
    }
}
