//! `otlpprof print`: files of profiles for people and for scripts. Files in other formats than OTLP are
//! converted first.
//!
//! | Module | Duty |
//! |---|---|
//! | `args` | the options of `otlpprof print` |
//! | `messages` | the messages of all files, each up to the place where the file cannot be read any further |
//! | `text` | messages and sums for people |
//! | `json` | messages and sums as one JSON document, with all indices resolved |
//! | `raw` | the dictionary's tables, element by element |
//! | `sums` | sums over messages by stack and labels, and by function or line, in bounded memory |
//! | `kind` | the sums of one kind of profile |
//! | `functions` | sums by function or by line, self and total |
//! | `labels` | the attributes and the span of a sample |
//! | `sum` | the sum of some samples: the measured amount, and the values alone |
//! | `value` | attribute values as text and as JSON |
//! | `summary` | the content of a profile that every format shows |
//! | `time` | times and durations as text |

mod args;
mod functions;
mod json;
mod kind;
mod labels;
mod messages;
mod raw;
mod sum;
mod summary;
mod sums;
mod text;
pub(super) mod time;
mod value;

use std::io::Write;
use std::process::ExitCode;

use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_report::selection::Selection;
use otlpprof_report::survey::Survey;

pub(super) use self::args::Args;
use self::functions::By;
use self::messages::each_message;
use self::sums::Sums;
use super::format_args::Format;
use super::report::profile_file::ProfileFile;
use super::report::{DEFAULT_TOP, single};
use super::terminal;

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
    let everything = Selection::default();
    let mut out = terminal::stdout();
    match args.form.format() {
        Format::Json => {
            let by = if args.lines { By::Line } else { By::Function };
            let mut sums = Sums::new(&everything, &survey, args.top_frames.map(|_| by));
            json::print(&files, args, &mut sums, &mut broken, &mut out)?;
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
    let everything = Selection::default();
    let mut sums = Sums::new(&everything, survey, None);
    each_message(files, broken, |file, message| {
        if stacks > 0 {
            sums.add(message);
        }
        Ok(text::print_message(file, message, args, out)?)
    })?;
    if stacks > 0 && !args.is_long() {
        writeln!(out)?;
    }
    Ok(text::print_stacks(&sums, stacks, out)?)
}
