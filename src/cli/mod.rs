//! The `otlpprof` command.
//!
//! The input is arguments and files. The output is text or JSON on standard output, one line on standard
//! error for an error, and an exit code: 0 success, 1 a checked condition does not hold, 2 bad usage or
//! input. Called by `main`.

mod agent_library;
mod agent_string;
mod allocator;
mod attach;
mod call_grammar;
mod check_stacks;
pub mod collect;
mod convert;
mod export;
mod flamegraph;
mod input;
mod merge;
mod message_frames;
mod payload;
mod print;
mod recording;
mod report;
mod rfc3339;
mod run;
mod signals;
mod spool;
mod sums;
mod symbolize;
pub mod symbols;
mod terminal;
mod top;
mod validate;
mod whole_file;
mod whole_messages;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand, ValueEnum};

/// Profiles Java programs, and reads, checks and receives OpenTelemetry profiles.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Report(report::Args),
    Flamegraph(flamegraph::Args),
    Diff(flamegraph::DiffArgs),
    Export(export::Args),
    Merge(merge::Args),
    Print(print::Args),
    Validate(validate::Args),
    CheckStacks(check_stacks::Args),
    Collect(collect::Args),
    Convert(convert::Args),
    Payload(payload::Args),
    Symbolize(symbolize::Args),
    Symbols(symbols::Args),
    Attach(attach::AttachArgs),
    Status(attach::StatusArgs),
    Stop(attach::StopArgs),
    Flush(attach::FlushArgs),
    List(attach::ListArgs),
    Record(attach::RecordArgs),
    Top(top::Args),
}

/// The format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Text,
    /// One JSON document
    Json,
}

/// The checked condition does not hold.
const EXIT_FAILED: u8 = 1;
/// The command line or an input is wrong.
const EXIT_BAD_INPUT: u8 = 2;

/// The help for arguments that no option takes, of commands that also take the agent's options.
const WORDS_OF_AGENT: &str = "The agent's options are one argument, separated by commas: cpu=5ms,alloc. The \
                              program of `run` comes after --: otlpprof run -- java -jar app.jar";

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Standard error may be closed, but the exit code reports the error all the same.
            let _ = error.print();
            let command = std::env::args().nth(1).unwrap_or_default();
            let takes_options = ["run", "attach", "record"].contains(&&*command);
            if takes_options && error.kind() == ErrorKind::UnknownArgument {
                let _ = writeln!(terminal::stderr(), "\n{}", WORDS_OF_AGENT);
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(EXIT_BAD_INPUT));
        }
    };
    let result = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Flamegraph(args) => flamegraph::run(&args),
        Command::Diff(args) => flamegraph::run_diff(&args),
        Command::Export(args) => export::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Print(args) => print::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::CheckStacks(args) => check_stacks::run(&args),
        Command::Collect(args) => collect::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Payload(args) => payload::run(&args),
        Command::Symbolize(args) => symbolize::run(&args),
        Command::Symbols(args) => symbols::run(&args),
        Command::Attach(args) => attach::attach(&args),
        Command::Status(args) => attach::status(&args),
        Command::Stop(args) => attach::stop(&args),
        Command::Flush(args) => attach::flush(&args),
        Command::List(args) => attach::list(&args),
        Command::Record(args) => attach::record(&args),
        Command::Top(args) => top::run(&args),
    };
    match result {
        Ok(code) => code,
        // The reader has closed the pipe, as `| head` does when it has read enough.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(terminal::stderr(), "otlpprof: {error:#}");
            ExitCode::from(EXIT_BAD_INPUT)
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io_error = error.downcast_ref::<io::Error>();
    io_error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
