//! `otlpprof convert`: recordings of JDK Flight Recorder to OTLP profiles.
//!
//! | Module | Duty |
//! |---|---|
//! | `args` | the options of `otlpprof convert` |
//! | `windows` | times and windows of recordings, as given on the command line |
//! | `follow` | recordings that are still being written: a profile for every interval |
//! | `output` | the destination of the result |
//! | `progress` | the progress bar on a terminal |
//! | `summary` | counts of what became of the events |

mod args;
mod follow;
mod output;
mod progress;
mod summary;
mod windows;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use otlpprof_convert::{AddError, JfrToOtlp, Unpacked};
use otlpprof_jfr::header::{ChunkHeader, HEADER_LEN};

use super::{allocator, recording, terminal};
pub(super) use args::Args;
use output::Output;
use progress::Progress;
use summary::Summary;
use windows::Bounds;

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
        return Ok(ExitCode::from(super::exit_codes::EXIT_BAD_INPUT));
    }
    let written = output.write(&args.name(converter.convert()), &mut terminal::stderr())?;
    summary.print(&problems)?;
    Ok(match written {
        _ if !problems.is_empty() => ExitCode::from(super::exit_codes::EXIT_BAD_INPUT),
        output::Validity::Valid => ExitCode::SUCCESS,
        output::Validity::Invalid => ExitCode::from(super::exit_codes::EXIT_FAILED),
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
