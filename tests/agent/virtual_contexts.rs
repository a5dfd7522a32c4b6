//! The contexts of virtual threads in the profiles of a real JVM: each thread has a span of its own, and its
//! number in its stack.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::estimate::assert_share;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{everything, java_homes_from, java_version};
use otlpprof_testkit::stacks::{Frame, Stack, cpu_stacks};
use otlpprof_testkit::this_build::built;

const PROGRAM: &str = "programs.ContextVirtualThreads.";
/// The number of digits of a thread's number in its stack.
const DIGITS: usize = 6;

/// Every digit is a frame of its own, so that the compiler does not mix instructions of several digits. The
/// same holds for methods that have and set contexts.
const APART: [&str; 6] = [
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=dontinline,programs.ContextVirtualThreads::digit*",
    "-XX:CompileCommand=dontinline,programs.ContextVirtualThreads::work",
    "-XX:CompileCommand=dontinline,programs.ContextVirtualThreads::takeTurns",
    "-XX:CompileCommand=dontinline,programs.ContextVirtualThreads::carrierBurns",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
];

/// The thread's number, if the stack shows all of it. Right after a return the name of compiled code on top
/// is not exact. So only digits below `work` count, which all digits have called.
fn number(stack: &Stack) -> Option<u64> {
    let work = stack.frames.iter().position(|frame| frame.name == format!("{PROGRAM}work"))?;
    let (digits, number) = leading_digits(&stack.frames[work..]);
    (digits == DIGITS).then_some(number)
}

/// The number of digits of the thread's number in these frames, the leading digits first, and the number that
/// these digits alone make.
fn leading_digits(frames: &[Frame]) -> (usize, u64) {
    let digit = |frame: &Frame| frame.name.strip_prefix(PROGRAM)?.strip_prefix("digit")?.parse::<u64>().ok();
    frames
        .iter()
        .rev()
        .filter_map(digit)
        .fold((0, 0), |(digits, number), digit| (digits + 1, number << 3 | digit))
}

/// The content of a sample's link and label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Nothing,
    /// The span of the thread with this number, and whether the sample has the thread's own label.
    Thread(u64, bool),
    Carrier,
    /// A context that no thread has set.
    Mixture,
}

fn content(stack: &Stack) -> Content {
    let word = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().unwrap());
    let ids = stack.link.as_ref().map(|(trace, span)| [word(&trace[..8]), word(&trace[8..]), word(span)]);
    let endpoint = stack.labels.get("rest_endpoint").map(String::as_str);
    match (ids, endpoint) {
        (None, None) => Content::Nothing,
        // While its span changes, the carrier has only its label.
        (None, Some("/carrier")) => Content::Carrier,
        (Some([u64::MAX, u64::MAX, u64::MAX]), None | Some("/carrier")) => Content::Carrier,
        (Some([high, low, span]), endpoint) if high == !span && low == span => match endpoint {
            None => Content::Thread(span, false),
            Some(endpoint) if endpoint == format!("/e{}", span & 3) => Content::Thread(span, true),
            Some(_) => Content::Mixture,
        },
        _ => Content::Mixture,
    }
}

/// Whether the leading `digits` digits of a thread's number make the number `leading`.
fn begins(number: u64, digits: usize, leading: u64) -> bool {
    digits <= DIGITS && number >> (3 * (DIGITS - digits)) == leading
}

/// The thread that a stack belongs to, by its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// A virtual thread that takes its turns; its number.
    Turns(u64),
    /// A virtual thread before or after its turns; its number.
    Around(u64),
    /// A virtual thread before or after its turns, while its digits are called or return: the number of
    /// digits, and the number that they make.
    Digits(usize, u64),
    /// A virtual thread that cannot be identified, or perhaps no virtual thread: the walk was cut short, or
    /// the thread is just being mounted.
    Unidentified,
    /// A carrier in an adapter between two methods of its own. The callee may have just mounted a thread.
    Adapter,
    /// A carrier that burns on its own account.
    Carrier,
    /// Any other thread, including carriers.
    Other,
}

