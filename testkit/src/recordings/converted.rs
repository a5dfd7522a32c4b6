//! Conversion of recordings by the command, and access to the result.

use std::path::Path;
use std::process::Command;

use otlpprof_otlp::wire::{self, Profile, ProfilesData};
use prost::Message as _;

use crate::profcheck_support::assert_passes;

/// Runs the command. Returns its exit code and its output.
pub(crate) fn otlpprof(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_otlpprof")).args(arguments).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(printed).unwrap())
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A string of the dictionary.
pub(crate) fn string(data: &ProfilesData, index: i32) -> &str {
    &data.dictionary.as_ref().unwrap().string_table[index as usize]
}

/// The attribute with this key among `indices`, as text.
pub(crate) fn attribute(data: &ProfilesData, indices: &[i32], key: &str) -> Option<String> {
    let table = &data.dictionary.as_ref().unwrap().attribute_table;
    let mut attributes = indices.iter().map(|&index| &table[index as usize]);
    let found = attributes.find(|attribute| string(data, attribute.key_strindex) == key)?;
    Some(match found.value.as_ref()?.value.as_ref()? {
        wire::Value::StringValue(text) => text.clone(),
        wire::Value::IntValue(number) => number.to_string(),
        other => panic!("{key}: {other:?}"),
    })
}

/// All profiles.
pub(crate) fn profiles(data: &ProfilesData) -> impl Iterator<Item = &Profile> {
    data.resource_profiles.iter().flat_map(|of| &of.scope_profiles).flat_map(|scope| &scope.profiles)
}

/// Converts a recording. Checks the result by our validator and, if available, by OpenTelemetry's checker:
/// for every rule or, with times, only for rules that are errors, since Pyroscope rejects times beside
/// values.
pub(crate) fn convert(recording: &Path, more: &[&str]) -> (ProfilesData, String) {
    let (bytes, printed) = convert_to_bytes(recording, more);
    (ProfilesData::decode(&*bytes).unwrap(), printed)
}

/// Converts and checks like [`convert`]. Returns the encoded result.
pub(crate) fn convert_to_bytes(recording: &Path, more: &[&str]) -> (Vec<u8>, String) {
    let out = tempfile::NamedTempFile::new().unwrap();
    let arguments = [&["convert", text(recording), "-o", text(out.path())], more].concat();
    let (code, printed) = otlpprof(&arguments);
    assert_eq!(code, 0, "{printed}");
    let strict: &[&str] = if more.contains(&"--timestamps") { &[] } else { &["--strict"] };
    let (code, report) = otlpprof(&[&["validate", text(out.path())], strict].concat());
    assert_eq!(code, 0, "{report}");
    let bytes = std::fs::read(out.path()).unwrap();
    assert_passes(&format!("{arguments:?}"), &bytes);
    (bytes, printed)
}
