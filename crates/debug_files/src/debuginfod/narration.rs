//! Lines about a client's downloads, if the environment asks for them (debuginfod-find's manual,
//! `DEBUGINFOD_PROGRESS` and `DEBUGINFOD_VERBOSE`).

use std::time::{Duration, Instant};

use super::settings::Settings;

/// Shows a line to the user.
pub type Tell = fn(&str);

/// The time between two lines about a download that goes on.
const BETWEEN: Duration = Duration::from_secs(5);

/// The lines that a client shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Narration {
    progress: Option<Tell>,
    details: Option<Tell>,
}

impl Narration {
    pub(super) fn new(settings: &Settings, tell: Tell) -> Self {
        Self { progress: settings.progress.then_some(tell), details: settings.verbose.then_some(tell) }
    }

    /// Shows a detail, such as what a server has answered.
    pub(super) fn detail(self, line: impl FnOnce() -> String) {
        if let Some(tell) = self.details {
            tell(&format!("debuginfod: {}", line()));
        }
    }

    /// Shows that a download begins, and returns its progress.
    pub(super) fn download(self, from: String, len: Option<u64>) -> Progress {
        let progress = Progress { tell: self.progress, from, len, last: Instant::now() };
        progress.show(0);
        progress
    }
}

/// A download that goes on.
pub(super) struct Progress {
    tell: Option<Tell>,
    /// The URL.
    from: String,
    len: Option<u64>,
    /// The time of the last line.
    last: Instant,
}

impl Progress {
    /// Shows the number of bytes that have come, now and then.
    pub(super) fn came(&mut self, bytes: u64) {
        if self.last.elapsed() >= BETWEEN {
            self.last = Instant::now();
            self.show(bytes);
        }
    }

    fn show(&self, bytes: u64) {
        if let Some(tell) = self.tell {
            let of = self.len.map(|len| format!("/{len}")).unwrap_or_default();
            // The words of elfutils.
            tell(&format!("Downloading from {} {bytes}{of}", self.from));
        }
    }
}
