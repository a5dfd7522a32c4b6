//! The live heap, compared with the program's own count.

use std::ops::RangeInclusive;
use std::path::Path;

use crate::estimate::Estimate;
use otlpprof_model::attribute_keys::OBJECT_CLASS;
use otlpprof_testkit::java_run::JavaRun;
use otlpprof_testkit::java_run::running::Finished;
use otlpprof_testkit::jdk::{java_version, newest_or_all};
use otlpprof_testkit::stacks::{Stack, stacks_of};

const INTERVAL_BYTES: f64 = 1024.0;
/// A single interval: live objects are reported at its end.
const ONCE: &str = "live=1k,interval=1h";

/// The live objects that the program reports, of one class and from one method.
struct Truth {
    method: String,
    class: String,
    bytes: f64,
    objects: f64,
    collections: i64,
}

fn run(home: &Path, arguments: &[&str], jvm_options: &[&str], options: &str) -> Finished {
    let mut run = JavaRun::new(home, "LiveObjects").jvm_option("-Xmx700m").jvm_option("-Xms700m");
    for option in jvm_options {
        run = run.jvm_option(option);
    }
    for option in ["quiet", "dontinline,programs.LiveObjects::*"] {
        run = run.jvm_option(&format!("-XX:CompileCommand={option}"));
    }
    for argument in arguments {
        run = run.argument(argument);
    }
    run.agent(&format!("cpu=off,budget=off,file=FILE,{options}")).run().expect_success()
}

fn truth(run: &Finished) -> Vec<Truth> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [method, class, bytes, objects, collections] = words[..] else { return None };
        let number = |text: &str| text.parse().expect("a number");
        Some(Truth {
            method: method.to_owned(),
            class: class.to_owned(),
            bytes: number(bytes),
            objects: number(objects),
            collections: collections.parse().expect("a number"),
        })
    };
    let truth: Vec<_> = run.stdout.lines().filter_map(line).collect();
    assert_eq!(truth.len(), 4, "{}", run.stdout);
    truth
}

/// The probability that an object of `size` bytes is sampled.
fn probability(size: f64, interval_bytes: f64) -> f64 {
    -(-size / interval_bytes).exp_m1()
}

/// The right ratios of the found sum to the true one. Each of `n` objects of `s` bytes is sampled with the
/// probability `p = 1 - exp(-s / interval)`, and then stands for `1 / p` objects. The sum's relative
/// deviation is `sqrt((1 - p) / (p * n))`. The program's numbers make 3 % at least five deviations, which
/// does not happen by chance. A busy machine may let the buffer of samples overflow: the sum lacks the
/// objects for which the dropped samples would stand.
fn right_ratios(home: &Path, run: &Finished, truth: &Truth) -> RangeInclusive<f64> {
    let size = truth.bytes / truth.objects;
    let p = probability(size, INTERVAL_BYTES);
    let deviation = ((1.0 - p) / (p * truth.objects)).sqrt();
    assert!(5.0 * deviation <= 0.03, "{}: too few objects: {deviation}", truth.method);
    let lost = run.counter("live.samples_dropped") as f64 / (p * truth.objects);
    assert!(lost < 0.25 || truth.objects < 1_000.0, "{}: too much is missing: {}", truth.method, run.stderr);
    0.97 - lost..=1.03 + excess(home, size, INTERVAL_BYTES)
}

/// The largest relative excess with which JDK 11 picks objects of this size too often.
fn excess(home: &Path, size: f64, interval_bytes: f64) -> f64 {
    let is_right = java_version(home) > 11 || size > 10.0 * interval_bytes;
    if is_right { 0.0 } else { (size / interval_bytes).min(0.32) }
}

const SAMPLE_TYPES: [(&str, &str); 2] = [("inuse_space", "bytes"), ("inuse_objects", "count")];

/// The live heap of the last message that has one.
fn last_reported(run: &Finished) -> [Vec<Stack>; 2] {
    let mut reported = run.messages().into_iter().rev().map(|message| {
        SAMPLE_TYPES.map(|sample_type| stacks_of(std::slice::from_ref(&message), "live-heap", sample_type))
    });
    reported.find(|[bytes, _]| !bytes.is_empty()).unwrap_or_else(|| panic!("{}: no live heap", run.label))
}

