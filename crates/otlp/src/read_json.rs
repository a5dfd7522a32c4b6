//! Transcodes one OTLP/JSON document to protobuf.
//!
//! The document becomes protobuf bytes by the field table while it is parsed, without a tree in memory. The
//! readers of messages then read these bytes, so both encodings share one field table and one reader. The
//! rules are the specification's (protocol, "JSON Protobuf Encoding"), on top of proto3's JSON mapping:
//! lowerCamelCase keys, 64-bit integers as decimal strings (numbers are accepted too), ids in hexadecimal,
//! other bytes in base64, null for an absent value. A form that the specification forbids but a collector may
//! accept is read and noted. A value that its field cannot hold is an error.

use std::fmt;

use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};
use serde_core::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::encoded::EncodedMessage;
use super::framing::Form;
use super::json_scalar::{Scalar, base64, double, encoded_integer, expected, hexadecimal, integer};
use super::read_error::{ErrorKind, NoteKind, Notes, ReadError};
use super::read_protobuf;
use super::schema::{self, Kind, Schema, SchemaField};

/// The most bytes by which a document may be larger in protobuf than in JSON. Only lists of zeros grow.
const GROWTH: usize = 1 << 20;

/// Transcodes the first document of `text` to protobuf. Also returns the number of bytes of `text` that the
/// document takes. Offsets in the error count from the first byte of `text`; notes have no offsets.
pub(super) fn transcode_first(text: &[u8]) -> Result<(Vec<u8>, Notes, usize), ReadError> {
    let mut transcoder = Transcoder {
        path: Vec::new(),
        notes: Notes::default(),
        // Protobuf is nearly always smaller than JSON, so the buffer does not have to grow.
        out: Vec::with_capacity(text.len()),
        most: text.len() + GROWTH,
        failure: None,
    };
    if text.trim_ascii_start().is_empty() {
        return Err(ReadError::new(ErrorKind::JsonMalformed, 0, "no JSON document"));
    }
    let mut documents = serde_json::Deserializer::from_slice(text);
    let done = Target { transcoder: &mut transcoder, role: ValueRole::Root }.deserialize(&mut documents);
    match (transcoder.failure, done) {
        (Some(failure), _) => Err(failure),
        (None, Err(error)) => {
            let offset = offset_of(text, error.line(), error.column());
            Err(ReadError::new(ErrorKind::JsonMalformed, offset, format!("bad JSON: {error}")))
        }
        (None, Ok(())) => {
            let length = documents.into_iter::<IgnoredAny>().byte_offset();
            transcoder.out.shrink_to_fit();
            Ok((transcoder.out, transcoder.notes, length))
        }
    }
}

/// Checks the bounds of a document that has been transcoded to protobuf, and indexes it. Offsets in the error
/// count from the document's start.
pub(super) fn check(bytes: Vec<u8>, notes: Notes, size: usize) -> Result<EncodedMessage, ReadError> {
    read_protobuf::check_bounds(&bytes).map_err(|error| ReadError { offset: 0, ..error })?;
    EncodedMessage::of_checked(bytes, Form::Json, size as u64, notes)
}

