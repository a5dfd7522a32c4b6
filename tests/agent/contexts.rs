//! Contexts of threads in the profiles of a real JVM: every sample is compared with the work that the program
//! was doing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::estimate::assert_share;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_version, newest_or_all};
use otlpprof_testkit::stacks::{Stack, cpu_stacks};

/// Each burning method is called where its context is set: none of its code runs before.
const APART: &str = "-XX:CompileCommand=dontinline,programs.ContextStress::burn*";

fn stress(home: &Path, arguments: &[&str]) -> Finished {
    stress_with("", home, arguments)
}

fn stress_with(options: &str, home: &Path, arguments: &[&str]) -> Finished {
    let mut run =
        JavaRun::new(home, "ContextStress").jvm_option("-XX:CompileCommand=quiet").jvm_option(APART);
    for argument in arguments {
        run = run.argument(argument);
    }
    let options = format!("cpu=100us,timestamps,context=witness+traceid,file=FILE{options}");
    run.agent(&options).run().expect_success()
}

/// The number of the burning method, of four.
fn burning(stack: &Stack) -> Option<u8> {
    (0..4).find(|which| stack.has(&format!("programs.ContextStress.burn{which}")))
}

/// The number that fills the bytes of trace and span id, less one.
///
/// # Panics
/// If the bytes are a mixture.
fn linked(stack: &Stack) -> Option<u8> {
    let (trace, span) = stack.link.as_ref()?;
    let first = trace[0];
    let is_whole = trace.iter().chain(span).all(|&byte| byte == first) && (1..=4).contains(&first);
    assert!(is_whole && trace.len() == 16 && span.len() == 8, "a mixture: {stack:?}");
    Some(first - 1)
}

/// Checks every sample against the method that burns. Returns the number of samples by method.
fn hold_to_witness(run: &Finished) -> BTreeMap<u8, i64> {
    let mut samples = BTreeMap::new();
    let (mut elsewhere, mut transitions) = (0, 0);
    for stack in cpu_stacks(&run.messages()) {
        if !stack.thread.starts_with("worker-") {
            continue;
        }
        let span = linked(&stack);
        let label = |name: &str| stack.labels.get(name).map(String::as_str);
        let (endpoint, witness) = (label("rest_endpoint"), label("witness"));
        match burning(&stack) {
            Some(which) => {
                let expected = format!("/e{which}");
                let found = (endpoint, witness, span);
                assert_eq!(
                    found,
                    (Some(&*expected), Some(&*expected), Some(which)),
                    "{}: {stack:#?}",
                    run.label
                );
                *samples.entry(which).or_default() += stack.times;
            }
            None if endpoint.is_none() => transitions += stack.times,
            None => elsewhere += stack.times,
        }
        assert!(!stack.labels.contains_key("traceid") && !stack.labels.contains_key("spanid"), "{stack:?}");
    }
    eprintln!("{}: {samples:?}, {elsewhere} elsewhere with a context, {transitions} without", run.label);
    samples
}

/// The longest run, in seconds. Shorter runs come first: they suffice unless other programs use the CPU.
const LONGEST: &str = "100";

#[test]
fn samples_have_the_context_that_their_thread_has_set_and_their_shares_are_right() {
    // The first rounds are interpreted, and the shares are of whole turns.
    const DEVIATION: f64 = 0.01;
    // Five standard errors of a share of 0.1 are then 0.02.
    const LEAST: i64 = 5_000;
    for home in newest_or_all() {
        let has_right_shares = |seconds| {
            let run = stress(&home, &[seconds, "3", "200000"]);
            let samples = hold_to_witness(&run);
            let all: i64 = samples.values().sum();
            if all < LEAST {
                return false;
            }
            for (which, share) in [(0, 0.1), (1, 0.2), (2, 0.3), (3, 0.4)] {
                let of_method = samples.get(&which).copied().unwrap_or(0);
                let label = format!("{} {which}: {samples:?}", run.label);
                assert_share(of_method, all, share - DEVIATION..=share + DEVIATION, &label);
            }
            true
        };
        assert!(["4", "20", LONGEST].into_iter().any(has_right_shares), "{}: too few", home.display());
    }
}

