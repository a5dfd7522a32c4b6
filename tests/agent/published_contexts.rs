//! Contexts as other processes read them: a reader attaches to real JVMs, and compares the contexts that it
//! finds with the work that the programs report.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::estimate::assert_share;
use crate::outside_reader::{OutsideReader, ProcessContext, ThreadContext, process_contexts};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use otlpprof_model::Resource;
use otlpprof_otlp::process_context::encode_process_context;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::{Finished, Running};
use otlpprof_testkit::jdk::{java_homes_from, newest_or_all};

/// A wait of this length is taken to last for ever.
const PATIENCE: Duration = Duration::from_secs(120);
/// The seconds for which programs run: longer than the test.
const LONG: u32 = 600;

/// Starts the program.
fn start(home: &Path, options: &str) -> Running {
    let run = JavaRun::new(home, "PublishedContexts").argument(2).argument(LONG);
    run.agent(&format!("cpu=2ms,service=shop,file=FILE{options}")).start()
}

/// Terminates the program, which would otherwise run on.
fn end(run: Running) -> Finished {
    run.terminate();
    let run = run.finish();
    assert_eq!(libc::WEXITSTATUS(run.status), 128 + libc::SIGTERM, "{}: {}", run.label, run.stderr);
    run
}

fn the_process_context(run: &Running) -> Option<ProcessContext> {
    let mut contexts = process_contexts(run.pid());
    assert!(contexts.len() <= 1, "{}: {contexts:?}", run.label);
    contexts.pop()
}

/// Reads threads' contexts until enough have been found, or the time is over. `hold` checks each context.
/// `is_enough` judges the number of contexts with a span, and of those without one. Every eighth round reads
/// all threads, the other rounds the program's threads. Returns the two numbers.
fn look(
    run: &Running,
    reader: &OutsideReader,
    longest: Duration,
    mut hold: impl FnMut(i32, &ThreadContext),
    is_enough: impl Fn(u64, u64) -> bool,
) -> (u64, u64) {
    let (mut with_span, mut without) = (0, 0);
    let start = Instant::now();
    for round in 0.. {
        for os_tid in reader.threads() {
            if round % 8 != 0 && !is_the_programs(run, os_tid) {
                continue;
            }
            if let Some(context) = reader.context_of(os_tid) {
                hold(os_tid, &context);
                *(if context.span_id == 0 { &mut without } else { &mut with_span }) += 1;
            }
        }
        if is_enough(with_span, without) || start.elapsed() > longest {
            break;
        }
    }
    eprintln!("{}: {with_span} with a span, {without} without, in {:?}", run.label, start.elapsed());
    (with_span, without)
}

fn is_the_programs(run: &Running, os_tid: i32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{}/task/{os_tid}/comm", run.pid())).unwrap_or_default();
    // From JDK 26 on, `ForkJoi..orker-1`.
    ["setter", "short", "last", "idle", "ForkJoi"].iter().any(|start| name.starts_with(start))
}

/// Checks the attributes.
///
/// # Panics
/// If they are not the thread's.
fn hold_attributes(os_tid: i32, context: &ThreadContext) {
    for (&key, value) in &context.attributes {
        match key {
            0 => {
                let step: u64 = value.strip_prefix('s').unwrap().parse().unwrap();
                let turn = context.trace_id[1];
                // The attribute is set after the span.
                let is_near = turn == 0 || [turn % 100, turn.wrapping_sub(1) % 100].contains(&step);
                assert!(is_near, "thread {os_tid}: {context:?}");
            }
            1 => assert_eq!(*value, format!("t{os_tid}"), "{context:?}"),
            2 | 3 => assert!(
                value.starts_with(&format!("t{os_tid}-x")) && value.len() == 200,
                "thread {os_tid}: {context:?}"
            ),
            _ => panic!("there is no room for it: {context:?}"),
        }
    }
}

