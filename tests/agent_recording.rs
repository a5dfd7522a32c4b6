//! Events of the JVM's own recorder in the agent's profiles.

mod agent_support;

use std::collections::BTreeMap;
use std::path::Path;

use agent_support::running::Finished;
use agent_support::stacks::{Stack, stacks_of};
use agent_support::{JavaRun, java_homes, java_version};

/// Platform threads, and virtual ones where there are some.
fn kinds_of_threads(home: &Path) -> &'static [&'static [&'static str]] {
    if java_version(home) >= 21 { &[&[], &["virtual"]] } else { &[&[]] }
}

const OWN_EVENT: &str = "programs.RecordedContexts$Done";

fn recorded(home: &Path, arguments: &[&str], options: &str) -> Finished {
    let mut run = JavaRun::new(home, "RecordedContexts");
    for argument in arguments {
        run = run.argument(argument);
    }
    run.agent(&format!("file=FILE,context=rest_endpoint,{options}")).run().expect_success()
}

/// The program's method that a stack is in.
fn method(stack: &Stack) -> Option<&'static str> {
    let methods = ["work0", "work1", "work2", "work3", "nothing"];
    methods.into_iter().find(|method| stack.has(&format!("programs.RecordedContexts.{method}")))
}

/// The context of a sample, as the name of the method that it was set for: `nothing` if there is none.
///
/// # Panics
/// If it is a mixture.
fn context(stack: &Stack) -> String {
    let endpoint = stack.labels.get("rest_endpoint").map(|endpoint| endpoint.replace("/e", "work"));
    let span = stack.link.as_ref().map(|(trace, span)| {
        let is_whole = trace.iter().chain(span).all(|&byte| byte == trace[0]);
        assert!(is_whole, "a mixture: {stack:?}");
        format!("work{}", trace[0] - 1)
    });
    assert!(endpoint.is_none() || span.is_none() || endpoint == span, "a mixture: {stack:?}");
    match (endpoint, span) {
        (Some(endpoint), Some(_)) => endpoint,
        (None, None) => "nothing".to_owned(),
        half => panic!("half a context: {half:?} {stack:?}"),
    }
}

/// What the program has counted, by kind and method.
fn truth(run: &Finished) -> BTreeMap<(String, String), i64> {
    let line = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        Some(((words.next()?, words.next()?), words.next()?.parse().ok()?))
    };
    let truth: BTreeMap<_, _> = run.stdout.lines().filter_map(line).collect();
    assert_eq!(truth.len(), 15, "{}", run.stdout);
    truth
}

/// Events with their own context, without any, and with another's.
#[derive(Debug, Default)]
struct Score {
    right: i64,
    missing: i64,
    wrong: i64,
}

impl Score {
    fn count(&mut self, stack: &Stack, method: &str, events: i64) {
        match &*context(stack) {
            found if found == method => self.right += events,
            "nothing" => self.missing += events,
            _ => self.wrong += events,
        }
    }
}

