//! Events of the JVM's own recorder in the agent's profiles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::estimate::assert_share;
use otlpprof_model::attribute_keys::EXCEPTION_TYPE;
use otlpprof_otlp::read::Message;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_version, newest_or_all};
use otlpprof_testkit::stacks::{Stack, stacks_of};

/// The program's arguments for platform threads and, if the JDK has them, for virtual threads.
fn kinds_of_threads(home: &Path) -> &'static [&'static [&'static str]] {
    if java_version(home) >= 21 { &[&[], &["virtual"]] } else { &[&[]] }
}

const OWN_EVENT: &str = "programs.RecordedContexts$Done";
const THROWN: &str = "programs.RecordedContexts$Thrown";

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

/// The exceptions that the program throws on purpose, by the method that throws them. The VM and the JDK
/// throw and catch exceptions of their own when they resolve classes or call sites.
fn thrown(messages: &[Message]) -> BTreeMap<&'static str, i64> {
    let mut thrown = BTreeMap::new();
    for stack in stacks_of(messages, "exceptions", ("exceptions", "count")) {
        let is_own = stack.labels.get(EXCEPTION_TYPE).is_some_and(|class| class == THROWN);
        if let Some(method) = method(&stack).filter(|_| is_own) {
            *thrown.entry(method).or_insert(0) += stack.value;
        }
    }
    thrown
}

/// The context of a sample, as the name of the method for which it was set: `nothing` if there is no context.
///
/// # Panics
/// If the context is a mixture.
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

/// The program's own counts, by kind and method.
fn truth(run: &Finished) -> BTreeMap<(String, String), i64> {
    let line = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        Some(((words.next()?, words.next()?), words.next()?.parse().ok()?))
    };
    let truth: BTreeMap<_, _> = run.stdout.lines().filter_map(line).collect();
    assert_eq!(truth.len(), 25, "{}", run.stdout);
    truth
}

/// The numbers of events with their own context, without their context, and with another context, and of
/// events that should have none and have none.
#[derive(Debug, Default)]
struct Score {
    right: i64,
    missing: i64,
    wrong: i64,
    none: i64,
}

impl Score {
    fn count(&mut self, stack: &Stack, method: &str, events: i64) {
        match &*context(stack) {
            "nothing" if method == "nothing" => self.none += events,
            found if found == method => self.right += events,
            "nothing" => self.missing += events,
            _ => self.wrong += events,
        }
    }

    /// Asserts that 99 of 100 events that should have a context have it.
    fn hold(&self, label: &str) {
        assert_share(self.right, self.right + self.missing, 0.99..=1.0, &format!("{label}: {self:?}"));
    }
}

/// An event of the program, and the profile and sample type in which it adds a fixed number.
struct Kind {
    /// The program's name of the event; empty if only the JVM counts the event.
    counted: &'static str,
    profile: &'static str,
    of: (&'static str, &'static str),
    /// The number that one event adds.
    each: i64,
}

const fn kind(
    counted: &'static str,
    profile: &'static str,
    of: (&'static str, &'static str),
    each: i64,
) -> Kind {
    Kind { counted, profile, of, each }
}

/// The kinds of events. Samples of execution are taken by a thread of the VM.
const KINDS: [Kind; 7] = [
    kind("exceptions", "exceptions", ("exceptions", "count"), 1),
    kind("events", OWN_EVENT, ("events", "count"), 1),
    // The values are sums of nanoseconds; each event adds its two milliseconds.
    kind("", "sleep", ("delay", "nanoseconds"), 2_000_000),
    kind("parks", "lock-contention", ("contentions", "count"), 1),
    // Each event adds one byte.
    kind("", "socket-io", ("io_space", "bytes"), 1),
    kind("", "alloc-samples", ("samples", "count"), 1),
    kind("", "cpu", ("samples", "count"), 1),
];

