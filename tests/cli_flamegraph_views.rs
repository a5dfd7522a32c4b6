//! The views of a page in headless Chromium, node by node: a reader in Python, independent of otlpprof and of
//! the page, computes them from the OTLP files (`scripts/page_views.py`). No filter, labels, windows of time,
//! focus, removal and search; top down, inverted, sandwich; both sides of a comparison.

mod agent_support;
mod loud_support;
mod otlp_fixture;
mod page_support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use agent_support::{JavaRun, java_homes};
use otlp_fixture::{DURATION, Dictionary, TIME, inline};
use otlpprof::otlp::wire::{Profile, ProfilesData, Resource, ResourceProfiles, Sample, ScopeProfiles};
use page_support::{compare, otlpprof, path_text, write};
use serde_json::Value;
use tempfile::TempDir;

/// Numbers that a seed determines.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        // Lehmer's generator: the modulus is a prime.
        self.0 = self.0 * 48_271 % 2_147_483_647;
        self.0 % limit
    }
}

/// The tables, frames and time of the profiles of one message.
struct Program {
    chance: Chance,
    tables: Dictionary,
    frames: Vec<i32>,
    start: u64,
}

impl Program {
    fn new(seed: u64, interval: u64) -> Self {
        let mut tables = Dictionary::new();
        let frames = (0..30).map(|number| match number % 6 {
            4 => tables.frame("native", &format!("native_{number}"), "libjvm.so", 0),
            5 => tables.frame("kernel", &format!("do_sys_{number}"), "", 0),
            // Two functions of one name, in different files.
            3 => tables.frame("jvm", "<script>alert(1)</script>", &format!("Same{}.java", number % 12), 3),
            _ => tables.java(&format!("com.example.p{}.Class{}.run", number % 4, number / 2), number),
        });
        let frames = frames.collect();
        Self { chance: Chance(seed), tables, frames, start: TIME + interval * DURATION }
    }

    /// A stack that begins like many others. Recursion occurs.
    fn stack(&mut self) -> i32 {
        let mut numbers = vec![self.chance.below(3)];
        for _ in 0..self.chance.below(14) {
            let last = numbers[numbers.len() - 1];
            let next = (last * 7 + self.chance.below(4) * 5 + numbers.len() as u64) % 30;
            numbers.push(if self.chance.below(5) == 0 { last } else { next });
        }
        let locations = numbers.iter().rev().map(|&number| self.frames[number as usize]).collect();
        self.tables.stack(locations)
    }

    fn sample(&mut self, values: Vec<i64>, timestamps_unix_nano: Vec<u64>) -> Sample {
        let stack_index = self.stack();
        let thread = format!("worker-{}", self.chance.below(4));
        let mut attribute_indices = vec![self.tables.text("thread.name", &thread)];
        let endpoint = self.chance.below(4);
        if endpoint > 0 {
            attribute_indices.push(self.tables.text("rest_endpoint", &format!("/<b>{endpoint}&amp;")));
        }
        Sample { stack_index, attribute_indices, values, timestamps_unix_nano, ..Default::default() }
    }

    fn profile(&mut self, types: [&str; 4], period: i64, samples: Vec<Sample>) -> Profile {
        let [sample, sample_unit, of_period, period_unit] = types;
        Profile {
            sample_type: self.tables.value_type(sample, sample_unit),
            period_type: self.tables.value_type(of_period, period_unit),
            period,
            time_unix_nano: self.start,
            duration_nano: DURATION,
            samples,
            ..Default::default()
        }
    }

    /// Each sample has one value and the profile's start as time.
    fn cpu(&mut self, interval: u64) -> Profile {
        let samples = (0..60).map(|_| {
            let value = 1 + self.chance.below(1_000);
            self.sample(vec![value.cast_signed()], vec![])
        });
        let samples = samples.collect();
        // Under a budget the period changes.
        let period = 10_000_000 * (1 + interval.cast_signed() % 3);
        self.profile(["samples", "count", "cpu", "nanoseconds"], period, samples)
    }

    /// Each sample has several times.
    fn wall(&mut self) -> Profile {
        let samples = (0..40).map(|_| {
            let count = 1 + self.chance.below(3);
            let times = (0..count).map(|_| self.start + self.chance.below(DURATION)).collect();
            self.sample(vec![], times)
        });
        let samples = samples.collect();
        self.profile(["samples", "count", "wall", "nanoseconds"], 50_000_000, samples)
    }

    /// The state at the end of the interval.
    fn live(&mut self, count: u64) -> Profile {
        let at = self.start + DURATION - 1;
        let samples = (0..count).map(|_| {
            let value = 1 + self.chance.below(1 << 30);
            self.sample(vec![value.cast_signed()], vec![at])
        });
        let samples = samples.collect();
        self.profile(["inuse_space", "bytes", "space", "bytes"], 512 << 10, samples)
    }
}

/// Eight intervals of two processes. Nothing lives any more at the end of the second one.
fn generated(seed: u64) -> Vec<ProfilesData> {
    let places = (0..8).flat_map(|interval| [(interval, 1), (interval, 2)]);
    let messages = places.map(|(interval, process)| {
        let mut program = Program::new(seed + 100 * interval + process, interval);
        let live = if process == 2 && interval >= 6 { 0 } else { 20 };
        let profiles = vec![program.cpu(interval), program.wall(), program.live(live)];
        let resource = Resource {
            attributes: vec![
                inline("service.name", "generated"),
                inline("process.pid", &process.to_string()),
            ],
            ..Default::default()
        };
        ProfilesData {
            resource_profiles: vec![ResourceProfiles {
                resource: Some(resource),
                scope_profiles: vec![ScopeProfiles { profiles, ..Default::default() }],
                ..Default::default()
            }],
            dictionary: Some(program.tables.0),
        }
    });
    messages.collect()
}

