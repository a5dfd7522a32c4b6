//! Pages of the command, the answers of their independent reader in Python, and their use in a browser.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use base64::Engine as _;
use otlpprof_otlp::wire::ProfilesData;
use serde_json::Value;
use tempfile::TempDir;

use crate::otlp_fixture::framed;
use crate::skipped::not_tested;
use crate::toolchain::{output_unless_missing, page_script, python_oracle};

/// Writes messages to a file of the folder.
pub fn write(folder: &TempDir, name: &str, messages: &[ProfilesData]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, messages.iter().flat_map(framed).collect::<Vec<_>>()).unwrap();
    path
}

/// The answer of `scripts/python-oracle.sh READER PAGE ARGUMENTS`: the numbers that were compared, or the
/// differences. `None` if Python, Node or Chromium is not available, which is reported.
#[track_caller]
pub fn compare(reader: &str, page: &Path, arguments: &[&str]) -> Option<Result<Value, String>> {
    let mut command = python_oracle();
    let output = output_unless_missing(command.arg(reader).arg(page).args(arguments), "readers of pages")?;
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(error.is_empty(), "{error}");
    Some(match output.status.success() {
        true => Ok(serde_json::from_str(&out).unwrap()),
        false => Err(out.into_owned()),
    })
}

/// A page's data, decompressed (page/README.md).
#[track_caller]
pub fn data(page: &str) -> Vec<u8> {
    let is_base64 = |letter: char| letter.is_ascii_alphanumeric() || "+/=".contains(letter);
    let data = page.split(|letter| !is_base64(letter)).max_by_key(|part| part.len()).unwrap();
    let compressed = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
    let mut bytes = Vec::new();
    flate2::read::ZlibDecoder::new(&compressed[..]).read_to_end(&mut bytes).unwrap();
    assert!(bytes.starts_with(b"OTPP"));
    bytes
}

/// The data of a page as text, in which bytes that are no UTF-8 are replaced.
#[track_caller]
pub fn data_text(page: &Path) -> String {
    String::from_utf8_lossy(&data(&std::fs::read_to_string(page).unwrap())).into_owned()
}

/// The header of a page's data.
#[track_caller]
pub fn header(page: impl AsRef<Path>) -> Value {
    let bytes = data(&std::fs::read_to_string(page).unwrap());
    let length = u32::from_le_bytes(bytes[5..9].try_into().unwrap()) as usize;
    serde_json::from_slice(&bytes[9..9 + length]).unwrap()
}

/// Uses a page in headless Chromium by the steps of `page/use.mjs`. Returns the page's answer to each step.
/// `None` if Node or Chromium is not available, which is reported.
#[track_caller]
pub fn used(page: &Path, steps: &Value) -> Option<Vec<Value>> {
    let mut command = page_script("node", "page/use.mjs");
    command.arg(page);
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
