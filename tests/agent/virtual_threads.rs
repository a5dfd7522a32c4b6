//! Virtual threads in the profiles of a real JVM: every stack must be one that the program can have, down to
//! its root, with the frames that are frozen on the heap, on every collector and with every walker.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use otlpprof_otlp::read::Message;
use otlpprof_signal::walk::FrozenReason;
use otlpprof_testkit::commands::otlpprof;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_homes, java_homes_from, java_version, starts_with};
use otlpprof_testkit::profiles::counted_in_profiles;
use otlpprof_testkit::stacks::{Frame, Stack, cpu_stacks};
use otlpprof_testkit::this_build::built;

const PROGRAM: &str = "programs.VirtualThreadTree.";
/// The methods through which `VirtualThreadTree` descends in turn. The first one is that of the pair's
/// number.
const LEVELS: [&str; 4] = ["level0", "level1", "level2", "wide"];
const TOPS: [&str; 4] = ["top0", "top1", "top2", "top3"];
const LEAVES: [&str; 4] = ["leaf0", "leaf1", "leaf2", "leaf3"];
const ROOT: &str = "java.lang.VirtualThread.run";
/// The frames between a top and the root.
const START: [&str; 2] = ["programs.VirtualThreadTree$$Lambda.run", "java.lang.Thread.runWith"];
/// The continuation's own frames, above its entry.
const CONTINUATION: [&str; 3] = [
    "java.lang.VirtualThread$VThreadContinuation$1.run",
    "jdk.internal.vm.Continuation.enter0",
    "jdk.internal.vm.Continuation.enter",
];
/// The carrier's frames below these.
const MOUNT: [&str; 3] = [
    "jdk.internal.vm.Continuation.enterSpecial",
    "jdk.internal.vm.Continuation.run",
    "java.lang.VirtualThread.runContinuation",
];
const CARRIER: &str = "java.util.concurrent.ForkJoinWorkerThread.run";
/// The prefix of the names of threads that run virtual threads.
const CARRIER_NAME: &str = "ForkJoinPool-";

/// Makes each method of the tree a frame of its own. If they were inlined into one another, C2 would merge
/// code that is alike at two levels, and name one of them: levels would seem to be missing. An inlined call
/// that is never made would appear as made, since the instruction that jumps over it has the debug
/// information that follows.
const EACH_A_FRAME: [&str; 2] =
    ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,programs.VirtualThreadTree*::*"];
/// Keeps the call site in compiled code, which becomes invalid when the site changes.
const WITH_THE_SITE: [&str; 2] =
    ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,programs.VirtualThreadTree::*"];
/// The largest share of stacks that may have a mark, because a thread was about to return from `thaw`.
const MARKED: f64 = 0.001;
/// The same on ZGC, which moves chunks meanwhile.
const MARKED_BY_ZGC: f64 = 0.005;
/// The number of marked stacks that are allowed in addition: a thread may stay for several samples at the
/// place where it is marked.
const MARKED_IN_A_ROW: i64 = 4;
/// The same for a mark for a collection: each of the eight threads may be late, on a busy machine, at the
/// place where a collection stops it.
const COLLECTING_LATE: i64 = 8;
/// The largest share of stacks below native code that may have a mark for a collection.
const COLLECTING_BELOW_NATIVE: f64 = 0.01;

/// The least number of samples of a run for a verdict.
const LEAST: i64 = 1_000;
/// The seconds for which the program runs. The longer runs are for the case that other programs have used the
/// CPU, and for emulators, where a sample costs milliseconds.
const SECONDS: [u32; 4] = [1, 5, 25, 100];

/// A configuration of the program.
#[derive(Clone, Copy, Debug)]
struct Tree<'a> {
    mode: &'a str,
    depth: usize,
    walker: &'a str,
    options: &'a [&'a str],
    /// The oldest JDK version for this configuration.
    java: u32,
}