/// The kinds of views in which values differ: none for a right page. `None` if there is no browser.
fn differing(page: &Path, arguments: &[&str]) -> Option<BTreeSet<String>> {
    let answer = match compare("views", page, arguments)? {
        Ok(answer) => answer,
        Err(differences) => {
            eprintln!("{}: {differences}", page.display());
            let answer: Value = serde_json::from_str(&differences).unwrap();
            return Some(answer["different"].as_object().unwrap().keys().cloned().collect());
        }
    };
    eprintln!("{}: {answer}", page.display());
    let compared = &answer["compared"];
    for kind in ["whole", "inverted", "callers", "callees", "focus", "remove", "label", "search"] {
        assert!(compared[kind].as_u64() > Some(20), "{kind}: {answer}");
    }
    assert!(compared["boxes"].as_u64() >= Some(1_000), "{answer}");
    Some(BTreeSet::new())
}

fn expect_equal(page: &Path, arguments: &[&str]) {
    if let Some(kinds) = differing(page, arguments) {
        assert_eq!(kinds, BTreeSet::new(), "{}", page.display());
    }
}

/// Requires that the mutated page differs in these kinds of views.
fn expect_different(page: &Path, arguments: &[&str], mutation: &str, kinds: &[&str]) {
    let Some(found) = differing(page, &[arguments, &["--mutate", mutation]].concat()) else { return };
    let missed: Vec<_> = kinds.iter().filter(|&&kind| !found.contains(kind)).collect();
    assert!(missed.is_empty(), "{mutation}: not seen in {missed:?}, only in {found:?}");
}

/// Writes a page of the file, and requires equal values.
fn check(folder: &TempDir, file: &Path, options: &[&str]) -> PathBuf {
    let page = folder.path().join("page.html");
    otlpprof(&[&["flamegraph", path_text(file), "-o", path_text(&page)], options].concat()).success();
    expect_equal(&page, &[path_text(file)]);
    page
}

#[test]
fn views_of_a_generated_profile_are_those_of_its_files() {
    let folder = TempDir::new().unwrap();
    let file = write(&folder, "generated.otlp", &generated(3));
    // As fine as the times of samples are; steps longer than an interval; no times.
    for options in [&[][..], &["--steps", "5"], &["--steps", "0"]] {
        let page = check(&folder, &file, options);
        if let Some(answer) = compare("page", &page, &[path_text(&file)]) {
            answer.unwrap_or_else(|difference| panic!("{options:?}: {difference}"));
        }
    }
}

#[test]
fn views_of_a_comparison_are_those_of_both_files() {
    let folder = TempDir::new().unwrap();
    let (base, new) = (write(&folder, "base.otlp", &generated(5)), write(&folder, "new.otlp", &generated(9)));
    let page = folder.path().join("diff.html");
    otlpprof(&["diff", path_text(&base), path_text(&new), "-o", path_text(&page)]).success();
    let files = [path_text(&new), "--base", path_text(&base)];
    expect_equal(&page, &files);
    let kinds = ["whole", "inverted", "callers", "callees", "elided", "functions"];
    expect_different(&page, &files, "exchanged", &kinds);
}

/// A comparison that could not fail would prove nothing.
#[test]
fn a_changed_value_label_time_or_frame_is_found_in_every_view_that_has_it() {
    let folder = TempDir::new().unwrap();
    let file = write(&folder, "generated.otlp", &generated(3));
    let page = folder.path().join("page.html");
    let arguments = ["flamegraph", path_text(&file), "-o", path_text(&page), "--type", "cpu"];
    otlpprof(&[&arguments[..], &["--steps", "60"]].concat()).success();
    let of_a_value = [
        "whole",
        "inverted",
        "callers",
        "callees",
        "focus",
        "label",
        "search",
        "window",
        "functions",
        "steps",
        "sums of labels",
    ];
    for (mutation, kinds) in [
        ("lost", &of_a_value[..]),
        ("relabelled", &["label", "sums of labels"]),
        ("delayed", &["window", "steps"]),
        ("renamed", &["whole", "inverted", "callers", "functions"]),
    ] {
        expect_different(&page, &[path_text(&file)], mutation, kinds);
    }
}

#[test]
fn views_of_real_jvms_are_those_of_their_files() {
    let runs = [
        ("ContextRequests", "cpu=5ms,context=rest_endpoint+traceid+spanid,timestamps=true"),
        ("MixedWork", "cpu=off,alloc=64k,live=64k,timestamps=true"),
        ("MixedWork", "cpu=off,wall=10ms,remotesym=true"),
    ];
    let homes = java_homes();
    let folder = TempDir::new().unwrap();
    for ((program, options), home) in runs.into_iter().zip(homes.iter().cycle()) {
        let run = JavaRun::new(home, program)
            .argument(2)
            .agent(&format!("{options},interval=500ms,file=FILE"))
            .run()
            .expect_success();
        for file in run.files() {
            check(&folder, &file, &[]);
        }
    }
}
