//! The contexts of every engine's samples in the profiles of a real JVM: each is compared with the endpoint
//! whose method is in its stack.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::endpoints::{ENDPOINTS, PROGRAM, kinds, served, wanted_work};
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_version, newest_or_all};
use otlpprof_testkit::stacks::{Stack, stacks_of};

/// The largest share of samples without a context.
const WITHOUT: f64 = 0.01;
/// The seconds for which the program runs. The longer runs are for the case that other programs have used the
/// CPU, or that too few samples were taken to judge them.
const SECONDS: [&str; 3] = ["1.5", "10", "60"];

/// Whether so many of `all` samples may be without a context: no more than by [`WITHOUT`], and less than five
/// standard errors more.
fn may_be_without(without: usize, all: i64) -> bool {
    let most = WITHOUT * all as f64;
    without as f64 <= most + 5.0 * (most * (1.0 - WITHOUT)).sqrt()
}

/// The endpoint in a sample's label and link; `None` without a label.
///
/// # Panics
/// If the label names no endpoint, or the link is not of the endpoint's span.
fn labelled_endpoint(label: &str, stack: &Stack) -> Option<usize> {
    let endpoint = stack.labels.get("rest_endpoint")?;
    let index = ENDPOINTS.iter().position(|known| known == endpoint).expect("one of the endpoints");
    let byte = index as u8 + 1;
    assert_eq!(stack.link, Some((vec![byte; 16], vec![byte; 8])), "{label}: {stack:#?}");
    Some(index)
}

/// A stack in one line.
fn names(stack: &Stack) -> String {
    let names: Vec<_> = stack.frames.iter().map(|frame| frame.name.as_str()).collect();
    names.join(" < ")
}

/// The samples of a program's run.
struct Tally {
    /// The profile types, the endpoints of right samples, and the methods in their stacks.
    seen: BTreeSet<(String, usize, String)>,
    /// For each profile type the number of different samples that were right, and the samples without a
    /// context.
    right: BTreeMap<String, (i64, Vec<Stack>)>,
}

/// Whether the virtual thread of this stack may be unknown: from JDK 21 to 23 it is read from objects, which
/// a collection may be moving.
fn may_be_unknown(java_version: u32, stack: &Stack) -> bool {
    (21..24).contains(&java_version) && stack.has("[frozen: collecting]")
}

fn tally(run: &Finished, version: u32) -> Tally {
    let mut tally = Tally { seen: BTreeSet::new(), right: BTreeMap::new() };
    let messages = run.messages();
    for (profile_type, sample_type, unit) in kinds(run) {
        let label = format!("{}: {profile_type}", run.label);
        for stack in stacks_of(&messages, &profile_type, (&sample_type, &unit)) {
            let Some(endpoint) = served(&stack) else {
                // The sample was taken while the endpoint is set or removed, or its stack is not complete.
                labelled_endpoint(&label, &stack);
                continue;
            };
            let (right, without) = tally.right.entry(profile_type.clone()).or_default();
            match labelled_endpoint(&label, &stack) {
                Some(labelled) => {
                    assert_eq!(labelled, endpoint, "{label}: {stack:#?}");
                    *right += 1;
                }
                None => {
                    assert_eq!(stack.link, None, "{label}: {stack:#?}");
                    if !may_be_unknown(version, &stack) {
                        without.push(stack);
                    }
                    continue;
                }
            }
            let methods = stack.frames.iter().filter_map(|frame| frame.name.strip_prefix(PROGRAM));
            tally.seen.extend(methods.map(|method| (profile_type.clone(), endpoint, method.to_owned())));
        }
    }
    tally
}

/// Compares every sample of every engine with the endpoint in its stack.
fn hold(home: &Path, threads: &[&str]) {
    let mut why = String::new();
    for seconds in SECONDS {
        let run = crate::endpoints::run(home, seconds, threads, "");
        let work = wanted_work(&run);
        let tally = tally(&run, java_version(home));
        why.clear();
        for (profile_type, (right, without)) in &tally.right {
            let all = right + without.len() as i64;
            eprintln!("{} {threads:?}: {profile_type}: {right} of {all}", run.label);
            if !may_be_without(without.len(), all) {
                let names = without.iter().map(names).collect::<BTreeSet<_>>();
                let count = without.len();
                why += &format!("{profile_type}: {count} of {all} have no context: {names:#?}\n");
            }
        }
        let types: BTreeSet<_> = work.iter().map(|(profile_type, _)| *profile_type).collect();
        let found: BTreeSet<_> = tally.right.keys().map(String::as_str).collect();
        assert!(found.is_subset(&types), "{}: of {found:?} not all are looked for", run.label);
        let each = work.iter().flat_map(|work| (0..ENDPOINTS.len()).map(move |endpoint| (work, endpoint)));
        let missing: Vec<_> = each
            .map(|(&(profile_type, method), endpoint)| (profile_type.to_owned(), endpoint, method.to_owned()))
            .filter(|wanted| !tally.seen.contains(wanted))
            .collect();
        if !missing.is_empty() {
            why += &format!("no samples of {missing:?}\n");
        }
        if why.is_empty() {
            return;
        }
    }
    panic!("{} {threads:?}: {why}", home.display());
}

#[test]
fn every_sample_of_every_engine_has_the_context_of_the_endpoint_in_its_stack() {
    for home in newest_or_all() {
        hold(&home, &[]);
    }
}

#[test]
fn every_sample_of_a_virtual_thread_has_it_too() {
    for home in newest_or_all().into_iter().filter(|home| java_version(home) >= 21) {
        hold(&home, &["virtual"]);
    }
}
