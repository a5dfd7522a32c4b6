//! Transcodes protobuf to OTLP/JSON by the field table: the inverse of `read_json`.

use prost::encoding::{WireType, decode_key, decode_varint};

use super::json_write::JsonWriter;
use super::schema::{self, Kind, Schema};

/// Transcodes an encoded ProfilesData to one JSON document, without a line end.
///
/// `None` if the bytes are not in the form that an encoder writes for the known fields: scalar lists are
/// packed, and the elements of a list are adjacent.
pub fn to_json(message: &[u8]) -> Option<Vec<u8>> {
    let mut writer = JsonWriter::default();
    write_fields(&mut writer, &schema::PROFILES_DATA, message)?;
    Some(writer.into_bytes())
}

fn write_fields(w: &mut JsonWriter, schema: &Schema, mut rest: &[u8]) -> Option<()> {
    while !rest.is_empty() {
        let (number, wire_type) = decode_key(&mut rest).ok()?;
        let (_, field) = schema.by_number(number)?;
        let packed = field.repeated && wire_type_of(field.kind) != WireType::LengthDelimited;
        if wire_type != if packed { WireType::LengthDelimited } else { wire_type_of(field.kind) } {
            return None;
        }
        w.key(field.json_name);
        if !field.repeated {
            write_value(w, field.kind, &mut rest)?;
        } else if packed {
            let mut values = delimited(&mut rest)?;
            w.nested(b'[', b']', |w| {
                while !values.is_empty() {
                    w.comma();
                    write_value(w, field.kind, &mut values)?;
                }
                Some(())
            })?;
        } else {
            w.nested(b'[', b']', |w| {
                loop {
                    w.comma();
                    write_value(w, field.kind, &mut rest)?;
                    let mut next = rest;
                    if decode_key(&mut next).ok() != Some((number, wire_type)) {
                        return Some(());
                    }
                    rest = next;
                }
            })?;
        }
    }
    Some(())
}

fn write_value(w: &mut JsonWriter, kind: Kind, rest: &mut &[u8]) -> Option<()> {
    match kind {
        Kind::Int32 | Kind::Uint32 => w.signed_number(varint(rest)?.cast_signed()),
        Kind::Int64 => w.quoted_signed(varint(rest)?.cast_signed()),
        Kind::Uint64 => w.quoted(varint(rest)?),
        Kind::Bool => w.boolean(varint(rest)? != 0),
        Kind::Fixed64 => w.quoted(u64::from_le_bytes(eight(rest)?)),
        Kind::Double => w.double(f64::from_le_bytes(eight(rest)?)),
        Kind::String => w.text(std::str::from_utf8(delimited(rest)?).ok()?),
        Kind::Id => w.hexadecimal(delimited(rest)?),
        Kind::Message(schema) => {
            let message = delimited(rest)?;
            w.nested(b'{', b'}', |w| write_fields(w, schema, message))?;
        }
        Kind::Bytes => w.base64(delimited(rest)?),
    }
    Some(())
}

/// The wire type of one value.
fn wire_type_of(kind: Kind) -> WireType {
    match kind {
        Kind::Int32 | Kind::Uint32 | Kind::Int64 | Kind::Uint64 | Kind::Bool => WireType::Varint,
        Kind::Fixed64 | Kind::Double => WireType::SixtyFourBit,
        Kind::String | Kind::Bytes | Kind::Id | Kind::Message(_) => WireType::LengthDelimited,
    }
}

fn eight(rest: &mut &[u8]) -> Option<[u8; 8]> {
    rest.split_off(..8)?.try_into().ok()
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    decode_varint(rest).ok()
}

fn delimited<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(varint(rest)?).ok()?;
    rest.split_off(..length)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::super::read::decode_json;
    use super::super::wire::*;
    use super::*;

    fn any(value: Value) -> Option<AnyValue> {
        Some(AnyValue { value: Some(value) })
    }

    /// A message with a value of every kind, at the ends of its range.
    fn message() -> ProfilesData {
        let attribute = |key: &str, value| KeyValue { key: key.into(), value: any(value), key_strindex: 0 };
        let list = ArrayValue { values: vec![AnyValue { value: None }, any(Value::IntValue(-1)).unwrap()] };
        let resource = Resource {
            attributes: vec![
                attribute("text", Value::StringValue("\"é\n".into())),
                attribute("empty", Value::StringValue(String::new())),
                attribute("no", Value::BoolValue(false)),
                attribute("infinite", Value::DoubleValue(f64::NEG_INFINITY)),
                attribute("half", Value::DoubleValue(0.5)),
                attribute("list", Value::ArrayValue(list)),
                attribute(
                    "map",
                    Value::KvlistValue(KeyValueList { values: vec![attribute("k", Value::IntValue(0))] }),
                ),
            ],
            dropped_attributes_count: u32::MAX,
            ..Resource::default()
        };
        let profile = Profile {
            samples: vec![
                Sample { stack_index: i32::MAX, attribute_indices: vec![0, -1], ..Sample::default() },
                Sample {
                    values: vec![i64::MIN, i64::MAX],
                    timestamps_unix_nano: vec![0, u64::MAX],
                    ..Sample::default()
                },
            ],
            duration_nano: u64::MAX,
            period: i64::MIN,
            profile_id: (0..16).map(|byte| byte * 16).collect(),
            original_payload_format: "jfr".into(),
            original_payload: (0..=255).collect(),
            ..Profile::default()
        };
        ProfilesData {
            resource_profiles: vec![ResourceProfiles {
                resource: Some(resource),
                scope_profiles: vec![ScopeProfiles {
                    scope: Some(InstrumentationScope::default()),
                    profiles: vec![profile, Profile::default()],
                    schema_url: "u".into(),
                }],
                schema_url: String::new(),
            }],
            dictionary: Some(ProfilesDictionary {
                string_table: vec![String::new(), "a".into()],
                ..ProfilesDictionary::default()
            }),
        }
    }

    #[test]
    fn a_written_message_is_read_back_without_a_note() {
        let json = to_json(&message().encode_to_vec()).unwrap();
        let read = decode_json(&json).unwrap();
        assert_eq!(read.data, message());
        assert_eq!(read.notes.first(), []);
    }

    #[test]
    fn a_message_of_another_writer_is_refused() {
        let whole = message().encode_to_vec();
        assert_eq!(to_json(&whole[..whole.len() - 1]), None, "truncated");
        assert_eq!(to_json(b"\x20\x01"), None, "an unknown field");
        assert_eq!(to_json(b"\x08\x01"), None, "another wire type");
    }
}
