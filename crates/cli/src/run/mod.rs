//! `otlpprof run`: a program under the agent, from its start to the report.
//!
//! Input: a command line, and options of the agent. Output: the program's own output and exit code; then, on
//! standard error, the report; pages and profiles in files. Each JVM of the program writes a file of its own
//! to a temporary folder, which is removed at the end.
//!
//! | Module | Duty |
//! |---|---|
//! | `agent_options` | the user's options of the agent, and those that a run adds |
//! | `launcher` | the argument or the variable by which a program loads the agent |
//! | `tool_options` | the text of the variable JAVA_TOOL_OPTIONS |
//! | `program` | the program, from its start to its end |
//! | `program_signals` | the signals that the program gets from the command |
//! | `jvm_watch` | the JVMs among a program's processes, and whether they have loaded the agent |
//! | `profile_folder` | the temporary folder with a file for each profiled process |
//! | `process_profiles` | the profiles that the processes have written until the program's end |

mod agent_options;
mod jvm_watch;
mod launcher;
mod process_profiles;
mod profile_folder;
mod program;
mod program_signals;
mod tool_options;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};

use self::jvm_watch::JvmWatch;
use self::launcher::Loading;
use self::profile_folder::ProfileFolder;
use self::program_signals::ProgramSignals;
use super::event_args::EventArgs;
use super::output_args::{OutputArgs, OutputFiles};
use super::results::{self, ReportArgs, Stream, Written, say};
use super::{agent_library, agent_string, browser, duration};

/// Run a program, and show where its time went
///
/// Starts a Java program under the agent, or a script or build tool that starts Java programs. When it has
/// ended, in whatever way, prints a report to standard error and writes a flame graph page. The exit code is
/// the program's, or 128 and the signal that ended it.
#[derive(Debug, clap::Args)]
#[command(override_usage = "otlpprof run [OPTIONS] [AGENT_OPTIONS] [--] <PROGRAM>...")]
pub(super) struct Args {
    /// Options of the agent in one word, such as cpu=5ms,alloc. Relative paths begin at the current folder
    #[arg(value_name = "AGENT_OPTIONS", default_value = "", hide_default_value = true)]
    options: String,
    /// The program and its arguments, such as java -jar app.jar. A program with the name of an option
    /// comes after --
    #[arg(value_name = "PROGRAM", last = true, required = true)]
    program: Vec<OsString>,
    #[command(flatten)]
    events: EventArgs,
    /// Sample for this long only, from the start of each JVM; the program runs on
    #[arg(short, long, value_name = "DURATION", value_parser = duration::parse)]
    duration: Option<Duration>,
    #[command(flatten)]
    outputs: OutputArgs,
    #[command(flatten)]
    report: ReportArgs,
    /// The agent's library [default: libotlpprof.so beside this command, in ../lib, or in
    /// ../lib/otlpprof]
    #[arg(long, visible_alias = "agent", value_name = "PATH")]
    library: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Some((name, arguments)) = args.program.split_first() else { bail!("no program after --") };
    let options = agent_options::with_duration(args.events.with_events(&args.options)?, args.duration)?;
    let outputs = OutputFiles::of(&args.outputs)?;
    let library = agent_library::find(args.library.as_deref())?;
    // From now on, no signal ends the command before it has removed the folder.
    let signals = ProgramSignals::block();
    let folder = ProfileFolder::create()?;
    let loading = Loading::of(name);
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    // A script may start the JVM in another folder.
    let caller_folder = std::env::current_dir().context("the current folder")?;
    let given = agent_string::with_absolute_paths(&options, &caller_folder)?;
    let options = agent_options::completed(&given, &folder.file_option()?, loading, is_set)?;
    let mut command = launcher::command(name, arguments, loading, &library, &options)?;
    let watch = JvmWatch::begin(&library);
    let ended = program::run(&mut command, &signals);
    let seen = watch.end();
    let status = match ended {
        Ok(status) => status,
        Err(error) => {
            say(&format!("{} cannot be started: {error}", name.display()));
            return Ok(ExitCode::from(program::exit_code_of_error(&error)));
        }
    };
    end_on_interrupt(signals, folder.path().to_owned());
    if !status.success() {
        say(&format!("{} has ended: {status}", name.display()));
    }
    let files = process_profiles::files(&folder, &library, &seen, loading);
    if !files.is_empty() {
        let Written { pages, .. } = results::write(&args.report, &outputs, &files, Stream::Error);
        if args.outputs.open
            && let Some(page) = pages.first()
            && let Err(error) = browser::open(page, |browser| signals.restore_in(browser))
        {
            say(&format!("{error:#}"));
        }
    }
    Ok(ExitCode::from(program::exit_code(status)))
}

/// Lets a signal end the command while results are written. The folder is removed first. Files that are being
/// written stay as they were.
fn end_on_interrupt(signals: ProgramSignals, folder: PathBuf) {
    thread::spawn(move || {
        loop {
            let received = signals.wait();
            if received.is_interrupt() {
                let _ = fs::remove_dir_all(&folder);
                std::process::exit(program::SIGNALLED + received.signal);
            }
        }
    });
}
