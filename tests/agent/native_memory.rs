//! Native allocations, compared with the programs' own counts.

use std::path::PathBuf;

use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_version, newest_or_all};
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::stacks::{Stack, stacks_of};

const LIBRARY: &str = otlpprof_testkit::products::ALLOCATING;
const INTERVAL_BYTES: f64 = 1024.0;

/// The allocations of a function that the program reports.
struct Truth {
    function: String,
    /// The bytes and the number of all allocations, and of those that were not freed.
    allocated: [f64; 2],
    kept: [f64; 2],
    /// The probability that the smallest of the allocations is sampled.
    sampled: f64,
}

/// The relative error of an estimate that does not happen by chance.
const TOLERANCE: f64 = 0.03;

/// Returns the probability that an allocation of `size` bytes is sampled. Each of `n` allocations of `s`
/// bytes is sampled with the probability `p = 1 - exp(-s / interval)`, and then stands for `1 / p`
/// allocations. The sum's relative deviation is `sqrt((1 - p) / (p * n))`. The program's numbers make
/// [`TOLERANCE`] at least five deviations.
fn probability(size: f64, count: f64) -> f64 {
    let p = -(-size / INTERVAL_BYTES).exp_m1();
    let deviation = ((1.0 - p) / (p * count)).sqrt();
    assert!(5.0 * deviation <= TOLERANCE, "{count} allocations of {size} bytes are too few: {deviation}");
    p
}

fn truth(run: &Finished) -> Vec<Truth> {
    let line = |line: &str| {
        let (function, numbers) = line.split_once(' ')?;
        let numbers: Vec<f64> = numbers.split(' ').map(|word| word.parse().expect("a number")).collect();
        let [size, bytes, allocations, kept_bytes, kept] = numbers[..] else { panic!("{line}") };
        let count = if kept == 0.0 { allocations } else { kept };
        Some(Truth {
            function: function.to_owned(),
            allocated: [bytes, allocations],
            kept: [kept_bytes, kept],
            sampled: probability(size, count),
        })
    };
    let truth: Vec<_> = run.stdout.lines().filter_map(line).collect();
    assert_eq!(truth.len(), 11, "{}", run.stdout);
    truth
}

/// The sum of the stacks whose leaf is the function, called by known callers. All of them must reach their
/// root.
fn sum(run: &Finished, stacks: &[Stack], function: &str) -> f64 {
    let is_it = |stack: &&Stack| stack.frames[0].name == function;
    let found = stacks.iter().filter(is_it).inspect(|stack| {
        let names: Vec<&str> = stack.frames.iter().map(|frame| &*frame.name).collect();
        assert_eq!(
            names[..4],
            [function, "ddprof_call", "Java_programs_Native_call", "programs.Native.call"],
            "{}: {stack:#?}",
            run.label
        );
        // A virtual thread has its carrier's name.
        let is_virtual = stack.thread != "native-memory";
        let root = if is_virtual { "jdk.internal.vm.Continuation.enter" } else { "java.lang.Thread.run" };
        assert_eq!(names.last(), Some(&root), "{}: {stack:#?}", run.label);
    });
    found.map(|stack| stack.value as f64).sum()
}

/// Asserts that a sum is right. `lost` is the part of the expected sum that may be missing.
fn assert_near(label: &str, found: f64, expected: f64, lost: f64) {
    let range = 1.0 - TOLERANCE - lost..=1.0 + TOLERANCE;
    let is_near = if expected == 0.0 { found == 0.0 } else { range.contains(&(found / expected)) };
    assert!(is_near, "{label}: {found} of {expected} ({:.4}), {lost:.4} lost", found / expected);
}

/// The part of `count` allocations of a function that is missing in the sums with `missing` samples. A busy
/// machine may let the buffer of samples overflow, and not each sampled block finds room in the table of
/// addresses.
fn lost(run: &Finished, truth: &Truth, count: f64, missing: f64) -> f64 {
    let lost = if count > 0.0 { missing / (truth.sampled * count) } else { 0.0 };
    // A few missing samples may belong to a function that allocates a few hundred times.
    assert!(lost < 0.25 || count < 1_000.0, "{}: too much is missing: {}", truth.function, run.stderr);
    lost
}

fn dropped(run: &Finished) -> f64 {
    run.counter("nativemem.samples_dropped") as f64
}

