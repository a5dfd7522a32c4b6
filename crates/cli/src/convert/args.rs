//! The options of `otlpprof convert`.

use std::path::PathBuf;
use std::time::Duration;

use otlpprof_convert::{ConvertOptions, Links, RequestedEvent};
use otlpprof_model::attribute_keys::SERVICE_NAME;
use otlpprof_model::{Batch, label};

use super::windows;
use crate::time_bound::TimeBound;

/// Convert recordings of JDK Flight Recorder to OTLP profiles
///
/// Several recordings become one output, in which the values of equal samples are summed. A summary of the
/// converted and omitted events is printed on standard error. A damaged or truncated recording is converted
/// up to the damage; then a line on standard error names the place, and the exit code is 2.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Recordings, uncompressed or compressed with gzip or zstd; - is standard input. With --follow also the
    /// directory of a JVM's repository
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,

    /// The output file; - is standard output. If the name ends in .gz, the output is compressed
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: PathBuf,

    /// The form of the output
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,

    /// Keep the time of each event
    #[arg(long)]
    pub(super) timestamps: bool,

    /// Convert this event too: the number of occurrences, or the sum of a field
    #[arg(long = "event", value_name = "NAME[:VALUE_FIELD]")]
    pub(super) events: Vec<RequestedEvent>,

    /// The spans that samples are linked to, in recordings with span ids (Datadog's profiler)
    #[arg(long, value_enum, default_value_t)]
    pub(super) links: LinksTo,

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
    pub(super) start: Vec<TimeBound>,

    /// Only events before this time; the same forms as --from
    #[arg(
        long = "to",
        visible_aliases = ["until", "end"],
        value_name = "TIME",
        value_parser = windows::parse_bound,
        allow_hyphen_values = true
    )]
    pub(super) end: Vec<TimeBound>,

    /// The resource attribute service.name of the output, in place of the recordings' own
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(super) service: Option<String>,

    /// A resource attribute of the output, in place of the recordings' own
    #[arg(long = "resource", value_name = "KEY=VALUE", value_parser = parse_attribute)]
    pub(super) resource: Vec<(String, String)>,

    /// Include the recordings in the output, from which `otlpprof payload` extracts them
    #[arg(long)]
    pub(super) include_payload: bool,

    /// Convert one recording while the JVM is writing it, and write a message for each interval
    #[arg(long, conflicts_with = "include_payload")]
    pub(super) follow: bool,

    /// The interval of --follow
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "60s",
        value_parser = windows::parse_interval,
        requires = "follow"
    )]
    pub(super) interval: Duration,

    /// Check the output against every rule before writing it, as `otlpprof validate` does
    #[arg(long)]
    pub(super) validate: bool,

    /// Count warnings of --validate as errors, as `otlpprof validate --strict` does
    #[arg(long, requires = "validate")]
    pub(super) strict: bool,
}

/// The span or trace whose id becomes a link's trace id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LinksTo {
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
    pub(super) fn name(&self, mut batch: Batch) -> Batch {
        let service = self.service.iter().map(|name| (SERVICE_NAME, name));
        let attributes = self.resource.iter().map(|(key, value)| (&**key, value)).chain(service);
        attributes.for_each(|(key, value)| batch.resource.set(label(key), label(value)));
        batch
    }

    pub(super) fn convert_options(&self) -> ConvertOptions {
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
pub(super) enum OutputFormat {
    /// Binary protobuf
    #[default]
    Proto,
    /// OTLP/JSON on one line
    Json,
    /// OTLP/JSON, indented
    JsonPretty,
}
