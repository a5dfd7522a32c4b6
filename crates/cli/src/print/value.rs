//! Attribute values as text and as JSON.

use serde_json::json;

use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::wire::{AnyValue, KeyValue, Value};

/// Text that a value refers to is cut after this many bytes.
const LONGEST_REFERENCE: usize = 4096;

/// Bytes in hexadecimal.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A value as text: strings quoted, bytes in hexadecimal.
pub(super) fn text(tables: EncodedTables<'_>, value: Option<&Value>) -> String {
    match value {
        None => "(none)".into(),
        Some(Value::BytesValue(bytes)) => format!("0x{}", hexadecimal(bytes)),
        Some(Value::StringValue(text)) => format!("{text:?}"),
        Some(other) => to_json(tables, Some(other)).to_string(),
    }
}

/// A value as JSON: bytes as hexadecimal text.
pub(super) fn to_json(tables: EncodedTables<'_>, value: Option<&Value>) -> serde_json::Value {
    let any = |value: Option<&AnyValue>| to_json(tables, value.and_then(|value| value.value.as_ref()));
    match value {
        None => serde_json::Value::Null,
        Some(Value::StringValue(text)) => json!(text),
        Some(Value::StringValueStrindex(index)) => {
            // A value may refer to the same text any number of times.
            let text = tables.text(*index);
            json!(&text[..text.floor_char_boundary(LONGEST_REFERENCE)])
        }
        Some(Value::BoolValue(value)) => json!(value),
        Some(Value::IntValue(value)) => json!(value),
        // JSON has no infinities; null would hide them.
        Some(Value::DoubleValue(value)) if !value.is_finite() => json!(value.to_string()),
        Some(Value::DoubleValue(value)) => json!(value),
        Some(Value::BytesValue(bytes)) => json!(hexadecimal(bytes)),
        Some(Value::ArrayValue(array)) => array.values.iter().map(|value| any(Some(value))).collect(),
        Some(Value::KvlistValue(map)) => {
            let entry = |entry: &KeyValue| (tables.key(entry).to_owned(), any(entry.value.as_ref()));
            map.values.iter().map(entry).collect::<serde_json::Map<_, _>>().into()
        }
    }
}