const QUEUES: Tree<'_> = Tree { mode: "queues", depth: 20, walker: "vm", options: &[], java: 21 };

/// The samples of virtual threads by result.
#[derive(Debug, Default)]
struct Tally {
    complete: i64,
    /// Samples without the frames that a collection with a pause may move.
    collecting: i64,
    /// Samples with another mark for missing frames.
    marked: i64,
    wrong: i64,
    /// The number of stacks for each mark with the frame above it.
    marks: BTreeMap<String, i64>,
    /// Some of the incomplete stacks.
    examples: Vec<Vec<String>>,
}

fn is_mark(name: &str) -> bool {
    ["[frozen", "[unwalkable", "[truncated"].iter().any(|mark| name.starts_with(mark))
}

fn is_java(frame: &Frame) -> bool {
    frame.frame_type == "jvm"
}

impl Tree<'_> {
    /// Whether a virtual thread of the program can have this stack, from its root on.
    fn is_whole(&self, stack: &Stack) -> bool {
        let names: Vec<_> = stack.frames.iter().map(|frame| &*frame.name).collect();
        let Some(root) = names.iter().position(|&name| name == ROOT) else { return false };
        let below = &names[root + 1..];
        let is_rooted = match self.walker {
            "vmx" => {
                let native = |name: &&str| !name.starts_with("java.") && !name.starts_with("jdk.");
                below.starts_with(&CONTINUATION)
                    && below[CONTINUATION.len()..].starts_with(&MOUNT)
                    && below.contains(&CARRIER)
                    && below.iter().rev().take(3).all(native)
            }
            _ => below == CONTINUATION,
        };
        // The names of the Java frames, from the root on.
        let java: Vec<_> = stack.frames[..root]
            .iter()
            .rev()
            .filter(|frame| is_java(frame))
            .map(|frame| &*frame.name)
            .collect();
        let Some(start) =
            java.iter().position(|name| name.strip_prefix(PROGRAM).is_some_and(|name| TOPS.contains(&name)))
        else {
            // The thread has not begun, or blocks for the first time.
            return is_rooted && !java.iter().any(|name| name.starts_with(PROGRAM));
        };
        let is_started = java[..start].iter().rev().eq(START.iter());
        is_rooted
            && is_started
            && self.are_the_programs(&java[start..])
            && !names.iter().any(|name| name.starts_with("[0x"))
    }

    /// Whether these are the frames of one pair's thread, from its top on.
    fn are_the_programs(&self, java: &[&str]) -> bool {
        let own: Vec<_> = java.iter().map(|name| name.strip_prefix(PROGRAM).unwrap_or_default()).collect();
        let Some(pair) = TOPS.iter().position(|&top| top == own[0]) else { return false };
        let levels = (0..self.depth).map(|level| LEVELS[(pair + level) % LEVELS.len()]);
        let expected: Vec<_> =
            [TOPS[pair]].into_iter().chain(levels).chain(["bottom", LEAVES[pair], "work"]).collect();
        let length = own.iter().zip(&expected).take_while(|(own, expected)| own == expected).count();
        let above = &java[length..];
        if length < expected.len() {
            // The methods of the tree call only methods of the tree, or the site of mode `deoptimised`.
            let is_note = |name: &&str| {
                name.starts_with("programs.VirtualThreadTree$Notes.") || name.starts_with("java.lang.invoke.")
            };
            return above.is_empty() || self.mode == "deoptimised" && above.iter().all(is_note);
        }
        above.windows(2).all(|pair| can_call(pair[0], pair[1]))
            && above.first().is_none_or(|&callee| can_call("work", callee))
    }
}

