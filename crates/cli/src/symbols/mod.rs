//! `otlpprof symbols`: the store of executables and debug files.
//!
//! | Module | Duty |
//! |---|---|
//! | `add` | `otlpprof symbols add`: puts files into the store |
//! | `list` | `otlpprof symbols list`: the files of the store |
//! | `check` | `otlpprof symbols check`: the files that a profile needs, and those that are there |
//! | `prune` | `otlpprof symbols prune`: removes files from the store |
//! | `place_args` | the options that say where files of objects are searched |
//! | `size` | a number of bytes, for people |
//! | [`package`] | the ELF files in packages, archives and images of containers |

mod add;
mod check;
mod list;
pub mod package;
mod place_args;
mod prune;
mod size;

use std::process::ExitCode;

use clap::Subcommand;

pub(super) use self::place_args::{PlaceArgs, default_cache};

/// Keep executables and debug files, for names of native frames
///
/// A profile may have native frames without a name, such as 45183927….<remote>(0x7b2f10): the build-id of a
/// library and an address in it. Names need the library, or better its debug file. The store keeps such
/// files by build-id, in folders that any web server can serve to debuginfod's clients
/// (buildid/<ID>/debuginfo and buildid/<ID>/executable). It is in the folder that --store or OTLPPROF_SYMBOLS
/// names, else in ~/.local/share/otlpprof/symbols.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Add(add::Args),
    List(list::Args),
    Check(check::Args),
    Prune(prune::Args),
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Add(args) => add::run(args),
        Command::List(args) => list::run(args),
        Command::Check(args) => check::run(args),
        Command::Prune(args) => prune::run(args),
    }
}
