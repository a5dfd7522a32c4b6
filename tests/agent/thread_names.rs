//! Names of threads: a sample has the name that its thread had when the sample was taken.

use std::collections::BTreeSet;

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::{java_homes_from, newest_or_all};
use otlpprof_testkit::stacks::{Stack, stacks_of};

/// The names of the threads that were in a method of the program.
fn names_in(stacks: &[Stack], method: &str) -> BTreeSet<String> {
    let method = format!("programs.RenamedTasks.{method}");
    stacks.iter().filter(|stack| stack.has(&method)).map(|stack| stack.thread.clone()).collect()
}

/// Regression: for a thread that was renamed, the samples of the whole interval had its last name.
#[test]
fn a_thread_that_renames_itself_for_each_task_has_each_task_s_samples_under_its_name() {
    // On a busy machine the wall-clock sampler may be late for the first of the methods.
    const MOST_RUNS: usize = 5;
    for home in newest_or_all() {
        let has_all_names = |_| {
            let run = JavaRun::new(&home, "RenamedTasks").argument("1.5");
            // In compiled code the program's frames may be inlined, and are still in the stacks.
            let run = run.agent("cpu=1ms,wall=5ms,interval=300ms,file=FILE").run().expect_success();
            let messages = run.messages();
            let profile_types = ["cpu", "wall"].into_iter();
            let mut stacks = profile_types.map(|of| (of, stacks_of(&messages, of, ("samples", "count"))));
            stacks.all(|(profile_type, stacks)| {
                [("before", "before"), ("a", "task-a"), ("b", "task-b")].into_iter().all(|(method, name)| {
                    let found = names_in(&stacks, method);
                    let expected = BTreeSet::from([name.to_owned()]);
                    let label = format!("{}: {profile_type}: {method}: {found:?}", run.label);
                    assert!(found.is_subset(&expected), "{label}");
                    !found.is_empty()
                })
            })
        };
        assert!((0..MOST_RUNS).any(has_all_names), "{}: no sample of a method", home.display());
    }
}

/// Samples of virtual threads have their carrier's name, which does not change.
#[test]
fn a_virtual_thread_that_is_renamed_leaves_its_carrier_its_name() {
    for home in java_homes_from(21) {
        let run = JavaRun::new(&home, "RenamedTasks").argument("0.5").argument("virtual");
        let run = run.agent("cpu=1ms,wall=5ms,interval=300ms,file=FILE").run().expect_success();
        let stacks = stacks_of(&run.messages(), "cpu", ("samples", "count"));
        for method in ["a", "b"] {
            let found = names_in(&stacks, method);
            let is_carrier = |name: &String| name.starts_with("ForkJoinPool-1-worker-");
            assert!(!found.is_empty() && found.iter().all(is_carrier), "{}: {method}: {found:?}", run.label);
        }
    }
}

/// Regression: all samples of a native thread in an interval had the name that the thread had at the
/// interval's end.
#[test]
fn a_native_thread_that_renames_itself_has_samples_under_both_names() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "RenamedPthread").argument(1_000);
        let run = run.agent("cpu=1ms,interval=1h,file=FILE").run().expect_success();
        let stacks = stacks_of(&run.messages(), "cpu", ("samples", "count"));
        for (function, name) in [("burn_as_first", "ddprof-first"), ("burn_as_second", "ddprof-second")] {
            let has_both = |stack: &Stack| stack.has(function) && stack.thread == name;
            assert!(stacks.iter().any(has_both), "{}: {function}", run.label);
        }
    }
}