#[test]
fn no_sample_shows_a_mixture_however_fast_contexts_change() {
    for home in newest_or_all() {
        let has_enough = |seconds| {
            let run = stress(&home, &[seconds, "6", "20"]);
            let samples = hold_to_witness(&run);
            assert_eq!(run.counter("context.labels_stale"), 0, "{}", run.stderr);
            samples.len() == 4 && samples.values().sum::<i64>() > 300
        };
        let is_enough = ["3", "20", LONGEST].into_iter().any(has_enough);
        assert!(is_enough, "{}: too few samples", home.display());
    }
}

/// Samples of threads that change their context only by snapshots and scopes, in periods.
#[derive(Debug, Default)]
struct Wholes {
    /// Samples in a setter, with one of the four contexts.
    in_setters: i64,
    /// Samples in a setter without any context.
    in_setters_without: i64,
    elsewhere: i64,
}

/// Checks that every sample has a whole context or none, also in the middle of a change: a span, and its
/// endpoint under each of these names.
fn hold_to_wholes(run: &Finished, names: &[&str]) -> Wholes {
    let mut wholes = Wholes::default();
    for stack in cpu_stacks(&run.messages()) {
        if !stack.thread.starts_with("worker-") {
            continue;
        }
        let label = |name: &str| stack.labels.get(name).map(String::as_str);
        let whole = linked(&stack).map(|which| format!("/e{which}"));
        for name in ["rest_endpoint", "witness", "request"] {
            let expected = whole.as_deref().filter(|_| names.contains(&name));
            assert_eq!(label(name), expected, "{}: {name}: {stack:#?}", run.label);
        }
        let is_in_setter = stack.frames.iter().any(|frame| frame.name.starts_with("io.otlpprof."));
        *match (is_in_setter, whole) {
            (true, Some(_)) => &mut wholes.in_setters,
            (true, None) => &mut wholes.in_setters_without,
            (false, _) => &mut wholes.elsewhere,
        } += stack.value;
    }
    wholes
}

/// Contexts that are replaced as a whole, so often that handlers interrupt the replacement.
#[test]
fn a_context_that_is_replaced_is_whole_or_none_in_every_sample() {
    for home in newest_or_all() {
        let has_enough = |seconds| {
            let run = stress(&home, &[seconds, "4", "1", "0", "whole"]);
            let samples = hold_to_witness(&run);
            let wholes = hold_to_wholes(&run, &["rest_endpoint", "witness"]);
            let in_transition = run.counter("handler.contexts_in_transition");
            eprintln!("{}: {in_transition} in transition, {wholes:?}", run.label);
            samples.len() == 4
                && wholes.in_setters > 100
                && wholes.in_setters_without > 0
                && in_transition > 0
        };
        let is_enough = ["2", "20", LONGEST].into_iter().any(has_enough);
        assert!(is_enough, "{}: too few changes seen", home.display());
    }
}

/// With the call that sets both, also while the endpoints' references become old, and with a second copy of
/// the context.
#[test]
fn a_span_and_the_attribute_that_is_set_with_it_are_both_in_a_sample_or_neither() {
    for home in newest_or_all() {
        for (churners, options) in [("0", ""), ("2", ""), ("0", ",context.publish=attributes")] {
            let has_enough = |seconds| {
                let run = stress_with(options, &home, &[seconds, "4", "1", churners, "both"]);
                let wholes = hold_to_wholes(&run, &["rest_endpoint"]);
                let in_transition = run.counter("handler.contexts_in_transition");
                eprintln!("{}: {in_transition} in transition, {wholes:?}", run.label);
                wholes.in_setters > 100 && wholes.in_setters_without > 0 && in_transition > 0
            };
            let is_enough = ["2", "20", LONGEST].into_iter().any(has_enough);
            assert!(is_enough, "{}{options}: too few changes seen", home.display());
        }
    }
}