fn owner(stack: &Stack) -> Owner {
    let starts = |start: &str| stack.frames.iter().any(|frame| frame.name.starts_with(start));
    let takes_turns = stack.has(&format!("{PROGRAM}takeTurns"));
    match number(stack) {
        Some(number) if takes_turns => Owner::Turns(number),
        Some(number) => Owner::Around(number),
        None if starts("[frozen") || starts("[unwalkable") || takes_turns => Owner::Unidentified,
        None if stack.has("jdk.internal.vm.Continuation.enter") => {
            let (digits, number) = leading_digits(&stack.frames);
            Owner::Digits(digits, number)
        }
        None if starts("jdk.internal.vm.Continuation.enter") => Owner::Unidentified,
        // A caller that has been thawed is not in the stack. The continuation that it belongs to is.
        None if stack.has("I2C/C2I adapters") && starts("jdk.internal.vm.Continuation.") => {
            Owner::Unidentified
        }
        None if stack.has("I2C/C2I adapters") => Owner::Adapter,
        None if stack.has(&format!("{PROGRAM}carrierBurns")) => Owner::Carrier,
        None => Owner::Other,
    }
}

/// The numbers of samples by thread and by content.
#[derive(Debug, Default)]
struct Tally {
    /// Virtual threads that take their turns, with their own span and label.
    right: i64,
    /// Such virtual threads, and threads that cannot be identified, without a context.
    without: i64,
    /// Threads that cannot be identified, with a span.
    unidentified: Vec<Stack>,
    /// Virtual threads before or after their turns, with their own span or none.
    around: i64,
    /// Such threads with a span, whose stack has no digit of their number.
    around_unidentified: Vec<Stack>,
    /// Carriers with their own context.
    carrier: i64,
    /// All other threads, and carriers without a context.
    others: i64,
    wrong: Vec<Stack>,
    /// The stacks that are counted in `without`.
    missing: Vec<Stack>,
}

fn tally(run: &Finished) -> Tally {
    let mut tally = Tally::default();
    for stack in cpu_stacks(&run.messages()) {
        let is_on_carrier = stack.thread.starts_with("ForkJoinPool-1-worker-");
        let count = match (owner(&stack), content(&stack)) {
            (Owner::Turns(number), Content::Thread(span_number, true)) if number == span_number => {
                &mut tally.right
            }
            (Owner::Turns(_), Content::Nothing) => {
                tally.missing.push(stack.clone());
                &mut tally.without
            }
            (Owner::Unidentified, Content::Nothing) if is_on_carrier => {
                tally.missing.push(stack.clone());
                &mut tally.without
            }
            (Owner::Unidentified, Content::Thread(..) | Content::Carrier)
            | (Owner::Adapter, Content::Thread(..))
                if is_on_carrier =>
            {
                tally.unidentified.push(stack);
                continue;
            }
            (Owner::Around(number), Content::Thread(span_number, _)) if number == span_number => {
                &mut tally.around
            }
            (Owner::Digits(0, _), Content::Thread(..)) => {
                tally.around_unidentified.push(stack);
                continue;
            }
            (Owner::Digits(digits, number), Content::Thread(span_number, _))
                if begins(span_number, digits, number) =>
            {
                &mut tally.around
            }
            (Owner::Around(_) | Owner::Digits(..), Content::Nothing) => &mut tally.around,
            (Owner::Carrier | Owner::Adapter | Owner::Other, Content::Carrier) if is_on_carrier => {
                &mut tally.carrier
            }
            (Owner::Other | Owner::Adapter | Owner::Unidentified, Content::Nothing) => &mut tally.others,
            _ => {
                tally.wrong.push(stack);
                continue;
            }
        };
        *count += stack.times;
    }
    tally
}

/// The least number of right samples of a run for a verdict.
const LEAST: i64 = 100;

impl Tally {
    /// The share of right samples in the sum of `right` and `without`, in 1/100 %.
    fn right_in_10000(&self) -> i64 {
        self.right * 10_000 / (self.right + self.without).max(1)
    }

    fn hold(&self, label: &str) {
        let wrong: Vec<_> = self.wrong.iter().take(5).map(described).collect();
        assert!(wrong.is_empty(), "{label}: {wrong:#?}");
        self.hold_right_share(0.99, label);
        // The witness says nothing about these stacks. They are 0.3 % at most for threads that move fast.
        // With Shenandoah a single pause in the work of a thread that was just being mounted was 6 % of a
        // short run (once in some hundred runs).
        let unidentified = count(&self.unidentified);
        let most = if label.contains("Shenandoah") { 0.15 } else { 0.01 };
        let details = format!("{label}: unidentified: {:#?}", tops(&self.unidentified));
        assert_share(self.right, self.right + unidentified, 1.0 - most..=1.0, &details);
        // A thread that ends keeps its span until the VM has reported its end, after its digits have
        // returned. That takes about as long as everything else before and after its turns, however fast the
        // machine is: a third of the time at least is spent below digits.
        let nobodys = count(&self.around_unidentified);
        let most = 2.0 / 3.0 * (self.around + nobodys) as f64;
        assert!(
            nobodys as f64 <= most + 5.0 * (most / 3.0).sqrt(),
            "{label}: {nobodys} with nobody's digits, {} with some: {:#?}",
            self.around,
            tops(&self.around_unidentified)
        );
    }

