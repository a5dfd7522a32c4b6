//! The lines that the uploader logs, on standard error.

use std::io::Write as _;

use log::{LevelFilter, Log, Metadata, Record};

use crate::terminal;

struct Lines;

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Only this program's own lines are for the user, not those of the libraries that it uses. The names
        // of all its packages begin with these letters.
        metadata.target().starts_with("otlpprof")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            // A closed standard error is no reason to end.
            let _ = writeln!(terminal::stderr(), "otlpprof: {}", record.args());
        }
    }

    fn flush(&self) {}
}

/// Writes warnings and errors to standard error from now on.
pub(super) fn start() {
    // Fails if the process has a logger already.
    let _ = log::set_logger(&Lines);
    log::set_max_level(LevelFilter::Warn);
}
