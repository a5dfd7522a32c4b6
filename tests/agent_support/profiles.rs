//! Files that the agent wrote.

use std::fs;
use std::path::Path;

use otlpprof::otlp::read::{self, Message};
use otlpprof::otlp::validate::rules::Severity;
use otlpprof::otlp::validate::validate;

use super::profcheck_support::assert_passes;

/// Findings of each rule that a failure shows.
const SHOWN: usize = 3;

/// Holds a file to every rule of OTLP profiles, by our validator and by OpenTelemetry's checker where there is one.
///
/// # Panics
/// If it breaks one.
pub(crate) fn assert_valid(label: &str, file: &Path) {
    let bytes = fs::read(file).unwrap();
    let report = validate(&bytes, SHOWN);
    assert_eq!(
        report.count(Severity::Error),
        0,
        "{label}: {}: {:#?}",
        file.display(),
        report.breaches().collect::<Vec<_>>()
    );
    assert_passes(&format!("{label}: {}", file.display()), &bytes);
}

/// The messages of a file.
///
/// # Panics
/// If one cannot be read.
pub(crate) fn messages(file: &Path) -> Vec<Message> {
    let bytes = fs::read(file).unwrap();
    read::read(&bytes).collect::<Result<_, _>>().unwrap_or_else(|e| panic!("{}: {e:?}", file.display()))
}

/// The messages that are in a file so far, which may not be there.
pub(crate) fn messages_if_any(file: &Path) -> Vec<Message> {
    if file.is_file() { messages(file) } else { Vec::new() }
}
