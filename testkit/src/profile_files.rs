//! Files of profiles for tests of the commands that show profiles, and the commands' output.

use otlpprof_otlp::wire::{Profile, ProfilesData, Resource, ResourceProfiles, Sample, ScopeProfiles};
use serde_json::Value;
use tempfile::TempDir;

use crate::commands::run_otlpprof;
use crate::otlp_fixture::{DURATION, Dictionary, TIME, framed, inline};

/// Files in a temporary folder.
pub struct Files(TempDir);

impl Files {
    /// Creates the folder, which is removed with this value.
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// The path of a file in the folder.
    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).into_os_string().into_string().unwrap()
    }

    /// Writes length-prefixed messages. Returns the file's path.
    pub fn add(&self, name: &str, messages: &[ProfilesData]) -> String {
        let path = self.path(name);
        std::fs::write(&path, messages.iter().flat_map(framed).collect::<Vec<u8>>()).unwrap();
        path
    }
}

/// A profile to build.
pub struct Spec<'s> {
    /// Sample type and unit, period type and unit.
    pub types: [&'s str; 4],
    /// The period, in the unit of the period type.
    pub period: i64,
    /// The start in nanoseconds since 1970.
    pub start: u64,
    /// Stacks, leaf first, each with its thread and value.
    pub samples: &'s [(&'s [&'s str], &'s str, i64)],
}

/// The types of CPU profiles.
pub const CPU: [&str; 4] = ["samples", "count", "cpu", "nanoseconds"];
/// The types of profiles of the bytes in use.
pub const LIVE_SPACE: [&str; 4] = ["inuse_space", "bytes", "space", "bytes"];
/// The types of profiles of allocated bytes.
pub const ALLOC_SPACE: [&str; 4] = ["alloc_space", "bytes", "space", "bytes"];

/// A message of one process. The line of a frame is the number of its sample, from 1.
pub fn message(process: &str, specs: &[Spec<'_>]) -> ProfilesData {
    let mut tables = Dictionary::new();
    let profiles = specs.iter().map(|spec| {
        let samples = (1..).zip(spec.samples).map(|(line, (names, thread, value))| {
            let locations = names.iter().map(|name| tables.java(name, line)).collect();
            Sample {
                stack_index: tables.stack(locations),
                attribute_indices: vec![tables.text("thread.name", thread)],
                values: vec![*value],
                ..Default::default()
            }
        });
        let samples = samples.collect();
        Profile {
            sample_type: tables.value_type(spec.types[0], spec.types[1]),
            period_type: tables.value_type(spec.types[2], spec.types[3]),
            period: spec.period,
            time_unix_nano: spec.start,
            duration_nano: DURATION,
            samples,
            ..Default::default()
        }
    });
    let profiles = profiles.collect();
    ProfilesData {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource {
                attributes: vec![inline("service.name", "shop"), inline("process.pid", process)],
                ..Default::default()
            }),
            scope_profiles: vec![ScopeProfiles { profiles, ..Default::default() }],
            ..Default::default()
        }],
        dictionary: Some(tables.0),
    }
}

/// Runs the command, which must succeed and write nothing on standard error, unless no sample is selected.
/// Returns its standard output.
#[track_caller]
pub fn stdout(arguments: &[&str]) -> String {
    let output = run_otlpprof(arguments).success().get_output().clone();
    assert_quiet(&String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Three stacks of two threads in two messages.
pub fn shop() -> [ProfilesData; 2] {
    let first = [
        (&["Db.query", "Shop.cart", "Server.run"][..], "http-1", 10),
        (&["Json.write", "Shop.cart", "Server.run"], "http-2", 20),
    ];
    let second = [(&["Db.query", "Shop.pay", "Server.run"][..], "http-2", 40)];
    let of = |start, samples| message("1", &[Spec { types: CPU, period: 1_000_000, start, samples }]);
    [of(TIME, &first), of(TIME + DURATION, &second)]
}

/// Three states of one process and one of another. The last states have 1,024 and 8,192 bytes.
pub fn three_states() -> [ProfilesData; 4] {
    let of = |process, start, value| {
        let samples = [(&["New.array", "Shop.cart"][..], "a", value)];
        message(process, &[Spec { types: LIVE_SPACE, period: 512, start, samples: &samples }])
    };
    let second = 1_000_000_000;
    [
        of("1", TIME, 4096),
        of("1", TIME + 10 * second, 1024),
        of("1", TIME + 5 * second, 65_536),
        of("2", TIME, 8192),
    ]
}

/// A message of two threads, in which every frame is another function.
pub fn distinct_frames() -> ProfilesData {
    let names = |stack| (0..8).map(move |frame| format!("p{stack}.C{frame}.run"));
    let stacks: Vec<Vec<String>> = (0..1_000).map(|stack| names(stack).collect()).collect();
    let stacks: Vec<Vec<&str>> =
        stacks.iter().map(|stack| stack.iter().map(String::as_str).collect()).collect();
    let samples: Vec<_> = (1..)
        .zip(&stacks)
        .map(|(value, stack)| (&stack[..], if value % 2 == 0 { "a" } else { "b" }, value))
        .collect();
    message("1", &[Spec { types: CPU, period: 1_000_000, start: TIME, samples: &samples }])
}

/// Asserts that standard error is empty, or has the one line that no sample is selected.
#[track_caller]
pub fn assert_quiet(stderr: &str) {
    let is_of_empty =
        stderr.starts_with("otlpprof: no sample is selected of the ") && stderr.lines().count() == 1;
    assert!(stderr.is_empty() || is_of_empty, "{stderr}");
}

/// The JSON document that the command writes with `--format json`.
#[track_caller]
pub fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(&[arguments, &["--format", "json"]].concat())).unwrap()
}

/// The lines of a table, each by its words.
pub fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().skip_while(|line| !line.ends_with("FUNCTION")).skip(1);
    lines.map(|line| line.split_whitespace().collect()).collect()
}
