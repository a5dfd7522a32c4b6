//! `otlpprof completions`, and the hidden command `man`: what shells and manuals know of the command line.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap_complete::Shell;
use clap_mangen::Man;

/// Print a shell's completions of this command
///
/// For bash, for example: `otlpprof completions bash >~/.local/share/bash-completion/completions/otlpprof`
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Write the manual's pages, one for each command
#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// The existing folder for the pages
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints the completions of the command line with this grammar.
pub(super) fn run(args: &Args, mut command: clap::Command) -> anyhow::Result<ExitCode> {
    // Written in one piece, since the generator panics when a pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "otlpprof", &mut script);
    io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of the command line with this grammar.
pub(super) fn write_man_pages(args: &ManArgs, command: clap::Command) -> anyhow::Result<ExitCode> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_page(&command, &args.folder)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command, and those of the commands below it.
fn write_page(command: &clap::Command, folder: &Path) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let file = folder.join(format!("{name}.1"));
    let mut page = Vec::new();
    Man::new(command.clone()).manual("otlpprof").render(&mut page)?;
    fs::write(&file, page).with_context(|| file.display().to_string())?;
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.into_iter().try_for_each(|command| write_page(command, folder))
}
