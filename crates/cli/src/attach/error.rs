//! The reasons why a JVM cannot be commanded: one line each, with the remedy.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::agent_string::RelativePath;
use crate::event_args::EventError;

/// A reason why a JVM cannot be commanded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachError {
    #[error("there is no process {0}; `otlpprof list` shows the JVMs")]
    NoProcess(u32),
    #[error("no JVM has `{0}` in the name of its main class or jar; `otlpprof list` shows the JVMs")]
    NoMatch(String),
    #[error("`{name}` is in the names of several JVMs: {jvms}; name one by its process id")]
    SeveralMatches { name: String, jvms: String },
    #[error("/proc: {0}")]
    List(io::Error),
    #[error("/proc is not that of this PID namespace; mount it by `mount -t proc proc /proc`")]
    ForeignProc,
    #[error("{id} is a thread of process {process}; name the process")]
    Thread { id: u32, process: u32 },
    #[error("process {0} has ended; `otlpprof list` shows the JVMs")]
    Ended(u32),
    #[error("process {0} is stopped and cannot answer; resume it by `kill -CONT {0}`")]
    Stopped(u32),
    #[error(
        "process {0} is no JVM, since it has no libjvm.so mapped (nor has a program compiled by GraalVM's \
         native-image); `otlpprof list` shows the JVMs"
    )]
    NoJvm(u32),
    #[error("process {pid} belongs to user {user}; run the command as that user or as root")]
    OtherUser { pid: u32, user: String },
    #[error(
        "process {pid} runs in the group {group}, and this command in another one; run the command by `sg \
         {group} -c '…'`, or as root"
    )]
    OtherGroup { pid: u32, group: String },
    #[error(
        "process {0} has more privileges than this command, such as a capability of its file, so that its \
         files in /proc are closed; run the command as root, or start the JVM with -agentpath"
    )]
    MorePrivileges(u32),
    #[error("process {0} is a JVM of Eclipse OpenJ9; otlpprof profiles HotSpot")]
    OpenJ9(u32),
    #[error(
        "process {0} cannot be inspected: the command lacks the capability CAP_SYS_PTRACE, which a container \
         has by `--cap-add SYS_PTRACE`, or runs in another user namespace"
    )]
    NotTraceable(u32),
    #[error("/proc/{pid}: {error}; run the command as root")]
    Proc { pid: u32, error: io::Error },
    #[error(
        "process {0} does not catch SIGQUIT and would die of it: wait until the JVM has started; a JVM with \
         -Xrs can be attached to only while its socket /tmp/.java_pid{0} exists"
    )]
    QuitNotCaught(u32),
    #[error("the JVM {0} was started with -XX:+DisableAttachMechanism; start it without, or with -agentpath")]
    AttachDisabled(u32),
    #[error(
        "the JVM {0} does not allow agents to be attached; start it with -XX:+EnableDynamicAgentLoading, or \
         with -agentpath"
    )]
    DynamicLoadingDisabled(u32),
    #[error(
        "the JVM {pid} did not answer within {waited:?}; it may be paused, or have its attach mechanism off: \
         try again, or raise --timeout"
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
        "the agent's file {} has been replaced since the JVM {pid} loaded it; move the new file away, or \
         restart the JVM", path.display()
    )]
    AgentFileReplaced { pid: u32, path: PathBuf },
    #[error("the JVM {0} has no agent; `otlpprof attach {0}` loads it")]
    NoAgent(u32),
    #[error("user {uid} listens on the JVM's attach socket {path}, not the JVM; remove that file")]
    ForeignSocket { uid: libc::uid_t, path: String },
    #[error("the JVM {0} is still starting; try again")]
    Starting(u32),
    #[error("the JVM {pid} did not load the agent: {reply}")]
    NotLoaded { pid: u32, reply: String },
    #[error("the agent in JVM {0} gave no answer; the JVM's stderr says why, unless the agent is older")]
    Silent(u32),
    #[error("the {what} has {length} bytes, but the JVM takes at most {most}; shorten it")]
    TooLong { what: &'static str, length: usize, most: usize },
    #[error(transparent)]
    RelativePath(#[from] RelativePath),
    #[error(transparent)]
    Event(#[from] EventError),
    #[error(
        "the JVM {pid} does not see the folder {}, where relative paths begin; write absolute paths of the \
         JVM's own files", folder.display()
    )]
    FolderElsewhere { pid: u32, folder: PathBuf },
    #[error("{0}: record sets this option itself; use --output, --duration or `otlpprof attach`")]
    OptionOfRecord(String),
    #[error("{0}: top shows a session from its start; leave the option out")]
    OptionOfTop(String),
    #[error("{word} is a command of the agent, but {by} takes options; run `otlpprof {word} PID`")]
    CommandAmongOptions { word: String, by: &'static str },
    #[error("user {uid} cannot be switched to: {error}; run the command as that user")]
    Switch { uid: libc::uid_t, error: io::Error },
    /// A signal asked the command to end.
    #[error("interrupted by signal {0}")]
    Interrupted(u8),
    #[error("waiting failed: {0}")]
    Wait(io::Error),
}

impl AttachError {
    /// The reason why a file in /proc/PID of a process that this user may command cannot be used.
    pub(super) fn of_proc(pid: u32, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::NotTraceable(pid),
            _ => Self::Proc { pid, error },
        }
    }
}
