//! Events that programs report besides samples, and the threads that they select, in the profiles of real
//! JVMs.

use std::collections::BTreeMap;
use std::path::Path;

use otlpprof_otlp::lookup::{DictionaryTables as _, Lookup};
use otlpprof_otlp::wire::Value;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_version, newest_or_all};
use otlpprof_testkit::stacks::{cpu_stacks, stacks_of};

fn run(home: &Path, options: &str) -> Finished {
    let run = JavaRun::new(home, "Events").jvm_option("-XX:CompileCommand=quiet");
    let run = run.jvm_option("-XX:CompileCommand=dontinline,programs.Events::*");
    run.agent(&format!("cpu=250us,file=FILE{options}")).run().expect_success()
}

/// A sample of a profile: the bytes of its link, its attributes except those of the thread, and its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReadEvent {
    link: Option<(u8, u8)>,
    attributes: BTreeMap<String, String>,
    value: i64,
}

fn read_events(run: &Finished, profile_type: &str, sample_type: (&str, &str)) -> Vec<ReadEvent> {
    let mut all = Vec::new();
    for message in run.messages() {
        let lookup = Lookup::new(&message.data);
        let scopes = message.data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
        for profile in scopes.flat_map(|scope| &scope.profiles) {
            let found = lookup.attribute_text(&profile.attribute_indices, "profile.type");
            if found != Some(profile_type) || lookup.value_type(profile.sample_type) != sample_type {
                continue;
            }
            for sample in &profile.samples {
                let text = |value: Option<&Value>| match value {
                    Some(Value::StringValue(text)) => text.clone(),
                    Some(Value::IntValue(number)) => number.to_string(),
                    other => panic!("{other:?}"),
                };
                let mut attributes: BTreeMap<_, _> = lookup
                    .attributes(&sample.attribute_indices)
                    .map(|(key, value)| (key.to_owned(), text(value)))
                    .collect();
                assert_eq!(attributes.remove("thread.name").as_deref(), Some("main"));
                assert!(attributes.remove("thread.id").is_some());
                let links = &message.data.dictionary.as_ref().unwrap().link_table;
                let link = &links[sample.link_index as usize];
                let link = (sample.link_index != 0).then(|| (link.trace_id[15], link.span_id[7]));
                assert_eq!(lookup.stack(sample.stack_index).map(<[_]>::len), Some(1), "one frame");
                all.push(ReadEvent { link, attributes, value: sample.values[0] });
            }
        }
    }
    all.sort();
    all
}

fn one(link: Option<(u8, u8)>, attributes: &[(&str, &str)], value: i64) -> ReadEvent {
    let attributes = attributes.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    ReadEvent { link, attributes: attributes.collect(), value }
}

#[test]
fn recorded_events_are_in_profiles_of_their_own() {
    for home in newest_or_all() {
        let run = run(&home, "");
        let cart = [("trace_root.endpoint", "/cart/{id}"), ("trace_root.operation", "GET")];
        assert_eq!(
            read_events(&run, "trace-root", ("trace_roots", "count")),
            [one(Some((2, 3)), &[("trace_root.endpoint", "/other")], 1), one(Some((0x9c, 0x31)), &cart, 2)],
            "{}",
            run.label
        );
        let bare = [("queue.scheduler", "java.lang.Thread"), ("queue.task", "programs.Events")];
        let mut full = bare.to_vec();
        full.extend([
            ("queue.length", "32"),
            ("queue.origin", "main"),
            ("queue.type", "java.util.concurrent.ArrayBlockingQueue"),
        ]);
        assert_eq!(
            read_events(&run, "queue", ("tasks", "count")),
            [one(None, &full, 3), one(None, &bare, 1)],
            "{}",
            run.label
        );
        assert_eq!(
            read_events(&run, "queue", ("delay", "nanoseconds")),
            [one(None, &full, 3000), one(None, &bare, 0)],
            "{}",
            run.label
        );
        let query = [("event.name", "db.query"), ("tenant", "acme")];
        let counts = read_events(&run, "event", ("events", "count"));
        assert_eq!(counts, [one(None, &[("event.name", "render")], 1), one(Some((8, 9)), &query, 2)]);
        let times = read_events(&run, "event", ("duration", "nanoseconds"));
        assert_eq!(times[1], one(Some((8, 9)), &query, 5000), "{}", run.label);
        assert!(times[0].value >= 1_000_000, "{times:?}");
        assert_eq!(run.counter("events.recorded"), 10, "{}", run.stderr);
    }
}

