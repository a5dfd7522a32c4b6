//! The two profilers that are compared, otlpprof and async-profiler, as scripts/bench-peers.sh sets them up.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// A profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profiler {
    /// otlpprof.
    Ours,
    /// async-profiler.
    Theirs,
}

impl Profiler {
    /// Both profilers.
    pub(crate) const BOTH: [Self; 2] = [Self::Ours, Self::Theirs];

    /// The name that is printed.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ours => "otlpprof",
            Self::Theirs => "async-profiler",
        }
    }
}

/// The files of both profilers.
pub(crate) struct Profilers {
    agent: String,
    command: String,
    /// The compiled test programs.
    pub(crate) classes: String,
    peer: Option<String>,
}

impl Profilers {
    /// Reads OTLPPROF, OTLPPROF_COMMAND, CLASSES and, if there is a profiler to compare with, ASYNC_PROFILER.
    pub(crate) fn from_environment() -> Option<Self> {
        let variable = |name: &str| std::env::var(name).ok();
        Some(Self {
            agent: variable("OTLPPROF")?,
            command: variable("OTLPPROF_COMMAND")?,
            classes: variable("CLASSES")?,
            peer: variable("ASYNC_PROFILER"),
        })
    }

    /// Whether there is another profiler to compare with.
    pub(crate) fn has_peer(&self) -> bool {
        self.peer.is_some()
    }

    /// Returns the JVM's option that loads a profiler, which samples CPU time at `interval` into `file`.
    ///
    /// # Panics
    /// If there is no such profiler.
    pub(crate) fn option(&self, profiler: Profiler, interval: &str, walker: &str, file: &Path) -> String {
        let file = file.display();
        match (profiler, &self.peer) {
            (Profiler::Ours, _) => format!(
                "-agentpath:{}=cpu={interval},cstack={walker},interval=10s,loglevel=error,file={file}",
                self.agent
            ),
            (Profiler::Theirs, Some(peer)) => format!(
                "-agentpath:{peer}=start,event=cpu,interval={interval},cstack={walker},jstackdepth=2048,otlp,\
                 file={file}"
            ),
            (Profiler::Theirs, None) => panic!("ASYNC_PROFILER is not set"),
        }
    }

    /// Returns the JVM's option that loads a profiler with one engine, by an option that both profilers have,
    /// into `file`. Both report threads.
    ///
    /// # Panics
    /// If there is no such profiler.
    pub(crate) fn engine_option(&self, profiler: Profiler, engine: &str, file: &Path) -> String {
        let file = file.display();
        match (profiler, &self.peer) {
            (Profiler::Ours, _) => {
                // One profile of the whole run, as the other profiler writes.
                format!("-agentpath:{}=cpu=off,{engine},interval=1h,loglevel=error,file={file}", self.agent)
            }
            (Profiler::Theirs, Some(peer)) => {
                format!(
                    "-agentpath:{peer}=start,{engine},threads,cstack=vm,jstackdepth=2048,otlp,file={file}"
                )
            }
            (Profiler::Theirs, None) => panic!("ASYNC_PROFILER is not set"),
        }
    }

    /// Returns the report of `otlpprof check-stacks` on a profile.
    pub(crate) fn check_stacks(&self, file: &Path, arguments: &[&str]) -> Value {
        let mut check = Command::new(&self.command);
        check.args(["check-stacks", "--format", "json"]).args(arguments).arg(file);
        let output = check.output().unwrap_or_else(|error| panic!("{check:?}: {error}"));
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{check:?}: {error}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// Reads a list, separated by colons, from the environment.
pub(crate) fn list(variable: &str, default: &str) -> Vec<String> {
    let text = std::env::var(variable).unwrap_or_else(|_| default.to_owned());
    text.split(':').filter(|one| !one.is_empty()).map(str::to_owned).collect()
}

/// Reads a number from the environment.
pub(crate) fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Returns the name of a JDK for printing: the last part of its home.
pub(crate) fn jdk_name(home: &str) -> String {
    Path::new(home).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Runs a JDK's `java` to its end. Returns its standard output.
///
/// # Panics
/// If the program fails.
pub(crate) fn java<I: AsRef<OsStr>>(
    home: &Path,
    environment: &[(&str, &OsStr)],
    arguments: impl IntoIterator<Item = I>,
) -> String {
    let mut command = Command::new(home.join("bin/java"));
    command.args(arguments).envs(environment.iter().copied()).stdin(Stdio::null());
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the number after `name=` in the text.
///
/// # Panics
/// If there is no such number.
pub(crate) fn named_number(text: &str, name: &str) -> f64 {
    let mut words = text.split_whitespace().filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    words.next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text:?}"))
}
