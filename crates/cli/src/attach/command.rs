//! One command to the agent in a JVM, from the socket for the answer to the answer.

use std::io::ErrorKind;
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use otlpprof_export::answer::{ANSWER_OPTION, Answer, peer};
use serde_json::Value;

use super::error::AttachError;
use super::interrupts::Interrupts;
use super::listener::{self, Reply};
use super::process::JvmProcess;
use super::target_files::{TargetFiles, TemporaryName, random_name};

/// An answer of the agent.
pub(super) struct Received {
    pub(super) answer: Answer,
    /// The answer as it is: an agent of another version may say more.
    pub(super) json: Value,
    /// The connection, on which messages follow if they were requested.
    pub(super) connection: UnixStream,
}

/// The longest time for an agent that has connected to write its answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Loads the library with these options, and returns the agent's answer. `is_sent` is called as soon as the
/// JVM may load the library.
pub(super) fn send(
    process: &JvmProcess,
    files: &TargetFiles,
    library: &Path,
    options: &str,
    interrupts: &Interrupts,
    is_sent: impl FnOnce(),
) -> Result<Received, AttachError> {
    let mut jvm = listener::connect(process, files, interrupts)?;
    let socket = AnswerSocket::listen(files)?;
    let mut parts = vec![format!("{ANSWER_OPTION}{}", socket.path)];
    parts.extend((!options.is_empty()).then(|| options.to_owned()));
    let library = library.to_str().ok_or_else(|| AttachError::Library {
        path: library.to_owned(),
        error: "the path is not UTF-8".to_owned(),
    })?;
    listener::request_load(&mut jvm, library, &parts.join(","))?;
    is_sent();
    let (mut answer, mut reply) = (None, Vec::new());
    loop {
        let [connects, replies] =
            interrupts.wait([socket.listener.as_fd(), jvm.as_fd()], interrupts.left())?;
        if connects {
            answer = socket.read(process).or(answer);
        } else if replies {
            match listener::read_some(&mut jvm, &mut reply) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) if process.has_ended() => break,
                Err(error) => return Err(AttachError::Wait(error)),
            }
        } else if interrupts.left().is_zero() {
            return Err(AttachError::NoAnswer { pid: process.pid, waited: interrupts.timeout() });
        }
    }
    if reply.is_empty() && process.has_ended() {
        return Err(AttachError::Ended(process.pid));
    }
    match (answer, Reply::parse(&reply)) {
        (Some(answer), _) => Ok(answer),
        (None, Reply::NotAllowed) => Err(AttachError::DynamicLoadingDisabled(process.pid)),
        (None, Reply::NotLive) => Err(AttachError::Starting(process.pid)),
        (None, Reply::NotLoaded(reply)) => Err(AttachError::NotLoaded { pid: process.pid, reply }),
        (None, Reply::Returned(_)) => Err(AttachError::Silent(process.pid)),
    }
}

/// The socket on which the agent answers. Its file is removed with this value.
struct AnswerSocket {
    listener: UnixListener,
    /// The path in the JVM's namespace.
    path: String,
    _name: TemporaryName,
}

impl AnswerSocket {
    /// Creates the socket in the target's /tmp, as the target's user. Nobody else may connect.
    fn listen(files: &TargetFiles) -> Result<Self, AttachError> {
        files.check_tmp()?;
        let name = random_name().map_err(AttachError::Wait)?;
        let name = format!(".otlpprof-{name}");
        let outer_path = files.path_in_tmp(&name);
        // A mask, so that the file never has another mode.
        // SAFETY: the call accesses no memory.
        let mask = unsafe { libc::umask(0o177) };
        let listener = UnixListener::bind(&outer_path);
        // SAFETY: the call accesses no memory.
        unsafe { libc::umask(mask) };
        let listener = listener.map_err(|error| files.tmp_error(error))?;
        Ok(Self { listener, path: format!("/tmp/{name}"), _name: files.remove_later(&name) })
    }

    /// Accepts a connection and reads the answer, if the JVM's user has connected.
    fn read(&self, process: &JvmProcess) -> Option<Received> {
        let (mut agent, _) = self.listener.accept().ok()?;
        let of_peer = peer(agent.as_fd()).ok()?;
        if of_peer.uid != process.uid {
            return None;
        }
        agent.set_read_timeout(Some(ANSWER_TIME)).ok()?;
        loop {
            match Answer::read_json(&mut agent) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
                Ok(json) => {
                    let answer = Answer::from_json(&json)?;
                    return Some(Received { answer, json, connection: agent });
                }
            }
        }
    }
}
