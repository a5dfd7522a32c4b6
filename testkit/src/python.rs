//! OpenTelemetry's Python package as a reference, through `scripts/python-oracle.sh`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::skipped::not_tested;
use crate::toolchain::python_oracle;
use otlpprof_otlp::read::read;
use otlpprof_otlp::wire::Sample;
use serde_json::{Value, json};

/// A Python process that runs as long as this test binary, so that its start-up costs only once.
struct Oracle {
    process: Child,
    paths: ChildStdin,
    answers: BufReader<ChildStdout>,
}

enum State {
    NotStarted,
    Running(Oracle),
    Missing,
}

static STATE: Mutex<State> = Mutex::new(State::NotStarted);

impl Oracle {
    fn start() -> Self {
        let mut command = python_oracle();
        let mut process = command.arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let paths = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, paths, answers }
    }

    /// The answer for a file; `None` if Python has ended.
    fn ask(&mut self, file: &Path) -> Option<Value> {
        writeln!(self.paths, "{}", file.to_str().expect("a temporary path is UTF-8")).ok()?;
        let mut line = String::new();
        self.answers.read_line(&mut line).ok().filter(|&bytes| bytes > 0)?;
        Some(serde_json::from_str(&line).unwrap())
    }
}

/// The answer for each file; `None` if Python is not available.
///
/// # Panics
/// If Python cannot read a file, or if it is not available in CI.
#[track_caller]
pub fn oracle(files: &[impl AsRef<Path>]) -> Option<Vec<Value>> {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    if let State::NotStarted = *state {
        *state = State::Running(Oracle::start());
    }
    let mut counts = Vec::new();
    for file in files {
        let State::Running(oracle) = &mut *state else { return None };
        let Some(count) = oracle.ask(file.as_ref()) else {
            // The script has written the reason to standard error.
            let ended = oracle.process.wait();
            *state = State::Missing;
            missing(&format!("it has ended: {ended:?}"));
            return None;
        };
        assert_eq!(count.get("error"), None, "{}", file.as_ref().display());
        counts.push(count);
    }
    Some(counts)
}

fn missing(reason: &str) {
    not_tested(&format!("against Python's opentelemetry-proto: {reason}"));
}

/// Checks that Python reads each file like our reader.
///
/// # Panics
/// If the results differ.
#[track_caller]
pub fn assert_read_alike(label: &str, files: &[impl AsRef<Path>]) {
    let Some(counts) = oracle(files) else { return };
    for (file, count) in files.iter().zip(counts) {
        let file = file.as_ref();
        assert_eq!(count, ours(&std::fs::read(file).unwrap()), "{label}: {}", file.display());
    }
}

fn total(sample: &Sample) -> i64 {
    match &*sample.values {
        [] => i64::try_from(sample.timestamps_unix_nano.len()).unwrap(),
        values => values.iter().sum(),
    }
}

/// The counts of a file, by our reader.
pub fn ours(bytes: &[u8]) -> Value {
    let (mut messages, mut profiles, mut samples, mut sum) = (0, 0, 0, 0);
    for message in read(bytes) {
        messages += 1;
        for scope in
            message.unwrap().data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles)
        {
            profiles += scope.profiles.len();
            for sample in scope.profiles.iter().flat_map(|profile| &profile.samples) {
                samples += 1;
                sum += total(sample);
            }
        }
    }
    json!({ "messages": messages, "profiles": profiles, "samples": samples, "total": sum })
}