/// Checks the span.
///
/// # Panics
/// If it is not the thread's.
fn hold_span(os_tid: i32, context: &ThreadContext) {
    let [id, turn] = context.trace_id;
    let expected = match id {
        0 => (0, 0, 0),
        _ => (
            u64::from(os_tid.cast_unsigned()),
            id << 32 ^ turn.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            (turn & 3) as u8,
        ),
    };
    assert_eq!((id, context.span_id, context.flags), expected, "thread {os_tid}: {context:?}");
    assert!(id != 0 || turn == 0, "thread {os_tid}: {context:?}");
}

#[test]
fn outside_readers_see_each_threads_own_span_and_no_slot() {
    for home in newest_or_all() {
        let mut run = start(&home, "");
        run.wait_until("the program's threads", |run| run.stdout().contains("names"));
        let process = the_process_context(&run).expect("a process context");
        assert_eq!(process.schema.as_deref(), Some("tlsdesc_v1_dev"));
        assert!(process.names.is_empty() && process.mapping.contains("OTEL_CTX"), "{process:?}");
        let resource = |key: &str| process.resource.get(key).cloned();
        assert_eq!(resource("service.name"), Some(Value::StringValue("shop".into())));
        assert_eq!(resource("process.pid"), Some(Value::IntValue(run.pid().into())));

        let reader = OutsideReader::of(run.pid()).expect("the variable");
        let hold = |os_tid, context: &ThreadContext| {
            hold_span(os_tid, context);
            assert!(context.attributes.is_empty(), "{context:?}");
        };
        let found = look(&run, &reader, PATIENCE, hold, |with_span, _| with_span >= 200);
        // Outside readers ignore a block without a trace.
        assert!(found.0 >= 200 && found.1 == 0, "{}: {found:?}", run.label);
        end(run);
    }
}

#[test]
fn outside_readers_see_attributes_that_are_the_threads_own_where_they_are_asked_for() {
    for home in newest_or_all() {
        let mut run = start(&home, ",context=step,context.publish=attributes");
        run.wait_until("the program's threads", |run| run.stdout().contains("names"));
        // The names are in the order of their definition. The last one was defined after the context was
        // published.
        let process = the_process_context(&run).expect("a process context");
        assert_eq!(process.names, ["step", "worker", "long0", "long1", "long2", "late"], "{}", run.label);

        let reader = OutsideReader::of(run.pid()).expect("the variable");
        let seen = RefCell::new(BTreeMap::<u8, u64>::new());
        let hold = |os_tid, context: &ThreadContext| {
            hold_span(os_tid, context);
            hold_attributes(os_tid, context);
            for &key in context.attributes.keys() {
                *seen.borrow_mut().entry(key).or_default() += 1;
            }
        };
        let is_seen = |key| seen.borrow().get(&key).is_some_and(|&count| count >= 50);
        let is_enough = |with_span, without| with_span >= 400 && without >= 3 && (0..4).all(&is_seen);
        let found = look(&run, &reader, PATIENCE, hold, is_enough);
        assert!(is_enough(found.0, found.1), "{}: {found:?}, {seen:?}", run.label);
        end(run);
    }
}

/// Covers a thread that never changes its context again. A session that does not ask for attributes shows
/// none of an earlier session's.
#[test]
fn attributes_are_seen_of_threads_that_had_a_context_before_and_for_as_long_as_they_are_asked_for() {
    for home in newest_or_all() {
        let mut run = start(&home, ",context=step");
        run.wait_until("the program's threads", |run| run.stdout().contains("names"));
        let reader = OutsideReader::of(run.pid()).expect("the variable");
        for (number, publish) in
            ["attributes", "trace", "attributes", "attributes", "trace"].into_iter().enumerate()
        {
            run.load_agent("stop");
            let tids = reader.threads();
            let none = |os_tid| reader.context_of(os_tid).is_none_or(|found| found.attributes.is_empty());
            assert!(tids.into_iter().all(none), "{}: after a session's end", run.label);
            run.load_agent(&format!("start,cpu=off,context.publish={publish},file=DIR/{number}.otlp"));
            let is_idle = |os_tid: &i32| {
                let name = format!("/proc/{}/task/{os_tid}/comm", run.pid());
                std::fs::read_to_string(name).is_ok_and(|name| name == "idle\n")
            };
            let idle = reader.threads().into_iter().find(is_idle).expect("the thread");
            let (with, without) = (Cell::new(0), Cell::new(0));
            let hold = |os_tid, context: &ThreadContext| {
                hold_span(os_tid, context);
                hold_attributes(os_tid, context);
                let count = if context.attributes.is_empty() { &without } else { &with };
                count.set(count.get() + 1);
            };
            let wanted = if publish == "attributes" { &with } else { &without };
            look(&run, &reader, PATIENCE, hold, |_, _| wanted.get() >= 50);
            let (with, without) = (with.get(), without.get());
            let found = reader.context_of(idle).expect("it has one");
            hold_span(idle, &found);
            let label = format!("{} {publish} {number}: {with} with, {without} without", run.label);
            if publish == "attributes" {
                let own = [(0, "s7".to_owned()), (1, format!("t{idle}"))].into();
                assert_eq!(found.attributes, own, "{label}");
                assert!(with >= 50, "{label}");
            } else {
                assert!(found.attributes.is_empty() && with == 0 && without >= 50, "{label}");
            }
        }
        end(run);
    }
}