#[test]
fn events_have_the_context_that_their_thread_had_then_or_none() {
    for home in newest_or_all() {
        // JDK 16 and later have the event that estimates.
        let allocations =
            if java_version(&home) < 16 { "InNewTLAB+jdk.ObjectAllocationOutsideTLAB" } else { "Sample" };
        let events = format!(
            "jfr=jdk.ThreadSleep+jdk.JavaExceptionThrow+{OWN_EVENT}+jdk.ThreadPark+jdk.SocketRead\
             +jdk.ObjectAllocation{allocations}+jdk.ExecutionSample"
        );
        for threads in kinds_of_threads(&home) {
            // The longer runs are for the case that other programs have used the CPU.
            let has_all_kinds = [200, 1_000, 3_000].into_iter().any(|rounds| {
                let rounds_text = rounds.to_string();
                let arguments = [&[&*rounds_text, "6"], *threads].concat();
                let run = recorded(&home, &arguments, &events);
                hold_to_truth(&run, &format!("{} {threads:?}", run.label), !threads.is_empty(), rounds * 6)
            });
            assert!(has_all_kinds, "{} {threads:?}: no event of a kind", home.display());
        }
    }
}

/// Compares each event's context with the method in its stack, and the number of events with the program's
/// own count. Returns whether there are events of each kind.
fn hold_to_truth(run: &Finished, label: &str, is_virtual: bool, rounds: i64) -> bool {
    let messages = run.messages();
    let truth = truth(run);
    let mut all = Score::default();
    let mut has_all_kinds = true;
    for Kind { counted, profile, of, each } in KINDS {
        let mut score = Score::default();
        let mut found = BTreeMap::new();
        for stack in stacks_of(&messages, profile, of) {
            let Some(method) = method(&stack) else { continue };
            *found.entry(method).or_insert(0) += stack.value;
            score.count(&stack, method, stack.value / each);
        }
        eprintln!("{label}: {profile}: {score:?}");
        assert_eq!(score.wrong, 0, "{label}: {profile}: {score:?}");
        if score.right + score.missing >= 500 {
            score.hold(&format!("{label}: {profile}"));
        }
        all.right += score.right;
        all.missing += score.missing;
        if counted == "parks" && is_virtual {
            // The VM reports a virtual thread's park only if the thread cannot leave its carrier.
            continue;
        }
        has_all_kinds &= score.right > 0;
        if counted == "exceptions" {
            found = thrown(&messages);
        }
        for (method, count) in found.into_iter().filter(|_| !counted.is_empty()) {
            let expected = truth[&(counted.to_owned(), method.to_owned())];
            assert_eq!(count, expected, "{label}: {counted} in {method}");
        }
    }
    eprintln!("{label}: {all:?}");
    let slept = stacks_of(&messages, "sleep", ("delay", "nanoseconds"));
    let slept_ns: i64 = slept.iter().filter(|stack| method(stack).is_some()).map(|stack| stack.value).sum();
    assert!(slept_ns >= 2_000_000 * rounds, "{label}: {slept_ns}");
    all.hold(label);
    has_all_kinds
}

/// JDK 11 only shows files that it has finished, one every ten seconds.
#[test]
fn events_are_reported_while_the_session_runs() {
    for home in newest_or_all() {
        let (rounds, intervals) = if java_version(&home) < 17 { (1_600, 1) } else { (600, 2) };
        // The longer runs are for the case that other programs have used the CPU.
        let is_reported = [1, 4, 16].into_iter().any(|factor| {
            let rounds = (factor * rounds).to_string();
            let run = recorded(&home, &[&rounds, "3"], "jfr=jdk.ThreadSleep,interval=1s");
            let messages = run.messages();
            let sleeps = |message: &Message| {
                let stacks = stacks_of(std::slice::from_ref(message), "sleep", ("delay", "nanoseconds"));
                stacks.iter().any(|stack| method(stack).is_some())
            };
            let have: Vec<bool> = messages.iter().map(sleeps).collect();
            eprintln!("{}: {have:?}", run.label);
            have.iter().rev().skip(1).filter(|&&has| has).count() >= intervals
        });
        assert!(is_reported, "{}: no events before the last interval", home.display());
    }
}