/// The event has the thread's span and attributes, and no name or id: the carrier's name and id are not the
/// thread's own.
#[test]
fn an_event_of_a_virtual_thread_has_that_threads_context() {
    const THREADS: i64 = 100;
    for home in newest_or_all().into_iter().filter(|home| java_version(home) >= 21) {
        let run = JavaRun::new(&home, "VirtualEvents").argument(THREADS);
        let run = run.jvm_option("-Djdk.virtualThreadScheduler.parallelism=2");
        let run = run.agent("cpu=10ms,file=FILE").run().expect_success();
        let (mut with, mut without) = (0, 0);
        for event in stacks_of(&run.messages(), "event", ("duration", "nanoseconds")) {
            let label = |name: &str| event.labels.get(name).map(String::as_str);
            assert_eq!((event.thread.as_str(), event.thread_id), ("", None), "{}: {event:?}", run.label);
            let name = label("event.name").expect("each has one");
            if let Some(number) = name.strip_prefix("with") {
                let span = number.parse::<u64>().unwrap() + 1;
                let link = Some(([1_u64, 2].map(u64::to_be_bytes).concat(), span.to_be_bytes().to_vec()));
                let expected = (link, Some(format!("tenant{number}")), 1000);
                assert_eq!((event.link.clone(), label("tenant").map(str::to_owned), event.value), expected);
                with += 1;
            } else {
                let found = (&event.link, label("tenant"), event.value);
                assert_eq!(found, (&None, None, THREADS / 2 * 1000), "{}", run.label);
                without += 1;
            }
        }
        assert_eq!((with, without), (THREADS / 2, 1), "{}", run.label);
    }
}

#[test]
fn only_registered_threads_are_sampled_where_that_is_asked_for() {
    for home in newest_or_all() {
        let run = run(&home, ",filter=true");
        let stacks = cpu_stacks(&run.messages());
        let total: i64 = stacks.iter().map(|stack| stack.value).sum();
        // The thread is registered for 2,400 periods of CPU time.
        assert!(total > 50, "{}: {total} periods", run.label);
        for stack in &stacks {
            assert!(
                stack.thread == "chosen" && !stack.has("programs.Events.removed"),
                "{}: {stack:#?}",
                run.label
            );
        }
        assert!(run.counter("handler.periods_filtered") > 50, "{}", run.stderr);
    }
}

#[test]
fn a_virtual_thread_is_registered_itself_and_not_its_carrier() {
    for home in newest_or_all().into_iter().filter(|home| java_version(home) >= 21) {
        let run = JavaRun::new(&home, "RegisteredVirtualThreads").jvm_option("-XX:CompileCommand=quiet");
        // All threads take turns on a single carrier.
        let run = run.jvm_option("-Djdk.virtualThreadScheduler.parallelism=1");
        let run = run.jvm_option("-XX:CompileCommand=dontinline,programs.RegisteredVirtualThreads::*");
        let run = run.agent("cpu=250us,filter=true,file=FILE").run().expect_success();
        let stacks = cpu_stacks(&run.messages());
        let total: i64 = stacks.iter().map(|stack| stack.value).sum();
        assert!(total > 50, "{}: {total} periods", run.label);
        for stack in &stacks {
            // Behind its task a thread is about to end, and still registered; its carrier is never
            // registered. While the VM writes the rest of a stack to the heap, the stack cannot be walked
            // there, and a mark replaces it. Only a virtual thread's stack has such a mark.
            // `enterSpecial` mounts the thread before it calls the thread's oldest frame, and unmounts the
            // thread after that frame has returned.
            let is_virtual = stack.frames[0].name == "jdk.internal.vm.Continuation.enterSpecial"
                || stack.frames.iter().any(|frame| {
                    frame.name.contains("VirtualThread$VThreadContinuation")
                        || frame.name.starts_with("[frozen: ")
                });
            let is_anothers = ["removed", "other", "later"]
                .into_iter()
                .any(|method| stack.has(&format!("programs.RegisteredVirtualThreads.{method}")));
            assert!(is_virtual && !is_anothers, "{}: {stack:#?}", run.label);
        }
        assert!(run.counter("handler.periods_filtered") > 50, "{}", run.stderr);
    }
}

#[test]
fn time_that_a_thread_waited_before_its_registration_is_not_counted() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "LateRegistration");
        let run = run.agent("cpu=off,wall=10ms,filter=true,file=FILE").run().expect_success();
        let stacks = stacks_of(&run.messages(), "wall", ("samples", "count"));
        let late: i64 = stacks.iter().filter(|stack| stack.thread == "late").map(|stack| stack.value).sum();
        let (worked, lived) = run.stdout.trim().split_once(' ').unwrap();
        let [worked_ms, lived_ms]: [i64; 2] = [worked, lived].map(|ms| ms.parse().unwrap());
        let label = format!("{}: {late} periods of 10 ms, in {worked_ms} to {lived_ms} ms", run.label);
        // The thread has waited for 2 s before. Its first sample stands for the time since the last visit of
        // the thread, which on a busy machine was some time before the registration.
        assert!(10 * late <= lived_ms + 1_000, "{label}");
        // The last sample may not have been handled when the time until then was credited.
        assert!(15 * late >= worked_ms, "{label}");
    }
}
