//! The agent's log: lines on standard error, each begun with the agent's name, as users look for them.

use std::io::Write;

use log::{Level, LevelFilter, Log, Metadata, Record};

struct Stderr;

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Libraries below (the HTTP client, TLS) talk to themselves; only what is ours is for the user.
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

/// Writes one line at once, so that lines of the application do not come between. A closed standard error is
/// not the agent's concern.
pub(super) fn say(line: &str) {
    let line = format!("[otlpprof] {line}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Sends the library's log to standard error, from `level` on.
pub(super) fn set_level(level: LevelFilter) {
    // A logger that is there already was set by an earlier load of the agent.
    let _ = log::set_logger(&Stderr);
    log::set_max_level(level);
}
