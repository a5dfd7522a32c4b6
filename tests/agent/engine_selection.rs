//! Selection of samples, for every engine, in the profiles of real JVMs: by thread, by frame, and by threads
//! that have registered themselves.

use std::collections::BTreeSet;
use std::path::Path;

use crate::endpoints::{PROGRAM, kinds, run, served, wanted_work};
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_version, newest_or_all};
use otlpprof_testkit::stacks::{Stack, stacks_of};

/// Runs the program with this selection. No engine may have a sample that is not wanted, and every engine
/// must have wanted samples of its work. `counter` counts the samples that were left out.
fn hold(home: &Path, words: &[&str], selection: &str, counter: &str, is_wanted: impl Fn(&Stack) -> bool) {
    let mut missing = Vec::new();
    // The second run is longer, for the case that other programs have used the CPU.
    for seconds in ["1.5", "10"] {
        let run = run(home, seconds, words, &format!(",{selection}"));
        let label = format!("{} {words:?} {selection}", run.label);
        let seen = hold_run(&run, &label, &is_wanted);
        assert!(run.counter(counter) > 0, "{label}: {counter}");
        missing = wanted_work(&run)
            .into_iter()
            .map(|(profile_type, method)| (profile_type.to_owned(), method.to_owned()))
            .filter(|work| !seen.contains(work))
            .collect();
        if missing.is_empty() {
            return;
        }
    }
    panic!("{} {words:?} {selection}: no samples of {missing:?}", home.display());
}

/// The profile types of a run's samples, with the program's methods in their stacks.
fn hold_run(run: &Finished, label: &str, is_wanted: impl Fn(&Stack) -> bool) -> BTreeSet<(String, String)> {
    let messages = run.messages();
    let mut seen = BTreeSet::new();
    for (profile_type, sample_type, unit) in kinds(run) {
        let stacks = stacks_of(&messages, &profile_type, (&sample_type, &unit));
        assert!(!stacks.is_empty(), "{label}: {profile_type}, {sample_type}");
        for stack in stacks {
            assert!(is_wanted(&stack), "{label}: {profile_type}, {sample_type}: {stack:#?}");
            let methods = stack.frames.iter().filter_map(|frame| frame.name.strip_prefix(PROGRAM));
            seen.extend(methods.map(|method| (profile_type.clone(), method.to_owned())));
        }
    }
    seen
}

/// The program's arguments for platform threads and, if the JDK has them, for virtual threads.
fn words(home: &Path) -> &'static [&'static [&'static str]] {
    if java_version(home) >= 21 { &[&[], &["virtual"]] } else { &[&[]] }
}

#[test]
fn every_engine_samples_only_selected_threads() {
    for home in newest_or_all() {
        let is_wanted = |stack: &Stack| stack.thread == "serves-1";
        hold(&home, &[], "threads=serves-*+!*-0+!*-2", "samples_left_out", is_wanted);
    }
}

#[test]
fn every_engine_reports_only_included_stacks() {
    for home in newest_or_all() {
        for words in words(&home) {
            let selection = "include=programs.EngineContexts.endpoint1";
            hold(&home, words, selection, "samples_left_out", |stack| served(stack) == Some(1));
        }
    }
}

#[test]
fn no_engine_reports_an_excluded_stack() {
    for home in newest_or_all() {
        for words in words(&home) {
            let selection = "exclude=programs.EngineContexts.endpoint1";
            hold(&home, words, selection, "samples_left_out", |stack| served(stack) != Some(1));
        }
    }
}

#[test]
fn every_engine_samples_only_the_registered_thread() {
    for home in newest_or_all() {
        let is_wanted = |stack: &Stack| stack.thread == "serves-1" && matches!(served(stack), None | Some(1));
        hold(&home, &["registered"], "filter=true", "handler.samples_filtered", is_wanted);
    }
}

#[test]
fn every_engine_samples_only_the_registered_virtual_thread() {
    for home in newest_or_all().into_iter().filter(|home| java_version(home) >= 21) {
        let is_wanted = |stack: &Stack| match served(stack) {
            Some(endpoint) => endpoint == 1,
            // The thread is on its way to its endpoint or back; or its frames are being moved, and a mark
            // replaces them, which occurs for virtual threads only.
            None => stack.frames.iter().any(|frame| {
                frame.name.contains("VirtualThread$VThreadContinuation")
                    || frame.name.starts_with("[frozen: ")
            }),
        };
        let words = ["virtual", "registered"];
        hold(&home, &words, "filter=true", "handler.samples_filtered", is_wanted);
    }
}