    /// Asserts that at least this share of the threads that take their turns have their own context.
    fn hold_right_share(&self, least: f64, label: &str) {
        let details = format!("{label}: without: {:#?}", tops(&self.missing));
        assert!(self.right > LEAST, "{details}: {} right", self.right);
        assert_share(self.right, self.right + self.without, least..=1.0, &details);
    }
}

fn count(stacks: &[Stack]) -> i64 {
    stacks.iter().map(|stack| stack.times).sum()
}

/// The methods at the top of the stacks, the most frequent first.
fn tops(stacks: &[Stack]) -> Vec<(i64, String)> {
    let mut tops = BTreeMap::<String, i64>::new();
    for stack in stacks {
        let names: Vec<_> = stack.frames.iter().take(4).map(|frame| frame.name.as_str()).collect();
        *tops.entry(names.join(" < ")).or_default() += stack.times;
    }
    let mut tops: Vec<_> = tops.into_iter().map(|(names, value)| (value, names)).collect();
    tops.sort_by_key(|(value, _)| -value);
    tops.truncate(12);
    tops
}

/// A sample in a few words.
fn described(stack: &Stack) -> String {
    let names: Vec<_> = stack.frames.iter().map(|frame| frame.name.as_str()).collect();
    format!("{:?} with {:?} on {}: {}", number(stack), content(stack), stack.thread, names.join(" < "))
}

fn run(home: &Path, arguments: [u32; 4], mode: &str, options: &[&str]) -> (Finished, Tally) {
    let (run, tally) = run_and_tally(&program(home, arguments, mode, options));
    tally.hold(&format!("{} {mode} {options:?}", run.label));
    (run, tally)
}

fn program(home: &Path, arguments: [u32; 4], mode: &str, options: &[&str]) -> JavaRun {
    bare_program(home, arguments, mode, options).agent("cpu=100us,timestamps=true,file=FILE")
}

fn bare_program(home: &Path, arguments: [u32; 4], mode: &str, options: &[&str]) -> JavaRun {
    let mut run = JavaRun::new(home, "ContextVirtualThreads");
    for argument in arguments {
        run = run.argument(argument);
    }
    run = run.argument(mode);
    for option in APART.iter().chain(options) {
        run = run.jvm_option(option);
    }
    run
}

fn run_and_tally(program: &JavaRun) -> (Finished, Tally) {
    let run = program.run().expect_success();
    let tally = tally(&run);
    let Tally { right, without, around, around_unidentified, unidentified, carrier, others, wrong, .. } =
        &tally;
    eprintln!(
        "{}: {right} right, {without} without: {}/10000; {} unidentified, {around} before and after and {} \
         without a digit, {carrier} of carriers, {others} others, {} wrong",
        run.label,
        tally.right_in_10000(),
        count(unidentified),
        count(around_unidentified),
        wrong.len(),
    );
    (run, tally)
}

fn homes() -> Vec<PathBuf> {
    java_homes_from(21)
}

#[test]
fn many_thousand_virtual_threads_take_their_spans_along() {
    let threads = if everything() { 100_000 } else { 20_000 };
    for home in homes() {
        let (run, tally) = run(&home, [threads, 2, 2, 5_000], "all", &[]);
        assert!(tally.right > 1_000, "{}: {}", run.label, tally.right);
        // A second wave of threads needs no more blocks than the first.
        let blocks = run.counter("context.blocks");
        assert!(blocks <= u64::from(threads) + 2048, "{}: {blocks} blocks", run.label);
    }
}

/// Blocking is most of these threads' work.
fn assert_no_sample_has_anothers_span(turns: u32, options: &[&str]) {
    let turns = if everything() { 4 * turns } else { turns };
    for home in homes() {
        run(&home, [2_000, 1, turns, 50], "all", options);
    }
}

#[test]
fn no_sample_of_a_virtual_thread_has_anothers_span_however_fast_they_move() {
    assert_no_sample_has_anothers_span(500, &[]);
}

#[test]
fn no_sample_of_a_virtual_thread_has_anothers_span_under_parallel() {
    assert_no_sample_has_anothers_span(500, &["-XX:+UseParallelGC"]);
}

#[test]
fn no_sample_of_a_virtual_thread_has_anothers_span_under_zgc() {
    assert_no_sample_has_anothers_span(500, &["-XX:+UseZGC"]);
}

