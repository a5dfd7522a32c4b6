//! The reasons why a JVM cannot be commanded: one line each, with the remedy.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A reason why a JVM cannot be commanded.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttachError {
    #[error("there is no process {0}; `otlpprof list` shows the JVMs")]
    NoProcess(u32),
    #[error("process {0} has ended; `otlpprof list` shows the JVMs")]
    Ended(u32),
    #[error("process {0} is stopped and cannot answer; resume it by `kill -CONT {0}`")]
    Stopped(u32),
    #[error("process {0} is no JVM, since it has no libjvm.so mapped; `otlpprof list` shows the JVMs")]
    NoJvm(u32),
    #[error("process {pid} belongs to user {user}; run the command as that user or as root")]
    OtherUser { pid: u32, user: String },
    #[error("/proc/{pid}: {error}")]
    Proc { pid: u32, error: io::Error },
    #[error("process {0} does not catch SIGQUIT and would die of it: wait until the JVM has started")]
    QuitNotCaught(u32),
    #[error("the JVM {0} was started with -XX:+DisableAttachMechanism; start it without, or with -agentpath")]
    AttachDisabled(u32),
    #[error(
        "the JVM {0} does not allow agents to be attached; start it with -XX:+EnableDynamicAgentLoading, or \
         with -agentpath"
    )]
    DynamicLoadingDisabled(u32),
    #[error(
        "the JVM {pid} did not answer within {waited:?}; it may be paused: try again, or raise --timeout"
    )]
    NoAnswer { pid: u32, waited: Duration },
    #[error("the /tmp of process {pid} cannot be used: {error}; make it a folder that its user may write to")]
    Tmp { pid: u32, error: io::Error },
    #[error(
        "the /tmp of process {0} is mounted read-only, but attaching needs files there; make it writable"
    )]
    TmpReadOnly(u32),
    #[error("the /tmp of process {0} has no room; free some")]
    TmpFull(u32),
    #[error(
        "the /tmp of process {0} is mounted noexec, and the library is not visible to it elsewhere; make the \
         library visible under its own path"
    )]
    TmpNoExec(u32),
    #[error("{}: {error}; name the library by --library PATH", path.display())]
    Library { path: PathBuf, error: String },
    #[error("{} is built for {library}, but the JVM {pid} for {jvm}; use the library of its architecture",
        path.display())]
    Architecture { path: PathBuf, library: &'static str, pid: u32, jvm: &'static str },
    #[error("{} is built for {library}, but the JVM {pid} uses {jvm}; use a library for its C library",
        path.display())]
    CLibrary { path: PathBuf, library: &'static str, pid: u32, jvm: &'static str },
    #[error(
        "the JVM {pid} has the agent already, from {}; leave out --library, or restart the JVM",
        path.display()
    )]
    OtherLibrary { pid: u32, path: PathBuf },
    #[error(
        "the agent's file {} has been deleted or replaced since the JVM {pid} loaded it; put it back, or \
         restart the JVM", path.display()
    )]
    AgentFileGone { pid: u32, path: PathBuf },
    #[error("the JVM {0} has no agent; `otlpprof attach {0}` loads it")]
    NoAgent(u32),
    #[error("user {uid} listens on the JVM's attach socket {path}, not the JVM; remove that file")]
    ForeignSocket { uid: libc::uid_t, path: String },
    #[error("the JVM {pid} did not load the agent: {reply}")]
    NotLoaded { pid: u32, reply: String },
    #[error(
        "the agent of JVM {0} is older than the command and does not answer; use the command of its \
         version"
    )]
    OldAgent(u32),
    #[error("the {what} has {length} bytes, but the JVM takes at most {most}; shorten it")]
    TooLong { what: &'static str, length: usize, most: usize },
    #[error("`{option}` is relative to a folder whose name has ',' or '%'; write an absolute path")]
    RelativePath { option: String },
    #[error("user {uid} cannot be switched to: {error}; run the command as that user")]
    Switch { uid: libc::uid_t, error: io::Error },
    /// A signal asked the command to end.
    #[error("interrupted by signal {0}")]
    Interrupted(u8),
    #[error("waiting failed: {0}")]
    Wait(io::Error),
}