#[test]
fn a_session_that_is_stopped_has_its_last_events_and_leaves_nothing() {
    for home in newest_or_all() {
        let run = recorded(&home, &["40", "3", "stop"], "jfr=jdk.JavaExceptionThrow");
        let messages = run.messages();
        let found = thrown(&messages);
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
fn engines_events_and_the_agents_own_threads_are_left_out() {
    for home in newest_or_all() {
        let run = recorded(&home, &["40", "3"], "jfr,cpu,exceptions,wait=1ms");
        let messages = run.messages();
        let thrown: i64 = thrown(&messages).into_values().sum();
        assert_eq!(thrown, 120, "{}: by the engine alone", run.label);
        let sleeps = stacks_of(&messages, "sleep", ("delay", "nanoseconds"));
        assert!(sleeps.iter().any(|stack| method(stack).is_some()), "{}", run.label);
        for (profile, of) in [
            ("sleep", ("delay", "nanoseconds")),
            ("lock-contention", ("delay", "nanoseconds")),
            ("class-load", ("delay", "nanoseconds")),
            ("file-io", ("delay", "nanoseconds")),
            ("alloc-samples", ("samples", "count")),
        ] {
            let own = stacks_of(&messages, profile, of)
                .into_iter()
                .find(|stack| stack.thread.starts_with("otlpprof"));
            assert!(own.is_none(), "{}: {profile}: {own:#?}", run.label);
        }
    }
}

#[test]
fn events_of_threads_and_stacks_that_are_not_wanted_are_left_out_and_counted() {
    let homes = newest_or_all();
    let Some(home) = homes.last() else { return };
    let exceptions = |run: &Finished| {
        let stacks = stacks_of(&run.messages(), "exceptions", ("exceptions", "count"));
        stacks.iter().map(method).collect::<BTreeSet<_>>()
    };
    let options = "jfr=jdk.JavaExceptionThrow,include=programs.RecordedContexts.work1";
    let run = recorded(home, &["40", "3"], options);
    let expected = truth(&run)[&("exceptions".to_owned(), "work1".to_owned())];
    assert_eq!(exceptions(&run), BTreeSet::from([Some("work1")]), "{}", run.label);
    assert_eq!(thrown(&run.messages()), BTreeMap::from([("work1", expected)]), "{}", run.label);
    let left_out = run.counter("samples_left_out");
    assert!(left_out >= 4 * expected.cast_unsigned(), "{}: {left_out} of {expected} each", run.label);
    // The program's threads are called `Thread-0` and so on.
    let run = recorded(home, &["40", "3"], "jfr=jdk.JavaExceptionThrow,threads=!Thread-*");
    assert!(exceptions(&run).iter().all(Option::is_none), "{}", run.label);
}

/// Regression: no message was printed for an event without a stack, for a field that cannot be summed, and
/// for an unknown event.
#[test]
fn unavailable_requested_events_are_reported_once() {
    for home in newest_or_all() {
        let events =
            format!("jdk.CPULoad+jdk.ThreadSleep:none+{OWN_EVENT}:eventThread+{OWN_EVENT}+app.None+jdk.None");
        let run = recorded(&home, &["600", "3"], &format!("jfr={},interval=1s,cpu=off", events));
        let printed = run.stderr.lines().filter_map(|line| line.split_once("warning: jfr: "));
        let printed: BTreeSet<_> = printed.map(|(_, printed)| printed.to_owned()).collect();
        let expected = [
            "app.None: the JVM has registered no event of this name".to_owned(),
            "jdk.CPULoad has no stack trace".to_owned(),
            "jdk.ThreadSleep has no field none".to_owned(),
            format!("{OWN_EVENT}: the field eventThread is not an integer"),
            "this JVM has no event jdk.None".to_owned(),
        ];
        assert_eq!(printed, BTreeSet::from(expected), "{}: {}", run.label, run.stderr);
        assert_eq!(run.stderr.matches("warning: jfr: ").count(), 5, "{}: {}", run.label, run.stderr);
    }
}

#[test]
fn a_jvm_without_the_recorder_says_so_in_one_line_and_is_profiled() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "UserLoop").jvm_option("--limit-modules=java.base").argument("1");
        let run = run.agent("file=FILE,jfr,cpu=1ms").run().expect_success();
        let lines: Vec<_> = run.stderr.lines().filter(|line| line.contains("warning: jfr")).collect();
        assert_eq!(lines.len(), 1, "{}: {}", run.label, run.stderr);
        assert!(lines[0].contains("no module jdk.jfr"), "{}", lines[0]);
        assert!(!stacks_of(&run.messages(), "cpu", ("samples", "count")).is_empty(), "{}", run.label);
    }
}