/// Whether one of the methods above the tree can call another. Calls by the JDK's methods are not checked,
/// except of methods that have a single caller.
fn can_call(caller: &str, callee: &str) -> bool {
    const QUEUE: [&str; 2] =
        ["java.util.concurrent.ArrayBlockingQueue.put", "java.util.concurrent.ArrayBlockingQueue.take"];
    let own = callee.strip_prefix(PROGRAM).unwrap_or(callee);
    match caller.strip_prefix(PROGRAM).unwrap_or(caller) {
        "work" => [
            "exchange",
            "takeTurns",
            "crowd",
            "burn",
            "programs.Native.spin",
            "programs.Native.upcall",
            "java.lang.String.hashCode",
            "java.lang.String.equals",
        ]
        .contains(&own),
        "exchange" => QUEUE.contains(&own) || own.starts_with("java.lang.Long."),
        "takeTurns" => own.starts_with("java.lang.Object."),
        "crowd" => own == "burn",
        "burn" => own == "programs.Work.mix",
        "programs.Work.mix" | "programs.Native.spin" => false,
        "programs.Native.upcall" => own == START[0],
        name if name == START[0] => own == "upcalled",
        "upcalled" => ["burn", "exchange"].contains(&own),
        _ => !callee.starts_with("programs.") && !QUEUE.contains(&own),
    }
}

fn tally(tree: &Tree<'_>, stacks: &[Stack]) -> Tally {
    let mut tally = Tally::default();
    for stack in stacks {
        let has = |of: &dyn Fn(&str) -> bool| stack.frames.iter().any(|frame| of(&frame.name));
        let is_carriers = stack.thread.starts_with(CARRIER_NAME);
        let is_virtual = has(&|name| name == ROOT || name.starts_with("[frozen"))
            || has(&|name| {
                name.strip_prefix(PROGRAM).is_some_and(|name| LEVELS.contains(&name) || TOPS.contains(&name))
            });
        if !(is_virtual || is_carriers && has(&is_mark)) {
            continue;
        }
        let mark = stack.frames.iter().position(|frame| is_mark(&frame.name));
        let count = if let Some(mark) = mark {
            let above = mark.checked_sub(1).map_or("", |above| &stack.frames[above].name);
            *tally.marks.entry(format!("{above} {}", stack.frames[mark].name)).or_default() += stack.times;
            if has(&|name| name == "[frozen: collecting]") {
                &mut tally.collecting
            } else {
                &mut tally.marked
            }
        } else if tree.is_whole(stack) {
            tally.complete += stack.times;
            continue;
        } else {
            &mut tally.wrong
        };
        *count += stack.times;
        if tally.examples.len() < 4 {
            tally.examples.push(stack.frames.iter().map(|frame| frame.name.clone()).collect());
        }
    }
    tally
}

/// Asserts that each mark in place of frozen frames is counted, in the log and in the profile.
fn assert_marks_are_counted(run: &Finished, messages: &[Message], stacks: &[Stack]) {
    for reason in FrozenReason::ALL {
        let mark = format!("[frozen: {}]", reason.name());
        let counter = format!("frozen.{}", reason.name());
        let counted = run.counter(&counter) as i64;
        let label = format!("{}: {mark} in the log", run.label);
        assert_eq!(counted_in_profiles(messages, &counter), counted, "{label} and in the profiles");
        // A walk is counted once, has one time, and may stand for several periods.
        let marked = || stacks.iter().filter(|stack| stack.has(&mark));
        let times: i64 = marked().map(|stack| stack.times).sum();
        let periods: i64 = marked().map(|stack| stack.value).sum();
        assert!(
            (times..=periods).contains(&counted),
            "{label} {counted}, in the samples {times} to {periods}"
        );
    }
}

