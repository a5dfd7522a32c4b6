//! The agent's options: the user's, and those that make a run's profile useful whatever ends the program.

use std::time::Duration;

use anyhow::bail;

use super::launcher::Loading;
use crate::agent_string::{is_command, items, sets};

/// A program that is killed, or that crashes, loses no more than the last second. The page's strip of times
/// has steps of this length.
const INTERVAL: (&str, &str) = ("interval", "1s");
/// Standard error belongs to the program: only the agent's warnings and errors appear there.
const LOG_LEVEL: (&str, &str) = ("loglevel", "warn");
/// A mistake in the options ends the JVM's start: without a profile, the run would be in vain.
///
/// This is not for the variable. A JVM that inherits it may start when the run is over and its folder is
/// removed. That JVM must start all the same.
const STRICT: (&str, &str) = ("strict", "true");

/// Completes the options by those that the user does not set, and by the file to write to. `is_set` says
/// whether a variable is set.
///
/// # Errors
/// The options name a file or the time of a file, or begin with another command than `start`.
pub(super) fn completed(
    given: &str,
    file: &str,
    loading: Loading,
    is_set: impl Fn(&str) -> bool,
) -> anyhow::Result<String> {
    if let Some(command) = items(given).next().filter(|item| is_command(item)) {
        bail!("{command}: a run starts the agent; write options such as cpu=5ms");
    }
    if let Some(name) = ["file", "loop"].into_iter().find(|name| sets(given, name)) {
        bail!("{name}: a run has files of its own; keep the profiles with --keep FILE");
    }
    let mut options: Vec<_> = items(given).map(str::to_owned).collect();
    let strict = (loading == Loading::Argument).then_some(STRICT);
    for (name, value) in [INTERVAL, LOG_LEVEL].into_iter().chain(strict) {
        if !sets(given, name) && !is_set(&format!("OTLPPROF_{}", name.to_uppercase())) {
            options.push(format!("{name}={value}"));
        }
    }
    // A variable may ask for files by the time, of which the name of the run's own file says nothing.
    options.push("loop=off".to_owned());
    options.push(format!("file={file}"));
    Ok(options.join(","))
}

/// Adds the time for which is sampled.
///
/// # Errors
/// The options have one already.
pub(super) fn with_duration(given: String, duration: Option<Duration>) -> anyhow::Result<String> {
    let Some(duration) = duration else { return Ok(given) };
    if sets(&given, "duration") {
        bail!("duration is among the options and given by --duration; write it once");
    }
    let duration = format!("duration={}ms", duration.as_millis());
    Ok(items(&given).chain([&*duration]).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_may_be_sampled_for_a_while() {
        let with = |given: &str, seconds: Option<u64>| {
            with_duration(given.to_owned(), seconds.map(Duration::from_secs)).ok()
        };
        assert_eq!(with("cpu", None).as_deref(), Some("cpu"));
        assert_eq!(with("cpu", Some(30)).as_deref(), Some("cpu,duration=30000ms"));
        assert_eq!(with("", Some(1)).as_deref(), Some("duration=1000ms"));
        assert_eq!(with("duration=1s", Some(30)), None);
    }

    #[test]
    fn options_of_the_user_come_first_and_replace_the_defaults() {
        let by_argument =
            |given, variable| completed(given, "/f", Loading::Argument, |name| name == variable).unwrap();
        assert_eq!(by_argument("", ""), "interval=1s,loglevel=warn,strict=true,loop=off,file=/f");
        assert_eq!(
            by_argument(",cpu=5ms,,interval=2s,strict", ""),
            "cpu=5ms,interval=2s,strict,loglevel=warn,loop=off,file=/f"
        );
        assert_eq!(
            by_argument("start,alloc", "OTLPPROF_LOGLEVEL"),
            "start,alloc,interval=1s,strict=true,loop=off,file=/f"
        );
        let by_variable = completed("cpu", "/f", Loading::Variable, |_| false).unwrap();
        assert_eq!(by_variable, "cpu,interval=1s,loglevel=warn,loop=off,file=/f");
    }

    #[test]
    fn commands_and_files_are_refused() {
        for given in ["stop", "help", "cpu=1ms,file=/x", "file", "loop=1h"] {
            assert!(completed(given, "/f", Loading::Argument, |_| false).is_err(), "{given}");
        }
    }
}
