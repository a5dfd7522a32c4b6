//! `otlpprof print`: files of OTLP profiles for people and for scripts.

mod json;
mod labels;
mod raw;
mod summary;
mod text;
mod time;
mod top;
mod value;

use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use super::Format;
use super::input::Input;
use top::Tops;

/// Show what is in files of OTLP profiles
///
/// Prints each message's resource, scope and profiles, and then, over all files, the stacks that the most was
/// observed of, each with the labels (attributes and span) that most of its samples have. If a file cannot be read to its end, one line says what is wrong where, and nothing is printed.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files to print: OTLP protobuf, plain or length-prefixed, or OTLP/JSON, gzipped or not; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print this many stacks [default: 10, or none with --top-frames]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Print this many frames, with what was observed in them (self) and in or below them (total)
    #[arg(long, value_name = "N")]
    top_frames: Option<usize>,
    /// Print every sample
    #[arg(long)]
    all: bool,
    /// Print the dictionary's tables, by index
    #[arg(long)]
    raw: bool,
    /// Print what precedes the place where a file cannot be read any further
    #[arg(long)]
    keep_going: bool,
    /// How to print
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
    let mut out = BufWriter::new(io::stdout().lock());
    let mut tops = Tops::new(args.top_frames.is_some());
    let mut documents = Vec::new();
    let mut broken = None;
    for input in &inputs {
        for message in input.messages() {
            let message = match message {
                Ok(message) => message,
                Err(error) => {
                    broken = broken.or(Some(error));
                    break;
                }
            };
            tops.add(&message.data);
            match args.format {
                Format::Text => text::print_message(&input.path, &message, args, &mut out)?,
                Format::Json => documents.push(json::message(&input.path, &message, args)),
            }
        }
    }
    match args.format {
        Format::Text => text::print_tops(&tops, args, &mut out)?,
        Format::Json => writeln!(out, "{:#}", json::document(documents, &tops, args))?,
    }
    out.flush()?;
    match broken {
        Some(error) => Err(error),
        None => Ok(ExitCode::SUCCESS),
    }
}
