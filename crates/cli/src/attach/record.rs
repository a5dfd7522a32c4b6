//! `otlpprof record`: profiles a running JVM for a while, and shows the result.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use otlpprof_export::answer::{Answer, LoggedError};

use super::countdown::Countdown;
use super::error::AttachError;
use super::interrupts::Interrupts;
use super::jvm_agent::JvmAgent;
use super::recording_file::RecordingFile;
use super::refused_options::refuse;
use super::state::print_warnings;
use super::target_args::{AgentArgs, Target};
use crate::exit_codes::{EXIT_BAD_INPUT, EXIT_FAILED};
use crate::output_args::{OutputArgs, OutputFiles};
use crate::results::{self, ReportArgs, Stream, Written, say};
use crate::{agent_string, browser, duration, spool, terminal};

/// Options that the command sets itself.
const OWN_OPTIONS: [&str; 6] = ["file", "endpoint", "format", "loop", "delay", "duration"];
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// Intervals of a recording, by which a page divides its time.
const INTERVALS: u32 = 60;
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
const LONGEST_INTERVAL: Duration = Duration::from_secs(10);
/// The agent stops by itself this long after the recording's end, if the command cannot stop it.
const GRACE: Duration = Duration::from_secs(60);
/// The time between two looks whether the JVM still runs.
const LOOK: Duration = Duration::from_millis(200);

/// Profile a running JVM for a while, and show the result
///
/// Loads the agent, samples, and stops the agent again. Then prints a report and writes a flame graph page.
/// Ctrl-C ends the recording early. Nothing is uploaded.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    agent: AgentArgs,
    /// How long to sample, from 100ms to 24h
    #[arg(short, long, value_name = "DURATION", value_parser = parse_duration, default_value = "30s")]
    duration: Duration,
    #[command(flatten)]
    outputs: OutputArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// The reason for which sampling has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    TimePassed,
    Interrupted,
    JvmEnded,
}

/// A recording.
enum Recorded {
    /// The messages, their length in bytes, and the error if the agent could not be stopped.
    Messages { file: File, length: u64, stop_error: Option<AttachError> },
    /// The agent does not profile, for this reason.
    Refused(String),
}

pub(crate) fn record(args: &RecordArgs) -> anyhow::Result<ExitCode> {
    let outputs = OutputFiles::of(&args.outputs)?;
    let mut interrupts = Interrupts::new(args.target.timeout)?;
    let recorded = match take_recording(args, &mut interrupts) {
        Err(error) => match error.downcast_ref() {
            // All files have been removed by now. A shell sees the signal in the exit code.
            Some(AttachError::Interrupted(signal)) => return Ok(ExitCode::from(128 + *signal)),
            _ => return Err(error),
        },
        Ok(recorded) => recorded,
    };
    interrupts.release();
    match recorded {
        Recorded::Refused(message) => {
            say(&message);
            Ok(ExitCode::from(EXIT_FAILED))
        }
        Recorded::Messages { file, length, stop_error } => {
            if let Some(error) = &stop_error {
                say(&error.to_string());
            }
            if length == 0 {
                bail!(
                    "the agent wrote no profile: no sample was taken, or the JVM's stderr says why none was \
                     written"
                );
            }
            let has_failed = show(args, &outputs, &file);
            let is_whole = stop_error.is_none() && !has_failed;
            Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(EXIT_BAD_INPUT) })
        }
    }
}

/// Starts the agent, waits, stops the agent, and returns the messages. Leaves no file behind.
fn take_recording(args: &RecordArgs, interrupts: &mut Interrupts) -> anyhow::Result<Recorded> {
    let own_options = args.agent.options()?;
    let own_options = checked_options(&own_options)?;
    let pid = args.target.jvm.pid()?;
    let mut jvm = JvmAgent::find(pid)?;
    let given = jvm.options_of_caller(own_options)?;
    if jvm.is_loaded()
        && let Some(session) = jvm.command("status", interrupts)?.answer.session
    {
        let places = session.destinations.join(" and ");
        return Ok(Recorded::Refused(format!(
            "the agent in JVM {pid} is profiling already, to {places}; `otlpprof stop {pid}` ends that"
        )));
    }
    let library = jvm.library(args.agent.library.as_deref())?;
    // The messages will be copied to such a file.
    drop(spool::empty()?);
    let file = RecordingFile::create(&jvm)?;
    let options = agent_string(&given, args.duration, file.path());
    let started = match jvm.load(library.as_ref(), &options, interrupts) {
        Err(AttachError::Interrupted(signal)) => {
            // The request may have reached the JVM.
            interrupts.restart();
            let _ = stop(&mut jvm, &file, interrupts);
            return Err(AttachError::Interrupted(signal).into());
        }
        started => started?.answer,
    };
    if !started.succeeded || started.session.is_none() {
        return Ok(Recorded::Refused(started.message));
    }
    let mut warnings = Warnings::since(&started);
    warnings.print(&started);
    let duration = humantime::format_duration(args.duration);
    note(&format!("recording JVM {pid} for {duration}; Ctrl-C ends it early"));
    let end = wait(&jvm, args.duration, interrupts)?;
    interrupts.restart();
    let stop_error = match end {
        End::JvmEnded => {
            note(&format!("JVM {pid} has ended"));
            None
        }
        End::TimePassed | End::Interrupted => match stop(&mut jvm, &file, interrupts) {
            Ok(Some(stopped)) => {
                warnings.print(&stopped);
                None
            }
            Ok(None) | Err(AttachError::Ended(_) | AttachError::NoProcess(_)) => None,
            Err(AttachError::Interrupted(signal)) => return Err(AttachError::Interrupted(signal).into()),
            Err(error) => Some(error),
        },
    };
    let (file, length) = file.messages()?;
    Ok(Recorded::Messages { file, length, stop_error })
}

