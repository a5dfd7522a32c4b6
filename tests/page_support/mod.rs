//! Pages of the command, and the answers of their independent reader in Python.

pub(crate) mod generated;

use std::path::{Path, PathBuf};
use std::process::Command;

use otlpprof::otlp::wire::ProfilesData;
use serde_json::Value;
use tempfile::TempDir;

use crate::loud_support::not_tested;
use crate::otlp_fixture::framed;

pub(crate) fn otlpprof(arguments: &[&str]) -> assert_cmd::assert::Assert {
    assert_cmd::Command::new(env!("CARGO_BIN_EXE_otlpprof")).args(arguments).assert()
}

pub(crate) fn path_text(path: &Path) -> &str {
    path.to_str().expect("a temporary path is UTF-8")
}

/// Writes messages to a file of the folder.
pub(crate) fn write(folder: &TempDir, name: &str, messages: &[ProfilesData]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, messages.iter().flat_map(framed).collect::<Vec<_>>()).unwrap();
    path
}

/// The answer of `scripts/python-oracle.sh READER PAGE ARGUMENTS`: the numbers that were compared, or the
/// differences. `None` if Python, Node or Chromium is not available, which is reported.
pub(crate) fn compare(reader: &str, page: &Path, arguments: &[&str]) -> Option<Result<Value, String>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/python-oracle.sh");
    let output = Command::new(script).arg(reader).arg(page).args(arguments).output().unwrap();
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if error.contains("cannot be installed") {
        not_tested(&format!("pages, as a reader of them is missing: {error}"));
        return None;
    }
    assert!(error.is_empty(), "{error}");
    Some(match output.status.success() {
        true => Ok(serde_json::from_str(&out).unwrap()),
        false => Err(out.into_owned()),
    })
}