/// Checks the samples of threads that set one new value after another: each sample must have a value, and one
/// of its thread. The slot is overwritten, and never empty. Only inside of the setter the value may just have
/// become old. Returns the periods.
fn hold_to_requests(run: &Finished) -> i64 {
    let mut labelled = 0;
    for stack in cpu_stacks(&run.messages()) {
        if !stack.thread.starts_with("churner-") {
            assert!(!stack.labels.contains_key("request"), "{}: {stack:#?}", run.label);
            continue;
        }
        match stack.labels.get("request") {
            Some(request) => {
                let (name, _) = request.split_once('/').expect("a name and a number");
                assert_eq!(name, stack.thread, "{}: {stack:#?}", run.label);
                labelled += stack.value;
            }
            None => {
                let is_in_set =
                    stack.frames.iter().any(|frame| frame.name.starts_with("io.otlpprof.ThreadContext."));
                let has_set = stack.has("programs.ContextStress.churnOn");
                assert!(is_in_set || !has_set, "{}: without a request: {stack:#?}", run.label);
            }
        }
    }
    labelled
}

/// Threads find their values in the cache, while other threads fill the dictionary again and again.
#[test]
fn no_label_is_lost_while_values_are_reclaimed() {
    for home in newest_or_all() {
        let has_enough = |seconds| {
            let run = stress(&home, &[seconds, "3", "2000", "2"]);
            let samples = hold_to_witness(&run);
            let labelled = hold_to_requests(&run);
            let passes = run.counter("context.reclaim_passes");
            eprintln!(
                "{}: {passes} passes, {} stale, {labelled} of churners",
                run.label,
                run.counter("context.labels_stale")
            );
            assert_eq!(run.counter("context.values_dropped_full"), 0, "{}", run.stderr);
            samples.values().sum::<i64>() > 300 && labelled > 300 && passes > 2
        };
        let is_enough = ["3", "20", LONGEST].into_iter().any(has_enough);
        assert!(is_enough, "{}: too few passes", home.display());
    }
}

#[test]
fn the_java_api_does_what_its_documentation_says() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "ContextCalls").argument(true).agent("cpu=1ms,file=FILE").run();
        let run = run.expect_success();
        assert_eq!(run.stdout, "done\n");
        // The program sets more ids than there is room for values.
        assert_eq!(run.counter("context.reclaim_passes"), 0, "{}: {}", run.label, run.stderr);
    }
}

/// Run interpreted, where each store is a call.
#[test]
fn a_setter_whose_stack_ends_leaves_a_context_that_was_set_or_none() {
    for home in newest_or_all() {
        for publish in ["trace", "attributes"] {
            let run = JavaRun::new(&home, "ContextCalls").argument(true).argument("overflows");
            let run = run.jvm_option("-Xint").agent(&format!("cpu=1ms,context.publish={publish},file=FILE"));
            assert_eq!(run.run().expect_success().stdout, "done\n");
        }
    }
}

#[test]
fn without_the_agent_calls_do_nothing_and_say_so_once() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "ContextCalls").argument(false).run().expect_success();
        assert_eq!(run.stdout, "done\n");
        let printed = run.stderr.matches("the profiling agent is not in this process").count();
        assert_eq!(printed, 1, "{}: {}", run.label, run.stderr);
    }
}

/// Checks that the endpoint's label is on every sample of a setter's thread while it sets other values.
fn hold_endpoints(run: &Finished) -> i64 {
    let (mut labelled, mut missing) = (0, Vec::new());
    for stack in cpu_stacks(&run.messages()) {
        let Some(number) = stack.thread.strip_prefix("setter-") else { continue };
        match stack.labels.get("rest_endpoint") {
            Some(endpoint) => {
                assert_eq!(*endpoint, format!("/endpoint{number}"), "{}", run.label);
                labelled += stack.value;
            }
            // The sample is in the setter itself.
            None if stack.frames.iter().any(|frame| frame.name.starts_with("io.otlpprof.ThreadContext.")) => {
            }
            None if !stack.has("programs.ContextIds.burn") => {}
            None => missing.push(stack.clone()),
        }
        if let Some(request) = stack.labels.get("request") {
            assert!(request.starts_with(&format!("{number}-")), "{}: {stack:?}", run.label);
        }
    }
    assert!(missing.is_empty(), "{}: without an endpoint: {missing:#?}", run.label);
    labelled
}

