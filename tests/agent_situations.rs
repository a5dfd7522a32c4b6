//! Programs whose call trees are known by construction, on every JDK: their stacks reach their roots, and no method is
//! called by one that cannot call it.

mod agent_support;

use std::process::Command;

use agent_support::{JavaRun, java_homes};

const GRAMMAR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/java/testprograms/grammars/Situations.txt");

/// A run takes some thousand samples, those of the VM's start included.
const LEAST_PERCENT: &str = "99.5";

fn assert_walked(situation: &str, flags: &[&str]) {
    for home in java_homes() {
        let run = JavaRun::new(&home, "Situations").argument(situation).argument(2);
        let run = flags.iter().fold(run, |run, flag| run.jvm_option(flag));
        let run = run.agent("cpu=200us,file=FILE").run().expect_success();
        let checked = Command::new(env!("CARGO_BIN_EXE_otlpprof"))
            .args(["check-stacks", "--known-roots", "--at-least", LEAST_PERCENT, "--grammar", GRAMMAR])
            .args(run.files())
            .output()
            .unwrap();
        let report = String::from_utf8_lossy(&checked.stdout);
        assert!(checked.status.success(), "{} {situation} {flags:?}: {report}", run.label);
        let samples: u64 = report.split_whitespace().next().and_then(|count| count.parse().ok()).unwrap_or(0);
        assert!(samples > 1000, "{} {situation} {flags:?}: {report}", run.label);
    }
}

#[test]
fn exceptions_that_unwind_compiled_frames() {
    assert_walked("exceptions", &[]);
    assert_walked("exceptions", &["-XX:TieredStopAtLevel=1"]);
}

#[test]
fn exceptions_that_unwind_interpreted_frames() {
    assert_walked("exceptions", &["-Xint"]);
}

#[test]
fn calls_by_vtables_and_itables() {
    assert_walked("calls", &[]);
}

#[test]
fn allocation_and_collections() {
    assert_walked("allocation", &[]);
}

#[test]
fn monitors_and_locks_that_are_fought_for() {
    assert_walked("locks", &[]);
}

#[test]
fn concatenation_and_lambdas() {
    assert_walked("strings", &[]);
}

#[test]
fn java_and_native_code_six_times_over() {
    assert_walked("upcalls", &[]);
}
