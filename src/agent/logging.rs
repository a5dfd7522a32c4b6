//! The agent's log: lines on standard error. Each begins with the agent's name, by which users find it.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use log::{Level, LevelFilter, Log, Metadata, Record};
use parking_lot::Mutex;

use crate::export::answer::LoggedError;

/// The latest warning or error.
static LAST_ERROR: Mutex<Option<LoggedError>> = Mutex::new(None);

/// The latest warning or error that was logged since the library was loaded.
pub(super) fn last_error() -> Option<LoggedError> {
    LAST_ERROR.lock().clone()
}

/// Now, in milliseconds since 1970.
pub(super) fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

struct Stderr;

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Only the agent's own messages are for the user, not those of the libraries that it uses (the HTTP
        // client, TLS).
        metadata.target().starts_with(env!("CARGO_PKG_NAME"))
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

/// Writes one line in a single call, so that lines of the application do not come between its parts. If
/// standard error is closed, the line is lost.
pub(super) fn say(line: &str) {
    if line.starts_with("error: ") || line.starts_with("warning: ") {
        *LAST_ERROR.lock() = Some(LoggedError { unix_ms: unix_ms(), line: line.to_owned() });
    }
    let line = format!("[otlpprof] {line}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Directs the log to standard error, for messages of `level` and above.
pub(super) fn set_level(level: LevelFilter) {
    // Fails if an earlier load of the agent has already set the logger.
    let _ = log::set_logger(&Stderr);
    log::set_max_level(level);
}
