//! Pages of the command, the answers of their independent reader in Python, and their use in a browser.

#![allow(dead_code, reason = "each test binary uses its part")]

#[path = "../../tests/cli/generated_profiles.rs"]
pub(crate) mod generated;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use otlpprof_otlp::wire::ProfilesData;
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

/// A page's data, decompressed (page/README.md).
pub(crate) fn data(page: &str) -> Vec<u8> {
    let is_base64 = |letter: char| letter.is_ascii_alphanumeric() || "+/=".contains(letter);
    let data = page.split(|letter| !is_base64(letter)).max_by_key(|part| part.len()).unwrap();
    let compressed = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
    let mut bytes = Vec::new();
    flate2::read::ZlibDecoder::new(&compressed[..]).read_to_end(&mut bytes).unwrap();
    assert!(bytes.starts_with(b"OTPP"));
    bytes
}

/// The header of a page's data.
pub(crate) fn header(page: &Path) -> Value {
    let bytes = data(&std::fs::read_to_string(page).unwrap());
    let length = u32::from_le_bytes(bytes[5..9].try_into().unwrap()) as usize;
    serde_json::from_slice(&bytes[9..9 + length]).unwrap()
}

/// Uses a page in headless Chromium by the steps of `page/use.mjs`. Returns the page's answer to each step.
/// `None` if Node or Chromium is not available, which is reported.
pub(crate) fn used(page: &Path, steps: &Value) -> Option<Vec<Value>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(root.join("scripts/page.sh"));
    command.arg("node").arg(root.join("page/use.mjs")).arg(page);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let written = child.stdin.take().unwrap().write_all(steps.to_string().as_bytes());
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("cannot be installed") {
        not_tested(&format!("pages, as the browser is missing: {error}"));
        return None;
    }
    assert!(output.status.success() && error.is_empty(), "{error}");
    written.unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let mut answers: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = answers.pop().unwrap();
    assert_eq!(last, serde_json::json!({ "requests": [], "errors": [] }), "nothing but the page");
    Some(answers)
}