/// The VM checks every call into it.
#[test]
fn the_java_api_calls_the_vm_as_it_may() {
    for home in newest_or_all() {
        let calls = JavaRun::new(&home, "ContextCalls").argument(true);
        let mut runs = vec![calls];
        if java_version(&home) >= 21 {
            let threads = JavaRun::new(&home, "ContextVirtualThreads");
            runs.push([500, 1, 20, 50].into_iter().fold(threads, JavaRun::argument));
        }
        for run in runs {
            let run = run.jvm_option("-Xcheck:jni").agent("cpu=1ms,file=FILE").run().expect_success();
            for printed in ["WARNING in native method", "FATAL ERROR in native method", "WARNING: JNI"] {
                let both = format!("{}{}", run.stdout, run.stderr);
                assert!(!both.contains(printed), "{}: {both}", run.label);
            }
        }
    }
}

#[test]
fn a_million_ids_lose_no_endpoint() {
    assert_ids_lose_no_endpoint(500_000);
}

#[test]
#[ignore = "long: half a minute on each JDK"]
fn ten_million_ids_lose_no_endpoint() {
    assert_ids_lose_no_endpoint(5_000_000);
}

/// Two threads have this many ids each.
fn assert_ids_lose_no_endpoint(ids_each: u64) {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "ContextIds")
            .argument(ids_each)
            .argument(2)
            .argument(0)
            .agent("cpu=100us,file=FILE")
            .run()
            .expect_success();
        assert_eq!(run.stdout, "refused=0\n", "{}: {}", run.label, run.stderr);
        let labelled = hold_endpoints(&run);
        let (passes, reclaimed) =
            (run.counter("context.reclaim_passes"), run.counter("context.values_reclaimed"));
        eprintln!(
            "{}: {labelled} labelled, {passes} passes, {reclaimed} reclaimed, {}",
            run.label, run.stderr
        );
        // The last ids of a thread are not reclaimed before its end.
        let least = 2 * ids_each - 200_000;
        assert!(reclaimed > least && labelled > 0, "{}: {reclaimed}, {labelled}", run.label);
        assert_eq!(run.counter("context.values_dropped_full"), 0);
    }
}

#[test]
fn where_the_dictionary_is_full_one_attribute_is_dropped_and_the_rest_works() {
    const SETS: u64 = 300_000;
    for home in newest_or_all().into_iter().filter(|home| java_version(home) >= 21) {
        let run = JavaRun::new(&home, "ContextIds")
            .argument(SETS)
            .argument(2)
            // Each thread holds a value, and there are more threads than room for values.
            .argument(66_000)
            .agent("cpu=100us,file=FILE")
            .run()
            .expect_success();
        let refused = format!("refused={}\n", 2 * SETS);
        assert_eq!(run.stdout, refused, "{}: {}", run.label, run.stderr);
        assert!(hold_endpoints(&run) > 50, "{}", run.label);
        assert!(run.counter("context.values_dropped_full") >= 2 * SETS, "{}", run.stderr);
        assert_eq!(
            run.stderr.matches("values of context attributes are in use").count(),
            1,
            "{}",
            run.stderr
        );
    }
}

#[test]
fn java_loads_starts_and_stops_the_agent() {
    // The program burns for a fixed time in each phase, of which a busy machine leaves it a part.
    const MOST_RUNS: usize = 5;
    let folder = std::env::current_exe().unwrap().parent().unwrap().display().to_string();
    for home in newest_or_all() {
        let has_all_phases = |_| {
            let run = JavaRun::new(&home, "ContextLoaded")
                .jvm_option(&format!("-Djava.library.path={folder}"))
                .variable("AGENT_OPTIONS", "cpu=100us,file=FILE")
                .run()
                .expect_success();
            assert_eq!(run.stdout, "done\n", "{}", run.stderr);
            let mut endpoints = BTreeSet::new();
            for stack in cpu_stacks(&run.messages()) {
                if stack.has("programs.ContextLoaded.burn") {
                    let endpoint = stack.labels.get("rest_endpoint");
                    endpoints.insert(endpoint.unwrap_or_else(|| panic!("{}: {stack:?}", run.label)).clone());
                }
            }
            // Before the session, after its start, and in the second session.
            let expected: BTreeSet<String> = ["/before", "/first", "/second"].map(str::to_owned).into();
            assert!(endpoints.is_subset(&expected), "{}: {endpoints:?}", run.label);
            endpoints == expected
        };
        assert!((0..MOST_RUNS).any(has_all_phases), "{}: no sample of a phase", home.display());
    }
}

