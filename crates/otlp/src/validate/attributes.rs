//! Checks all attributes: their keys, their types, and the semantic conventions.

use otlpprof_model::RemoteFrame;
use otlpprof_model::attribute_keys::{
    BUILD_ID_GNU, BUILD_ID_GO, BUILD_ID_HTLHASH, CPU_LOGICAL_NUMBER, FRAME_REMOTE, FRAME_TYPE, THREAD_ID,
    THREAD_NAME,
};

use super::super::wire::*;
use super::check::Check;
use super::dictionary::shorten;
use super::report::Part;
use super::rules::RuleId;
use crate::lookup::DictionaryTables as _;

/// The values of `profile.frame.type` in the semantic conventions.
const FRAME_TYPES: [&str; 13] = [
    "beam", "cpython", "dotnet", "go", "jvm", "kernel", "luajit", "native", "perl", "php", "ruby", "rust",
    "v8js",
];

/// The longest label value that Pyroscope accepts, in bytes.
const LONGEST_LABEL: usize = 2048;
/// The most labels that Pyroscope accepts.
const MOST_LABELS: usize = 30;

pub(super) fn check(check: &mut Check<'_>) {
    let data = check.data;
    if check.tables.has_dictionary() {
        table(check);
        mappings(check);
        locations(check);
    }
    let mut profiles = 0..;
    for (resource_index, resource) in data.resources().enumerate() {
        let part = Part::Resource(resource_index);
        let of_resource = resource.resource().unwrap_or_default().attributes;
        inline(check, part, &of_resource);
        for (scope_index, scope) in resource.scopes().enumerate() {
            let part = Part::Scope(resource_index, scope_index);
            let of_scope = scope.scope().unwrap_or_default().attributes;
            inline(check, part, &of_scope);
            let outer = of_resource.len() + of_scope.len();
            for (profile, profile_index) in scope.profiles().zip(&mut profiles) {
                unique(check, Part::Profile(profile_index), &profile.header().attribute_indices);
                for (sample_index, sample) in profile.samples().enumerate() {
                    let part = Part::Sample(profile_index, sample_index);
                    unique(check, part, &sample.attribute_indices);
                    let labels = outer + sample.attribute_indices.len();
                    if labels > MOST_LABELS {
                        check.breach(RuleId::TooManyLabels, part, || format!("{labels} attributes"));
                    }
                }
            }
        }
    }
}

/// Checks the elements of the attribute table.
fn table(check: &mut Check<'_>) {
    let tables = check.tables;
    for (index, attribute) in tables.attribute_table().enumerate().skip(1) {
        let part = Part::Entry("attribute_table", index);
        let key = tables.text(attribute.key_strindex);
        if tables.string(attribute.key_strindex) == Some("") {
            check.breach(RuleId::AttributeKeyEmpty, part, String::new);
        }
        if key.starts_with("code.") {
            check.breach(RuleId::CodeAttribute, part, || key.to_owned());
        }
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
        if value.is_some_and(holds_strindex) {
            check.breach(RuleId::AttributeStrindex, part, || key.to_owned());
        }
        nested_keys(check, part, value);
        let text = value.and_then(|value| tables.value_text(value));
        let right_type = match key {
            THREAD_NAME => text.is_some(),
            THREAD_ID | CPU_LOGICAL_NUMBER => matches!(value, Some(Value::IntValue(_))),
            _ => true,
        };
        if !right_type {
            check.breach(RuleId::AttributeType, part, || key.to_owned());
        }
        label_length(check, part, key, text);
        if key == FRAME_TYPE {
            let known = text.is_some_and(|text| FRAME_TYPES.contains(&text));
            if !known {
                let found = text.map_or("no text", shorten);
                check.breach(RuleId::FrameTypeUnknown, part, || format!("{found:?}"));
            }
        }
        let hexadecimal = text.is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let length = text.map_or(0, str::len);
        let well_formed = match key {
            BUILD_ID_GNU => hexadecimal && length > 0 && length % 2 == 0,
            BUILD_ID_HTLHASH => hexadecimal && length == 32,
            _ => true,
        };
        if !well_formed {
            let found = text.map_or("no text", shorten);
            check.breach(RuleId::BuildIdMalformed, part, || format!("{key} is {found:?}"));
        }
    }
}

fn mappings(check: &mut Check<'_>) {
    let tables = check.tables;
    for (index, mapping) in tables.mappings().enumerate().skip(1) {
        let part = Part::Entry("mapping_table", index);
        unique(check, part, &mapping.attribute_indices);
        let has = |key| tables.attribute_keys(&mapping.attribute_indices).any(|found| found == key);
        let name = || shorten(tables.text(mapping.filename_strindex)).to_owned();
        if !has(BUILD_ID_GNU) && !has(BUILD_ID_GO) && !has(BUILD_ID_HTLHASH) {
            check.breach(RuleId::BuildIdMissing, part, name);
        } else if !has(BUILD_ID_HTLHASH) {
            check.breach(RuleId::HtlhashMissing, part, name);
        }
    }
}

