//! HotSpot's attach protocol.
//!
//! A JVM opens its attach socket, /tmp/.java_pidN, when it gets SIGQUIT and finds /tmp/.attach_pidN, a file
//! of its own user. N is the process's id in its own namespace. Each connection carries one request: the
//! protocol's version, the command and three arguments, each ended by a zero byte. The JVM answers with the
//! number of a result in a line, and text (HotSpot: os/posix/attachListener_posix.cpp, until 21
//! os/linux/attachListener_linux.cpp; JDK: sun.tools.attach.VirtualMachineImpl). JDK 24 added a second
//! version, and keeps this one.

use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use otlpprof_export::answer::{connect_at_once, peer};

use super::error::AttachError;
use super::interrupts::Interrupts;
use super::process::JvmProcess;
use super::target_files::TargetFiles;

/// The most bytes of an argument (AttachOperation::arg_length_max).
const MOST_ARGUMENT_BYTES: usize = 1024;

/// The time between two looks for the socket.
const LOOK: Duration = Duration::from_millis(20);

/// Connects to the JVM's attach socket. Makes the JVM open it if necessary.
pub(super) fn connect(
    process: &JvmProcess,
    files: &TargetFiles,
    interrupts: &Interrupts,
) -> Result<UnixStream, AttachError> {
    process.check_running()?;
    // A listener that is busy must get no signal: it would print the JVM's threads.
    loop {
        match try_to_connect(process, files)? {
            Connection::Made(socket) => return Ok(socket),
            Connection::Absent => break,
            Connection::Busy => wait_a_moment(process, interrupts)?,
        }
    }
    if process.has_attach_disabled {
        return Err(AttachError::AttachDisabled(process.pid));
    }
    files.check_tmp()?;
    let name = format!(".attach_pid{}", process.own_pid);
    let _request = match files.create(&name, 0o600) {
        Ok((_, name)) => name,
        // Another command attaches at the same time, or one has left the file behind.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => files.remove_later(&name),
        Err(error) => return Err(files.tmp_error(error)),
    };
    process.send_quit()?;
    loop {
        wait_a_moment(process, interrupts)?;
        if let Connection::Made(socket) = try_to_connect(process, files)? {
            return Ok(socket);
        }
    }
}

/// Waits before the next look for the socket. Fails if the process has ended, or the time has passed.
fn wait_a_moment(process: &JvmProcess, interrupts: &Interrupts) -> Result<(), AttachError> {
    interrupts.wait([], LOOK.min(interrupts.left()))?;
    if process.has_ended() {
        return Err(AttachError::Ended(process.pid));
    }
    if interrupts.left().is_zero() {
        return Err(AttachError::NoAnswer { pid: process.pid, waited: interrupts.timeout() });
    }
    Ok(())
}

/// The outcome of an attempt to connect.
enum Connection {
    Made(UnixStream),
    /// The JVM listens, and has too many connections to accept.
    Busy,
    /// The JVM does not listen.
    Absent,
}

/// Connects to the socket if the JVM listens on it. An earlier process of the same id may have left a socket
/// behind, on which nobody listens.
fn try_to_connect(process: &JvmProcess, files: &TargetFiles) -> Result<Connection, AttachError> {
    let name = format!(".java_pid{}", process.own_pid);
    let socket = match connect_at_once(&files.path_in_tmp(&name)) {
        Ok(socket) => socket,
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => return Ok(Connection::Absent),
            ErrorKind::WouldBlock => return Ok(Connection::Busy),
            _ => return Err(files.tmp_error(error)),
        },
    };
    socket.set_nonblocking(false).map_err(AttachError::Wait)?;
    let listener = peer(socket.as_fd()).map_err(|error| files.tmp_error(error))?;
    if listener.uid != process.uid {
        return Err(AttachError::ForeignSocket { uid: listener.uid, path: format!("/tmp/{name}") });
    }
    Ok(Connection::Made(socket))
}

/// Requests that the JVM load a library with these options.
pub(super) fn request_load(socket: &mut UnixStream, library: &str, options: &str) -> Result<(), AttachError> {
    for (what, text) in [("library's path", library), ("text of the options", options)] {
        if text.len() > MOST_ARGUMENT_BYTES {
            return Err(AttachError::TooLong { what, length: text.len(), most: MOST_ARGUMENT_BYTES });
        }
    }
    socket.write_all(&load_request(library, options)).map_err(AttachError::Wait)
}

/// Version, command, path, whether the path is absolute, and options.
fn load_request(library: &str, options: &str) -> Vec<u8> {
    ["1", "load", library, "true", options]
        .iter()
        .flat_map(|part| [part.as_bytes(), b"\0"].concat())
        .collect()
}

/// The JVM's answer to a request to load an agent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// `Agent_OnAttach` has returned this result.
    Returned(i32),
    /// The JVM's flag EnableDynamicAgentLoading is off.
    NotAllowed,
    /// The JVM is still starting.
    NotLive,
    /// The library was not loaded, for this reason.
    NotLoaded(String),
}

impl Reply {
    /// Parses the JVM's text: `RESULT\nreturn code: CODE`, or a message instead of the second line.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (_, message) = text.split_once('\n').unwrap_or(("", &text));
        if message.contains("Dynamic agent loading is not enabled") {
            return Self::NotAllowed;
        }
        if message.contains("only permitted in the live phase") {
            return Self::NotLive;
        }
        let code = message.lines().find_map(|line| line.trim().strip_prefix("return code: ")?.parse().ok());
        code.map_or_else(
            || {
                let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
                let message = lines.collect::<Vec<_>>().join(" ");
                Self::NotLoaded(if message.is_empty() { "it gave no reason".to_owned() } else { message })
            },
            Self::Returned,
        )
    }
}

/// Appends the bytes that the socket has. Returns `false` at its end.
pub(super) fn read_some(socket: &mut UnixStream, reply: &mut Vec<u8>) -> io::Result<bool> {
    use std::io::Read as _;
    let mut bytes = [0; 4096];
    let count = socket.read(&mut bytes)?;
    reply.extend_from_slice(&bytes[..count]);
    Ok(count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_five_parts_each_ended_by_zero() {
        assert_eq!(load_request("/a.so", "cpu=1ms"), b"1\0load\0/a.so\0true\0cpu=1ms\0");
    }

    #[test]
    fn replies_of_all_versions_are_understood() {
        let reply = |text: &str| Reply::parse(text.as_bytes());
        assert_eq!(reply("0\nreturn code: 0\n"), Reply::Returned(0));
        assert_eq!(reply("0\nreturn code: -1"), Reply::Returned(-1));
        let disabled = "Dynamic agent loading is not enabled. Use -XX:+EnableDynamicAgentLoading to launch \
                        target VM.";
        assert_eq!(reply(&format!("-1\n{disabled}")), Reply::NotAllowed);
        let starting = "Dynamic agent loading is only permitted in the live phase\n";
        assert_eq!(reply(&format!("-1\n{starting}")), Reply::NotLive);
        assert_eq!(
            reply("0\n/x.so was not loaded.\n/x.so: no such file\n"),
            Reply::NotLoaded("/x.so was not loaded. /x.so: no such file".into())
        );
        assert_eq!(reply(""), Reply::NotLoaded("it gave no reason".into()));
    }
}
