//! `otlpprof print`: files of OTLP profiles for people and for scripts.

mod json;
mod raw;
mod summary;
mod text;
pub(super) mod time;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use super::Format;
use super::input::Input;
use super::sums::{By, Sums};
use super::terminal;
use crate::otlp::encoded::EncodedMessage;

/// Show the contents of files of OTLP profiles
///
/// Prints the resource, scope and profiles of each message. Then prints, over all files, the stacks with the
/// largest values, each with its most frequent labels (attributes and span). If a file cannot be read to its
/// end, prints nothing but one line with the error and its place.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files to print: OTLP protobuf, plain or length-prefixed, or OTLP/JSON, gzipped or not; - is standard
    /// input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print this many stacks [default: 10, or none with --top-frames]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Print this many functions, with their values: self (the function is the leaf) and total (the function
    /// is in the stack)
    #[arg(long, value_name = "N")]
    top_frames: Option<usize>,
    /// With --top-frames: count each source line by itself
    #[arg(long, requires = "top_frames")]
    lines: bool,
    /// Print every sample
    #[arg(long)]
    all: bool,
    /// Print the dictionary's tables, by index
    #[arg(long)]
    raw: bool,
    /// If a file cannot be read to its end, print the part before the error
    #[arg(long)]
    keep_going: bool,
    /// The form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Args {
    fn top_stacks(&self) -> usize {
        self.top.unwrap_or(if self.top_frames.is_some() { 0 } else { 10 })
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let inputs = match args.keep_going {
        true => args.files.iter().map(|path| Input::open(path)).collect::<Result<_, _>>()?,
        false => Input::open_whole(&args.files)?,
    };
    let mut out = terminal::stdout();
    let by = if args.lines { By::Line } else { By::Function };
    let mut sums = Sums::new(args.top_frames.map(|_| by));
    let mut broken = None;
    if args.format == Format::Json {
        json::print(&inputs, args, &mut sums, &mut broken, &mut out)?;
    } else {
        each_message(&inputs, &mut broken, |input, message| {
            sums.add(message);
            Ok(text::print_message(&input.path, message, args, &mut out)?)
        })?;
        text::print_tops(&sums, args, &mut out)?;
    }
    out.flush()?;
    match broken {
        Some(error) => Err(error),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Calls `take` with every message of each file, up to the file's end or to the place where the file cannot
/// be read any further. The first such error is put into `broken`.
fn each_message(
    inputs: &[Input],
    broken: &mut Option<anyhow::Error>,
    mut take: impl FnMut(&Input, &EncodedMessage) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for input in inputs {
        for message in input.messages()? {
            match message {
                Ok(message) => take(input, &message)?,
                Err(error) => {
                    broken.get_or_insert(error);
                    break;
                }
            }
        }
    }
    Ok(())
}