fn locations(check: &mut Check<'_>) {
    let tables = check.tables;
    for (index, location) in tables.locations().enumerate().skip(1) {
        let part = Part::Entry("location_table", index);
        unique(check, part, &location.attribute_indices);
        if !tables.attribute_keys(&location.attribute_indices).any(|key| key == FRAME_TYPE) {
            check.breach(RuleId::FrameTypeMissing, part, String::new);
        }
        let Some(text) = tables.attribute_text(&location.attribute_indices, FRAME_REMOTE) else {
            continue;
        };
        let is_nameless = |line: &Line| {
            let function = tables.function(line.function_index).unwrap_or_default();
            let name = tables.text(function.name_strindex);
            name.is_empty() || RemoteFrame::parse(name).is_some()
        };
        if !location.lines.is_empty() && location.lines.iter().all(is_nameless) {
            check.breach(RuleId::RemoteFrameLines, part, || shorten(text).to_owned());
        }
        let build_id = tables
            .mapping(location.mapping_index)
            .and_then(|mapping| tables.attribute_text(&mapping.attribute_indices, BUILD_ID_GNU));
        let agrees = RemoteFrame::parse(text).is_some_and(|frame| {
            frame.address.0 == location.address
                && build_id.is_some_and(|build_id| build_id.eq_ignore_ascii_case(&frame.build_id.to_string()))
        });
        if !agrees {
            let address = location.address;
            check.breach(RuleId::RemoteFrameMismatch, part, || {
                let build_id = build_id.unwrap_or("no build-id");
                format!("{:?}, but {} and {address:#x}", shorten(text), shorten(build_id))
            });
        }
    }
}

/// Checks attributes that are written inline: the attributes of a resource or a scope.
fn inline(check: &mut Check<'_>, part: Part, attributes: &[KeyValue]) {
    let tables = check.tables;
    let mut keys = Vec::with_capacity(attributes.len());
    for attribute in attributes {
        let key = tables.key(attribute);
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
        if attribute.key.is_empty() && attribute.key_strindex == 0 {
            check.breach(RuleId::AttributeKeyEmpty, part, String::new);
        } else if !attribute.key.is_empty() && attribute.key_strindex != 0 {
            check.breach(RuleId::AttributeKeyConflict, part, || key.to_owned());
        } else if attribute.key_strindex != 0 || value.is_some_and(holds_strindex) {
            check.breach(RuleId::AttributeNotInline, part, || key.to_owned());
        }
        if key.starts_with("code.") {
            check.breach(RuleId::CodeAttribute, part, || key.to_owned());
        }
        nested_keys(check, part, value);
        label_length(check, part, key, value.and_then(|value| tables.value_text(value)));
        keys.push(key);
    }
    repeated_keys(check, part, keys);
}

/// Whether a value, or a value nested in it, refers to the string table. The reader has limited the depth of
/// nesting.
fn holds_strindex(value: &Value) -> bool {
    let of = |value: &AnyValue| value.value.as_ref().is_some_and(holds_strindex);
    match value {
        Value::StringValueStrindex(_) => true,
        Value::ArrayValue(array) => array.values.iter().any(of),
        Value::KvlistValue(list) => {
            let refers = |entry: &KeyValue| entry.key.is_empty() && entry.key_strindex != 0;
            list.values.iter().any(|entry| refers(entry) || entry.value.as_ref().is_some_and(of))
        }
        _ => false,
    }
}

/// Checks the keys of the maps in a value. In these maps an empty key is allowed.
fn nested_keys(check: &mut Check<'_>, part: Part, value: Option<&Value>) {
    match value {
        Some(Value::ArrayValue(array)) => {
            array.values.iter().for_each(|value| nested_keys(check, part, value.value.as_ref()));
        }
        Some(Value::KvlistValue(list)) => {
            let tables = check.tables;
            for entry in &list.values {
                if !entry.key.is_empty() && entry.key_strindex != 0 {
                    check.breach(RuleId::AttributeKeyConflict, part, || entry.key.clone());
                }
                nested_keys(check, part, entry.value.as_ref().and_then(|value| value.value.as_ref()));
            }
            repeated_keys(check, part, list.values.iter().map(|entry| tables.key(entry)).collect());
        }
        _ => {}
    }
}

/// Checks that no key occurs twice among these elements of the attribute table.
fn unique(check: &mut Check<'_>, part: Part, indices: &[i32]) {
    if indices.len() > 1 {
        let keys = check.tables.attribute_keys(indices).collect();
        repeated_keys(check, part, keys);
    }
}

fn repeated_keys(check: &mut Check<'_>, part: Part, mut keys: Vec<&str>) {
    keys.sort_unstable();
    let repeated = keys.array_windows().find(|[one, next]| one == next && !one.is_empty());
    if let Some([key, _]) = repeated {
        check.breach(RuleId::AttributeKeyDuplicate, part, || shorten(key).to_owned());
    }
}

fn label_length(check: &mut Check<'_>, part: Part, key: &str, text: Option<&str>) {
    let length = text.map_or(0, str::len);
    if length > LONGEST_LABEL {
        check.breach(RuleId::LabelTooLong, part, || format!("{}: {length} bytes", shorten(key)));
    }
}
