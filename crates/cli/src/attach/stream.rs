//! Profiles that the agent in a JVM sends along while it samples.
//!
//! A running session is left as it is. Without one, a session is started, and stopped at the end.

use std::io::{self, ErrorKind, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use super::command::Received;
use super::error::AttachError;
use super::interrupts::Interrupts;
use super::jvm_agent::JvmAgent;
use super::refused_options::refuse;
use crate::agent_string;
use crate::message_frames::MessageFrames;

/// Options that would leave nothing to read along.
const REFUSED_OPTIONS: [&str; 1] = ["delay"];
/// Options that name a destination.
const DESTINATIONS: [&str; 2] = ["file", "endpoint"];
/// Bytes that are read at once.
const PART: usize = 1 << 16;

/// The JVM, and the session that is started in it.
#[derive(Debug)]
pub(crate) struct StreamArgs {
    /// The JVM's process id.
    pub(crate) pid: u32,
    /// Options of the session that is started if none runs.
    pub(crate) options: String,
    /// The agent's library, unless it is the one beside this command.
    pub(crate) library: Option<PathBuf>,
    /// The time between two messages.
    pub(crate) interval: Duration,
}

/// Messages of the agent in a JVM.
pub(crate) struct AgentStream {
    jvm: JvmAgent,
    connection: UnixStream,
    frames: MessageFrames,
    /// The session that this command has started, by the time of its start.
    own_session: Option<u64>,
    warnings: Vec<String>,
}

/// The result of a request for messages.
pub(crate) enum Opened {
    Stream(AgentStream),
    /// The agent sends none, for this reason.
    Refused(String),
}

impl AgentStream {
    /// Reads the running session along, or starts one.
    pub(crate) fn open(args: &StreamArgs, interrupts: &mut Interrupts) -> Result<Opened, AttachError> {
        let mut jvm = JvmAgent::find(args.pid)?;
        let given = jvm.options_of_caller(&args.options)?;
        let own_options = own_options(&given)?;
        let stream = format!("stream={}ms", args.interval.as_millis());
        if jvm.is_loaded() {
            let joined = jvm.command(&format!("{stream},status"), interrupts)?;
            if joined.answer.session.is_some() {
                return Ok(match (joined.answer.succeeded, &*args.options) {
                    (true, "") => Self::over(jvm, joined, false)?,
                    (true, _) => Opened::Refused(format!(
                        "the agent in JVM {0} is profiling already; leave out the options, or end that by \
                         `otlpprof stop {0}`",
                        args.pid
                    )),
                    (false, _) => Opened::Refused(joined.answer.message),
                });
            }
        }
        let library = jvm.library(args.library.as_deref())?;
        // If a signal interrupts this, a session that has no other destination ends without its reader.
        let started = jvm.load(library.as_ref(), &format!("{stream},{own_options}"), interrupts)?;
        if started.answer.succeeded && started.answer.session.is_some() {
            Ok(Self::over(jvm, started, true)?)
        } else {
            Ok(Opened::Refused(started.answer.message))
        }
    }

    fn over(jvm: JvmAgent, received: Received, is_own: bool) -> Result<Opened, AttachError> {
        let Received { answer, connection, .. } = received;
        let warnings = answer.warnings().map(str::to_owned).collect();
        connection.set_nonblocking(true).map_err(AttachError::Wait)?;
        let own_session = answer.session.filter(|_| is_own).map(|session| session.started_unix_ms);
        let frames = MessageFrames::default();
        Ok(Opened::Stream(Self { jvm, connection, frames, own_session, warnings }))
    }

    /// The warnings that the agent has logged while it started the session.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Becomes readable when messages have arrived.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }

    /// Calls `take` with each message that has arrived. Returns whether more may follow.
    pub(crate) fn read(
        &mut self,
        mut take: impl FnMut(Vec<u8>) -> anyhow::Result<()>,
    ) -> anyhow::Result<bool> {
        let mut part = vec![0; PART];
        let is_open = loop {
            match self.connection.read(&mut part) {
                Ok(0) => break false,
                Ok(count) => self.frames.push(&part[..count]),
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => break true,
                    // The JVM has been killed.
                    ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => break false,
                    _ => return Err(error.into()),
                },
            }
        };
        while let Some(message) = self.frames.take_next().map_err(io::Error::other)? {
            take(message)?;
        }
        Ok(is_open)
    }

    /// The reason for which no more messages come, in one line.
    pub(crate) fn end_line(&self) -> String {
        let pid = self.jvm.process.pid;
        match self.jvm.process.has_ended() {
            true => format!("JVM {pid} has ended"),
            false => format!("the agent in JVM {pid} has been stopped"),
        }
    }

    /// Ends the stream, and the session if this command has started it. Somebody else may have stopped it,
    /// and may have started another.
    pub(crate) fn close(self, interrupts: &mut Interrupts) -> Result<(), AttachError> {
        // The connection stays open until the session has ended: without readers the session would end by
        // itself, and say so in the log.
        let Self { mut jvm, connection: _connection, own_session, .. } = self;
        let Some(own_session) = own_session else { return Ok(()) };
        interrupts.restart();
        let mut stop = || {
            let status = jvm.command("status", interrupts)?.answer;
            let is_own = status.session.is_some_and(|session| session.started_unix_ms == own_session);
            if is_own { jvm.command("stop", interrupts).map(drop) } else { Ok(()) }
        };
        match stop() {
            Err(AttachError::Ended(_) | AttachError::NoProcess(_)) => Ok(()),
            stopped => stopped,
        }
    }
}

/// The options of a session that is started: those given, and no destination unless one is given.
fn own_options(given: &str) -> Result<String, AttachError> {
    refuse(given, &REFUSED_OPTIONS, AttachError::OptionOfTop, "top")?;
    let mut options: Vec<_> = agent_string::items(given).map(str::to_owned).collect();
    if !DESTINATIONS.iter().any(|name| agent_string::sets(given, name)) {
        options.push("endpoint=off".to_owned());
    }
    options.push("delay=0s".to_owned());
    Ok(options.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_go_nowhere_else_unless_that_is_wanted() {
        assert_eq!(own_options("").unwrap(), "endpoint=off,delay=0s");
        assert_eq!(own_options("cpu=1ms,,wall").unwrap(), "cpu=1ms,wall,endpoint=off,delay=0s");
        assert_eq!(own_options("file=/x").unwrap(), "file=/x,delay=0s");
        for refused in ["delay=1s", "stop", "cpu,status"] {
            assert!(own_options(refused).is_err(), "{refused}");
        }
    }
}