fn not_remembered(run: &Finished) -> f64 {
    run.counter("nativemem.not_remembered") as f64
}

const BYTES: &str = "bytes";
const COUNT: &str = "count";

/// A single interval: allocations that were not freed are reported at its end.
const ALL_OF_IT: &str = "cpu=off,budget=off,interval=1h,nativemem=1k,nativemem.leaks,file=FILE";

/// Asserts the sums of bytes and of allocations, for all sites.
fn assert_sums_are_right(run: &Finished) {
    let messages = run.messages();
    let allocated = [("alloc_space", BYTES), ("alloc_objects", COUNT)]
        .map(|sample_type| stacks_of(&messages, "nativemem", sample_type));
    let kept = [("inuse_space", BYTES), ("inuse_objects", COUNT)]
        .map(|sample_type| stacks_of(&messages, "nativemem-leak", sample_type));
    for truth in truth(run) {
        let function = &truth.function;
        for (which, stacks, expected, missing) in [
            ("allocated", &allocated, truth.allocated, dropped(run)),
            ("kept", &kept, truth.kept, dropped(run) + not_remembered(run)),
        ] {
            let lost = lost(run, &truth, expected[1], missing);
            for (unit, (stacks, expected)) in [BYTES, COUNT].iter().zip(stacks.iter().zip(expected)) {
                let label = format!("{} {function} {which} {unit}", run.label);
                assert_near(&label, sum(run, stacks, function), expected, lost);
            }
        }
    }
}

/// The library is loaded long after the agent, and by dlopen: no native method is bound to it.
#[test]
fn bytes_allocations_and_leaks_are_right_by_site() {
    for home in newest_or_all() {
        let run = || JavaRun::new(&home, "NativeMemory").argument(LIBRARY).agent(ALL_OF_IT);
        assert_sums_are_right(&run().run().expect_success());
        // A virtual thread may continue on another carrier after each pause, and frees there the memory that
        // it has allocated here.
        if java_version(&home) >= 21 {
            let run = run().argument("virtual").run().expect_success();
            let stacks = stacks_of(&run.messages(), "nativemem-leak", ("inuse_space", BYTES));
            assert!(stacks.iter().all(|stack| stack.thread != "native-memory"), "{}", run.label);
            assert_sums_are_right(&run);
        }
    }
}

/// Other allocators in place of the C library's, as on servers.
#[test]
fn the_sums_of_other_allocators_are_right_and_nothing_waits_for_itself() {
    for name in ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"] {
        let Some(allocator) = system_library(name) else {
            not_tested(&format!("native memory by {name} (scripts/install-toolchain.sh allocators)"));
            continue;
        };
        let allocator = allocator.to_str().unwrap();
        for home in newest_or_all() {
            let run = JavaRun::new(&home, "NativeMemory").argument(LIBRARY).agent(ALL_OF_IT);
            let run = run.variable("LD_PRELOAD", allocator).run().expect_success();
            assert_sums_are_right(&run);
            // The allocator's own memory does not count as the program's allocations.
            let stacks = stacks_of(&run.messages(), "nativemem", ("alloc_space", BYTES));
            let own = stacks.iter().find(|stack| stack.frames[0].object.ends_with(name));
            assert!(own.is_none(), "{} {name}: {own:#?}", run.label);
            // Threads, direct buffers and collections at the same time, with the other engines.
            let options = "cpu=1ms,wall,alloc,nativemem=16k,nativemem.leaks,interval=300ms,file=FILE";
            let run = JavaRun::new(&home, "MixedWork").argument(2).agent(options);
            run.variable("LD_PRELOAD", allocator).run().expect_success();
        }
    }
}

/// The path of a system library with this name.
fn system_library(name: &str) -> Option<PathBuf> {
    let mut folders =
        std::fs::read_dir("/usr/lib").ok()?.filter_map(|entry| Some(entry.ok()?.path().join(name)));
    folders.find(|library| library.is_file())
}

