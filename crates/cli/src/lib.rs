//! The `otlpprof` command.
//!
//! The input is arguments and files. The output is text or JSON on standard output, one line on standard
//! error for an error, and an exit code: 0 success, 1 a checked condition does not hold, 2 bad usage or
//! input. Called by `main`.
//!
//! | Profile a JVM | Duty |
//! |---|---|
//! | `run` | a program under the agent, from its start to the report |
//! | `attach` | the agent in running JVMs: `attach`, `status`, `stop`, `flush`, `list` and `record` |
//! | `top` | the functions and threads with the highest values now |
//! | `agent_library` | the agent's library, which is installed with this command |
//! | `agent_string` | the agent string that a user gives: its items, and its relative paths |
//! | `event_args` | events and their interval as async-profiler's command takes them |
//! | `executable` | the file of a program that a command line names |
//! | `main_class` | the main class of a JVM, by the arguments of its launcher |
//! | `signals` | the signals that end a command, and those that a terminal sends to its view |
//! | `output_args` | the files that the user has such a command write: pages, and profiles |
//! | `results` | the report on the terminal, and the files, when profiling has ended |
//! | `browser` | the browser that shows a page |
//!
//! | Show profiles | Duty |
//! |---|---|
//! | `report` | the functions in which the time went, of the selected samples |
//! | `flamegraph` | profiles as one page that a browser opens without network |
//! | `print` | files of profiles, for people and for scripts |
//!
//! | Check profiles | Duty |
//! |---|---|
//! | `validate` | the check of files against every rule of OTLP profiles |
//! | `check_stacks` | the number of samples that reach their root |
//! | `call_grammar` | rules for which methods of a known program may call which |
//!
//! | Convert and collect profiles | Duty |
//! |---|---|
//! | `convert` | recordings of JDK Flight Recorder to OTLP profiles |
//! | `payload` | the recording from which a profile was made |
//! | `export` | profiles in the formats of other tools |
//! | `merge` | many messages as one |
//! | `symbolize` | names for native frames that have none, in files or on the way to a backend |
//! | [`symbols`] | the store of executables and debug files |
//! | [`collect`] | a small OTLP/HTTP receiver of profiles |
//!
//! | Command line | Duty |
//! |---|---|
//! | `command_line` | the command line as people type it, in all accepted forms |
//! | `exit_codes` | the exit codes of commands that do not succeed |
//! | `completions` | completions for shells, and manual pages |
//! | `format_args` | the option for the form of a result |
//! | `time_bound` | times, absolute or relative to the begin or the end of the profiles |
//! | `rfc3339` | times by RFC 3339 |
//! | `duration` | spans of time |
//!
//! | Input and output | Duty |
//! |---|---|
//! | `input` | input files as streams of messages |
//! | `recording` | the lines for recordings that cannot be read, with advice |
//! | `spool` | copies of inputs that can be read only once, such as pipes |
//! | `message_frames` | messages with length prefixes, out of bytes that arrive part by part |
//! | `whole_messages` | the end of the last complete message in a file |
//! | `whole_file` | files that are replaced as a whole |
//! | `terminal` | text to a terminal, which text from a file cannot control |
//! | `counted` | numbers of things in words |
//! | `allocator` | settings of the C library's allocator, for commands with bounded memory |

mod agent_library;
mod agent_string;
mod allocator;
mod attach;
mod browser;
mod call_grammar;
mod check_stacks;
pub mod collect;
mod command_line;
mod completions;
mod convert;
mod counted;
mod duration;
mod event_args;
mod executable;
mod exit_codes;
mod export;
mod flamegraph;
mod format_args;
mod input;
mod main_class;
mod merge;
mod message_frames;
mod output_args;
mod payload;
mod print;
mod recording;
mod report;
mod results;
mod rfc3339;
mod run;
mod signals;
mod spool;
mod symbolize;
pub mod symbols;
mod terminal;
mod time_bound;
mod top;
mod validate;
mod whole_file;
mod whole_messages;

use std::io::{self, Write as _};
use std::process::ExitCode;

use self::command_line::Command;
use self::exit_codes::EXIT_BAD_INPUT;
use self::terminal::is_closed_pipe;

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let command = match command_line::parse(std::env::args_os().collect()) {
        Ok(command) => command,
        Err(code) => return code,
    };
    let result = match command {
        Command::Run(args) => run::run(&args),
        Command::Record(args) => attach::record(&args),
        Command::Top(args) => top::run(&args),
        Command::Attach(args) => attach::attach(&args),
        Command::Status(args) => attach::status(&args),
        Command::Flush(args) => attach::flush(&args),
        Command::Stop(args) => attach::stop(&args),
        Command::List(args) => attach::list(&args),
        Command::Options => print_options(),
        Command::Report(args) => report::run(&args),
        Command::Flamegraph(args) => flamegraph::run(&args),
        Command::Diff(args) => flamegraph::run_diff(&args),
        Command::Print(args) => print::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Payload(args) => payload::run(&args),
        Command::Collect(args) => collect::run(&args),
        Command::Symbolize(args) => symbolize::run(&args),
        Command::Symbols(args) => symbols::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::CheckStacks(args) => check_stacks::run(&args),
        Command::Completions(args) => completions::run(&args, command_line::command()),
        Command::Man(args) => completions::write_man_pages(&args, command_line::command()),
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

/// Prints the agent's options, as its own option `help` does.
fn print_options() -> anyhow::Result<ExitCode> {
    io::stdout().write_all(otlpprof_options::help().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