/// Attached in the users' way, so that the VM finds the native methods in an agent that was loaded late.
#[test]
fn an_ended_threads_block_is_reused_empty() {
    for home in newest_or_all() {
        let mut running = JavaRun::new(&home, "ContextShortThreads").argument(2600).start();
        running.wait_until("ready", |run| run.stdout().contains("ready"));
        running.load_agent_by_jcmd("cpu=100us,file=FILE");
        let run = running.finish().expect_success();
        let (mut with, mut without) = (0, 0);
        for stack in cpu_stacks(&run.messages()) {
            let endpoint = stack.labels.get("rest_endpoint");
            if !stack.has("programs.ContextShortThreads.burn") {
                continue;
            } else if let Some(number) = stack.thread.strip_prefix("with-") {
                assert_eq!(endpoint, Some(&format!("/e{number}")), "{}: {stack:?}", run.label);
                assert!(stack.link.is_some(), "{}: {stack:?}", run.label);
                with += stack.value;
            } else if stack.thread == "without" {
                assert_eq!((endpoint, &stack.link), (None, &None), "{}: {stack:?}", run.label);
                without += stack.value;
            }
        }
        assert!(with > 300 && without > 300, "{}: {with}, {without}", run.label);
        // One chunk of 1,024 blocks was used by 1,300 threads.
        assert_eq!(run.counter("context.blocks"), 1024, "{}", run.stderr);
    }
}

/// Regression: `traceid=trace1`, which occurs in many examples, left no trace in profiles or in the log.
#[test]
fn text_in_place_of_ids_is_an_attribute_and_a_refusal_is_logged_once() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "ContextIdForms").agent("cpu=1ms,file=FILE").run().expect_success();
        let label = format!("{}: {}", run.label, run.stderr);
        for line in run.stdout.lines() {
            let (form, is_set) = line.split_once('=').unwrap();
            let expected = !["refused", "root", "null", "zero", "long"].contains(&form);
            assert_eq!(is_set, expected.to_string(), "{form}: {label}");
        }
        let half = [[0; 8], *b"\xb7\xad\x6b\x71\x69\x20\x33\x31"].concat();
        let whole = b"\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c".to_vec();
        let span = b"\x00\xf0\x67\xaa\x0b\xa9\x02\xb7".to_vec();
        let mut seen = BTreeSet::new();
        for stack in cpu_stacks(&run.messages()) {
            if !stack.has("programs.ContextIdForms.work") {
                continue;
            }
            let text = |name: &str| stack.labels.get(name).map(String::as_str);
            let texts = (text("traceid"), text("spanid"));
            let (expected, link) = match &*stack.thread {
                "text" | "ids-then-text" => ((Some("trace1"), Some("span1")), None),
                "half" | "half-attributes" => ((None, None), Some((half.clone(), span.clone()))),
                "text-then-ids" => ((None, None), Some((whole.clone(), span.clone()))),
                _ => ((None, None), None),
            };
            assert_eq!((texts, &stack.link), (expected, &link), "{}: {label}", stack.thread);
            seen.insert(stack.thread.clone());
        }
        assert_eq!(seen.len(), 11, "{seen:?}: {label}");
        assert_eq!(run.counter("context.ids_refused"), 6, "{label}");
        assert_eq!(run.counter("context.values_dropped_long"), 1, "{label}");
        for call in [
            "setTraceContext(\"trace1\", \"00f067aa0ba902b7\") at programs.ContextIdForms.",
            "recordTraceRoot(\"trace1\", \"span1\") at programs.ContextIdForms.",
            "setAttribute(\"tttttttttttttttttttttttttttttttttttttttt...\") at programs.ContextIdForms.",
        ] {
            assert_eq!(run.stderr.matches(call).count(), 1, "{call}: {label}");
        }
        assert_eq!(run.stderr.matches(" is refused: ").count(), 3, "{label}");
        assert!(run.stderr.contains("ContextIdForms.java:"), "{label}");
    }
}
