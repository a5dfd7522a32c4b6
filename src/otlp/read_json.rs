//! One OTLP/JSON document to `wire` types.
//!
//! A document is turned into protobuf bytes by the field table, which the decoder then reads: one table and one
//! decoder for both encodings. The rules are the specification's (protocol, "JSON Protobuf Encoding") over
//! proto3's JSON mapping: lowerCamelCase keys, 64-bit integers as decimal strings (numbers are taken too), ids in
//! hexadecimal, other bytes in base64, null for absent. What the specification forbids and a collector may
//! still take is read and noted; a value that its field cannot hold is an error.

use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint};

use super::json_tree::Json;
use super::read_error::{ErrorKind, NoteKind, Notes, ReadError};
use super::schema::{self, Field, Kind, Schema};
use super::wire::ProfilesData;

/// Decodes the first document of `text`; also says how many bytes it takes. Offsets in the error count from
/// the first byte; notes have none.
pub(super) fn decode_first(text: &[u8]) -> Result<(ProfilesData, Notes, usize), ReadError> {
    let mut documents = serde_json::Deserializer::from_slice(text).into_iter::<Json>();
    let document = match documents.next() {
        Some(Ok(document)) => document,
        Some(Err(error)) => {
            let offset = offset_of(text, error.line(), error.column());
            return Err(ReadError::new(ErrorKind::JsonMalformed, offset, format!("bad JSON: {error}")));
        }
        None => return Err(ReadError::new(ErrorKind::JsonMalformed, 0, "no JSON document")),
    };
    let length = documents.byte_offset();
    let mut transcoder = Transcoder::default();
    let mut bytes = Vec::new();
    transcoder.message(&schema::PROFILES_DATA, &document, &mut bytes)?;
    let data = ProfilesData::decode(&bytes[..])
        .map_err(|error| ReadError::new(ErrorKind::TooDeep, 0, format!("undecodable: {error}")))?;
    Ok((data, transcoder.notes, length))
}

