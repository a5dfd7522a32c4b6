//! The lines that the process under test logs as warnings.

use std::sync::Mutex;

struct Warnings(Mutex<Vec<String>>);

static WARNINGS: Warnings = Warnings(Mutex::new(Vec::new()));

impl log::Log for Warnings {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// Collects warnings from now on.
pub fn keep_warnings() {
    let _ = log::set_logger(&WARNINGS);
    log::set_max_level(log::LevelFilter::Warn);
}

/// The warnings that contain this text. Other tests of the process log too.
pub fn warnings_with(text: &str) -> Vec<String> {
    WARNINGS.0.lock().unwrap().iter().filter(|line| line.contains(text)).cloned().collect()
}
