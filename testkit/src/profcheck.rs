//! OpenTelemetry's own checker of profiles, if `PROFCHECK` names a built one. No package registry serves it,
//! so the scripts do not install it, and its absence is not reported.

use std::path::PathBuf;
use std::process::Command;

use otlpprof_otlp::{Form, read};
use prost::Message as _;

/// Checks each message of an uncompressed file with profcheck.
///
/// # Panics
/// If a message breaks a rule, or if the program that `PROFCHECK` names cannot run.
#[track_caller]
pub fn assert_passes(label: &str, file: &[u8]) {
    let Some(profcheck) = std::env::var_os("PROFCHECK").map(PathBuf::from) else { return };
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("message");
    for message in read::read(file) {
        let message = message.unwrap_or_else(|e| panic!("{label}: {e}"));
        // profcheck reads one plain protobuf message. Protobuf bytes are passed unchanged, so that it can
        // find errors that our reader overlooks.
        let as_written = message.offset as usize..(message.offset + message.size) as usize;
        match message.form {
            Form::Json => std::fs::write(&plain, message.data.encode_to_vec()),
            Form::Plain | Form::LengthPrefixed => std::fs::write(&plain, &file[as_written]),
        }
        .unwrap();
        let output = Command::new(&profcheck)
            .args(["-check-dupes", "-check-orphans"])
            .arg(&plain)
            .output()
            .unwrap_or_else(|e| panic!("PROFCHECK={}: {e}", profcheck.display()));
        let printed = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success(), "{label}: message {}: {}", message.index, printed.concat());
    }
}
