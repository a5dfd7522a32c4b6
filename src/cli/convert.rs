//! `otlpprof convert`: recordings of JDK Flight Recorder to OTLP profiles.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use crate::convert::converter::JfrToOtlp;
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
    let mut converter = JfrToOtlp::new(args.timestamps);
    let mut problems = Vec::new();
    for path in &args.files {
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        if let Err(error) = converter.add(&bytes) {
            problems.push(format!("{}: {error}", path.display()));
        }
    }
    let mut counts: Vec<_> = converter.counts().iter().map(|(name, count)| (name.clone(), *count)).collect();
    if counts.is_empty() {
        bail!("no event in {}", problems.first().map_or("the recordings", String::as_str));
    }
    counts.sort_by(|(one, _), (other, _)| one.cmp(other));
    let batch = converter.finish();
    let format = match args.format {
        OutputFormat::Proto => otlp::Format::Proto,
        OutputFormat::Json => otlp::Format::Json,
    };
    let message =
        encode(&batch, &EncodeOptions { timestamps: args.timestamps, format, ..Default::default() });
    std::fs::write(&args.output, message).with_context(|| args.output.display().to_string())?;

    let mut said = io::stderr().lock();
    for (name, count) in counts.iter().filter(|(_, count)| count.converted + count.without_stack > 0) {
        writeln!(said, "{name}: {} converted, {} without a stack", count.converted, count.without_stack)?;
    }
    let others: u64 = counts.iter().map(|(_, count)| count.other).sum();
    writeln!(said, "{others} events of other types were not converted")?;
    for problem in &problems {
        writeln!(said, "otlpprof: {problem}")?;
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(super::EXIT_BAD_INPUT) })
}
