//! `otlpprof symbolize`: names for native frames that have none, in files or on the way to a backend.
//!
//! | Module | Duty |
//! |---|---|
//! | `files` | files whose frames are resolved |
//! | `forward` | messages whose frames are resolved between senders and a backend |
//! | `symbols_args` | the option of commands that show profiles to resolve their frames |

mod files;
mod forward;
pub(super) mod symbols_args;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use self::forward::ForwardArgs;
use super::symbols::PlaceArgs;

/// Resolve native frames to functions, files and lines
///
/// Finds the executables and debug files of native frames without names by build-id, and gives each frame its
/// function, file and line, with all functions that were inlined. Frames that cannot be resolved stay as they
/// are: standard error has the reason for each object.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Profiles: OTLP (protobuf, plain or length-prefixed, or JSON), recordings of JDK Flight Recorder,
    /// pprof, collapsed stacks; gzipped or not. - is standard input
    #[arg(required_unless_present = "listen", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The result, in the form of the files, gzipped if its name ends in .gz; - is standard output
    #[arg(short, long, value_name = "OUT", required_unless_present = "listen")]
    output: Option<PathBuf>,
    #[command(flatten)]
    places: PlaceArgs,
    #[command(flatten)]
    forward: ForwardArgs,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let symbolizer = symbols_args::symbolizer(&args.places)?;
    match (&args.forward.listen, &args.output) {
        (Some(listen), _) => forward::run(listen, &args.forward, symbolizer),
        (None, output) => {
            // SANITY: clap requires an output without --listen.
            files::run(&args.files, output.as_deref().unwrap_or(Path::new("-")), symbolizer)
        }
    }
}