/// Each thread writes its carrier to a file. So the test knows which virtual thread is on a stopped carrier.
#[test]
fn outside_readers_see_the_virtual_thread_that_is_mounted_where_that_is_asked_for() {
    for home in java_homes_from(21) {
        for publish in ["trace", "attributes"] {
            let board = tempfile::NamedTempFile::new().unwrap();
            let mut run = JavaRun::new(&home, "PublishedVirtualThreads")
                .argument(board.path().display())
                .argument(8)
                .argument(LONG)
                .agent(&format!("cpu=2ms,context.publish={publish},context.publish.virtual=true,file=FILE"))
                .start();
            run.wait_until("the threads", |run| run.stdout().contains("running"));
            let board = board.path();
            let reader = OutsideReader::of(run.pid()).expect("the variable");
            hold_mounted(&run, &reader, board, publish == "attributes");
            // Also in transition, no thread has a context after the end of the session.
            run.load_agent("stop");
            let tids = reader.threads();
            assert!(tids.into_iter().all(|os_tid| reader.context_of(os_tid).is_none()), "{}", run.label);
            let again =
                "start,cpu=off,context.publish=trace,context.publish.virtual=true,file=DIR/again.otlp";
            run.load_agent(again);
            hold_mounted(&run, &reader, board, false);
            end(run);
        }
    }
}

/// The place of a virtual thread, as the thread itself reports it.
#[derive(Clone, Copy)]
struct Mounting {
    /// The carrier's thread id; 0 while the thread does not burn.
    carrier: u64,
    turn: u64,
}

fn mountings(board: &Path) -> Vec<Mounting> {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let board = std::fs::read(board).unwrap();
    let place = |place: &[u8]| Mounting { carrier: word(&place[..8]), turn: word(&place[8..]) };
    board.chunks_exact(16).map(place).collect()
}