/// Stops the agent, if it still profiles into the file of this recording. Somebody else may have stopped it,
/// and may have started it again.
fn stop(
    jvm: &mut JvmAgent,
    file: &RecordingFile,
    interrupts: &Interrupts,
) -> Result<Option<Answer>, AttachError> {
    let status = jvm.command("status", interrupts)?.answer;
    let is_of_recording = |place: &String| place == file.path();
    let is_own = status.session.is_some_and(|session| session.destinations.iter().any(is_of_recording));
    if is_own { jvm.command("stop", interrupts).map(|stopped| Some(stopped.answer)) } else { Ok(None) }
}

/// Waits until the time has passed, a signal has come or the JVM has ended.
fn wait(jvm: &JvmAgent, duration: Duration, interrupts: &Interrupts) -> Result<End, AttachError> {
    let start = Instant::now();
    let countdown = Countdown::begin();
    loop {
        let left = duration.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(End::TimePassed);
        }
        countdown.show(left);
        match interrupts.wait([], LOOK.min(left)) {
            Err(AttachError::Interrupted(_)) => return Ok(End::Interrupted),
            waited => waited.map(|[]| ())?,
        }
        if jvm.process.has_ended() {
            return Ok(End::JvmEnded);
        }
    }
}

/// Warnings of the agent that belong to this recording, each printed once.
struct Warnings {
    since_unix_ms: u64,
    last: Option<LoggedError>,
}

impl Warnings {
    /// Begins with the session of this answer.
    fn since(started: &Answer) -> Self {
        let since_unix_ms = started.session.as_ref().map_or(0, |session| session.started_unix_ms);
        Self { since_unix_ms, last: None }
    }

    fn print(&mut self, answer: &Answer) {
        let _ = print_warnings(answer);
        let latest = answer.last_error.as_ref().filter(|error| error.unix_ms >= self.since_unix_ms);
        if let Some(latest) = latest
            && self.last.as_ref() != Some(latest)
        {
            if !answer.log.contains(&latest.line) {
                note(&format!("the agent: {}", latest.line));
            }
            self.last = Some(latest.clone());
        }
    }
}

/// Fails if the options hold anything that the command sets itself, or a command.
fn checked_options(options: &str) -> Result<&str, AttachError> {
    refuse(options, &OWN_OPTIONS, AttachError::OptionOfRecord, "record")?;
    Ok(options)
}

/// The agent's options for a recording. Variables of the JVM's environment cannot change where the recording
/// goes and how long it lasts.
fn agent_string(given: &str, duration: Duration, file: &str) -> String {
    let mut parts = Vec::new();
    if !given.is_empty() {
        parts.push(given.to_owned());
    }
    if !agent_string::sets(given, "interval") {
        let interval = (duration / INTERVALS).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL);
        parts.push(format!("interval={}ms", interval.as_millis()));
    }
    let until = (duration + GRACE).as_millis();
    parts.push(format!("file={file},endpoint=off,format=proto,loop=off,delay=0s,duration={until}ms"));
    parts.join(",")
}

/// Writes a line to standard error. A closed standard error must not keep the command from stopping the
/// agent.
fn note(line: &str) {
    let _ = writeln!(terminal::stderr(), "{line}");
}

/// Prints the report of the messages and writes the files. Returns whether a result is missing.
fn show(args: &RecordArgs, outputs: &OutputFiles, messages: &File) -> bool {
    let source = PathBuf::from(format!("/proc/self/fd/{}", messages.as_raw_fd()));
    let Written { pages, has_failed } = results::write(&args.report, outputs, &[source], Stream::Output);
    if args.outputs.open
        && let Some(page) = pages.first()
        && let Err(error) = browser::open(page, |_| {})
    {
        say(&format!("{error:#}"));
        return true;
    }
    has_failed
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = duration::parse(text)?;
    if (SHORTEST..=LONGEST).contains(&duration) {
        Ok(duration)
    } else {
        Err("must be 100ms to 24h".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_goes_to_its_file_alone_and_ends_by_itself() {
        let string = |given, seconds| agent_string(given, Duration::from_secs(seconds), "/tmp/x/r.otlp");
        let own = "file=/tmp/x/r.otlp,endpoint=off,format=proto,loop=off,delay=0s,duration=";
        assert_eq!(string("", 30), format!("interval=1000ms,{own}90000ms"));
        assert_eq!(string("wall", 300), format!("wall,interval=5000ms,{own}360000ms"));
        assert_eq!(string("interval=2s", 3600), format!("interval=2s,{own}3660000ms"));
        assert_eq!(string("", 3600), format!("interval=10000ms,{own}3660000ms"));
    }

    #[test]
    fn options_that_say_where_and_how_long_are_refused() {
        assert_eq!(checked_options("cpu=1ms,wall").unwrap(), "cpu=1ms,wall");
        for options in ["file=x", "cpu,endpoint=off", "duration=1s", "stop", "status,cpu"] {
            assert!(checked_options(options).is_err(), "{options}");
        }
    }

    #[test]
    fn durations_have_limits() {
        assert_eq!(parse_duration("1m 30s").unwrap(), Duration::from_secs(90));
        assert_eq!(parse_duration("30").unwrap(), Duration::from_secs(30));
        for other in ["99ms", "24h 1s", "0", "x"] {
            assert!(parse_duration(other).is_err(), "{other}");
        }
    }
}
