//! OpenTelemetry's Python package as an oracle, through `scripts/python-oracle.sh`.

use std::path::Path;
use std::process::Command;

use otlpprof::otlp::read::read;
use otlpprof::otlp::wire::Sample;
use serde_json::{Value, json};

/// What it says of each file; `None` if it cannot be had here.
pub(crate) fn oracle(files: &[impl AsRef<Path>]) -> Option<Vec<Value>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/python-oracle.sh");
    let output = Command::new(script).args(files.iter().map(AsRef::as_ref)).output().unwrap();
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(std::env::var_os("CI").is_none(), "the Python oracle must run where CI is set: {reason}");
        eprintln!("\n*** NOT TESTED against Python's opentelemetry-proto: {reason}\n");
        return None;
    }
    let lines = String::from_utf8(output.stdout).unwrap();
    Some(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn total(sample: &Sample) -> i64 {
    match &*sample.values {
        [] => i64::try_from(sample.timestamps_unix_nano.len()).unwrap(),
        values => values.iter().sum(),
    }
}

/// The same counts by our reader.
pub(crate) fn ours(bytes: &[u8]) -> Value {
    let (mut messages, mut profiles, mut samples, mut sum) = (0, 0, 0, 0);
    for message in read(bytes) {
        messages += 1;
        for scope in
            message.unwrap().data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles)
        {
            profiles += scope.profiles.len();
            for sample in scope.profiles.iter().flat_map(|profile| &profile.samples) {
                samples += 1;
                sum += total(sample);
            }
        }
    }
    json!({ "messages": messages, "profiles": profiles, "samples": samples, "total": sum })
}
