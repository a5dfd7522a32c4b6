//! `otlpprof attach`, `status`, `stop`, `flush`, `list` and `record`: the agent in running JVMs. `top` reads
//! its profiles along.
//!
//! Input: a process id, and options of the agent. Output: the agent's answer, as lines or JSON; of `record`
//! the profile. The command speaks HotSpot's attach protocol itself, so that neither a JDK nor `jcmd` is
//! needed, and reaches JVMs in other PID and mount namespaces through /proc/PID/root.
//!
//! | Commands | Duty |
//! |---|---|
//! | `record` | `otlpprof record`: profiles a running JVM for a while, and shows the result |
//! | `list` | the JVMs of this machine |
//! | `refused_options` | the options that a command does not take |
//! | `state` | the agent's answer for people |
//! | `stream` | the profiles that an agent sends along while it samples |
//! | `recording_file` | the temporary file to which the agent writes a recording |
//! | `countdown` | the time that is left of a recording, on a terminal |
//! | `interrupts` | waits that signals end, so that no temporary file is left |
//!
//! | The JVM and its agent | Duty |
//! |---|---|
//! | `jvm_name` | a JVM as a user names it: by process id, or by a part of its main class's name |
//! | `target_args` | the options of these commands: the JVM, and the agent that is loaded |
//! | `process` | the state of a JVM's process in /proc, and signals to it |
//! | `status` | the status of a process, from /proc/PID/status |
//! | `jvm_agent` | requests that load the agent, and commands to it |
//! | `command` | one command to the agent, up to its answer |
//! | `listener` | HotSpot's attach protocol |
//! | `library` | the agent's library: checked against the JVM, and made visible to it |
//! | `target_files` | files in the mount namespace of the JVM |
//! | `target_user` | the user of the JVM, as whom the command makes files and connects |
//! | `account_names` | the names of users and groups |
//! | `access` | the reason for which the kernel closes the files of a process in /proc |
//! | `error` | the reasons why a JVM cannot be commanded, each with the remedy |

mod access;
mod account_names;
mod command;
mod countdown;
mod error;
mod interrupts;
mod jvm_agent;
mod jvm_name;
mod library;
mod list;
mod listener;
mod process;
mod record;
mod recording_file;
mod refused_options;
mod state;
mod status;
mod stream;
mod target_args;
mod target_files;
mod target_user;

use std::io::Write as _;
use std::process::ExitCode;

use self::command::Received;
pub(super) use self::error::AttachError;
pub(super) use self::interrupts::Interrupts;
use self::jvm_agent::JvmAgent;
pub(super) use self::jvm_name::JvmName;
pub(super) use self::record::{RecordArgs, record};
pub(super) use self::stream::{AgentStream, Opened, StreamArgs};
use self::target_args::{AgentArgs, Target};
use super::exit_codes::EXIT_FAILED;
use super::format_args::{Format, FormatArgs};
use super::terminal::{self, write_json};

/// Load the agent into a running JVM and start to profile
#[derive(Debug, clap::Args)]
pub(super) struct AttachArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    answer: FormatArgs,
}

/// Show what the agent in a JVM does, has sampled and has sent
#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    answer: FormatArgs,
}

/// Write and upload pending profiles, and stop the agent in a JVM
#[derive(Debug, clap::Args)]
pub(super) struct StopArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    answer: FormatArgs,
}

/// Write pending profiles of a JVM, and queue them for upload
#[derive(Debug, clap::Args)]
pub(super) struct FlushArgs {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    answer: FormatArgs,
}

/// List the JVMs of this machine
///
/// Shows process, user, Java version, whether the agent is loaded, and main class.
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    form: FormatArgs,
}

/// A command to the agent.
enum Request<'a> {
    /// Load the agent unless it is there, and pass these options on.
    Attach(&'a AttachArgs),
    /// Pass this word on to the agent that is there.
    Command(&'static str),
}

pub(super) fn attach(args: &AttachArgs) -> anyhow::Result<ExitCode> {
    run(&args.target, args.answer, &Request::Attach(args))
}

pub(super) fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    run(&args.target, args.answer, &Request::Command("status"))
}

pub(super) fn stop(args: &StopArgs) -> anyhow::Result<ExitCode> {
    run(&args.target, args.answer, &Request::Command("stop"))
}

pub(super) fn flush(args: &FlushArgs) -> anyhow::Result<ExitCode> {
    run(&args.target, args.answer, &Request::Command("flush"))
}

pub(super) fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let jvms = list::jvms()?;
    let mut out = terminal::stdout();
    match args.form.format() {
        Format::Json => write_json(&list::to_json(&jvms), &mut out)?,
        Format::Text => list::print(&jvms, &mut out)?,
    }
    out.flush()?;
    if let Some(problem) = list::problem(&jvms) {
        writeln!(terminal::stderr(), "otlpprof: {problem}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn run(target: &Target, form: FormatArgs, request: &Request<'_>) -> anyhow::Result<ExitCode> {
    let Received { answer, json, .. } = match answer(target, request) {
        // All files have been removed by now. A shell sees the signal in the exit code.
        Err(AttachError::Interrupted(signal)) => return Ok(ExitCode::from(128 + signal)),
        answer => answer?,
    };
    match form.format() {
        Format::Json => {
            let mut out = terminal::stdout();
            write_json(&json, &mut out)?;
            out.flush()?;
        }
        Format::Text if answer.succeeded => {
            let mut out = terminal::stdout();
            state::print(&answer, &mut out)?;
            out.flush()?;
        }
        Format::Text => {
            state::print_warnings(&answer)?;
            writeln!(terminal::stderr(), "otlpprof: {}", answer.message)?;
        }
    }
    Ok(if answer.succeeded { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
}

fn answer(target: &Target, request: &Request<'_>) -> Result<Received, AttachError> {
    let interrupts = Interrupts::new(target.timeout)?;
    let mut jvm = JvmAgent::find(target.jvm.pid()?)?;
    match request {
        Request::Attach(args) => {
            let options = jvm.options_of_caller(&args.agent.options()?)?;
            let library = jvm.library(args.agent.library.as_deref())?;
            jvm.load(library.as_ref(), &options, &interrupts)
        }
        Request::Command(word) => jvm.command(word, &interrupts),
    }
}
