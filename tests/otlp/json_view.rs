//! The expected OTLP/JSON of a message, built from the structures of the independent implementation.

use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development as otlp;
use serde_json::{Map, Value, json};

/// The document without profile ids, which differ with every encoding.
pub(crate) fn of(message: &otlp::ProfilesData) -> Value {
    let dictionary = message.dictionary.as_ref().unwrap();
    let resource_profiles = message.resource_profiles.iter().map(|r| {
        let resource = r.resource.as_ref().unwrap();
        let scope_profiles = r.scope_profiles.iter().map(|s| {
            let scope = s.scope.as_ref().unwrap();
            present([
                ("scope", present([("name", json!(scope.name)), ("version", json!(scope.version))])),
                ("profiles", s.profiles.iter().map(profile).collect()),
            ])
        });
        present([
            ("resource", present([("attributes", resource.attributes.iter().map(key_value).collect())])),
            ("scopeProfiles", scope_profiles.collect()),
        ])
    });
    json!({
        "resourceProfiles": resource_profiles.collect::<Value>(),
        "dictionary": {
            "mappingTable": dictionary.mapping_table.iter().map(mapping).collect::<Value>(),
            "locationTable": dictionary.location_table.iter().map(location).collect::<Value>(),
            "functionTable": dictionary.function_table.iter().map(function).collect::<Value>(),
            "linkTable": dictionary.link_table.iter().map(|link| present([
                ("traceId", json!(hex(&link.trace_id))),
                ("spanId", json!(hex(&link.span_id))),
            ])).collect::<Value>(),
            "stringTable": dictionary.string_table,
            "attributeTable": dictionary.attribute_table.iter().map(attribute).collect::<Value>(),
            "stackTable": dictionary.stack_table.iter().map(|stack| present([
                ("locationIndices", json!(stack.location_indices)),
            ])).collect::<Value>(),
        },
    })
}

/// An object without members that have their default value, which proto3's mapping omits. Empty messages are
/// kept.
fn present<const N: usize>(members: [(&str, Value); N]) -> Value {
    let is_default = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty() || text == "0",
        Value::Array(elements) => elements.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) | Value::Object(_) => false,
    };
    let members = members.into_iter().filter(|(_, value)| !is_default(value));
    Value::Object(members.map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text<T: ToString>(number: T) -> Value {
    Value::String(number.to_string())
}

fn any_value(value: &AnyValue) -> Value {
    match value.value.as_ref().unwrap() {
        Any::StringValue(value) => json!({ "stringValue": value }),
        Any::IntValue(value) => json!({ "intValue": value.to_string() }),
        Any::BoolValue(value) => json!({ "boolValue": value }),
        Any::DoubleValue(value) => json!({ "doubleValue": value }),
        other => panic!("unexpected value {other:?}"),
    }
}

fn key_value(attribute: &KeyValue) -> Value {
    json!({ "key": attribute.key, "value": any_value(attribute.value.as_ref().unwrap()) })
}

fn value_type(value_type: Option<otlp::ValueType>) -> Value {
    let value_type = value_type.unwrap();
    present([
        ("typeStrindex", json!(value_type.type_strindex)),
        ("unitStrindex", json!(value_type.unit_strindex)),
    ])
}

fn profile(profile: &otlp::Profile) -> Value {
    let samples = profile.samples.iter().map(|sample| {
        present([
            ("stackIndex", json!(sample.stack_index)),
            ("attributeIndices", json!(sample.attribute_indices)),
            ("linkIndex", json!(sample.link_index)),
            ("values", sample.values.iter().map(text).collect()),
            ("timestampsUnixNano", sample.timestamps_unix_nano.iter().map(text).collect()),
        ])
    });
    present([
        ("sampleType", value_type(profile.sample_type)),
        ("samples", samples.collect()),
        ("timeUnixNano", text(profile.time_unix_nano)),
        ("durationNano", text(profile.duration_nano)),
        ("periodType", value_type(profile.period_type)),
        ("period", text(profile.period)),
        ("attributeIndices", json!(profile.attribute_indices)),
    ])
}

fn mapping(mapping: &otlp::Mapping) -> Value {
    present([
        ("memoryStart", text(mapping.memory_start)),
        ("memoryLimit", text(mapping.memory_limit)),
        ("fileOffset", text(mapping.file_offset)),
        ("filenameStrindex", json!(mapping.filename_strindex)),
        ("attributeIndices", json!(mapping.attribute_indices)),
    ])
}

fn location(location: &otlp::Location) -> Value {
    let lines = location
        .lines
        .iter()
        .map(|line| present([("functionIndex", json!(line.function_index)), ("line", text(line.line))]));
    present([
        ("mappingIndex", json!(location.mapping_index)),
        ("address", text(location.address)),
        ("lines", lines.collect()),
        ("attributeIndices", json!(location.attribute_indices)),
    ])
}

fn function(function: &otlp::Function) -> Value {
    present([
        ("nameStrindex", json!(function.name_strindex)),
        ("systemNameStrindex", json!(function.system_name_strindex)),
        ("filenameStrindex", json!(function.filename_strindex)),
        ("startLine", text(function.start_line)),
    ])
}

fn attribute(attribute: &otlp::KeyValueAndUnit) -> Value {
    present([
        ("keyStrindex", json!(attribute.key_strindex)),
        ("value", attribute.value.as_ref().map_or(Value::Null, any_value)),
        ("unitStrindex", json!(attribute.unit_strindex)),
    ])
}
