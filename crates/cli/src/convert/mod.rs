//! `otlpprof convert`: recordings of JDK Flight Recorder to OTLP profiles.
//!
//! | Module | Duty |
//! |---|---|
//! | `windows` | times and windows of recordings, as given on the command line |
//! | `follow` | recordings that are still being written: a profile for every interval |
//! | `output` | the destination of the result |
//! | `progress` | the progress bar on a terminal |
//! | `summary` | counts of what became of the events |

mod follow;
mod output;
mod progress;
mod summary;
mod windows;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use otlpprof_convert::{AddError, ConvertOptions, JfrToOtlp, Links, RequestedEvent, Unpacked};
use otlpprof_jfr::header::{ChunkHeader, HEADER_LEN};
use otlpprof_model::attribute_keys::SERVICE_NAME;
use otlpprof_model::{Batch, label};

use super::time_bound::TimeBound;
use super::{allocator, recording, terminal};
use output::Output;
use progress::Progress;
use summary::Summary;
use windows::Bounds;

/// Convert recordings of JDK Flight Recorder to OTLP profiles
///
/// Several recordings become one output, in which the values of equal samples are summed. A summary of the
/// converted and omitted events is printed on standard error. A damaged or truncated recording is converted
/// up to the damage; then a line on standard error names the place, and the exit code is 2.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Recordings, uncompressed or compressed with gzip or zstd; - is standard input. With --follow also the
    /// directory of a JVM's repository
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The output file; - is standard output. If the name ends in .gz, the output is compressed
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// The form of the output
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,

    /// Keep the time of each event
    #[arg(long)]
    timestamps: bool,

    /// Convert this event too: the number of occurrences, or the sum of a field
    #[arg(long = "event", value_name = "NAME[:VALUE_FIELD]")]
    events: Vec<RequestedEvent>,

    /// The spans that samples are linked to, in recordings with span ids (Datadog's profiler)
    #[arg(long, value_enum, default_value_t)]
    links: LinksTo,

    /// Only events from this time on: 2026-01-31T12:00:00Z, with an offset, in local time without one,
    /// seconds since 1970, or a duration since the recording's beginning, such as +1m30s. Give one value for
    /// all recordings, or one for each in order
    #[arg(
        long = "from",
        visible_alias = "start",
        value_name = "TIME",
        value_parser = windows::parse_bound,
        allow_hyphen_values = true
    )]
    start: Vec<TimeBound>,

    /// Only events before this time; the same forms as --from
    #[arg(
        long = "to",
        visible_aliases = ["until", "end"],
        value_name = "TIME",
        value_parser = windows::parse_bound,
        allow_hyphen_values = true
    )]
    end: Vec<TimeBound>,

    /// The resource attribute service.name of the output, in place of the recordings' own
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    service: Option<String>,

    /// A resource attribute of the output, in place of the recordings' own
    #[arg(long = "resource", value_name = "KEY=VALUE", value_parser = parse_attribute)]
    resource: Vec<(String, String)>,

    /// Include the recordings in the output, from which `otlpprof payload` extracts them
    #[arg(long)]
    include_payload: bool,

    /// Convert one recording while the JVM is writing it, and write a message for each interval
    #[arg(long, conflicts_with = "include_payload")]
    follow: bool,

    /// The interval of --follow
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "60s",
        value_parser = windows::parse_interval,
        requires = "follow"
    )]
    interval: Duration,

    /// Check the output against every rule before writing it, as `otlpprof validate` does
    #[arg(long)]
    validate: bool,

    /// Count warnings of --validate as errors, as `otlpprof validate --strict` does
    #[arg(long, requires = "validate")]
    strict: bool,
}

/// The span or trace whose id becomes a link's trace id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum LinksTo {
    /// The span of the trace, if the recording has a trace id among the context attributes (traceid),
    /// otherwise the local root span
    #[default]
    Auto,
    /// The span of the trace; without a trace id there is no link
    Trace,
    /// The local root span, as in Datadog's own converter
    LocalRoot,
}

/// Parses a resource attribute given as KEY=VALUE.
fn parse_attribute(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("an attribute must be KEY=VALUE".to_owned()),
    }
}

