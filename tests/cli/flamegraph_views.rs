//! The views of a page in headless Chromium, node by node: a reader in Python, independent of otlpprof and of
//! the page, computes them from the OTLP files (`scripts/page_views.py`). No filter, labels, windows of time,
//! focus, removal and search; top down, inverted, sandwich; both sides of a comparison.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::generated_profiles::generated;
use otlpprof_testkit::commands::{run_otlpprof, text};
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::jdk::newest_or_all;
use otlpprof_testkit::pages::{compare, write};
use serde_json::Value;
use tempfile::TempDir;

/// The kinds of views in which values differ: none for a right page. `None` if there is no browser.
fn differing(page: &Path, arguments: &[&str]) -> Option<BTreeSet<String>> {
    let answer = match compare("views", page, arguments)? {
        Ok(answer) => answer,
        Err(differences) => {
            eprintln!("{}: {differences}", page.display());
            let answer: Value = serde_json::from_str(&differences).unwrap();
            return Some(answer["different"].as_object().unwrap().keys().cloned().collect());
        }
    };
    eprintln!("{}: {answer}", page.display());
    let compared = &answer["compared"];
    for kind in ["whole", "inverted", "callers", "callees", "focus", "remove", "label", "search"] {
        assert!(compared[kind].as_u64() > Some(20), "{kind}: {answer}");
    }
    assert!(compared["boxes"].as_u64() >= Some(1_000), "{answer}");
    Some(BTreeSet::new())
}

fn expect_equal(page: &Path, arguments: &[&str]) {
    if let Some(kinds) = differing(page, arguments) {
        assert_eq!(kinds, BTreeSet::new(), "{}", page.display());
    }
}

/// Requires that the mutated page differs in these kinds of views.
fn expect_different(page: &Path, arguments: &[&str], mutation: &str, kinds: &[&str]) {
    let Some(found) = differing(page, &[arguments, &["--mutate", mutation]].concat()) else { return };
    let missed: Vec<_> = kinds.iter().filter(|&&kind| !found.contains(kind)).collect();
    assert!(missed.is_empty(), "{mutation}: not seen in {missed:?}, only in {found:?}");
}

/// Writes a page of all samples in the file, and requires equal values.
fn check(folder: &TempDir, file: &Path, options: &[&str]) -> PathBuf {
    let page = folder.path().join("page.html");
    let command = ["flamegraph", text(file), "-o", text(&page), "--idle"];
    run_otlpprof(&[&command, options].concat()).success();
    expect_equal(&page, &[text(file)]);
    page
}

/// Steps of time as fine as the times of samples are.
#[test]
fn views_of_a_generated_profile_are_those_of_its_files() {
    assert_views_of_a_generated_profile_are_right(&[]);
}

#[test]
fn views_with_steps_longer_than_an_interval_are_those_of_their_files() {
    assert_views_of_a_generated_profile_are_right(&["--steps", "5"]);
}

#[test]
fn views_without_times_are_those_of_their_files() {
    assert_views_of_a_generated_profile_are_right(&["--steps", "0"]);
}

fn assert_views_of_a_generated_profile_are_right(options: &[&str]) {
    let folder = TempDir::new().unwrap();
    let file = write(&folder, "generated.otlp", &generated(3));
    let page = check(&folder, &file, options);
    if let Some(answer) = compare("page", &page, &[text(&file)]) {
        answer.unwrap_or_else(|difference| panic!("{options:?}: {difference}"));
    }
}

#[test]
fn views_of_a_comparison_are_those_of_both_files() {
    with_comparison(expect_equal);
}

#[test]
fn exchanged_sides_of_a_comparison_are_found_in_every_view() {
    let kinds = ["whole", "inverted", "callers", "callees", "elided", "functions"];
    with_comparison(|page, files| expect_different(page, files, "exchanged", &kinds));
}

/// Calls `check` with the page of two files, and the arguments that name these files.
fn with_comparison(check: impl FnOnce(&Path, &[&str])) {
    let folder = TempDir::new().unwrap();
    let (base, new) = (write(&folder, "base.otlp", &generated(5)), write(&folder, "new.otlp", &generated(9)));
    let page = folder.path().join("diff.html");
    run_otlpprof(&["diff", text(&base), text(&new), "-o", text(&page)]).success();
    check(&page, &[text(&new), "--base", text(&base)]);
}

/// A comparison that could not fail would prove nothing.
#[test]
fn a_changed_value_label_time_or_frame_is_found_in_every_view_that_has_it() {
    let folder = TempDir::new().unwrap();
    let file = write(&folder, "generated.otlp", &generated(3));
    let page = folder.path().join("page.html");
    let arguments = ["flamegraph", text(&file), "-o", text(&page), "--type", "cpu"];
    run_otlpprof(&[&arguments[..], &["--steps", "60"]].concat()).success();
    let of_a_value = [
        "whole",
        "inverted",
        "callers",
        "callees",
        "focus",
        "label",
        "search",
        "window",
        "functions",
        "steps",
        "sums of labels",
    ];
    for (mutation, kinds) in [
        ("lost", &of_a_value[..]),
        ("relabelled", &["label", "sums of labels"]),
        ("delayed", &["window", "steps"]),
        ("renamed", &["whole", "inverted", "callers", "functions"]),
    ] {
        expect_different(&page, &[text(&file)], mutation, kinds);
    }
}

#[test]
fn views_of_cpu_time_and_contexts_are_those_of_their_files() {
    let options = "cpu=5ms,context=rest_endpoint+traceid+spanid,timestamps=true";
    assert_views_of_a_program_are_those_of_its_files("ContextRequests", options);
}

#[test]
fn views_of_allocations_are_those_of_their_files() {
    let options = "cpu=off,alloc=64k,live=64k,timestamps=true";
    assert_views_of_a_program_are_those_of_its_files("MixedWork", options);
}

#[test]
fn views_of_wall_clock_time_are_those_of_their_files() {
    assert_views_of_a_program_are_those_of_its_files("MixedWork", "cpu=off,wall=10ms,remotesym=true");
}

fn assert_views_of_a_program_are_those_of_its_files(program: &'static str, options: &str) {
    let folder = TempDir::new().unwrap();
    for home in newest_or_all() {
        let run = JavaRun::new(&home, program)
            .argument(2)
            .agent(&format!("{options},interval=500ms,file=FILE"))
            .run()
            .expect_success();
        for file in run.files() {
            check(&folder, &file, &[]);
        }
    }
}
