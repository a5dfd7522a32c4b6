//! The socket on which a command of another process waits for the agent's answer.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use otlpprof_export::answer::{ANSWER_OPTION, Answer, connect_at_once, peer};
use otlpprof_options::split_leading;

use super::logging;

/// Splits the socket's path off an agent string: `answer=/tmp/NAME,OPTIONS`.
pub(super) fn split(options: &[u8]) -> (Option<&Path>, &[u8]) {
    match split_leading(options, ANSWER_OPTION) {
        Some((path, rest)) => (Some(Path::new(OsStr::from_bytes(path))), rest),
        None => (None, options),
    }
}

/// Writes the answer to the socket at `path`, if root or this process's own user listens on it. Returns the
/// connection, which does not block. A failure is logged.
pub(super) fn send(path: &Path, answer: &Answer) -> Option<UnixStream> {
    let sent = try_to_send(path, answer);
    let failed = |error: &io::Error| {
        logging::say(&format!("error: answer={}: {error}; nobody gets the answer", path.display()));
    };
    sent.inspect_err(failed).ok()
}

fn try_to_send(path: &Path, answer: &Answer) -> io::Result<UnixStream> {
    // A command that does not accept or read loses the answer, and delays nobody.
    let socket = connect_at_once(path)?;
    let uid = peer(socket.as_fd())?.uid;
    // SAFETY: the call accesses no memory.
    let own_uid = unsafe { libc::geteuid() };
    if !is_trusted(uid, own_uid) {
        return Err(io::Error::other(format!(
            "user {uid} listens there, neither root nor this process's user"
        )));
    }
    let bytes = answer.to_bytes();
    let mut rest = &*bytes;
    while !rest.is_empty() {
        // A reader that is gone raises no SIGPIPE.
        // SAFETY: the buffer is valid for its length.
        let sent =
            unsafe { libc::send(socket.as_raw_fd(), rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL) };
        match usize::try_from(sent) {
            Ok(sent) => rest = &rest[sent..],
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(socket)
}

fn is_trusted(peer: libc::uid_t, own: libc::uid_t) -> bool {
    peer == 0 || peer == own
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_answers_path_comes_first() {
        let split = |text: &'static str| {
            let (path, rest) = split(text.as_bytes());
            (path.map(|path| path.to_str().unwrap()), std::str::from_utf8(rest).unwrap())
        };
        assert_eq!(split("answer=/tmp/x,status"), (Some("/tmp/x"), "status"));
        assert_eq!(split("answer=/tmp/x"), (Some("/tmp/x"), ""));
        assert_eq!(split("cpu=1ms,answer=/tmp/x"), (None, "cpu=1ms,answer=/tmp/x"));
        assert_eq!(split(""), (None, ""));
    }

    /// Regression: the JVM's attach listener waited for a command that did not accept its connection.
    #[test]
    fn a_command_that_accepts_no_connection_delays_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        // The shortest queue. A listener may set its length again.
        // SAFETY: the call accesses no memory.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        let refused = (0..3).find_map(|_| try_to_send(&path, &Answer::default()).err());
        assert_eq!(refused.unwrap().kind(), io::ErrorKind::WouldBlock);
        let first = Answer::read(&mut listener.accept().unwrap().0).unwrap();
        assert_eq!(first, Answer::default());
    }

    #[test]
    fn only_root_and_the_own_user_get_answers() {
        assert!(is_trusted(0, 1000) && is_trusted(1000, 1000) && is_trusted(0, 0));
        assert!(!is_trusted(1001, 1000) && !is_trusted(1000, 0));
    }
}