impl Args {
    /// Sets the resource attributes of the arguments in a batch.
    fn name(&self, mut batch: Batch) -> Batch {
        let service = self.service.iter().map(|name| (SERVICE_NAME, name));
        let attributes = self.resource.iter().map(|(key, value)| (&**key, value)).chain(service);
        attributes.for_each(|(key, value)| batch.resource.set(label(key), label(value)));
        batch
    }

    fn convert_options(&self) -> ConvertOptions {
        let links = match self.links {
            LinksTo::Auto => Links::Auto,
            LinksTo::Trace => Links::Trace,
            LinksTo::LocalRoot => Links::LocalRoot,
        };
        ConvertOptions { times: self.timestamps, events: self.events.clone(), only: None, links }
    }
}

/// The encodings of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum OutputFormat {
    /// Binary protobuf
    #[default]
    Proto,
    /// OTLP/JSON on one line
    Json,
    /// OTLP/JSON, indented
    JsonPretty,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.follow {
        return follow::run(args, args.interval);
    }
    let windows = windows::of_inputs(&args.start, &args.end, args.files.len())?;
    if args.files.iter().filter(|path| *path == Path::new("-")).count() > 1 {
        bail!("- is given twice: standard input can be read once");
    }
    let output = Output::new(args)?;
    let mut converter = JfrToOtlp::new(args.convert_options());
    // The bytes of a recording leave no holes that are too small for the result.
    allocator::return_freed_blocks(256 << 10);
    let mut problems = Vec::new();
    let mut is_without_constants = false;
    let progress = Progress::over(&args.files);
    for (path, bounds) in args.files.iter().zip(&windows) {
        let added = match path == Path::new("-") {
            true => add(&mut converter, bounds, progress.count(io::stdin().lock())),
            false => match File::open(path) {
                Ok(file) => add(&mut converter, bounds, progress.count(file)),
                Err(error) => Err(error.into()),
            },
        };
        match added {
            Ok(()) => {}
            Err(AddError::Io(error)) if error.kind() == io::ErrorKind::IsADirectory => {
                bail!("{}: a directory; use --follow to convert a JVM's repository", path.display());
            }
            Err(error) => {
                is_without_constants |= recording::is_without_constants(&error);
                problems.push(recording::problem(path, error)?);
            }
        }
    }
    progress.end();
    let summary = Summary::of(&converter);
    let recordings = match &args.files[..] {
        [one] => one.display().to_string(),
        _ => "the recordings".to_owned(),
    };
    if summary.is_empty() {
        bail!("no event in {}", problems.first().unwrap_or(&recordings));
    }
    if is_without_constants && summary.converted() == 0 {
        // A recording that is still being written has no constants yet. Messages about events without a stack
        // would be printed for each type, and would no longer be true once the recording is finished.
        bail!("{}", problems.join("; "));
    }
    problems.extend(summary::missing(&args.events, |name| summary.events().any(|known| known == name)));
    problems.extend(converter.problems().iter().cloned());
    if summary.converted() == 0 {
        problems.push(summary.nothing(&recordings, converter.recorded()));
        summary.print(&problems)?;
        return Ok(ExitCode::from(super::EXIT_BAD_INPUT));
    }
    let written = output.write(&args.name(converter.convert()), &mut terminal::stderr())?;
    summary.print(&problems)?;
    Ok(match written {
        _ if !problems.is_empty() => ExitCode::from(super::EXIT_BAD_INPUT),
        output::Validity::Valid => ExitCode::SUCCESS,
        output::Validity::Invalid => ExitCode::from(super::EXIT_FAILED),
    })
}

/// Adds the events of a recording that lie in a window.
fn add(converter: &mut JfrToOtlp, bounds: &Bounds, from: impl Read) -> Result<(), AddError> {
    let mut from = Unpacked::new(from)?;
    let mut first = Vec::new();
    if bounds.are_relative() {
        from.by_ref().take(HEADER_LEN as u64).read_to_end(&mut first)?;
    }
    // A recording without a header has no events either; the parser reports it.
    let begins = ChunkHeader::parse(&first, 0).ok().map(|header| header.clock.start_unix_nano);
    converter.set_window(bounds.window(begins));
    converter.add_reader(io::Cursor::new(first).chain(from))
}