#[test]
fn no_sample_of_a_virtual_thread_has_anothers_span_where_all_is_interpreted() {
    assert_no_sample_has_anothers_span(100, &["-Xint"]);
}

/// Covers each way in which a thread's object is found in the heap.
#[test]
fn virtual_threads_have_their_own_spans_on_every_heap() {
    for home in homes() {
        let heaps: [(&[&str], u32); 6] = [
            (&["-XX:+UseSerialGC"], 21),
            (&["-XX:+UseShenandoahGC"], 21),
            (&["-XX:-UseCompressedOops"], 21),
            (&["-XX:+UnlockExperimentalVMOptions", "-XX:+UseCompactObjectHeaders"], 25),
            // From 27 on compact headers are the default.
            (&["-XX:-UseCompactObjectHeaders"], 27),
            // The only kind of ZGC from JDK 24 on, which has a run of its own.
            (&["-XX:+UseZGC", "-XX:+ZGenerational"], 21),
        ];
        for (options, since) in heaps {
            let is_last = java_version(&home) > 21 && options.contains(&"-XX:+ZGenerational");
            if java_version(&home) >= since && !is_last {
                run(&home, [1_000, 1, 500, 200], "all", options);
            }
        }
    }
}

/// The events cost nothing before.
#[test]
fn virtual_thread_events_are_enabled_at_the_first_context() {
    const REPORTS: [&str; 2] = [
        "the VM now sends end events of virtual threads",
        "the VM now sends mount events of virtual threads",
    ];
    for home in homes() {
        for (shows, described) in [("", [1, 0]), (",context.publish.virtual=true", [1, 1])] {
            let options = format!("cpu=1ms,loglevel=debug,file=FILE{shows}");
            let count = |run: &Finished| REPORTS.map(|report| run.stderr.matches(report).count());
            let without = JavaRun::new(&home, "VirtualThreads").argument(1);
            let without = without.agent(&options).run().expect_success();
            assert_eq!(count(&without), [0, 0], "{}: {}", without.label, without.stderr);
            let with = bare_program(&home, [10, 1, 10, 5_000], "all", &[]);
            let with = with.agent(&options).run().expect_success();
            assert_eq!(count(&with), described, "{}: {}", with.label, with.stderr);
        }
    }
}

/// Code that runs on a carrier on its own account has the carrier's context, and no virtual thread has that
/// context.
#[test]
fn carriers_and_the_threads_that_they_carry_do_not_share_contexts() {
    for home in homes() {
        let (run, tally) = run(&home, [2_000, 1, 2_000, 50], "carriers", &[]);
        assert!(tally.carrier > 0, "{}: {}", run.label, tally.carrier);
    }
}

/// If a thread's state does not identify the mounted virtual thread, the VM's events do. Samples that the
/// events leave open have no context.
#[test]
fn events_have_the_word_where_the_layout_is_not_known() {
    for home in homes() {
        let field = if java_version(&home) < 24 { "_vthread" } else { "_monitor_owner_id" };
        // Options of this variable are processed first, and so is their agent.
        let damage =
            format!("-agentpath:{}=JavaThread::{field}", built(otlpprof_testkit::products::VM_DAMAGE));
        let program = program(&home, [2_000, 1, 200, 5_000], "carriers", &[]);
        let (run, tally) = run_and_tally(&program.variable("JAVA_TOOL_OPTIONS", &damage));
        assert!(
            run.stderr.contains("the mounted virtual thread is known from the VM's events only"),
            "{}: {}",
            run.label,
            run.stderr
        );
        let wrong: Vec<_> = tally.wrong.iter().take(5).map(described).collect();
        assert!(wrong.is_empty(), "{}: {wrong:#?}", run.label);
        tally.hold_right_share(0.7, &run.label);
    }
}

/// A virtual thread that is bound to a platform thread gets no block: the VM sends no ThreadEnd for it, in
/// which the block would be released.
#[test]
fn virtual_threads_that_are_bound_to_platform_threads_have_no_contexts() {
    let options = ["-XX:+UnlockExperimentalVMOptions", "-XX:-VMContinuations"];
    for home in homes() {
        let run = program(&home, [50, 2, 20, 5_000], "all", &options).run().expect_success();
        assert!(run.stderr.contains("wave 1: "), "{}: {}", run.label, run.stderr);
        assert_eq!(run.counter("context.blocks"), 0, "{}", run.label);
        let stacks = cpu_stacks(&run.messages());
        let found: Vec<_> = stacks.iter().filter(|stack| content(stack) != Content::Nothing).collect();
        assert!(found.is_empty(), "{}: {found:#?}", run.label);
    }
}