#[test]
fn events_have_the_context_that_their_thread_had_then_or_none() {
    for home in java_homes() {
        for kind in kinds_of_threads(&home) {
            let arguments = [&["400", "6"], *kind].concat();
            let run = recorded(
                &home,
                &arguments,
                &format!("jfr=jdk.ThreadSleep+jdk.JavaExceptionThrow+{OWN_EVENT}"),
            );
            let messages = run.messages();
            let truth = truth(&run);
            let label = format!("{} {kind:?}", run.label);
            let mut score = Score::default();
            for (events, profile, of) in [
                ("exceptions", "exceptions", ("exceptions", "count")),
                ("events", OWN_EVENT, ("events", "count")),
            ] {
                let mut found = BTreeMap::new();
                for stack in stacks_of(&messages, profile, of) {
                    let Some(method) = method(&stack) else { continue };
                    *found.entry(method).or_insert(0) += stack.value;
                    score.count(&stack, method, stack.value);
                }
                for (method, count) in found {
                    let expected = truth[&(events.to_owned(), method.to_owned())];
                    assert_eq!(count, expected, "{label}: {events} in {method}");
                }
            }
            let sleeps = stacks_of(&messages, "sleep", ("delay", "nanoseconds"));
            let mut slept_ns = 0;
            for stack in &sleeps {
                let Some(method) = method(stack) else { continue };
                slept_ns += stack.value;
                // They are sums; each is worth its two milliseconds.
                score.count(stack, method, stack.value / 2_000_000);
            }
            assert!(slept_ns >= 2_000_000 * 400 * 6, "{label}: {slept_ns}");
            eprintln!("{label}: {score:?}");
            let all = score.right + score.missing + score.wrong;
            assert_eq!(score.wrong, 0, "{label}: {score:?}");
            // A thread that is held up between its readings of two clocks makes what happened then doubtful, so that it
            // goes without: on a machine under load that is more than the one in a hundred that an idle one has.
            assert!(score.right * 100 >= all * 95, "{label}: {score:?}");
        }
    }
}

#[test]
fn a_session_that_is_stopped_has_its_last_events_and_leaves_nothing() {
    for home in java_homes() {
        let run = recorded(&home, &["40", "3", "stop"], "jfr=jdk.JavaExceptionThrow");
        let messages = run.messages();
        let mut found = BTreeMap::new();
        for stack in stacks_of(&messages, "exceptions", ("exceptions", "count")) {
            if let Some(method) = method(&stack) {
                *found.entry(method).or_insert(0) += stack.value;
            }
        }
        let truth = truth(&run);
        assert_eq!(found.len(), 5, "{}", run.label);
        for (method, count) in found {
            assert_eq!(
                count,
                truth[&("exceptions".to_owned(), method.to_owned())],
                "{}: {method}",
                run.label
            );
        }
        assert!(run.stdout.contains("left 0+0"), "{}: {}", run.label, run.stdout);
    }
}

#[test]
fn what_an_engine_measures_and_the_agents_own_threads_are_left_out() {
    for home in java_homes() {
        let run = recorded(&home, &["40", "3"], "jfr,cpu,exceptions,wait=1ms");
        let messages = run.messages();
        let exceptions = stacks_of(&messages, "exceptions", ("exceptions", "count"));
        let thrown: i64 =
            exceptions.iter().filter(|stack| method(stack).is_some()).map(|stack| stack.value).sum();
        assert_eq!(thrown, 120, "{}: by the engine alone", run.label);
        let sleeps = stacks_of(&messages, "sleep", ("delay", "nanoseconds"));
        assert!(sleeps.iter().any(|stack| method(stack).is_some()), "{}", run.label);
        for (profile, of) in [
            ("sleep", ("delay", "nanoseconds")),
            ("lock-contention", ("delay", "nanoseconds")),
            ("class-load", ("delay", "nanoseconds")),
            ("file-io", ("delay", "nanoseconds")),
            ("alloc-samples", ("alloc_samples", "count")),
        ] {
            let own = stacks_of(&messages, profile, of)
                .into_iter()
                .find(|stack| stack.thread.starts_with("otlpprof"));
            assert!(own.is_none(), "{}: {profile}: {own:#?}", run.label);
        }
    }
}

#[test]
fn a_jvm_without_the_recorder_says_so_in_one_line_and_is_profiled() {
    for home in java_homes() {
        let run = JavaRun::new(&home, "UserLoop").jvm_option("--limit-modules=java.base").argument("1");
        let run = run.agent("file=FILE,jfr,cpu=1ms").run().expect_success();
        let lines: Vec<_> = run.stderr.lines().filter(|line| line.contains("jfr")).collect();
        assert_eq!(lines.len(), 1, "{}: {}", run.label, run.stderr);
        assert!(lines[0].contains("no module jdk.jfr"), "{}", lines[0]);
        assert!(!stacks_of(&run.messages(), "cpu", ("samples", "count")).is_empty(), "{}", run.label);
    }
}
