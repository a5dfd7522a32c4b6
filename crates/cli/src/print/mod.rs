//! `otlpprof print`: files of profiles for people and for scripts. Files in other formats than OTLP are
//! converted first.
//!
//! | Module | Duty |
//! |---|---|
//! | `text` | messages and sums for people |
//! | `json` | messages and sums as one JSON document, with all indices resolved |
//! | `raw` | the dictionary's tables, element by element |
//! | `summary` | the content of a profile that every format shows |
//! | `time` | times and durations as text |

mod json;
mod raw;
mod summary;
mod text;
pub(super) mod time;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_report::survey::Survey;

use super::Format;
use super::format_args::FormatArgs;
use super::report::content::Content;
use super::report::profile_file::ProfileFile;
use super::report::{DEFAULT_TOP, single};
use super::sums::{By, Sums};
use super::terminal;

/// Show the contents of files of profiles
///
/// Prints the functions in which the time went, as `otlpprof report` does, then each message and its profiles
/// in brief. Options add the rest. Of a file in another format than OTLP, prints the messages that the file
/// is converted to. If a file cannot be read to its end, prints nothing but one line with the error and its
/// place.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Profiles: OTLP (protobuf, plain or length-prefixed, or JSON), recordings of JDK Flight Recorder,
    /// pprof, collapsed stacks; gzipped or not. - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print this many functions, with their values: self (the function is the leaf) and total (the function
    /// is in the stack) [default: 20, in JSON none]
    #[arg(long, value_name = "N")]
    top_frames: Option<usize>,
    /// Count each source line by itself
    #[arg(long)]
    lines: bool,
    /// Print this many stacks of each type, with their most frequent labels: attributes and span [default:
    /// none, in JSON 10 unless --top-frames is given]
    #[arg(long, alias = "top", value_name = "N")]
    stacks: Option<usize>,
    /// Print the attributes of resource and scope, which JSON always has
    #[arg(long)]
    resource: bool,
    /// Print each profile in full, with its attributes, such as the agent's counters; JSON always has them
    #[arg(long)]
    counters: bool,
    /// Print each profile in full, with every sample
    #[arg(long)]
    all: bool,
    /// Print the dictionary's tables, by index
    #[arg(long)]
    raw: bool,
    /// If a file cannot be read to its end, print the part before the error
    #[arg(long)]
    keep_going: bool,
    #[command(flatten)]
    form: FormatArgs,
}

impl Args {
    /// The number of stacks in JSON.
    fn json_stacks(&self) -> usize {
        self.stacks.unwrap_or(if self.top_frames.is_some() { 0 } else { 10 })
    }

    /// The number of functions in JSON.
    fn json_frames(&self) -> usize {
        self.top_frames.unwrap_or(0)
    }

    /// Whether a message is more than its outline.
    fn is_long(&self) -> bool {
        self.resource || self.counters || self.all || self.raw
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let files: Vec<_> = args.files.iter().map(|path| ProfileFile::open(path)).collect::<Result<_, _>>()?;
    let (mut survey, mut broken) = (Survey::default(), None);
    each_message(&files, &mut broken, |_, message| {
        survey.add(message);
        Ok(())
    })?;
    if !args.keep_going
        && let Some(error) = broken
    {
        return Err(error);
    }
    let mut out = terminal::stdout();
    match args.form.format() {
        Format::Json => {
            let by = if args.lines { By::Line } else { By::Function };
            let mut sums = Sums::new(args.top_frames.map(|_| by));
            json::print(&files, args, &survey.states, &mut sums, &mut broken, &mut out)?;
        }
        Format::Text => print_text(&files, args, &survey, &mut broken, &mut out)?,
    }
    out.flush()?;
    match broken {
        Some(error) => Err(error),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Prints the table of functions, each message, and stacks.
fn print_text(
    files: &[ProfileFile],
    args: &Args,
    survey: &Survey,
    broken: &mut Option<anyhow::Error>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let functions = args.top_frames.unwrap_or(DEFAULT_TOP);
    if functions > 0 {
        let each_message = |take: &mut dyn FnMut(&EncodedMessage)| {
            each_message(files, broken, |_, message| {
                take(message);
                Ok(())
            })
        };
        single::print_overview(survey, args.lines, functions, each_message, out)?;
    }
    let stacks = args.stacks.unwrap_or(0);
    let mut sums = Sums::new(None);
    each_message(files, broken, |file, message| {
        if stacks > 0 {
            sums.add(message, &survey.states);
        }
        Ok(text::print_message(file, message, args, out)?)
    })?;
    if stacks > 0 && !args.is_long() {
        writeln!(out)?;
    }
    Ok(text::print_stacks(&sums, stacks, out)?)
}

/// Calls `take` with every message of each file, up to the file's end or to the place where the file cannot
/// be read any further. The first such error is put into `broken`.
fn each_message(
    files: &[ProfileFile],
    broken: &mut Option<anyhow::Error>,
    mut take: impl FnMut(&ProfileFile, &EncodedMessage) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for file in files {
        if let Some(error) = each_of_file(file, |message| take(file, message))? {
            broken.get_or_insert(error);
        }
    }
    Ok(())
}

/// Calls `take` with every message of a file, as [`each_message`] does. Returns the error at the place where
/// the file cannot be read any further.
///
/// # Errors
/// `take` has failed, or the file cannot be opened.
fn each_of_file(
    file: &ProfileFile,
    mut take: impl FnMut(&EncodedMessage) -> anyhow::Result<()>,
) -> anyhow::Result<Option<anyhow::Error>> {
    if file.content == Content::Otlp {
        for message in file.input.messages()? {
            match message {
                Ok(message) => take(&message)?,
                Err(error) => return Ok(Some(error)),
            }
        }
        return Ok(None);
    }
    let (mut count, mut taken) = (0, Ok(()));
    let read = file.each_message(&mut |mut message| {
        message.index = count;
        count += 1;
        if taken.is_ok() {
            taken = take(&message);
        }
    });
    taken?;
    Ok(match read {
        Ok(damage) => damage.map(anyhow::Error::msg),
        Err(error) => Some(error),
    })
}