/// Without leaks no address is remembered, and functions that free are not redirected. Each walker finds the
/// caller.
#[test]
fn every_walker_finds_the_caller() {
    for home in newest_or_all() {
        let runs = ["vm", "vmx", "fp", "dwarf", "no"].map(|walker| (walker, false));
        let virtual_run = [("vm", true)].into_iter().filter(|_| java_version(&home) >= 21);
        for (walker, is_virtual) in runs.into_iter().chain(virtual_run) {
            let options = format!("cpu=off,budget=off,nativemem=64k,cstack={walker},file=FILE");
            let mut run = JavaRun::new(&home, "NativeMemory").argument(LIBRARY).agent(&options);
            if is_virtual {
                run = run.argument("virtual");
            }
            let run = run.run().expect_success();
            let messages = run.messages();
            let stacks = stacks_of(&messages, "nativemem", ("alloc_space", BYTES));
            let native = ["allocating_large", "ddprof_call", "Java_programs_Native_call"];
            let java = ["programs.Native.call", "programs.NativeMemory.call"];
            // Without native frames the functions can be distinguished at most by the line.
            let (expected, is_wanted): (Vec<&str>, fn(&Truth) -> bool) = match walker {
                "no" => (java.to_vec(), |_| true),
                _ => ([&native[..], &java].concat(), |truth| truth.function == "allocating_large"),
            };
            let bytes: f64 =
                truth(&run).iter().filter(|truth| is_wanted(truth)).map(|truth| truth.allocated[0]).sum();
            let is_it = |stack: &&Stack| {
                let names = stack.frames.iter().map(|frame| &*frame.name);
                names.take(expected.len()).eq(expected.iter().copied())
            };
            let found: i64 = stacks.iter().filter(is_it).map(|stack| stack.value).sum();
            // Nearly all blocks of this size are sampled: 0.5 % is one deviation. No sample stands for more
            // than a mebibyte.
            let lost = dropped(&run) * f64::from(1 << 20) / bytes;
            assert_near(&format!("{} {walker}", run.label), found as f64, bytes, lost);
            assert!(stacks_of(&messages, "nativemem-leak", ("inuse_space", BYTES)).is_empty());
        }
    }
}

/// Most of the leaks that are reported at an interval's end were sampled in earlier intervals.
#[test]
fn leaks_are_reported_at_each_interval() {
    for home in newest_or_all() {
        let options = "cpu=off,budget=off,interval=200ms,nativemem=1k,nativemem.leaks,file=FILE";
        let run = JavaRun::new(&home, "NativeMemory").argument(LIBRARY).agent(options).run().expect_success();
        let messages = run.messages();
        let reported = messages
            .iter()
            .map(|message| stacks_of(std::slice::from_ref(message), "nativemem-leak", ("inuse_space", BYTES)))
            .filter(|stacks| !stacks.is_empty());
        let reported: Vec<_> = reported.collect();
        assert!(reported.len() >= 3, "{}: {}", run.label, reported.len());
        for truth in truth(&run) {
            let label = format!("{} {}", run.label, truth.function);
            let found = sum(&run, reported.last().unwrap(), &truth.function);
            let lost = lost(&run, &truth, truth.kept[1], dropped(&run) + not_remembered(&run));
            assert_near(&label, found, truth.kept[0], lost);
        }
    }
}

/// A second session has its own imports, intervals and leaks.
#[test]
fn imports_are_restored_when_a_session_ends() {
    for home in newest_or_all() {
        let run = JavaRun::new(&home, "NativeMemory")
            .argument(LIBRARY)
            .argument("cpu=off,budget=off,nativemem=50,nativemem.leaks")
            .variable("OTLPPROF_FILE", "FILE")
            .agent("cpu=off,budget=off,nativemem=1m,file=DIR/first.otlp")
            .run()
            .expect_success();
        assert_eq!(run.stdout, "led true\nled false\nled true\nled false\n", "{}\n{}", run.label, run.stderr);
        let stacks = stacks_of(&run.messages(), "nativemem-leak", ("inuse_space", BYTES));
        let is_it = |stack: &&Stack| stack.frames[0].name == "allocating_leaked";
        let found: i64 = stacks.iter().filter(is_it).map(|stack| stack.value).sum();
        // A block of 1,000 bytes is missed once in 500 million times. Some may have found no room beside the
        // JVM's own samples.
        let missing = run.counter("handler.samples_dropped") + run.counter("nativemem.not_remembered");
        let least = (10_000 - 1_000 * i64::try_from(missing).unwrap()).max(1_000);
        assert!((least..=10_010).contains(&found), "{}: {found}, {missing} missing: {stacks:#?}", run.label);
    }
}