fn check(home: &Path, run: &Finished, ages_are_collections: bool) {
    let profiles = last_reported(run);
    for truth in truth(run) {
        let label = format!("{} {}", run.label, truth.method);
        // A method may also occur where the VM loads a class, for example.
        let is_it = |stack: &&Stack| {
            stack.frames[0].name.ends_with(&format!(".{}", truth.method))
                && stack.labels.get(OBJECT_CLASS) == Some(&truth.class)
        };
        if truth.objects == 0.0 {
            assert_eq!(profiles[0].iter().find(is_it).map(|stack| stack.value), None, "{label}");
            continue;
        }
        for (stacks, expected) in profiles.iter().zip([truth.bytes, truth.objects]) {
            let found: i64 = stacks
                .iter()
                .filter(is_it)
                .inspect(|stack| {
                    let is_whole = stack.frames.last().unwrap().name == "java.lang.Thread.run"
                        || stack.has("java.lang.VirtualThread.run");
                    assert!(is_whole, "{label}: {stack:#?}");
                    let age = stack.age.expect("an age");
                    let expected = 1 << truth.collections.ilog2();
                    assert!(!ages_are_collections || age == expected, "{label}: age {age}, not {expected}");
                })
                .map(|stack| stack.value)
                .sum();
            let ratio = found as f64 / expected;
            assert!(
                right_ratios(home, run, &truth).contains(&ratio),
                "{label}: {found} of {expected} ({ratio:.4})\n{}",
                run.stderr
            );
        }
    }
    assert_eq!(run.counter("live.thinned"), 0, "{}", run.stderr);
}

#[test]
fn live_bytes_objects_and_ages_are_right_by_class_and_site() {
    for home in newest_or_all() {
        let kinds: &[&[&str]] = if java_version(&home) >= 21 { &[&[], &["virtual"]] } else { &[&[]] };
        for arguments in kinds {
            check(&home, &run(&home, arguments, &["-XX:+UseSerialGC"], ONCE), true);
        }
    }
}

/// Collectors announce their work in different ways: for concurrent collectors ages count pauses.
#[test]
fn live_objects_are_reported_with_every_collector() {
    let home = newest_or_all().into_iter().max_by_key(|home| java_version(home)).expect("a JDK");
    for collector in ["-XX:+UseG1GC", "-XX:+UseParallelGC", "-XX:+UseZGC", "-XX:+UseShenandoahGC"] {
        // Some collectors are experimental in JDK 11.
        let options = ["-XX:+UnlockExperimentalVMOptions", collector];
        let mut hello = JavaRun::new(&home, "Hello");
        for option in options {
            hello = hello.jvm_option(option);
        }
        if hello.run().succeeded() {
            check(&home, &run(&home, &[], &options, ONCE), false);
        } else {
            // Not every vendor builds this collector.
            assert_eq!(collector, "-XX:+UseShenandoahGC", "{}", home.display());
        }
    }
}

/// Most of the objects that are reported at an interval's end were sampled in earlier intervals.
#[test]
fn live_objects_are_reported_at_each_interval() {
    for home in newest_or_all() {
        let run = run(&home, &[], &["-XX:+UseSerialGC"], "live=1k,interval=100ms");
        let is_reported =
            |message| !stacks_of(std::slice::from_ref(message), "live-heap", SAMPLE_TYPES[0]).is_empty();
        // From its first collection on, the program takes several intervals.
        let reported = run.messages().iter().filter(|message| is_reported(message)).count();
        assert!(reported >= 2, "{}: {reported}", run.label);
        check(&home, &run, true);
    }
}

/// More objects are sampled than the table can refer to.
#[test]
fn a_full_table_is_thinned_and_sums_stay_right() {
    for home in newest_or_all() {
        let run = run(&home, &[], &["-XX:+UseSerialGC"], "live=256,interval=1h");
        let dropped = run.counter("live.samples_dropped");
        assert!(run.counter("live.thinned") + dropped > 10_000, "{}", run.stderr);
        let profiles = last_reported(&run);
        let small = truth(&run).into_iter().find(|truth| truth.method == "small").unwrap();
        let is_it = |stack: &&Stack| stack.labels.get(OBJECT_CLASS) == Some(&small.class);
        let found =
            profiles.map(|stacks| stacks.iter().filter(is_it).map(|stack| stack.value as f64).sum::<f64>());
        // One in 8 of the objects is sampled, and one in 2 or 4 of those is kept. With one in 8 the error is
        // overstated.
        let size = small.bytes / small.objects;
        let weight = 8.0 / probability(size, 256.0);
        let samples = (found[1] / weight).ceil();
        let lost = dropped as f64 * weight / small.objects;
        for (found, expected) in found.into_iter().zip([small.bytes, small.objects]) {
            let range = (1.0 - lost) * expected..=(1.0 + excess(&home, size, 256.0)) * expected;
            Estimate::of([(samples as i64, found / samples)]).assert_near(range, &run.label);
        }
    }
}