/// The offset of a line and column, both from 1, the column in bytes.
fn offset_of(text: &[u8], line: usize, column: usize) -> u64 {
    let before: usize =
        text.split_inclusive(|&byte| byte == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    (before + column.saturating_sub(1)).min(text.len()) as u64
}

#[derive(Default)]
struct Transcoder {
    /// The keys and indices entered, as a JSON path.
    path: Vec<String>,
    notes: Notes,
}

impl Transcoder {
    fn path(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            if !text.is_empty() && !step.starts_with('[') {
                text.push('.');
            }
            text.push_str(step);
        }
        text
    }

    fn note(&mut self, kind: NoteKind) {
        let path = self.path();
        self.notes.add(kind, 0, || path);
    }

    fn wrong(&self, expected: &str, value: &Json) -> ReadError {
        let found = match value {
            Json::String(text) if text.len() <= 40 => format!("{text:?}"),
            Json::Unsigned(number) => number.to_string(),
            Json::Negative(number) => number.to_string(),
            Json::Float(number) => number.to_string(),
            other => other.type_name().to_owned(),
        };
        ReadError::new(ErrorKind::JsonValue, 0, format!("{expected} is expected and {found} is there"))
            .at(self.path())
    }

    fn message(&mut self, schema: &Schema, value: &Json, out: &mut Vec<u8>) -> Result<(), ReadError> {
        let Json::Object(entries) = value else { return Err(self.wrong("an object", value)) };
        let mut seen = 0_u32;
        for (key, value) in entries {
            self.path.push(key.clone());
            let by_name = |field: &&Field| *field.name == **key || field.json_name() == *key;
            match schema.fields.iter().find(by_name) {
                Some(field) => {
                    if field.json_name() != *key {
                        self.note(NoteKind::JsonSnakeCase);
                    }
                    if seen & 1 << field.number != 0 {
                        self.note(NoteKind::JsonDuplicateKey);
                    }
                    seen |= 1 << field.number;
                    self.field(field, value, out)?;
                }
                None => self.note(NoteKind::JsonUnknownKey),
            }
            self.path.pop();
        }
        Ok(())
    }

    fn field(&mut self, field: &Field, value: &Json, out: &mut Vec<u8>) -> Result<(), ReadError> {
        match value {
            Json::Null => {}
            Json::Array(elements) if field.repeated => {
                for (index, element) in elements.iter().enumerate() {
                    self.path.push(format!("[{index}]"));
                    self.element(field, element, out)?;
                    self.path.pop();
                }
            }
            other if field.repeated => return Err(self.wrong("an array", other)),
            other => self.element(field, other, out)?,
        }
        Ok(())
    }

    fn element(&mut self, field: &Field, value: &Json, out: &mut Vec<u8>) -> Result<(), ReadError> {
        match field.kind {
            Kind::Message(schema) => {
                let mut inner = Vec::new();
                self.message(schema, value, &mut inner)?;
                delimited(field, &inner, out);
            }
            Kind::String => match value {
                Json::String(text) => delimited(field, text.as_bytes(), out),
                other => return Err(self.wrong("a string", other)),
            },
            Kind::Bytes => match value {
                Json::String(text) => match base64(text) {
                    Some(bytes) => {
                        if text.contains(['-', '_']) || !text.len().is_multiple_of(4) {
                            self.note(NoteKind::JsonBase64Form);
                        }
                        delimited(field, &bytes, out);
                    }
                    None => return Err(self.wrong("base64", value)),
                },
                other => return Err(self.wrong("a base64 string", other)),
            },
            Kind::Id => delimited(field, &self.id(value)?, out),
            Kind::Bool => match value {
                Json::Bool(value) => varint(field, u64::from(*value), out),
                other => return Err(self.wrong("true or false", other)),
            },
            Kind::Double => match double(value) {
                Some(number) => eight(field, number.to_bits(), out),
                None => return Err(self.wrong("a number", value)),
            },
            Kind::Int32 => match integer(value).and_then(|value| i32::try_from(value).ok()) {
                Some(number) => varint(field, i64::from(number) as u64, out),
                None => return Err(self.wrong("a 32-bit integer", value)),
            },
            Kind::Uint32 => match integer(value).and_then(|value| u32::try_from(value).ok()) {
                Some(number) => varint(field, u64::from(number), out),
                None => return Err(self.wrong("an unsigned 32-bit integer", value)),
            },
            Kind::Int64 => match integer(value).and_then(|value| i64::try_from(value).ok()) {
                Some(number) => varint(field, number as u64, out),
                None => return Err(self.wrong("a 64-bit integer", value)),
            },
            Kind::Uint64 | Kind::Fixed64 => {
                let number = integer(value).and_then(|value| u64::try_from(value).ok());
                match (number, field.kind) {
                    (Some(number), Kind::Fixed64) => eight(field, number, out),
                    (Some(number), _) => varint(field, number, out),
                    (None, _) => return Err(self.wrong("an unsigned 64-bit integer", value)),
                }
            }
        }
        let is_64_bits = matches!(field.kind, Kind::Int64 | Kind::Uint64 | Kind::Fixed64);
        if is_64_bits && !matches!(value, Json::String(_)) {
            self.note(NoteKind::JsonInt64Number);
        }
        Ok(())
    }

    fn id(&mut self, value: &Json) -> Result<Vec<u8>, ReadError> {
        let Json::String(text) = value else { return Err(self.wrong("an id in hexadecimal", value)) };
        if let Some(id) = hexadecimal(text) {
            return Ok(id);
        }
        let id = base64(text).filter(|id| [8, 16].contains(&id.len()));
        let id = id.ok_or_else(|| self.wrong("an id in hexadecimal", value))?;
        self.note(NoteKind::JsonBase64Id);
        Ok(id)
    }
}

