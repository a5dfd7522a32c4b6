//! `otlpprof convert`: recordings of JDK Flight Recorder to OTLP profiles.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::convert::{AddError, ConvertOptions, EventCount, JfrToOtlp, RequestedEvent};
use crate::otlp::{self, EncodeOptions, encode};

/// Convert recordings of JDK Flight Recorder to OTLP profiles
///
/// Several recordings become one output, in which the values of equal samples are summed. What became of the events is
/// printed on standard error. A recording that is damaged or cut is converted as far as it can be read, which is said,
/// and the exit code is 2.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Recordings
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Where to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// How to write
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,

    /// Keep the time of each event
    #[arg(long)]
    timestamps: bool,

    /// Convert this event, too: the number of its occurrences, or the sum of a field
    #[arg(long = "event", value_name = "NAME[:VALUE_FIELD]")]
    events: Vec<RequestedEvent>,
}

/// The encodings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum OutputFormat {
    /// Binary protobuf
    #[default]
    Proto,
    /// OTLP/JSON
    Json,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut converter =
        JfrToOtlp::new(ConvertOptions { times: args.timestamps, events: args.events.clone() });
    let mut problems = Vec::new();
    for path in &args.files {
        match converter.add_file(path) {
            Ok(()) => {}
            Err(AddError::Io(error)) => return Err(error).with_context(|| path.display().to_string()),
            Err(AddError::Jfr(error)) => problems.push(format!("{}: {error}", path.display())),
        }
    }
    let mut counts: Vec<_> = converter.counts().map(|(name, count)| (name.to_owned(), count)).collect();
    if counts.is_empty() {
        bail!("no event in {}", problems.first().map_or("the recordings", String::as_str));
    }
    counts.sort_by(|(one, _), (other, _)| one.cmp(other));
    for event in &args.events {
        if !counts.iter().any(|(name, _)| name == event.name()) {
            problems.push(format!("no event {} in the recordings", event.name()));
        }
    }
    problems.extend(converter.problems().iter().cloned());
    let lost = converter.lost_samples();
    let batch = converter.convert();
    let format = match args.format {
        OutputFormat::Proto => otlp::Format::Proto,
        OutputFormat::Json => otlp::Format::Json,
    };
    let message =
        encode(&batch, &EncodeOptions { timestamps: args.timestamps, format, ..Default::default() });
    std::fs::write(&args.output, message).with_context(|| args.output.display().to_string())?;
    print_summary(&counts, lost)?;
    let mut said = io::stderr().lock();
    for problem in &problems {
        writeln!(said, "otlpprof: {problem}")?;
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(super::EXIT_BAD_INPUT) })
}

/// What became of the events of each type that can be converted, and how many there are of others.
fn print_summary(counts: &[(String, EventCount)], lost_samples: u64) -> io::Result<()> {
    let mut said = io::stderr().lock();
    for (name, count) in counts {
        if count.converted + count.without_stack + count.outside == 0 {
            continue;
        }
        write!(said, "{name}: {} converted, {} without a stack", count.converted, count.without_stack)?;
        if count.failed > 0 {
            write!(said, ", {} of those converted with a stack that the JVM could not walk", count.failed)?;
        }
        if count.outside > 0 {
            write!(said, ", {} outside of the window", count.outside)?;
        }
        writeln!(said)?;
    }
    if lost_samples > 0 {
        writeln!(said, "{lost_samples} samples of CPU time were lost by the JVM")?;
    }
    let others: u64 = counts.iter().map(|(_, count)| count.other).sum();
    writeln!(said, "{others} events of other types were not converted")
}
