//! The agent's log: lines on standard error. Each begins with the agent's name, by which users find it.

use std::io::Write;
use std::thread::{self, ThreadId};
use std::time::{SystemTime, UNIX_EPOCH};

use log::{Level, LevelFilter, Log, Metadata, Record};
use parking_lot::Mutex;

use otlpprof_export::answer::LoggedError;

/// The latest warning or error.
static LAST_ERROR: Mutex<Option<LoggedError>> = Mutex::new(None);

/// The thread whose lines go into the answer to its request, and the lines so far.
static CAPTURED: Mutex<Option<(ThreadId, Vec<String>)>> = Mutex::new(None);

/// The latest warning or error that was logged since the library was loaded.
pub(super) fn last_error() -> Option<LoggedError> {
    LAST_ERROR.lock().clone()
}

/// Now, in milliseconds since 1970.
pub(super) fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The first letters of the names of all packages of the project, which are the targets of their records.
const PROJECT: &str = "otlpprof";

struct Stderr;

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Only the agent's own messages are for the user, not those of the libraries that it uses (the HTTP
        // client, TLS).
        metadata.target().starts_with(PROJECT)
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let level = match record.level() {
            Level::Error => "error: ",
            Level::Warn => "warning: ",
            Level::Info | Level::Debug | Level::Trace => "",
        };
        say(&format!("{level}{}", record.args()));
    }

    fn flush(&self) {}
}

/// Logs a line, whatever the level is.
pub(super) fn say(line: &str) {
    note(line);
    if !with_captured(|lines| lines.push(line.to_owned())) {
        print(line);
    }
}

/// Logs a line that the answer to this thread's request says as well: no captured line repeats it.
pub(super) fn say_outcome(line: &str) {
    note(line);
    if !is_captured() {
        print(line);
    }
}

/// As [`say_outcome`], if the level is information or lower.
pub(super) fn announce(line: &str) {
    if log::log_enabled!(target: PROJECT, Level::Info) {
        say_outcome(line);
    }
}

/// Writes one line in a single call, so that lines of the application do not come between its parts. If
/// standard error is closed, the line is lost.
pub(super) fn print(line: &str) {
    let line = format!("[otlpprof] {line}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Keeps the latest warning or error.
fn note(line: &str) {
    if line.starts_with("error: ") || line.starts_with("warning: ") {
        *LAST_ERROR.lock() = Some(LoggedError { unix_ms: unix_ms(), line: line.to_owned() });
    }
}

/// Captures this thread's lines until the result is dropped: they belong into the answer to a request, and
/// not on standard error. While another thread captures its lines, this thread's lines are not captured.
pub(super) fn capture() -> Capture {
    CAPTURED.lock().get_or_insert_with(|| (thread::current().id(), Vec::new()));
    Capture(())
}

/// Whether this thread's lines are captured.
pub(super) fn is_captured() -> bool {
    with_captured(|_| ())
}

/// Calls `body` with this thread's captured lines. Returns whether there are any.
fn with_captured(body: impl FnOnce(&mut Vec<String>)) -> bool {
    let this_thread = thread::current().id();
    let mut captured = CAPTURED.lock();
    let lines = captured.as_mut().filter(|(thread, _)| *thread == this_thread);
    lines.map(|(_, lines)| body(lines)).is_some()
}

/// A thread's lines are captured until this value is dropped.
pub(super) struct Capture(());

impl Capture {
    /// Ends the capture, and returns the lines.
    pub(super) fn end(self) -> Vec<String> {
        let mut captured = Vec::new();
        with_captured(|lines| captured = std::mem::take(lines));
        captured
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let this_thread = thread::current().id();
        CAPTURED.lock().take_if(|(thread, _)| *thread == this_thread);
    }
}

/// Directs the log to standard error, for messages of `level` and above.
pub(super) fn set_level(level: LevelFilter) {
    // Fails if an earlier load of the agent has already set the logger.
    let _ = log::set_logger(&Stderr);
    log::set_max_level(level);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_lines_are_captured_without_its_outcome() {
        let capture = capture();
        say("warning: this is captured");
        say_outcome("started");
        let other = || {
            assert!(!is_captured());
            let capture = super::capture();
            assert!(!is_captured(), "a thread captures already");
            capture.end()
        };
        assert_eq!(thread::scope(|scope| scope.spawn(other).join().unwrap()), Vec::<String>::new());
        assert!(is_captured());
        assert_eq!(capture.end(), ["warning: this is captured"]);
        assert!(!is_captured());
    }
}
