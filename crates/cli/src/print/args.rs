//! The options of `otlpprof print`.

use std::path::PathBuf;

use crate::format_args::FormatArgs;

/// Show the contents of files of profiles
///
/// Prints the functions in which the time went, as `otlpprof report` does, then each message and its profiles
/// in brief. Options add the rest. Of a file in another format than OTLP, prints the messages that the file
/// is converted to. If a file cannot be read to its end, prints nothing but one line with the error and its
/// place.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Profiles: OTLP (protobuf, plain or length-prefixed, or JSON), recordings of JDK Flight Recorder,
    /// pprof, collapsed stacks; gzipped or not. - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Print this many functions, with their values: self (the function is the leaf) and total (the function
    /// is in the stack) [default: 20, in JSON none]
    #[arg(long, value_name = "N")]
    pub(super) top_frames: Option<usize>,
    /// Count each source line by itself
    #[arg(long)]
    pub(super) lines: bool,
    /// Print this many stacks of each type, with their most frequent labels: attributes and span [default:
    /// none, in JSON 10 unless --top-frames is given]
    #[arg(long, alias = "top", value_name = "N")]
    pub(super) stacks: Option<usize>,
    /// Print the attributes of resource and scope, which JSON always has
    #[arg(long)]
    pub(super) resource: bool,
    /// Print each profile in full, with its attributes, such as the agent's counters; JSON always has them
    #[arg(long)]
    pub(super) counters: bool,
    /// Print each profile in full, with every sample
    #[arg(long)]
    pub(super) all: bool,
    /// Print the dictionary's tables, by index
    #[arg(long)]
    pub(super) raw: bool,
    /// If a file cannot be read to its end, print the part before the error
    #[arg(long)]
    pub(super) keep_going: bool,
    #[command(flatten)]
    pub(super) form: FormatArgs,
}

impl Args {
    /// The number of stacks in JSON.
    pub(super) fn json_stacks(&self) -> usize {
        self.stacks.unwrap_or(if self.top_frames.is_some() { 0 } else { 10 })
    }

    /// The number of functions in JSON.
    pub(super) fn json_frames(&self) -> usize {
        self.top_frames.unwrap_or(0)
    }

    /// Whether a message is more than its outline.
    pub(super) fn is_long(&self) -> bool {
        self.resource || self.counters || self.all || self.raw
    }
}
