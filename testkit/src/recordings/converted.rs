//! Conversion of recordings by the command, and access to the result.

use std::path::Path;

use otlpprof_otlp::wire::{self, Profile, ProfilesData};
use prost::Message as _;

use crate::commands::{printed_by_otlpprof, text};
use crate::profcheck::assert_passes;

/// A string of the dictionary.
pub fn string(data: &ProfilesData, index: i32) -> &str {
    &data.dictionary.as_ref().unwrap().string_table[index as usize]
}

/// The attribute with this key among `indices`, as text.
pub fn attribute(data: &ProfilesData, indices: &[i32], key: &str) -> Option<String> {
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
pub fn profiles(data: &ProfilesData) -> impl Iterator<Item = &Profile> {
    data.resource_profiles.iter().flat_map(|of| &of.scope_profiles).flat_map(|scope| &scope.profiles)
}

/// Converts a recording. Checks the result by our validator and, if available, by OpenTelemetry's checker:
/// for every rule or, with times, only for rules that are errors, since Pyroscope rejects times beside
/// values.
#[track_caller]
pub fn convert(recording: &Path, more: &[&str]) -> (ProfilesData, String) {
    let (bytes, printed) = convert_to_bytes(recording, more);
    (ProfilesData::decode(&*bytes).unwrap(), printed)
}

/// Converts and checks like [`convert`]. Returns the encoded result.
#[track_caller]
pub fn convert_to_bytes(recording: &Path, more: &[&str]) -> (Vec<u8>, String) {
    let out = tempfile::NamedTempFile::new().unwrap();
    let arguments = [&["convert", text(recording), "-o", text(out.path())], more].concat();
    let (code, printed) = printed_by_otlpprof(&arguments);
    assert_eq!(code, 0, "{printed}");
    let strict: &[&str] = if more.contains(&"--timestamps") { &[] } else { &["--strict"] };
    let (code, report) = printed_by_otlpprof(&[&["validate", text(out.path())], strict].concat());
    assert_eq!(code, 0, "{report}");
    let bytes = std::fs::read(out.path()).unwrap();
    assert_passes(&format!("{arguments:?}"), &bytes);
    (bytes, printed)
}
