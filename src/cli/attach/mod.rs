//! `otlpprof attach`, `status`, `stop`, `flush` and `list`: the agent in running JVMs.
//!
//! Input: a process id, and options of the agent. Output: the agent's answer, as lines or JSON. The command
//! speaks HotSpot's attach protocol itself, so that neither a JDK nor `jcmd` is needed, and reaches JVMs in
//! other PID and mount namespaces through /proc/PID/root.

mod caller_paths;
mod command;
mod error;
mod interrupts;
mod library;
mod list;
mod listener;
mod process;
mod state;
mod target_files;
mod target_user;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use self::error::AttachError;
use self::interrupts::Interrupts;
use self::library::{Library, VisibleLibrary};
use self::process::{JvmProcess, Maps};
use self::target_files::TargetFiles;
use self::target_user::TargetUser;
use super::terminal::{self, write_json};
use super::{EXIT_FAILED, Format};
use crate::export::answer::Answer;

/// Loads the agent into a running JVM and starts to profile
#[derive(Debug, clap::Args)]
pub(super) struct AttachArgs {
    #[command(flatten)]
    target: Target,
    /// Options of the agent, such as cpu=5ms,file=app.otlp. Relative paths begin at the current folder
    #[arg(default_value = "")]
    options: String,
    /// The agent's library. The default is libotlpprof.so beside this command
    #[arg(long, value_name = "PATH")]
    library: Option<PathBuf>,
}

/// Shows what the agent in a JVM does, and what it has sampled and sent
#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    target: Target,
}

/// Makes the agent in a JVM write and upload pending profiles, and stop
#[derive(Debug, clap::Args)]
pub(super) struct StopArgs {
    #[command(flatten)]
    target: Target,
}

/// Makes the agent in a JVM write pending profiles and queue them for upload
#[derive(Debug, clap::Args)]
pub(super) struct FlushArgs {
    #[command(flatten)]
    target: Target,
}

/// Lists the JVMs of this machine: process, user, Java version, whether the agent is loaded, main class
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Target {
    /// The JVM's process id
    pid: u32,
    /// Print the agent's answer as JSON
    #[arg(long)]
    json: bool,
    /// Give up after this time
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration, default_value = "30s")]
    timeout: Duration,
}

/// A command to the agent.
enum Request<'a> {
    /// Load the agent unless it is there, and pass these options on.
    Attach(&'a AttachArgs),
    /// Pass this word on to the agent that is there.
    Command(&'static str),
}

pub(super) fn attach(args: &AttachArgs) -> anyhow::Result<ExitCode> {
    run(&args.target, &Request::Attach(args))
}

pub(super) fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    run(&args.target, &Request::Command("status"))
}

pub(super) fn stop(args: &StopArgs) -> anyhow::Result<ExitCode> {
    run(&args.target, &Request::Command("stop"))
}

pub(super) fn flush(args: &FlushArgs) -> anyhow::Result<ExitCode> {
    run(&args.target, &Request::Command("flush"))
}

pub(super) fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let jvms = list::jvms()?;
    let mut out = terminal::stdout();
    match args.json {
        true => write_json(&list::to_json(&jvms), &mut out)?,
        false => list::print(&jvms, &mut out)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn run(target: &Target, request: &Request<'_>) -> anyhow::Result<ExitCode> {
    let answer = match answer(target, request) {
        // All files have been removed by now. A shell sees the signal in the exit code.
        Err(AttachError::Interrupted(signal)) => return Ok(ExitCode::from(128 + signal)),
        answer => answer?,
    };
    let format = if target.json { Format::Json } else { Format::Text };
    match format {
        Format::Json => {
            let mut out = terminal::stdout();
            write_json(&answer.to_json(), &mut out)?;
            out.flush()?;
        }
        Format::Text if answer.succeeded => {
            let mut out = terminal::stdout();
            state::print(&answer, &mut out)?;
            out.flush()?;
        }
        Format::Text => writeln!(terminal::stderr(), "otlpprof: {}", answer.message)?,
    }
    Ok(if answer.succeeded { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
}

fn answer(target: &Target, request: &Request<'_>) -> Result<Answer, AttachError> {
    let interrupts = Interrupts::new(target.timeout)?;
    let process = JvmProcess::find(target.pid)?;
    let files = TargetFiles::open(&process)?;
    let (library, options) = match request {
        Request::Attach(args) => {
            let folder = std::env::current_dir().map_err(AttachError::Wait)?;
            let options = caller_paths::made_absolute(&args.options, &folder)?;
            // Another user may not be able to read the library, so it is read before the user is switched.
            let library = match (&process.maps.agent, &args.library) {
                (Some(_), None) => None,
                (_, path) => Some(Library::read(path.as_deref())?),
            };
            (library, options)
        }
        Request::Command(word) => (None, (*word).to_owned()),
    };
    let _user = TargetUser::switch_to(&process)?;
    let mut visible = visible_library(&process, &files, library.as_ref())?;
    let copy = &mut visible.copy;
    let is_sent = || copy.iter_mut().for_each(|copy| copy.keep(true));
    let answer = command::send(&process, &files, &visible.path, &options, &interrupts, is_sent);
    // A copy that the JVM has not loaded is of no use. After a timeout it may still be loaded.
    let is_over = !matches!(answer, Err(AttachError::NoAnswer { .. } | AttachError::Interrupted(_)));
    let is_loaded = || Maps::of(process.pid).is_ok_and(|maps| maps.agent.is_some());
    if is_over && !is_loaded() {
        visible.copy.iter_mut().for_each(|copy| copy.keep(false));
    }
    answer
}

/// The library that the JVM is to load: the very one that it has loaded, or else this one.
fn visible_library(
    process: &JvmProcess,
    files: &TargetFiles,
    library: Option<&Library>,
) -> Result<VisibleLibrary, AttachError> {
    if let Some(path) = library::loaded(process, files)? {
        let inode = process.maps.agent.as_ref().map_or(0, |agent| agent.inode);
        if library.is_some_and(|library| !library.has_inode(inode)) {
            return Err(AttachError::OtherLibrary { pid: process.pid, path });
        }
        return Ok(VisibleLibrary { path, copy: None });
    }
    let library = library.ok_or(AttachError::NoAgent(process.pid))?;
    library.check(process, files)?;
    library.make_visible(process, files)
}
