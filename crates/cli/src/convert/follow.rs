//! Recordings that are still being written: a profile for every interval.
//!
//! SIGINT and SIGTERM end the command as the recording's end does: the events read so far are written. A
//! second signal ends the command at once.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use otlpprof_convert::{Growing, JfrToOtlp, Unpacked};
use otlpprof_jfr::error::JfrError;

use super::super::signals::Signals;
use super::super::terminal;
use super::args::Args;
use super::output::{Output, Validity};
use super::summary::{self, Summary};
use super::windows;

/// Number of bytes read at a time, and number of such parts that may wait for the conversion.
const READ_LEN: usize = 1 << 16;
const MOST_WAITING: usize = 16;

/// Converts one input as it grows, until it ends.
pub(super) fn run(args: &Args, interval: Duration) -> anyhow::Result<ExitCode> {
    let [input] = &args.files[..] else { bail!("--follow takes one recording") };
    let bounds = windows::of_inputs(&args.start, &args.end, 1)?.pop().unwrap_or_default();
    if bounds.are_relative() {
        bail!("--follow takes times for --from and --to, not offsets from a recording's beginning");
    }
    let output = Output::new(args)?;
    let mut converter = JfrToOtlp::new(args.convert_options());
    converter.set_window(bounds.window(None));
    let name = input.display().to_string();
    let from: Box<dyn Read + Send> = match input == Path::new("-") {
        true => Box::new(Unpacked::new(io::stdin())?),
        false => Box::new(Growing::open(input).with_context(|| name.clone())?),
    };
    let parts = read_in_background(from)?;
    let mut following = Following {
        args,
        converter,
        to: output.open()?,
        output,
        verdict: Validity::Valid,
        seen: BTreeSet::new(),
        reported: BTreeSet::new(),
        is_damaged: false,
        has_converted: false,
    };
    let mut next = Instant::now() + interval;
    let is_signalled = loop {
        match parts.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Part::Bytes(part)) => {
                if let Err(error) = following.converter.push(&part) {
                    following.report_damage(&name, &error)?;
                }
            }
            Ok(Part::Failure(error)) => return Err(error).context(name),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Part::End) | Err(RecvTimeoutError::Disconnected) => break false,
            Ok(Part::Signal) => break true,
        }
        if next <= Instant::now() {
            following.write()?;
            next += interval;
        }
    };
    // A signal usually arrives in the middle of a chunk, so that a truncated chunk is no damage then.
    if let Err(error) = following.converter.finish()
        && !is_signalled
    {
        following.report_damage(&name, &error)?;
    }
    following.write()?;
    if following.seen.is_empty() && !following.is_damaged {
        bail!("no event in {name}");
    }
    if !following.has_converted {
        let why = match bounds.are_none() {
            true => "none of its events is converted by default; --event NAME converts others",
            false => "the window of --from and --to has no event",
        };
        writeln!(terminal::stderr(), "otlpprof: nothing to convert in {name}: {why}")?;
    }
    let missing = summary::missing(&args.events, |name| following.seen.contains(name));
    following.report(&missing)?;
    Ok(match following.verdict {
        _ if following.is_damaged
            || !following.reported.is_empty()
            || (!following.has_converted && bounds.are_none()) =>
        {
            ExitCode::from(super::super::exit_codes::EXIT_BAD_INPUT)
        }
        Validity::Valid => ExitCode::SUCCESS,
        Validity::Invalid => ExitCode::from(super::super::exit_codes::EXIT_FAILED),
    })
}

struct Following<'a> {
    args: &'a Args,
    converter: JfrToOtlp,
    output: Output,
    to: Box<dyn Write>,
    verdict: Validity,
    /// The names of the events read so far.
    seen: BTreeSet<String>,
    /// The problems that were already reported.
    reported: BTreeSet<String>,
    /// Whether the recording was damaged.
    is_damaged: bool,
    /// Whether any event became a sample.
    has_converted: bool,
}

impl Following<'_> {
    /// Writes the events since the last time, and reports what became of them.
    fn write(&mut self) -> anyhow::Result<()> {
        let summary = Summary::of(&self.converter);
        self.seen.extend(summary.events().map(str::to_owned));
        let problems = self.converter.problems().to_vec();
        self.has_converted |= summary.converted() > 0;
        let batch = self.args.name(self.converter.convert());
        if !batch.profiles.is_empty()
            && self.output.append(&batch, &mut *self.to, &mut terminal::stderr())? == Validity::Invalid
        {
            self.verdict = Validity::Invalid;
        }
        summary.print(&[])?;
        self.report(&problems)
    }

    /// Reports the problems that were not reported before.
    fn report(&mut self, problems: &[String]) -> anyhow::Result<()> {
        let mut to = terminal::stderr();
        for problem in problems {
            if self.reported.insert(problem.clone()) {
                writeln!(to, "otlpprof: {problem}")?;
            }
        }
        Ok(())
    }

    fn report_damage(&mut self, name: &str, error: &JfrError) -> anyhow::Result<()> {
        self.is_damaged = true;
        Ok(writeln!(terminal::stderr(), "otlpprof: {name}: {error}")?)
    }
}

/// Work for the conversion's thread.
enum Part {
    Bytes(Vec<u8>),
    /// The recording cannot be read.
    Failure(io::Error),
    /// The recording has ended.
    End,
    /// A signal asks the command to end.
    Signal,
}

/// Starts threads that read the input and wait for a signal, and returns the channel of their results.
fn read_in_background(from: Box<dyn Read + Send>) -> io::Result<Receiver<Part>> {
    let (to, parts) = mpsc::sync_channel(MOST_WAITING);
    // The signals are blocked before the threads start, so that none of the threads receives them.
    let (signals, end) = (Signals::block(), to.clone());
    let wait = move || {
        signals.wait();
        signals.unblock();
        // After the recording's end no receiver is left.
        let _ = end.send(Part::Signal);
        // The thread stays, to receive the next signal.
        std::thread::sleep(Duration::MAX);
    };
    std::thread::Builder::new().name("otlpprof-signals".to_owned()).spawn(wait)?;
    std::thread::Builder::new().name("otlpprof-input".to_owned()).spawn(move || read(from, &to))?;
    Ok(parts)
}

fn read(mut from: Box<dyn Read + Send>, to: &SyncSender<Part>) {
    loop {
        let mut bytes = vec![0; READ_LEN];
        let part = match from.read(&mut bytes) {
            Ok(0) => Part::End,
            Ok(count) => {
                bytes.truncate(count);
                Part::Bytes(bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Part::Failure(error),
        };
        let is_last = !matches!(part, Part::Bytes(_));
        if to.send(part).is_err() || is_last {
            return;
        }
    }
}
