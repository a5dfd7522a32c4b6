//! The contexts of virtual threads in the profiles of a real JVM: each thread has a span of its own, and its number in its
//! stack.

mod agent_support;

use std::path::Path;

use agent_support::running::Finished;
use agent_support::stacks::{Stack, cpu_stacks};
use agent_support::{JavaRun, java_homes, java_version};

const PROGRAM: &str = "programs.ContextVirtualThreads.";
/// Digits of a thread's number in its stack.
const DIGITS: usize = 6;

/// Every digit is a frame of its own, and nothing of `work` runs before it is called.
const APART: [&str; 3] = [
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=dontinline,programs.ContextVirtualThreads::digit?",
    "-XX:CompileCommand=dontinline,programs.ContextVirtualThreads::work",
];

/// The number of the thread, if the stack tells it whole and the thread is at work.
fn number(stack: &Stack) -> Option<u64> {
    let names = stack.frames.iter().filter_map(|frame| frame.name.strip_prefix(PROGRAM));
    let names: Vec<_> = names.collect();
    let work = names.iter().position(|name| *name == "work")?;
    let digits: Vec<u64> =
        names[work..].iter().filter_map(|name| name.strip_prefix("digit")?.parse().ok()).collect();
    (digits.len() == DIGITS).then(|| digits.iter().rev().fold(0, |number, digit| number << 3 | digit))
}

/// Whether the thread is just giving its carrier up, or has just got one.
fn is_in_transition(stack: &Stack) -> bool {
    stack.has("java.lang.VirtualThread.yieldContinuation")
}

/// Samples of threads that are at work, in periods.
#[derive(Debug, Default)]
struct Tally {
    right: i64,
    /// Without a context, in the code that unmounts and mounts.
    in_transition: i64,
    /// Without a context elsewhere.
    without: i64,
    wrong: Vec<(u64, Stack)>,
}

fn tally(run: &Finished) -> Tally {
    let mut tally = Tally::default();
    for stack in cpu_stacks(&run.messages()) {
        let Some(number) = number(&stack) else { continue };
        let ids = stack.link.as_ref().map(|(trace, span)| {
            let word = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().unwrap());
            (word(&trace[..8]), word(&trace[8..]), word(span))
        });
        let endpoint = stack.labels.get("rest_endpoint");
        if ids == Some((!number, number, number)) && endpoint == Some(&format!("/e{}", number & 3)) {
            tally.right += stack.value;
        } else if ids.is_none() && endpoint.is_none() {
            *if is_in_transition(&stack) { &mut tally.in_transition } else { &mut tally.without } +=
                stack.value;
        } else {
            tally.wrong.push((number, stack));
        }
    }
    tally
}

fn run(home: &Path, threads: u32, waves: u32, turns: u32, rounds: u32, options: &[&str]) -> Finished {
    let mut run = JavaRun::new(home, "ContextVirtualThreads");
    for argument in [threads, waves, turns, rounds] {
        run = run.argument(argument);
    }
    for option in APART.iter().chain(options) {
        run = run.jvm_option(option);
    }
    run.agent("cpu=200us,file=FILE").run().expect_success()
}

#[test]
fn a_hundred_thousand_virtual_threads_take_their_spans_along() {
    const THREADS: u32 = 100_000;
    for home in java_homes().into_iter().filter(|home| java_version(home) >= 21) {
        let run = run(&home, THREADS, 2, 2, 5_000, &[]);
        let tally = tally(&run);
        let blocks = run.counter("context.blocks");
        let Tally { right, in_transition, without, wrong } = tally;
        let found = format!("{}: {right} right, {in_transition} in transition, {without} without", run.label);
        eprintln!("{found}, {blocks} blocks");
        assert!(wrong.is_empty(), "{found}: {:#?}", wrong.first());
        // What compiled code is called right after a return is not exact.
        assert!(right > 5_000 && without * 1000 <= right && in_transition * 5 <= right, "{found}");
        // A second wave needs no more than the first.
        assert!(blocks <= u64::from(THREADS) + 2048, "{}: {blocks} blocks", run.label);
    }
}

/// Where blocking is most of what threads do.
#[test]
fn no_sample_of_a_virtual_thread_has_anothers_span_however_fast_they_move() {
    for home in java_homes().into_iter().filter(|home| java_version(home) >= 21) {
        for options in [&[][..], &["-Xint"]] {
            let (turns, rounds) = if options.is_empty() { (2_000, 50) } else { (100, 50) };
            let run = run(&home, 2_000, 1, turns, rounds, options);
            let tally = tally(&run);
            eprintln!(
                "{} {options:?}: {} right, {} without",
                run.label,
                tally.right,
                tally.in_transition + tally.without
            );
            assert!(tally.wrong.is_empty(), "{} {options:?}: {:#?}", run.label, tally.wrong.first());
            assert!(tally.right > 100, "{} {options:?}: {}", run.label, tally.right);
        }
    }
}
