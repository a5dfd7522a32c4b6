//! The sample program and the program of mixed work, sampled by timers of the threads, with every walker:
//! nearly every stack reaches its root. Perf events are refused, as in containers and by emulators, on which
//! the same tests run (`scripts/test-aarch64-jvms.sh`).

use otlpprof_core::stack_walker::StackWalker;
use otlpprof_testkit::commands::otlpprof;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::this_build::{is_emulated, libraries};

/// The least percentage of stacks that reach their root.
const LEAST_PERCENT: &str = "99.5";
/// The least number of samples for a verdict: a single incomplete stack is less than the rest.
const LEAST: u64 = 400;
/// The seconds for which a program runs. The longer runs are for a machine that other programs use.
const SECONDS: &[u32] = &[2, 6, 12];
/// The least number of samples under an emulator, which delivers signals only at jumps and calls: at the
/// places where stacks are hardest to walk.
const LEAST_EMULATED: u64 = 1_000;
/// The seconds under an emulator, to which a sample costs milliseconds.
const SECONDS_EMULATED: &[u32] = &[12, 40];

/// Runs a program under a walker on the JDKs, and checks its stacks.
fn assert_stacks_reach_their_roots(program: &'static str, walker: StackWalker) {
    let (least, lengths) = if is_emulated() { (LEAST_EMULATED, SECONDS_EMULATED) } else { (LEAST, SECONDS) };
    for home in newest_or_all() {
        let has_enough = lengths.iter().any(|seconds| {
            // The walker by frame pointers needs code that has them.
            let library = libraries()[usize::from(walker == StackWalker::Fp)];
            let options = format!("cpu=1ms,timestamps=true,file=FILE,cstack={}", walker.name());
            let run = JavaRun::new(&home, program).argument(seconds).library(library).without_perf_events();
            let run = run.agent(&options).run().expect_success();
            assert!(run.stderr.contains("by the timer clock"), "{}: {}", run.label, run.stderr);
            // Many periods of a stall are one sample, and one stack.
            let checked = otlpprof()
                .args(["check-stacks", "--known-roots", "--distinct-times", "--at-least", LEAST_PERCENT])
                .args(run.files())
                .output()
                .unwrap();
            let report = String::from_utf8_lossy(&checked.stdout);
            let label = format!("{} {options}: {report}", run.label);
            println!("{label}");
            let samples = report.split_whitespace().next().and_then(|count| count.parse::<u64>().ok());
            let is_enough = samples.unwrap_or_else(|| panic!("{label}")) >= least;
            // Among few samples, a single incomplete stack is too many.
            assert!(checked.status.success() || !is_enough, "{label}");
            is_enough
        });
        assert!(has_enough, "{} {program} {walker:?}: too few samples", home.display());
    }
}

/// Declares a test for each walker: five runs one after another would be the longest test of all.
macro_rules! with_each_walker {
    ($($test:ident: $walker:ident,)*) => {
        const _: () = assert!([$(StackWalker::$walker),*].len() == StackWalker::ALL.len());

        mod sample_program {
            use super::*;
            $(#[test] fn $test() { assert_stacks_reach_their_roots("Demo", StackWalker::$walker); })*
        }

        mod mixed_work {
            use super::*;
            $(#[test] fn $test() { assert_stacks_reach_their_roots("MixedWork", StackWalker::$walker); })*
        }
    };
}

with_each_walker! {
    stacks_reach_their_roots_by_vm: Vm,
    stacks_reach_their_roots_by_vmx: Vmx,
    stacks_reach_their_roots_by_fp: Fp,
    stacks_reach_their_roots_by_dwarf: Dwarf,
    stacks_reach_their_roots_without_native_frames: No,
}