/// The JVMs' repositories in a folder, links excluded, with the agent's mark or without.
fn repositories(folder: &Path, is_marked: bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries.filter(|path| path.is_dir() && path.join("otlpprof.mark").exists() == is_marked);
    folders.filter(|path| fs::read_dir(path).is_ok_and(|mut files| files.next().is_some())).collect()
}

/// A JVM whose repository is in this folder, with the agent's recording.
fn recording_in(home: &Path, folder: &Path) -> JavaRun {
    let run = JavaRun::new(home, "UserLoop").argument("600");
    let run = run.jvm_option(&format!("-Djava.io.tmpdir={}", folder.display()));
    run.agent("file=FILE,cpu=off,jfr=jdk.ThreadSleep,loglevel=debug")
}

/// Regression: each killed JVM left up to 64 MB of its recording for ever.
#[test]
fn the_repository_of_a_killed_jvm_goes_with_the_next_start() {
    for home in newest_or_all() {
        let folder = tempfile::tempdir().unwrap();
        let mut killed = recording_in(&home, folder.path()).start();
        killed.wait_until("marked", |_| repositories(folder.path(), true).len() == 1);
        let abandoned = repositories(folder.path(), true).remove(0);
        let mut living = recording_in(&home, folder.path()).start();
        living.wait_until("marked", |_| repositories(folder.path(), true).len() == 2);
        drop(killed);
        assert!(abandoned.exists(), "{}: the JVM has removed it itself", home.display());

        let mut next = recording_in(&home, folder.path()).start();
        next.wait_until("rid of the old one", |_| !abandoned.exists());
        next.wait_until("marked", |_| repositories(folder.path(), true).len() == 2);
        for jvm in [living, next] {
            jvm.terminate();
            jvm.finish();
        }
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let left = left.iter().find(|path| path.is_dir() && path.join("otlpprof.mark").exists());
        assert_eq!(left, None, "{}", home.display());
    }
}

#[test]
fn a_killed_jvms_repository_that_had_another_recording_stays() {
    for home in newest_or_all() {
        let folder = tempfile::tempdir().unwrap();
        let other = "-XX:StartFlightRecording=name=theirs";
        let mut killed = recording_in(&home, folder.path()).jvm_option(other).start();
        killed.wait_until("recording", |jvm| jvm.stderr().contains("ms after the session began"));
        killed.wait_until("writing", |_| repositories(folder.path(), false).len() == 1);
        let theirs = repositories(folder.path(), false).remove(0);
        drop(killed);
        let mut next = recording_in(&home, folder.path()).start();
        next.wait_until("marked", |_| repositories(folder.path(), true).len() == 1);
        // An abandoned repository is removed before the next JVM can remove its own mark.
        next.terminate();
        next.finish();
        assert!(fs::read_dir(&theirs).is_ok_and(|mut files| files.next().is_some()), "{}", home.display());
    }
}