/// Stops carriers until enough virtual threads have been found on them, and compares their contexts with the
/// board. A thread that had a context before the session shows it from its next mount on.
fn hold_mounted(run: &Running, reader: &OutsideReader, board: &Path, with_attributes: bool) {
    let (mut right, mut none, mut between, mut attributes) = (0, 0, 0, 0);
    let at_first = mountings(board);
    let start = Instant::now();
    while start.elapsed() < PATIENCE && (right < 200 || none < 50) {
        for os_tid in reader.threads().into_iter().filter(|&os_tid| is_the_programs(run, os_tid)) {
            reader.look_at(os_tid, |context| {
                let here: Vec<_> = (0_usize..)
                    .zip(mountings(board))
                    .filter(|(_, place)| place.carrier == os_tid as u64)
                    .collect();
                assert!(here.len() <= 1, "{}: {} on {os_tid}", run.label, here.len());
                let Some(&(number, Mounting { turn, .. })) = here.first() else {
                    // The thread has just been mounted, or is about to be unmounted.
                    between += 1;
                    return;
                };
                let is_of_before = turn == at_first[number].turn;
                let label = || format!("{}: {number} in turn {turn} on {os_tid}: {context:?}", run.label);
                // Only every second thread has a context.
                let Some(context) = &context else {
                    assert!(number % 2 != 0 || is_of_before, "{}", label());
                    none += usize::from(number % 2 != 0);
                    return;
                };
                assert!(number % 2 == 0, "{}", label());
                let ([found, set], id) = (context.trace_id, number as u64 + 1);
                let span = id << 32 ^ set.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                assert_eq!((found, context.span_id), (id, span), "{}", label());
                if let Some(value) = context.attributes.get(&0) {
                    assert_eq!(*value, format!("v{number}"), "{}", label());
                    attributes += 1;
                }
                right += 1;
            });
        }
    }
    let label = format!(
        "{}: {right} right, {attributes} of them with attributes, {none} without, {between} between",
        run.label
    );
    eprintln!("{label}");
    assert!(right >= 200 && none >= 50, "{label}");
    if with_attributes {
        // A thread sets its attribute after its span.
        assert_share(attributes, right, 0.9..=1.0, &label);
    } else {
        assert_eq!(attributes, 0, "{label}");
    }
}

#[test]
fn nothing_is_published_where_that_is_not_wanted_or_profiling_has_stopped() {
    let home = &newest_or_all()[0];
    let mut run = start(home, ",context.publish=off");
    run.wait_until("the program's threads", |run| run.stdout().contains("names"));
    assert_eq!(the_process_context(&run), None);
    run.load_agent_by_jcmd("stop");
    run.load_agent("start,cpu=off,file=DIR/second.otlp");
    let first = the_process_context(&run).expect("a process context");
    run.load_agent("stop");
    assert_eq!(the_process_context(&run), None);
    run.load_agent("start,cpu=off,file=DIR/third.otlp");
    assert!(the_process_context(&run).is_some_and(|third| third.published_at_ns > first.published_at_ns));
    end(run);
}

/// As in an application beside the OpenTelemetry agent's extension.
#[test]
fn the_apis_of_two_class_loaders_publish_one_context() {
    for home in newest_or_all() {
        let program = JavaRun::new(&home, "TwoApis");
        let mut run = program.agent("cpu=2ms,context.publish=attributes,file=FILE").start();
        run.wait_until("the context", |run| run.stdout().contains("set"));
        let process = the_process_context(&run).expect("a process context");
        let reader = OutsideReader::of(run.pid()).expect("the variable");
        let contexts: Vec<_> =
            reader.threads().into_iter().filter_map(|os_tid| reader.context_of(os_tid)).collect();
        let [context] = &contexts[..] else { panic!("{}: {contexts:?}", run.label) };
        assert_eq!((context.trace_id, context.span_id), ([1, 2], 3), "{}", run.label);
        let named: BTreeMap<_, _> = context
            .attributes
            .iter()
            .map(|(&key, value)| (process.names[usize::from(key)].as_str(), value.as_str()))
            .collect();
        assert_eq!(named, [("endpoint", "/payments"), ("tenant", "tenant-42")].into(), "{}", run.label);
        end(run);
    }
}