impl Tree<'_> {
    /// Runs the program on every JDK that has virtual threads and accepts its options. There must be one.
    fn check(self) {
        let homes: Vec<_> = java_homes_from(self.java);
        let takers: Vec<_> = homes.iter().filter(|home| starts_with(home, self.options)).collect();
        takers.iter().for_each(|home| self.check_on(home));
        let must_take =
            |home: &PathBuf| !self.options.contains(&SHENANDOAH[0]) || !is_without_shenandoah(home);
        assert!(!takers.is_empty() || !homes.iter().any(must_take), "{self:?}: taken by none of {homes:?}");
    }

    fn check_on(&self, home: &Path) {
        let is_enough = SECONDS.into_iter().any(|seconds| self.samples_on(home, seconds) > LEAST);
        assert!(is_enough, "{} {self:?}: too few samples", home.display());
    }

    /// Runs the program, and checks each sample. Returns the number of samples.
    fn samples_on(&self, home: &Path, seconds: u32) -> i64 {
        let run = JavaRun::new(home, "VirtualThreadTree").argument(seconds);
        let mut run = run.argument(self.mode).argument(self.depth);
        let inlined = if self.mode == "deoptimised" { &WITH_THE_SITE } else { &EACH_A_FRAME };
        for option in self.options.iter().chain(inlined) {
            run = run.jvm_option(option);
        }
        let run = run
            .agent(&format!("cpu=100us,cstack={},timestamps=true,file=FILE", self.walker))
            .run()
            .expect_success();
        let messages = run.messages();
        let stacks = cpu_stacks(&messages);
        let tally = tally(self, &stacks);
        let Tally { complete, collecting, marked, wrong, .. } = tally;
        let all = complete + collecting + marked + wrong;
        eprintln!(
            "{} {self:?}: {complete} of {all} complete, {marked} marked, {collecting} collecting, {:?}",
            run.label, tally.marks
        );
        let label = format!("{} {self:?}: {tally:#?}", run.label);
        assert!(wrong == 0, "{label}");
        assert_marks_are_counted(&run, &messages, &stacks);
        if all <= LEAST {
            return all;
        }
        // Native code keeps running while the world is stopped, above frames that are moved.
        let runs_on = ["native", "upcalls"].contains(&self.mode);
        let most = if self.options.contains(&"-XX:+UseZGC") { MARKED_BY_ZGC } else { MARKED };
        assert_at_most(most, MARKED_IN_A_ROW, marked, all, &format!("marked: {label}"));
        let incomplete = marked + collecting;
        let in_a_row = MARKED_IN_A_ROW + COLLECTING_LATE;
        assert!(runs_on || is_at_most(most, in_a_row, incomplete, all), "incomplete: {label}");
        let label = format!("collecting: {label}");
        assert_at_most(COLLECTING_BELOW_NATIVE, COLLECTING_LATE, collecting, all, &label);
        all
    }
}

/// Whether `part` of `all` stacks are at most this share, apart from `in_a_row` stacks, which are not
/// independent of each other. A surplus of less than five standard errors is chance.
fn is_at_most(share: f64, in_a_row: i64, part: i64, all: i64) -> bool {
    let most = share * all as f64;
    ((part - in_a_row) as f64) <= most + 5.0 * (most * (1.0 - share)).sqrt()
}

fn assert_at_most(share: f64, in_a_row: i64, part: i64, all: i64, label: &str) {
    assert!(is_at_most(share, in_a_row, part, all), "{part} of {all} {label}");
}

/// Whether the JDK is one of the builds that leave Shenandoah out, as Oracle's builds do.
fn is_without_shenandoah(home: &Path) -> bool {
    let release = fs::read_to_string(home.join("release")).unwrap();
    release.contains("IMPLEMENTOR=\"Oracle Corporation\"")
}

const AT_SAFEPOINTS: [&[&str]; 3] = [&["-XX:+UseG1GC"], &["-XX:+UseParallelGC"], &["-XX:+UseSerialGC"]];
const SHENANDOAH: &[&str] = &["-XX:+UseShenandoahGC"];
const ZGC: &[&str] = &["-XX:+UseZGC"];
/// As many carriers as the program has threads.
const CARRIERS: &str = "-Djdk.virtualThreadScheduler.parallelism=8";