/// The offset in bytes of a line and a column. Both count from 1, and columns count bytes.
fn offset_of(text: &[u8], line: usize, column: usize) -> u64 {
    let before: usize =
        text.split_inclusive(|&byte| byte == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    (before + column.saturating_sub(1)).min(text.len()) as u64
}

/// A key, or the index of an element, on the path to the current value.
enum Step {
    Key(&'static SchemaField),
    /// A key that is not the field's JSON name, or that belongs to no known field.
    Other(String),
    Index(usize),
}

struct Transcoder {
    path: Vec<Step>,
    notes: Notes,
    out: Vec<u8>,
    /// The most bytes of `out`.
    most: usize,
    /// The reason why the document is refused, although it may be valid JSON.
    failure: Option<ReadError>,
}

impl Transcoder {
    fn path(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            if !text.is_empty() && !matches!(step, Step::Index(_)) {
                text.push('.');
            }
            match step {
                Step::Key(field) => text.push_str(field.json_name),
                Step::Other(key) => text.push_str(key),
                Step::Index(index) => text.push_str(&format!("[{index}]")),
            }
        }
        text
    }

    fn note(&mut self, kind: NoteKind) {
        // The path is built only if the note is kept.
        let mut notes = std::mem::take(&mut self.notes);
        notes.add(kind, 0, || self.path());
        self.notes = notes;
    }

    fn wrong(&self, expected: &str, found: &dyn fmt::Display) -> ReadError {
        ReadError::new(ErrorKind::JsonValue, 0, format!("expected {expected}, found {found}")).at(self.path())
    }

    /// Records why the document is refused, and aborts the parser.
    fn fail<E: Error>(&mut self, failure: ReadError) -> E {
        self.failure = Some(failure);
        E::custom("refused")
    }

    /// Writes a message whose fields `body` writes.
    fn message<E: Error>(
        &mut self,
        field: &SchemaField,
        body: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        encode_key(field.number, WireType::LengthDelimited, &mut self.out);
        let start = self.out.len();
        // One byte for the length: enough for most messages.
        self.out.push(0);
        body(self)?;
        let length = self.out.len() - start - 1;
        let room = encoded_len_varint(length as u64);
        self.out.resize(self.out.len() + room - 1, 0);
        self.out.copy_within(start + 1..start + 1 + length, start + room);
        let mut prefix = Vec::with_capacity(room);
        encode_varint(length as u64, &mut prefix);
        self.out[start..start + room].copy_from_slice(&prefix);
        Ok(())
    }

    /// Writes one element that is neither a list nor an object.
    fn scalar(&mut self, field: &SchemaField, value: &Scalar<'_>) -> Result<(), ReadError> {
        let wrong = |this: &Self| this.wrong(expected(field.kind), value);
        let out = &mut self.out;
        match (field.kind, value) {
            (Kind::String, Scalar::Text(text)) => delimited(field, text.as_bytes(), out),
            (Kind::Bytes, Scalar::Text(text)) => match base64(text) {
                Some(bytes) => {
                    delimited(field, &bytes, out);
                    if text.contains(['-', '_']) || !text.len().is_multiple_of(4) {
                        self.note(NoteKind::JsonBase64Form);
                    }
                }
                None => return Err(self.wrong("base64", value)),
            },
            (Kind::Id, Scalar::Text(text)) => match (hexadecimal(text), base64(text)) {
                (Some(id), _) => delimited(field, &id, out),
                (None, Some(id)) if [8, 16].contains(&id.len()) => {
                    delimited(field, &id, out);
                    self.note(NoteKind::JsonBase64Id);
                }
                _ => return Err(wrong(self)),
            },
            (Kind::Bool, Scalar::Bool(value)) => varint(field, u64::from(*value), out),
            (Kind::Double, _) => match double(value) {
                Some(number) => eight(field, number.to_bits(), out),
                None => return Err(wrong(self)),
            },
            (kind, _) => match integer(value).and_then(|number| encoded_integer(kind, number)) {
                Some(number) if matches!(kind, Kind::Fixed64) => eight(field, number, out),
                Some(number) => varint(field, number, out),
                None => return Err(wrong(self)),
            },
        }
        let is_64_bits = matches!(field.kind, Kind::Int64 | Kind::Uint64 | Kind::Fixed64);
        if is_64_bits && !matches!(value, Scalar::Text(_)) {
            self.note(NoteKind::JsonInt64Number);
        }
        self.check_size()
    }

    fn check_size(&self) -> Result<(), ReadError> {
        match self.out.len() > self.most {
            true => {
                let detail = format!("a document that is larger in protobuf than in JSON by {GROWTH} bytes");
                Err(ReadError::new(ErrorKind::TooLarge, 0, detail).at(self.path()))
            }
            false => Ok(()),
        }
    }
}

/// The role of a value in its document.
#[derive(Clone, Copy)]
enum ValueRole {
    /// The value is the document.
    Root,
    /// The value belongs to a key.
    Of(&'static SchemaField),
    /// The value is an element of a list.
    In(&'static SchemaField),
}

/// The field that a value is written to.
struct Target<'t> {
    transcoder: &'t mut Transcoder,
    role: ValueRole,
}

impl Target<'_> {
    fn scalar<E: Error>(self, value: &Scalar<'_>) -> Result<(), E> {
        let done = match (self.role, value) {
            (ValueRole::Of(_), Scalar::Null) => Ok(()),
            (ValueRole::Of(field), _) if field.repeated => Err(self.transcoder.wrong("an array", value)),
            (ValueRole::Of(field) | ValueRole::In(field), _) => self.transcoder.scalar(field, value),
            (ValueRole::Root, _) => Err(self.transcoder.wrong("an object", value)),
        };
        done.map_err(|failure| self.transcoder.fail(failure))
    }

    fn wrong<E: Error>(self, found: &str) -> E {
        let expected = match self.role {
            ValueRole::Root => "an object",
            ValueRole::Of(field) if field.repeated => "an array",
            ValueRole::Of(field) | ValueRole::In(field) => expected(field.kind),
        };
        let failure = self.transcoder.wrong(expected, &found);
        self.transcoder.fail(failure)
    }
}

impl<'de> DeserializeSeed<'de> for Target<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Target<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.scalar(&Scalar::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.scalar(&Scalar::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.scalar(&Scalar::Unsigned(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.scalar(&Scalar::Negative(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.scalar(&Scalar::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.scalar(&Scalar::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let ValueRole::Of(field) = self.role else { return Err(self.wrong("an array")) };
        if !field.repeated {
            return Err(self.wrong("an array"));
        }
        let transcoder = self.transcoder;
        for index in 0.. {
            transcoder.path.push(Step::Index(index));
            let element = Target { transcoder, role: ValueRole::In(field) };
            if elements.next_element_seed(element)?.is_none() {
                break;
            }
            transcoder.path.pop();
        }
        transcoder.path.pop();
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<(), A::Error> {
        let field = match self.role {
            ValueRole::Root => return fields(self.transcoder, &schema::PROFILES_DATA, entries),
            ValueRole::Of(field) if field.repeated => return Err(self.wrong("an object")),
            ValueRole::Of(field) | ValueRole::In(field) => field,
        };
        match field.kind {
            Kind::Message(schema) => {
                self.transcoder.message(field, |transcoder| fields(transcoder, schema, entries))?;
                self.transcoder.check_size().map_err(|failure| self.transcoder.fail(failure))
            }
            _ => Err(self.wrong("an object")),
        }
    }
}

/// Writes the fields of an object.
fn fields<'de, A: MapAccess<'de>>(
    transcoder: &mut Transcoder,
    schema: &'static Schema,
    mut entries: A,
) -> Result<(), A::Error> {
    let mut seen = 0_u32;
    while let Some(key) = entries.next_key_seed(Key { schema })? {
        let Some((field, step)) = key.known else {
            let is_old = std::ptr::eq(schema, &schema::PROFILE) && key.unknown == "sample";
            transcoder.path.push(Step::Other(key.unknown));
            if is_old {
                let detail = "profiles of OTLP v1.8 or older, whose fields have other names than v1.10's";
                let failure = ReadError::new(ErrorKind::OldSampleLayout, 0, detail).at(transcoder.path());
                return Err(transcoder.fail(failure));
            }
            transcoder.note(NoteKind::JsonUnknownKey);
            entries.next_value::<IgnoredAny>()?;
            transcoder.path.pop();
            continue;
        };
        let is_snake_case = matches!(step, Step::Other(_));
        transcoder.path.push(step);
        if is_snake_case {
            transcoder.note(NoteKind::JsonSnakeCase);
        }
        if seen & 1 << field.number != 0 {
            transcoder.note(NoteKind::JsonDuplicateKey);
        }
        seen |= 1 << field.number;
        entries.next_value_seed(Target { transcoder, role: ValueRole::Of(field) })?;
        transcoder.path.pop();
    }
    Ok(())
}

/// Deserializes a key of an object of this message type.
struct Key {
    schema: &'static Schema,
}

/// The field that a key names, or the key itself if no field has this name.
struct FoundKey {
    known: Option<(&'static SchemaField, Step)>,
    unknown: String,
}

impl<'de> DeserializeSeed<'de> for Key {
    type Value = FoundKey;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<FoundKey, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = FoundKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<FoundKey, E> {
        let fields = self.schema.fields;
        let known = match fields.iter().find(|field| field.json_name == key) {
            Some(field) => Some((field, Step::Key(field))),
            None => {
                let field = fields.iter().find(|field| field.name == key);
                field.map(|field| (field, Step::Other(key.to_owned())))
            }
        };
        let unknown = if known.is_none() { key.to_owned() } else { String::new() };
        Ok(FoundKey { known, unknown })
    }
}

fn delimited(field: &SchemaField, bytes: &[u8], out: &mut Vec<u8>) {
    encode_key(field.number, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn varint(field: &SchemaField, value: u64, out: &mut Vec<u8>) {
    encode_key(field.number, WireType::Varint, out);
    encode_varint(value, out);
}

fn eight(field: &SchemaField, value: u64, out: &mut Vec<u8>) {
    encode_key(field.number, WireType::SixtyFourBit, out);
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::wire::*;
    use super::*;

    fn decode(text: &str) -> Result<(ProfilesData, Notes), ReadError> {
        let (bytes, notes, _) = transcode_first(text.as_bytes())?;
        Ok((prost::Message::decode(&*bytes).unwrap(), notes))
    }

    /// A document with one profile.
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
                "samples":[{"stackIndex":3,"values":["9223372036854775807","-1"],
                "timestampsUnixNano":["18446744073709551615"]}],
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
                {"value":{"intValue":"0"}},{"value":{"doubleValue":0.5}},
                {"value":{"doubleValue":"-Infinity"}},
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
    fn forbidden_json_forms_are_read_and_noted() {
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
            (r#"{"period":"x"}"#, r#"expected a 64-bit integer, found "x""#),
            (r#"{"period":"9223372036854775808"}"#, "expected a 64-bit integer"),
            (r#"{"period":1.5}"#, "expected a 64-bit integer, found 1.5"),
            (r#"{"durationNano":-1}"#, "expected an unsigned 64-bit integer, found -1"),
            (r#"{"attributeIndices":[2147483648]}"#, "expected a 32-bit integer, found 2147483648"),
            (r#"{"attributeIndices":7}"#, "expected an array, found 7"),
            (r#"{"attributeIndices":[null]}"#, "expected a 32-bit integer, found null"),
            (r#"{"sampleType":[]}"#, "expected an object, found an array"),
            (r#"{"originalPayload":"?"}"#, "expected base64"),
            (r#"{"profileId":"0"}"#, "expected an id in hexadecimal"),
            (r#"{"originalPayloadFormat":1}"#, "expected a string, found 1"),
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
}
