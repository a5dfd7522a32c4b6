//! The agent's answer to a command of another process: its fields, its JSON, and its form on a socket.
//!
//! On the socket an answer is its length in bytes (u32, big-endian) and as many bytes of JSON. The agent
//! writes one answer, and the command reads it. Both come from this file, so that their fields agree.

use std::io::{self, Read};
use std::mem::offset_of;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Map, Value, json};

/// The option that names the socket for the answer. It comes first in the agent string.
pub const ANSWER_OPTION: &str = "answer=";

/// The most bytes of JSON that a reader accepts.
const MOST_BYTES: u32 = 1 << 20;

/// The agent's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Whether the agent did what the command requested.
    pub succeeded: bool,
    /// The outcome or the mistake, in one line.
    pub message: String,
    /// The agent's version.
    pub version: String,
    /// The running session.
    pub session: Option<SessionState>,
    /// The session that the request has ended.
    pub ended_session: Option<SessionState>,
    /// The latest warning or error in the agent's log.
    pub last_error: Option<LoggedError>,
    /// The lines that were logged while the request was carried out, without the agent's name.
    pub log: Vec<String>,
}

/// The state of a running session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionState {
    /// The time at which the session began, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// The time since then, in milliseconds.
    pub elapsed_ms: u64,
    /// The engines that are on, with the intervals of those that sample time.
    pub engines: Vec<String>,
    /// The stack walker.
    pub stack_walker: String,
    /// The clock of CPU samples.
    pub cpu_clock: Option<String>,
    /// The file and the collector that profiles go to, without secrets.
    pub destinations: Vec<String>,
    /// The counters since the session began, without zeros, by their names in docs/counters.md.
    pub counters: Vec<(String, u64)>,
}

impl SessionState {
    /// The counter of this name, without the prefix `otlpprof.`. 0 if the answer does not have it.
    pub fn counter(&self, name: &str) -> u64 {
        let of_name = |(full, _): &&(String, u64)| full.strip_prefix("otlpprof.") == Some(name);
        self.counters.iter().find(of_name).map_or(0, |(_, count)| *count)
    }
}

/// A warning or an error of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedError {
    /// The time of the line, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The line, without the agent's name.
    pub line: String,
}

impl Answer {
    /// The answer as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "succeeded": self.succeeded,
            "message": self.message,
            "version": self.version,
            "session": self.session.as_ref().map(SessionState::to_json),
            "endedSession": self.ended_session.as_ref().map(SessionState::to_json),
            "lastError": self.last_error.as_ref().map(|error| json!({
                "unixMs": error.unix_ms,
                "line": error.line,
            })),
            "log": self.log,
        })
    }

    /// Reads an answer from JSON. Unknown fields are ignored, and missing ones are empty: the agent may have
    /// another version than the command. Returns `None` if the value is not an answer.
    pub fn from_json(json: &Value) -> Option<Self> {
        let error = |error: &Value| LoggedError {
            unix_ms: error["unixMs"].as_u64().unwrap_or(0),
            line: text(&error["line"]),
        };
        Some(Self {
            succeeded: json["succeeded"].as_bool()?,
            message: text(&json["message"]),
            version: text(&json["version"]),
            session: json["session"].as_object().map(SessionState::from_json),
            ended_session: json["endedSession"].as_object().map(SessionState::from_json),
            last_error: json["lastError"].is_object().then(|| error(&json["lastError"])),
            log: json["log"].as_array().into_iter().flatten().map(text).collect(),
        })
    }

    /// The warnings and errors among the logged lines.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        let lines = self.log.iter().map(String::as_str);
        lines.filter(|line| line.starts_with("warning: ") || line.starts_with("error: "))
    }

    /// The answer as it is written to a socket.
    pub fn to_bytes(&self) -> Vec<u8> {
        let json = self.to_json().to_string();
        // SANITY: the agent's own lines and counters are far below 4 GiB.
        let length = u32::try_from(json.len()).expect("a short answer");
        [&length.to_be_bytes(), json.as_bytes()].concat()
    }

    /// Reads an answer from a socket.
    ///
    /// # Errors
    /// Errors of the reader, and `InvalidData` if the bytes are no answer or too many.
    pub fn read(reader: &mut impl Read) -> io::Result<Self> {
        Self::from_json(&Self::read_json(reader)?)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not an answer of the agent"))
    }

    /// Reads the JSON of an answer from a socket.
    ///
    /// # Errors
    /// Errors of the reader, and `InvalidData` if the bytes are no JSON or too many.
    pub fn read_json(reader: &mut impl Read) -> io::Result<Value> {
        let mut length = [0; 4];
        reader.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length);
        if length > MOST_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("an answer of {length} bytes")));
        }
        let mut json = vec![0; length as usize];
        reader.read_exact(&mut json)?;
        serde_json::from_slice(&json).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