#[test]
fn frozen_frames_are_walked_on_collectors_that_move_at_safepoints() {
    for options in AT_SAFEPOINTS {
        Tree { options, ..QUEUES }.check();
    }
}

#[test]
fn frozen_frames_are_walked_on_collectors_that_move_concurrently() {
    Tree { options: SHENANDOAH, ..QUEUES }.check();
    Tree { options: &["-XX:+UseShenandoahGC", "-XX:ShenandoahGCMode=generational"], java: 25, ..QUEUES }
        .check();
}

/// ZGC does not update references to older chunks until they are followed. So threads that return to such
/// chunks after a collection make the walk use ZGC's forwarding tables.
#[test]
fn frozen_frames_are_walked_on_zgc() {
    for mode in ["straight", "queues"] {
        Tree { mode, options: ZGC, ..QUEUES }.check();
        let options = &["-XX:+UseZGC", "-XX:+ZGenerational"];
        let homes = java_homes().into_iter().filter(|home| java_version(home) == 21);
        homes.for_each(|home| Tree { mode, options, ..QUEUES }.check_on(&home));
    }
    // Collections follow one another.
    Tree { options: &["-XX:+UseZGC", "-Xmx64m"], ..QUEUES }.check();
}

#[test]
fn frozen_frames_are_walked_however_objects_are_laid_out() {
    Tree { options: &["-XX:-UseCompressedOops"], ..QUEUES }.check();
    // From 27 on compact headers are the default.
    for headers in ["-XX:+UseCompactObjectHeaders", "-XX:-UseCompactObjectHeaders"] {
        let options = &["-XX:+UnlockExperimentalVMOptions", headers];
        Tree { options, java: 25, ..QUEUES }.check();
    }
}

/// With `vmx` the carrier's frames follow, to its root.
#[test]
fn the_carriers_frames_follow_in_vmx() {
    for options in AT_SAFEPOINTS.into_iter().chain([SHENANDOAH, ZGC]) {
        Tree { walker: "vmx", options, ..QUEUES }.check();
    }
}

#[test]
fn every_walker_walks_frozen_frames() {
    for walker in ["fp", "dwarf", "no"] {
        Tree { walker, ..QUEUES }.check();
    }
}

#[test]
fn frozen_interpreter_frames_are_walked() {
    for options in [&["-Xint"][..], &["-Xint", "-XX:+UseParallelGC"], &["-Xint", "-XX:+UseZGC"]] {
        Tree { options, ..QUEUES }.check();
    }
}

/// On JDK 21 threads stay mounted at a monitor. From JDK 24 on they are preempted.
#[test]
fn threads_that_block_at_a_monitor_are_walked() {
    for options in [&[][..], &["-XX:+UseParallelGC"], &["-XX:+UseShenandoahGC"], &["-XX:+UseZGC"], &["-Xint"]]
    {
        Tree { mode: "monitors", options, ..QUEUES }.check();
    }
}

#[test]
fn exceptions_are_thrown_through_frozen_frames() {
    for options in [&["-XX:+UseG1GC"][..], &["-XX:+UseSerialGC"], ZGC, &["-Xint"]] {
        Tree { mode: "throws", options, ..QUEUES }.check();
    }
}

/// Native code keeps running while the world is stopped and chunks are moved.
#[test]
fn native_code_above_frozen_frames_is_walked() {
    for options in AT_SAFEPOINTS {
        Tree { mode: "native", options, ..QUEUES }.check();
    }
}

#[test]
fn java_that_native_code_has_called_is_walked_to_the_frozen_frames() {
    for (walker, options) in [("vm", &[CARRIERS][..]), ("vmx", &[CARRIERS]), ("vm", &[CARRIERS, "-Xint"])] {
        Tree { mode: "upcalls", walker, options, ..QUEUES }.check();
    }
}