fn delimited(field: &Field, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(field.number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn varint(field: &Field, value: u64, out: &mut Vec<u8>) {
    encode_key(field.number, WireType::Varint, out);
    encode_varint(value, out);
}

fn eight(field: &Field, value: u64, out: &mut Vec<u8>) {
    encode_key(field.number, WireType::SixtyFourBit, out);
    out.extend_from_slice(&value.to_le_bytes());
}

/// An integer as a number or a decimal string. `1.0` and `1e3` are integers to proto3's JSON mapping.
fn integer(value: &Json) -> Option<i128> {
    /// Above this, not every integer is a floating-point number.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Json::Unsigned(number) => Some(i128::from(*number)),
        Json::Negative(number) => Some(i128::from(*number)),
        Json::Float(number) if number.fract() == 0.0 && number.abs() <= EXACT => Some(*number as i128),
        Json::String(text) if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    }
}

fn double(value: &Json) -> Option<f64> {
    match value {
        Json::Unsigned(number) => Some(*number as f64),
        Json::Negative(number) => Some(*number as f64),
        Json::Float(number) => Some(*number),
        Json::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            number => number.parse().ok().filter(|number: &f64| number.is_finite()),
        },
        _ => None,
    }
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

/// Base64 of either alphabet, padded or not (proto3's JSON mapping; RFC 4648, 4 and 5).
fn base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let padding = text.len() - digits.len();
    if digits.len() % 4 == 1 || padding > 2 || (padding > 0 && !text.len().is_multiple_of(4)) {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let mut bits = 0_u32;
        for &digit in group {
            bits = bits << 6 | base64_digit(digit)?;
        }
        bits <<= 6 * (4 - group.len());
        out.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(out)
}

/// The six bits of a digit of either alphabet.
pub(super) fn base64_digit(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use super::super::wire::*;
    use super::*;

    fn decode(text: &str) -> Result<(ProfilesData, Notes), ReadError> {
        decode_first(text.as_bytes()).map(|(data, notes, _)| (data, notes))
    }

    /// The document whose one profile is `profile`.
    fn with_profile(profile: &str) -> String {
        format!(r#"{{"resourceProfiles":[{{"scopeProfiles":[{{"profiles":[{profile}]}}]}}]}}"#)
    }

    fn profile(text: &str) -> (Profile, Notes) {
        let (mut data, notes) = decode(&with_profile(text)).unwrap();
        (data.resource_profiles.remove(0).scope_profiles.remove(0).profiles.remove(0), notes)
    }

    fn kinds(notes: &Notes) -> Vec<NoteKind> {
        notes.first().iter().map(|note| note.kind).collect()
    }

    #[test]
    fn every_json_type_is_read() {
        let (read, notes) = profile(
            r#"{"sampleType":{"typeStrindex":1,"unitStrindex":"2"},
                "samples":[{"stackIndex":3,"values":["9223372036854775807","-1"],"timestampsUnixNano":["18446744073709551615"]}],
                "timeUnixNano":"13","durationNano":"14","periodType":null,"period":"-17",
                "profileId":"000102030405060708090A0B0C0D0E0F","droppedAttributesCount":4294967295,
                "originalPayloadFormat":"jfr","originalPayload":"RkxS/w==","attributeIndices":[20,21]}"#,
        );
        let expected = Profile {
            sample_type: Some(ValueType { type_strindex: 1, unit_strindex: 2 }),
            samples: vec![Sample {
                stack_index: 3,
                values: vec![i64::MAX, -1],
                timestamps_unix_nano: vec![u64::MAX],
                ..Sample::default()
            }],
            time_unix_nano: 13,
            duration_nano: 14,
            period_type: None,
            period: -17,
            profile_id: (0..16).collect(),
            dropped_attributes_count: u32::MAX,
            original_payload_format: "jfr".into(),
            original_payload: b"FLR\xff".to_vec(),
            attribute_indices: vec![20, 21],
        };
        assert_eq!(read, expected);
        assert_eq!(notes, Notes::default());
    }

    #[test]
    fn every_kind_of_value_is_read() {
        let (data, _) = decode(
            r#"{"dictionary":{"attributeTable":[{"value":{"stringValue":""}},{"value":{"boolValue":false}},
                {"value":{"intValue":"0"}},{"value":{"doubleValue":0.5}},{"value":{"doubleValue":"-Infinity"}},
                {"value":{"arrayValue":{"values":[{"intValue":"1"},{}]}}},
                {"value":{"kvlistValue":{"values":[{"key":"k","value":{"bytesValue":"-_8"}}]}}},
                {"value":{"stringValueStrindex":0}},{"value":{}},{}]}}"#,
        )
        .unwrap();
        let some = |value| AnyValue { value: Some(value) };
        let bytes = some(Value::BytesValue(vec![0xfb, 0xff]));
        let expected = [
            Some(some(Value::StringValue("".into()))),
            Some(some(Value::BoolValue(false))),
            Some(some(Value::IntValue(0))),
            Some(some(Value::DoubleValue(0.5))),
            Some(some(Value::DoubleValue(f64::NEG_INFINITY))),
            Some(some(Value::ArrayValue(ArrayValue {
                values: vec![some(Value::IntValue(1)), AnyValue { value: None }],
            }))),
            Some(some(Value::KvlistValue(KeyValueList {
                values: vec![KeyValue { key: "k".into(), value: Some(bytes), key_strindex: 0 }],
            }))),
            Some(some(Value::StringValueStrindex(0))),
            Some(AnyValue { value: None }),
            None,
        ];
        let table = data.dictionary.unwrap().attribute_table;
        assert_eq!(table.into_iter().map(|entry| entry.value).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_the_specification_forbids_is_read_and_noted() {
        let (read, notes) = profile(r#"{"time_unix_nano":"13"}"#);
        assert_eq!((read.time_unix_nano, kinds(&notes)), (13, vec![NoteKind::JsonSnakeCase]));
        assert_eq!(
            notes.first()[0].path,
            "resourceProfiles.[0].scopeProfiles.[0].profiles.[0].time_unix_nano".replace(".[", "[")
        );

        let (read, notes) = profile(r#"{"period":-5}"#);
        assert_eq!((read.period, kinds(&notes)), (-5, vec![NoteKind::JsonInt64Number]));

        let (read, notes) = profile(r#"{"profileId":"AAECAwQFBgcICQoLDA0ODw=="}"#);
        assert_eq!((read.profile_id, kinds(&notes)), ((0..16).collect(), vec![NoteKind::JsonBase64Id]));

        let (read, notes) = profile(r#"{"period":"1","period":"2"}"#);
        assert_eq!((read.period, kinds(&notes)), (2, vec![NoteKind::JsonDuplicateKey]));

        let (read, notes) = profile(r#"{"colour":{"red":1}}"#);
        assert_eq!((read, kinds(&notes)), (Profile::default(), vec![NoteKind::JsonUnknownKey]));
    }

    #[test]
    fn a_value_that_does_not_fit_is_an_error_that_says_where() {
        for (text, detail) in [
            (r#"{"period":"x"}"#, r#"a 64-bit integer is expected and "x" is there"#),
            (r#"{"period":"9223372036854775808"}"#, "a 64-bit integer is expected"),
            (r#"{"period":1.5}"#, "a 64-bit integer is expected and 1.5 is there"),
            (r#"{"durationNano":-1}"#, "an unsigned 64-bit integer is expected and -1 is there"),
            (r#"{"attributeIndices":[2147483648]}"#, "a 32-bit integer is expected and 2147483648 is there"),
            (r#"{"attributeIndices":7}"#, "an array is expected and 7 is there"),
            (r#"{"attributeIndices":[null]}"#, "a 32-bit integer is expected and null is there"),
            (r#"{"sampleType":[]}"#, "an object is expected and an array is there"),
            (r#"{"originalPayload":"?"}"#, "base64 is expected"),
            (r#"{"profileId":"0"}"#, "an id in hexadecimal is expected"),
            (r#"{"originalPayloadFormat":1}"#, "a string is expected and 1 is there"),
        ] {
            let error = decode(&with_profile(text)).unwrap_err();
            assert_eq!(error.kind, ErrorKind::JsonValue, "{text}");
            assert!(error.detail.starts_with(detail), "{text}: {error}");
            assert!(error.path.starts_with("resourceProfiles[0].scopeProfiles[0].profiles[0]."), "{error}");
        }
    }

    #[test]
    fn bad_syntax_is_an_error_at_its_byte() {
        let error = decode("{\n \"dictionary\": }").unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::JsonMalformed, 17));
        assert_eq!(decode("").unwrap_err().kind, ErrorKind::JsonMalformed);
        assert_eq!(decode("{\"a\":\"").unwrap_err().kind, ErrorKind::JsonMalformed);
        let deep = "{\"a\":".repeat(100_000);
        assert_eq!(decode(&deep).unwrap_err().kind, ErrorKind::JsonMalformed);
    }

    #[test]
    fn base64_is_read_in_all_its_forms() {
        assert_eq!(base64("").unwrap(), b"");
        assert_eq!(base64("Zg==").unwrap(), b"f");
        assert_eq!(base64("Zg").unwrap(), b"f");
        assert_eq!(base64("Zm9vYmE=").unwrap(), b"fooba");
        assert_eq!(base64("Zm9vYmFy").unwrap(), b"foobar");
        assert_eq!(base64("+/-_").unwrap(), [0xfb, 0xff, 0xbf]);
        for bad in ["Z", "Zg=", "Z===", "=", "Zg==Zg==", "Z g="] {
            assert_eq!(base64(bad), None, "{bad}");
        }
    }
}
