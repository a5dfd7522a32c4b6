//! Recordings that are still being written: a profile for every interval.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::output::{Output, Written};
use super::summary::{self, Summary};
use super::{Args, windows};
use crate::convert::{ConvertOptions, Growing, JfrToOtlp};
use crate::jfr::error::JfrError;

/// How many bytes are read at a time, and how many such parts wait for the conversion.
const READ_LEN: usize = 1 << 16;
const MOST_WAITING: usize = 16;

/// Converts one input as it comes, until it ends.
pub(super) fn run(args: &Args, interval: Duration) -> anyhow::Result<ExitCode> {
    let [input] = &args.files[..] else { bail!("--follow takes one recording") };
    let window = windows::of_inputs(&args.start, &args.end, 1)?;
    let output = Output::new(args)?;
    let mut converter =
        JfrToOtlp::new(ConvertOptions { times: args.timestamps, events: args.events.clone(), only: None });
    window.into_iter().for_each(|window| converter.set_window(window));
    let name = input.display().to_string();
    let from: Box<dyn Read + Send> = match input == Path::new("-") {
        true => Box::new(io::stdin()),
        false => Box::new(Growing::open(input).with_context(|| name.clone())?),
    };
    let parts = read_in_background(from)?;
    let mut following = Following {
        converter,
        to: output.open()?,
        output,
        verdict: Written::Valid,
        seen: BTreeSet::new(),
        told: BTreeSet::new(),
        is_damaged: false,
    };
    let mut next = Instant::now() + interval;
    loop {
        match parts.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(part) => {
                let part = part.with_context(|| name.clone())?;
                if let Err(error) = following.converter.push(&part) {
                    following.say_damaged(&name, &error)?;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if next <= Instant::now() {
            following.write()?;
            next += interval;
        }
    }
    if let Err(error) = following.converter.finish() {
        following.say_damaged(&name, &error)?;
    }
    following.write()?;
    if following.seen.is_empty() && !following.is_damaged {
        bail!("no event in {name}");
    }
    let missing = summary::missing(&args.events, |name| following.seen.contains(name));
    following.tell(&missing)?;
    Ok(match following.verdict {
        _ if following.is_damaged || !following.told.is_empty() => {
            ExitCode::from(super::super::EXIT_BAD_INPUT)
        }
        Written::Valid => ExitCode::SUCCESS,
        Written::Invalid => ExitCode::from(super::super::EXIT_FAILED),
    })
}

struct Following {
    converter: JfrToOtlp,
    output: Output,
    to: Box<dyn Write>,
    verdict: Written,
    /// The events that there were.
    seen: BTreeSet<String>,
    /// What is wrong with what was asked for, as far as it was said.
    told: BTreeSet<String>,
    /// Something was wrong with the recording.
    is_damaged: bool,
}

impl Following {
    /// Writes what has come since the last time, and says what became of it.
    fn write(&mut self) -> anyhow::Result<()> {
        let summary = Summary::of(&self.converter);
        self.seen.extend(summary.events().map(str::to_owned));
        let problems = self.converter.problems().to_vec();
        let batch = self.converter.convert();
        if !batch.profiles.is_empty() && self.output.append(&batch, &mut *self.to)? == Written::Invalid {
            self.verdict = Written::Invalid;
        }
        summary.print(&[])?;
        self.tell(&problems)
    }

    /// Says what has not been said yet.
    fn tell(&mut self, problems: &[String]) -> anyhow::Result<()> {
        let mut to = io::stderr().lock();
        for problem in problems {
            if self.told.insert(problem.clone()) {
                writeln!(to, "otlpprof: {problem}")?;
            }
        }
        Ok(())
    }

    fn say_damaged(&mut self, name: &str, error: &JfrError) -> anyhow::Result<()> {
        self.is_damaged = true;
        Ok(writeln!(io::stderr().lock(), "otlpprof: {name}: {error}")?)
    }
}

/// The parts that a reader gives, the last of which may be an error.
fn read_in_background(from: Box<dyn Read + Send>) -> io::Result<Receiver<io::Result<Vec<u8>>>> {
    let (to, parts) = mpsc::sync_channel(MOST_WAITING);
    std::thread::Builder::new().name("otlpprof-input".to_owned()).spawn(move || read(from, &to))?;
    Ok(parts)
}

fn read(mut from: Box<dyn Read + Send>, to: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut part = vec![0; READ_LEN];
        let read = match from.read(&mut part) {
            Ok(0) => return,
            Ok(count) => {
                part.truncate(count);
                Ok(part)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_last = read.is_err();
        if to.send(read).is_err() || is_last {
            return;
        }
    }
}