#[test]
fn frozen_frames_whose_code_has_become_invalid_are_walked() {
    for options in [&["-XX:+UseG1GC"][..], &["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"], ZGC] {
        Tree { mode: "deoptimised", options, ..QUEUES }.check();
    }
}

/// A thaw takes all frames of a small chunk at once, and a few of a larger chunk at a time.
#[test]
fn deep_stacks_are_frozen_in_several_chunks() {
    for mode in ["queues", "throws"] {
        Tree { mode, depth: 100, ..QUEUES }.check();
    }
    Tree { depth: 100, options: ZGC, ..QUEUES }.check();
}

/// If a JVM's references are not as it describes them, frozen frames are marked, one line gives the reason,
/// and all other frames are walked.
#[test]
fn frozen_frames_are_marked_where_their_layout_is_not_recognised() {
    for home in java_homes_from(21) {
        let field = match java_version(&home) {
            ..=21 => "CompressedOops::_narrow_oop._base",
            _ => "CompressedOops::_base",
        };
        let is_enough = SECONDS.into_iter().any(|seconds| marked_without(field, &home, seconds) > LEAST / 3);
        assert!(is_enough, "{}: too few marks", home.display());
    }
}

/// Runs the program without the VM's description of a field, and checks each sample. Returns the number of
/// marked stacks.
fn marked_without(field: &str, home: &Path, seconds: u32) -> i64 {
    let run = JavaRun::new(home, "VirtualThreadTree")
        .argument(seconds)
        .argument(QUEUES.mode)
        .argument(QUEUES.depth)
        .variable(
            "JAVA_TOOL_OPTIONS",
            &format!("-agentpath:{}={field}", built(otlpprof_testkit::products::VM_DAMAGE)),
        )
        .agent("cpu=100us,timestamps=true,file=FILE");
    let run = EACH_A_FRAME.into_iter().fold(run, JavaRun::jvm_option).run().expect_success();
    let printed = run.stderr.matches("frozen frames of virtual threads cannot be read").count();
    assert_eq!(printed, 1, "{}: {}", run.label, run.stderr);
    let messages = run.messages();
    let mut stacks = cpu_stacks(&messages);
    for stack in &mut stacks {
        // The end of a continuation is not known either: its carrier's frames follow.
        if let Some(mount) = stack.frames.iter().position(|frame| frame.name == MOUNT[0]) {
            stack.frames = stack.frames[..mount].into();
        }
    }
    let tally = tally(&QUEUES, &stacks);
    let label = format!("{}: {tally:#?}", run.label);
    assert!(tally.wrong == 0, "{label}");
    // Code that freezes cannot be walked then, and does not take long.
    let frozen = tally.marks.iter().filter(|(mark, _)| mark.ends_with("[frozen: unknown_layout]"));
    let others = tally.marked - frozen.map(|(_, times)| times).sum::<i64>();
    assert_at_most(0.01, 0, others, tally.marked, &format!("marked otherwise: {label}"));
    assert_marks_are_counted(&run, &messages, &stacks);
    tally.marked
}

/// While the VM's events of virtual threads are enabled, each thread spends time on them at its start and its
/// end, outside of `VirtualThread.run`. These stacks are complete.
#[test]
fn a_crowd_of_virtual_threads_loses_no_frames_between_its_own_and_its_carriers() {
    for home in java_homes_from(21) {
        let run =
            JavaRun::new(&home, "CrowdOfVirtualThreads").argument(2).argument(20_000).argument(2).argument(1);
        let run = run.agent("cpu=500us,lock,file=FILE").run().expect_success();
        let checked = otlpprof()
            .args(["check-stacks", "--known-roots", "--format", "json"])
            .args(run.files())
            .output()
            .unwrap();
        let report = String::from_utf8(checked.stdout).unwrap();
        assert!(report.contains("\"virtual\": "), "{}: no virtual thread: {report}", run.label);
        assert!(!report.contains("virtual-middle"), "{}: {report}", run.label);
    }
}