impl SessionState {
    fn to_json(&self) -> Value {
        let counters = self.counters.iter().map(|(name, count)| (name.clone(), Value::from(*count)));
        json!({
            "startedUnixMs": self.started_unix_ms,
            "elapsedMs": self.elapsed_ms,
            "engines": self.engines,
            "stackWalker": self.stack_walker,
            "cpuClock": self.cpu_clock,
            "destinations": self.destinations,
            "counters": counters.collect::<Map<_, _>>(),
        })
    }

    fn from_json(json: &Map<String, Value>) -> Self {
        let number = |name: &str| json.get(name).and_then(Value::as_u64).unwrap_or(0);
        let texts = |name: &str| {
            let items = json.get(name).and_then(Value::as_array).into_iter().flatten();
            items.map(text).collect()
        };
        let counters = json.get("counters").and_then(Value::as_object).into_iter().flatten();
        let counters = counters.map(|(name, count)| (name.clone(), count.as_u64().unwrap_or(0)));
        Self {
            started_unix_ms: number("startedUnixMs"),
            elapsed_ms: number("elapsedMs"),
            engines: texts("engines"),
            stack_walker: json.get("stackWalker").map(text).unwrap_or_default(),
            cpu_clock: json.get("cpuClock").and_then(Value::as_str).map(str::to_owned),
            destinations: texts("destinations"),
            counters: counters.collect(),
        }
    }
}

/// The user and the process on the other end of a socket, as this process's namespaces know them (unix(7):
/// SO_PEERCRED).
///
/// # Errors
/// Errors of getsockopt(2).
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<libc::ucred> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: both pointers are to variables of this frame, and the length is the size of the first.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok(peer) } else { Err(io::Error::last_os_error()) }
}

/// Connects to a socket without waiting, and returns a connection that never waits either.
/// (`UnixStream::connect` waits while the listener's queue is full.)
///
/// # Errors
/// `WouldBlock` if the listener's queue is full, and other errors of socket(2) and connect(2).
pub fn connect_at_once(path: &Path) -> io::Result<UnixStream> {
    // SAFETY: the structure consists of integers, so zeros are a valid value.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    // The terminating zero needs room, too (unix(7)).
    if bytes.len() >= address.sun_path.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is too long for a socket"));
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call accesses no memory.
    let socket = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened, and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let length = offset_of!(libc::sockaddr_un, sun_path) + bytes.len() + 1;
    // SAFETY: the pointer is to a variable of this frame, and the length is within that variable.
    let connected =
        unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length as libc::socklen_t) };
    if connected == 0 { Ok(socket.into()) } else { Err(io::Error::last_os_error()) }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Answer {
        Answer {
            succeeded: true,
            message: "profiling".into(),
            version: "1.2.3".into(),
            session: Some(SessionState {
                started_unix_ms: 1_700_000_000_000,
                elapsed_ms: 42,
                engines: vec!["cpu every 10ms".into(), "alloc".into()],
                stack_walker: "vm".into(),
                cpu_clock: Some("perf".into()),
                destinations: vec!["/tmp/a \"b\".otlp".into()],
                counters: vec![("otlpprof.handler.samples_recorded".into(), 7)],
            }),
            last_error: Some(LoggedError { unix_ms: 5, line: "error: x".into() }),
            log: vec!["loaded".into(), "warning: y".into()],
            ..Answer::default()
        }
    }

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        let ended = Answer { session: None, ended_session: answer().session, ..answer() };
        for answer in [answer(), Answer::default(), ended] {
            assert_eq!(Answer::read(&mut &*answer.to_bytes()).unwrap(), answer);
        }
        assert_eq!(answer().session.unwrap().counter("handler.samples_recorded"), 7);
        assert_eq!(answer().session.unwrap().counter("handler.samples_dropped"), 0);
        assert_eq!(answer().warnings().collect::<Vec<_>>(), ["warning: y"]);
    }

    #[test]
    fn paths_that_are_no_sockets_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(108));
        assert_eq!(connect_at_once(&long).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let missing = folder.path().join("x");
        assert_eq!(connect_at_once(&missing).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn answers_that_are_cut_long_or_something_else_are_errors() {
        let whole = answer().to_bytes();
        for length in 0..whole.len() {
            assert!(Answer::read(&mut &whole[..length]).is_err(), "{length}");
        }
        let long = (MOST_BYTES + 1).to_be_bytes();
        assert_eq!(Answer::read(&mut &long[..]).unwrap_err().kind(), io::ErrorKind::InvalidData);
        let other = [&5_u32.to_be_bytes()[..], b"[1,2]"].concat();
        assert_eq!(Answer::read(&mut &*other).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