/// The process context of another publisher in the process.
fn others_process_context() -> String {
    let mut resource = Resource::default();
    resource.set("service.name", "another's");
    encode_process_context(&resource, None).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checks that there is one process context, which the other publisher owns.
///
/// # Panics
/// If there is none, or another.
fn hold_others(run: &Running) {
    let context = the_process_context(run).expect("the other's");
    let name = context.resource.get("service.name");
    assert_eq!(name, Some(&Value::StringValue("another's".into())), "{}", run.label);
}

/// Waits until the only thread with a context, which it sets every few milliseconds, shows its span in
/// `READS` consecutive reads, with or without attributes as `are_seen` says.
fn wait_for_attributes(run: &Running, are_seen: bool) {
    assert!(shows_attributes(run, are_seen, || false), "{}: attributes: {are_seen}", run.label);
}

/// As [`wait_for_attributes`], unless `is_too_late` comes first. Returns whether the context has been seen.
fn shows_attributes(run: &Running, are_seen: bool, is_too_late: impl Fn() -> bool) -> bool {
    const READS: usize = 20;
    let reader = OutsideReader::of(run.pid()).expect("the variable");
    let start = Instant::now();
    let mut in_a_row = 0;
    while in_a_row < READS {
        let contexts: Vec<_> =
            reader.threads().into_iter().filter_map(|os_tid| reader.context_of(os_tid)).collect();
        if let [context] = &contexts[..]
            && context.attributes.is_empty() != are_seen
        {
            assert_eq!((context.trace_id, context.span_id), ([1, 2], 3), "{}", run.label);
            in_a_row += 1;
        } else {
            in_a_row = 0;
        }
        if is_too_late() {
            return false;
        }
        assert!(start.elapsed() < PATIENCE, "{}: {contexts:?}", run.label);
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// The other publisher's names would be taken for those of our attributes' numbers. So readers see only trace
/// and span.
#[test]
fn another_publishers_process_context_is_left_alone() {
    for home in newest_or_all() {
        let program = JavaRun::new(&home, "OtherPublisher").argument(others_process_context()).argument(0);
        let mut run = program.start();
        run.wait_until("the other's context", |run| run.stdout().contains("published"));
        run.load_agent("start,cpu=off,context.publish=attributes,file=DIR/late.otlp");
        hold_others(&run);
        run.wait_until("the reason", |run| run.stderr().contains("the agent does not publish its own"));
        wait_for_attributes(&run, false);
        run.load_agent("stop");
        hold_others(&run);
        end(run);
    }
}

#[test]
fn ours_is_withdrawn_when_another_publisher_comes_later() {
    for home in newest_or_all() {
        // On a busy machine the other publisher may come before ours has been seen.
        let is_seen_before = |delay_ms| is_withdrawn_for_another(&home, delay_ms);
        assert!([3_000, 15_000, 60_000].into_iter().any(is_seen_before), "{}", home.display());
    }
}

/// Runs a program that publishes a context after a delay. Returns whether ours had been seen before. If so,
/// checks that ours is withdrawn.
fn is_withdrawn_for_another(home: &Path, delay_ms: u32) -> bool {
    let program = JavaRun::new(home, "OtherPublisher").argument(others_process_context()).argument(delay_ms);
    let mut run = program.agent("cpu=2ms,interval=1s,context.publish=attributes,file=FILE").start();
    run.wait_until("the start", |run| run.stdout().contains("waiting"));
    let own = process_contexts(run.pid());
    let is_published = || run.stdout().contains("published");
    let is_seen = shows_attributes(&run, true, is_published);
    if !is_seen || is_published() {
        return false;
    }
    assert!(own.len() == 1 && own[0].schema.is_some(), "{}: {own:?}", run.label);
    run.wait_until("the other's context", |run| run.stderr().contains("the agent withdraws its own"));
    hold_others(&run);
    wait_for_attributes(&run, false);
    end(run);
    true
}

/// A reader cannot find out which thread a carrier carries.
#[test]
fn carriers_show_neither_their_own_context_nor_the_virtual_threads() {
    for home in java_homes_from(21) {
        let mut program = JavaRun::new(&home, "ContextVirtualThreads");
        for argument in ["500", "1000", "2000", "200", "carriers"] {
            program = program.argument(argument);
        }
        let program = program.jvm_option("--add-opens=java.base/java.lang=ALL-UNNAMED");
        let mut run = program.agent("cpu=2ms,context.publish=attributes,file=FILE").start();
        run.wait_until("a first wave", |run| run.stderr().contains("wave 0"));
        let reader = OutsideReader::of(run.pid()).expect("the variable");
        let longest = Duration::from_secs(3);
        let found = look(
            &run,
            &reader,
            longest,
            |os_tid, context| panic!("thread {os_tid}: {context:?}"),
            |_, _| false,
        );
        assert_eq!(found, (0, 0));
        let run = end(run);
        assert!(run.counter("context.blocks") > 500, "{}: no virtual thread had one", run.label);
    }
}
