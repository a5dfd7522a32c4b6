//! Checks one protobuf message before it is read.
//!
//! The check walks the bytes by the field table before anything is decoded. prost's decoder alone does not
//! suffice: it does not say where an error is, nor which layout a Sample has. It silently drops unknown
//! fields and the upper half of an oversized index. It merges two concatenated messages into one whose
//! indices refer to the wrong tables. The check allocates memory only for its reports, so a declared length
//! costs nothing until its bytes have arrived.

use otlpprof_protobuf::{ByteCursor, Malformed, WireType, count_small_varints};

use super::bounds::{self, Bounds};
use super::old_layout::{self, SampleLayout, SeenFields};
use super::read_error::{ErrorKind, NoteKind, Notes, ReadError};
use super::schema::{self, Kind, Schema, SchemaField};

/// The deepest nesting below the top message. Values of attributes may nest; everything else needs six
/// levels. The decoder's own limit is 100.
const MAX_DEPTH: usize = 64;

/// Decodes one message. Offsets in the error and the notes count from the message's start.
#[cfg(test)]
fn decode(bytes: &[u8]) -> Result<(super::wire::ProfilesData, Notes), ReadError> {
    let notes = check(bytes)?;
    let data = prost::Message::decode(bytes)
        .map_err(|error| ReadError::new(ErrorKind::WireMalformed, 0, format!("undecodable: {error}")))?;
    Ok((data, notes))
}

/// Checks one message. Reading a message that passed never fails. Offsets in the error and the notes count
/// from the message's start.
pub(super) fn check(bytes: &[u8]) -> Result<Notes, ReadError> {
    let (walk, walked) = walk(bytes);
    walk.samples.decide(walked)?;
    Ok(walk.notes)
}

/// Checks one message whose fields are known to have the current layout.
pub(super) fn check_bounds(bytes: &[u8]) -> Result<(), ReadError> {
    walk(bytes).1
}

fn walk(bytes: &[u8]) -> (Walk, Result<(), ReadError>) {
    let (notes, samples, bounds) = (Notes::default(), SampleLayout::default(), Bounds::of(bytes));
    let mut walk = Walk { path: Vec::new(), notes, samples, bounds };
    let walked = walk.message(&schema::PROFILES_DATA, bytes, 0);
    (walk, walked)
}

/// Whether the bytes are a sequence of whole fields, each of which has the right wire type if its number is
/// one of ProfilesData's.
pub(super) fn looks_like_message(bytes: &[u8]) -> bool {
    has_fields_of_message(bytes, false)
}

/// Whether the bytes may begin a message: like [`looks_like_message`], but the last field may be cut off.
pub(super) fn begins_like_message(bytes: &[u8]) -> bool {
    has_fields_of_message(bytes, true)
}

fn has_fields_of_message(bytes: &[u8], may_break_off: bool) -> bool {
    let mut rest = ByteCursor::new(bytes);
    while !rest.is_empty() {
        let Ok((number, wire_type)) = rest.key() else { return false };
        let field = schema::PROFILES_DATA.by_number(number);
        if field.is_some_and(|(_, field)| field.kind.wire_type() != wire_type) {
            return false;
        }
        if rest.value(wire_type).is_err() {
            return may_break_off;
        }
    }
    true
}

/// A field that the check has entered, and the index of its occurrence.
type Step = (&'static SchemaField, usize);

fn path_text(steps: impl Iterator<Item = Step>) -> String {
    let mut text = String::new();
    for (field, index) in steps {
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(field.name);
        if field.repeated {
            text.push_str(&format!("[{index}]"));
        }
    }
    text
}

struct Walk {
    path: Vec<Step>,
    notes: Notes,
    samples: SampleLayout,
    bounds: Bounds,
}

impl Walk {
    fn error(&self, kind: ErrorKind, offset: u64, detail: String, last: Option<Step>) -> ReadError {
        ReadError::new(kind, offset, detail).at(path_text(self.path.iter().copied().chain(last)))
    }

    #[cold]
    fn malformed(&self, why: Malformed, offset: u64, last: Option<Step>) -> ReadError {
        self.error(ErrorKind::WireMalformed, offset, why.to_string(), last)
    }

    fn note(&mut self, kind: NoteKind, offset: u64, last: Step) {
        self.notes.add(kind, offset, || path_text(self.path.iter().copied().chain([last])));
    }

    /// Checks one message whose first byte is at `base`.
    fn message(&mut self, schema: &'static Schema, bytes: &[u8], base: u64) -> Result<(), ReadError> {
        if self.path.len() > MAX_DEPTH {
            let detail = format!("messages nested deeper than {MAX_DEPTH}");
            return Err(self.error(ErrorKind::TooDeep, base, detail, None));
        }
        self.bounds
            .enter(schema, bytes.len())
            .map_err(|detail| self.error(ErrorKind::TooLarge, base, detail, None))?;
        let is_sample = std::ptr::eq(schema, &schema::SAMPLE);
        let mut seen = SeenFields::default();
        let mut counts = [0_usize; MAX_FIELDS];
        let mut rest = ByteCursor::new(bytes);
        while !rest.is_empty() {
            let start = base + rest.at as u64;
            let (number, wire_type) = rest.key().map_err(|why| self.malformed(why, start, None))?;
            let Some((position, field)) = schema.by_number(number) else {
                rest.value(wire_type).map_err(|why| self.malformed(why, start, None))?;
                self.notes.add(NoteKind::UnknownField, start, || {
                    format!("{} field {number}", path_text(self.path.iter().copied())).trim_start().to_owned()
                });
                continue;
            };
            let here = (field, counts[position]);
            counts[position] += 1;
            if is_sample {
                seen.see(number, wire_type);
            }
            let (value, payload) =
                rest.value(wire_type).map_err(|why| self.malformed(why, start, Some(here)))?;
            let payload_start = base + (rest.at - payload.len()) as u64;
            let expected = field.kind.wire_type();
            if wire_type == expected {
                self.value(here, value, payload, payload_start)?;
            } else if field.repeated && wire_type == WireType::Delimited {
                counts[position] = self.packed(here, payload, payload_start)?;
            } else if is_sample && (number, wire_type) == (3, WireType::Delimited) {
                // Either the old layout's attributes or an error in the current layout: all samples together
                // decide.
                self.samples
                    .packed_link
                    .get_or_insert_with(|| (start, path_text(self.path.iter().copied().chain([here]))));
            } else {
                if old_layout::explains(schema, number, wire_type) {
                    self.samples.explained.get_or_insert(start);
                }
                let (message, name) = (schema.name, field.name);
                let detail = format!("{message}.{name} is {}, not {}", wire_type.text(), expected.text());
                return Err(self.error(ErrorKind::WireType, start, detail, Some(here)));
            }
            if counts[position] > bounds::SHORTEST_LIST
                && let Some(most) = bounds::longest_list(schema, field)
                && counts[position] > most
            {
                let detail = format!("more than {most} values");
                return Err(self.error(ErrorKind::TooLarge, start, detail, Some(here)));
            }
            if !field.repeated && counts[position] == 2 {
                self.note(NoteKind::RepeatedSingular, start, here);
            }
        }
        if is_sample {
            self.samples.add(&seen, base);
        }
        Ok(())
    }

    /// Checks one value with the field's own wire type: `value` is for a varint, `payload` for any
    /// other wire type.
    fn value(&mut self, here: Step, value: u64, payload: &[u8], start: u64) -> Result<(), ReadError> {
        match here.0.kind {
            Kind::Message(schema) => {
                self.path.push(here);
                self.message(schema, payload, start)?;
                self.path.pop();
            }
            Kind::String => {
                if here.0.repeated {
                    let counted = self.bounds.string(payload.len());
                    counted.map_err(|detail| self.error(ErrorKind::TooLarge, start, detail, Some(here)))?;
                }
                if let Err(error) = std::str::from_utf8(payload) {
                    let at = start + error.valid_up_to() as u64;
                    let detail = "text that is not UTF-8".to_owned();
                    return Err(self.error(ErrorKind::WireUtf8, at, detail, Some(here)));
                }
            }
            // A negative int32 is sign-extended to 64 bits.
            Kind::Int32 if i32::try_from(value as i64).is_err() => {
                self.note(NoteKind::IntegerOverflow, start, here);
            }
            Kind::Uint32 if u32::try_from(value).is_err() => {
                self.note(NoteKind::IntegerOverflow, start, here);
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks the elements of a packed field, none of which is a message or a string. Returns the number of
    /// elements so far, including those of earlier occurrences of the field.
    fn packed(&mut self, (field, first): Step, bytes: &[u8], base: u64) -> Result<usize, ReadError> {
        let wire_type = field.kind.wire_type();
        // A number of so few bits fits each type.
        if let Some(count) = count_small_varints(bytes).filter(|_| wire_type == WireType::Varint) {
            return Ok(first + count);
        }
        let mut rest = ByteCursor::new(bytes);
        let mut here = (field, first);
        while !rest.is_empty() {
            let start = base + rest.at as u64;
            let (value, payload) =
                rest.value(wire_type).map_err(|why| self.malformed(why, start, Some(here)))?;
            self.value(here, value, payload, start)?;
            here.1 += 1;
        }
        Ok(here.1)
    }
}

/// The most fields of any message type.
const MAX_FIELDS: usize = 11;

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::wire::*;

    fn read(data: &ProfilesData) -> Result<(ProfilesData, Notes), ReadError> {
        decode(&data.encode_to_vec())
    }

    /// A length-delimited field: key, length and payload.
    fn field(number: u8, payload: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(payload.len()).unwrap()][..], payload].concat()
    }

    /// A message with one sample.
    fn with_sample(sample: &[u8]) -> Vec<u8> {
        field(1, &field(2, &field(2, &field(2, sample))))
    }

    #[test]
    fn a_message_is_read_whole() {
        let data = ProfilesData { dictionary: Some(ProfilesDictionary::default()), ..Default::default() };
        assert_eq!(read(&data), Ok((data, Notes::default())));
    }

    #[test]
    fn the_old_sample_layout_is_named() {
        let old: [&[u8]; 5] = [
            &[0x08, 1, 0x10, 9, 0x18, 2],       // stack 1, value 9, attribute 2, unpacked
            &[0x08, 1, 0x12, 1, 9, 0x1a, 1, 2], // stack 1, values [9], attributes [2]
            &[0x08, 1, 0x12, 1, 9, 0x20, 3],    // stack 1, values [9], link 3
            &[0x08, 1, 0x12, 1, 9],             // stack 1, values [9]
            &[0x1a, 1, 2, 0x29, 0, 0, 0, 0, 0, 0, 0, 0], // attributes [2], a timestamp
        ];
        for sample in old {
            let error = decode(&with_sample(sample)).unwrap_err();
            assert_eq!(error.kind, ErrorKind::OldSampleLayout, "{sample:x?}: {error}");
        }
    }

    /// Regression: a profile of an older layout was reported as malformed bytes if one of its fields has
    /// another type now.
    #[test]
    fn old_layouts_of_profiles_are_named_whatever_else_they_have() {
        let (sample, value_type) = (&[0x08, 1, 0x12, 1, 9][..], &[0x08, 1, 0x10, 2][..]);
        let (packed, id) = (&[1, 2, 3][..], &[0xfe; 16][..]);
        let number = |key: u8| vec![key << 3, 5];
        let fields: [&[&[u8]]; 8] = [
            &[&field(2, sample), &field(8, id)],             // v1.8: profile_id
            &[&field(2, sample), &field(8, id), &number(9)], // and dropped_attributes_count
            &[&field(2, sample), &number(9)],                // v1.8 without an id
            &[&field(2, sample), &number(7)],                // v1.8: comment_strindices, unpacked
            &[&field(2, sample), &field(11, &[0xff])],       // v1.8: original_payload
            &[&field(8, id)],                                // v1.8 without samples
            &[&field(2, &[0x08, 1, 0x10, 3, 0x1a, 1, 9]), &field(3, packed)], // v1.7: location_indices
            &[&field(2, &[0x1a, 1, 9, 0x28, 1])],            // v1.7: link_index
        ];
        let whole = |profile: &[u8]| field(1, &field(2, &field(2, profile)));
        for profile in fields {
            let error = decode(&whole(&profile.concat())).unwrap_err();
            assert_eq!(error.kind, ErrorKind::OldSampleLayout, "{profile:x?}: {error}");
        }
        let times = [number(4), number(5), field(6, value_type), number(7)].concat();
        let error = decode(&whole(&times)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::OldSampleLayout, "v1.7 without samples: {error}");
        let no_link = field(2, &[0x10, 1, 0x1a, 1, 9, 0x22, 1, 2]);
        let error = decode(&whole(&no_link)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::OldSampleLayout, "v1.7: a sample alone: {error}");
        let attribute = field(2, &field(6, &field(1, b"key")));
        assert_eq!(decode(&attribute).unwrap_err().kind, ErrorKind::OldSampleLayout, "v1.7: KeyValue");
        // With a sample of the current layout, the error is one of the bytes.
        let today = [field(2, &[0x08, 1, 0x22, 1, 9]), field(8, id)].concat();
        assert_eq!(decode(&whole(&today)).unwrap_err().kind, ErrorKind::WireType);
    }

    #[test]
    fn todays_sample_layout_is_not_mistaken() {
        let new: [&[u8]; 8] = [
            &[0x08, 1, 0x20, 9],          // an unpacked value, as async-profiler writes it
            &[0x08, 1, 0x10, 2, 0x20, 9], // the same with an attribute
            &[],
            &[0x08, 1],
            &[0x08, 1, 0x12, 1, 2, 0x22, 1, 9],
            &[0x08, 1, 0x12, 1, 2, 0x18, 3, 0x22, 1, 9],
            &[0x12, 1, 2, 0x2a, 8, 0, 0, 0, 0, 0, 0, 0, 0],
            &[0x18, 3, 0x20, 9], // a link and an unpacked value
        ];
        for sample in new {
            decode(&with_sample(sample)).unwrap_or_else(|error| panic!("{sample:x?}: {error}"));
        }
    }

    #[test]
    fn the_samples_of_a_message_decide_together() {
        let message = |samples: &[&[u8]]| {
            let samples: Vec<u8> = samples.iter().flat_map(|sample| field(2, sample)).collect();
            decode(&field(1, &field(2, &field(2, &samples))))
                .map(drop)
                .map_err(|error| (error.kind, error.path))
        };
        let no_value = &[0x08, 1, 0x12, 1, 2][..];
        let packed_value = &[0x08, 1, 0x22, 1, 9][..];
        let packed_link = &[0x08, 1, 0x1a, 1, 2, 0x22, 1, 9][..];
        assert_eq!(
            message(&[no_value, packed_value]),
            Ok(()),
            "one sample without a value is the validator's"
        );
        let path = "resource_profiles[0].scope_profiles[0].profiles[0].samples[1].link_index".to_owned();
        assert_eq!(message(&[packed_value, packed_link]), Err((ErrorKind::WireType, path)));
    }

    #[test]
    fn errors_say_where() {
        // Profile.period as 8 bytes instead of a varint.
        let profile = [0x31, 0, 0, 0, 0, 0, 0, 0, 0];
        let error = decode(&field(1, &field(2, &field(2, &profile)))).unwrap_err();
        assert_eq!(error.kind, ErrorKind::WireType);
        assert_eq!(error.offset, 6);
        assert_eq!(error.path, "resource_profiles[0].scope_profiles[0].profiles[0].period");
        assert_eq!(error.detail, "Profile.period is 8 bytes, not a varint");

        // The second string of the table: its fourth byte is not UTF-8.
        let error = decode(&field(2, &[field(5, b""), field(5, b"abc\xff")].concat())).unwrap_err();
        assert_eq!(error.kind, ErrorKind::WireUtf8);
        assert_eq!((error.offset, &*error.path), (9, "dictionary.string_table[1]"));

        let error = decode(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::WireMalformed);
        assert_eq!(error.detail, "truncated: 4294967295 bytes are announced and 0 follow");
    }

    #[test]
    fn malformed_bytes_are_refused() {
        let malformed: [(&[u8], &str); 5] = [
            (&[0x0a], "truncated within a varint"),
            (&[0x0a, 0x80], "truncated within a varint"),
            (&[0x02, 0], "field number 0, which is not valid"),
            (&[0x0b], "wire type 3, which is not in use"),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], "a varint of more than 64 bits"),
        ];
        for (bytes, detail) in malformed {
            let error = decode(bytes).unwrap_err();
            assert_eq!((error.kind, &*error.detail), (ErrorKind::WireMalformed, detail), "{bytes:x?}");
        }
    }

    #[test]
    fn nesting_is_limited_before_the_decoder_limits_it() {
        let nested = |depth: usize| {
            let mut value = AnyValue::default();
            for _ in 0..depth {
                value = AnyValue { value: Some(Value::ArrayValue(ArrayValue { values: vec![value] })) };
            }
            let attribute_table = vec![KeyValueAndUnit { value: Some(value), ..Default::default() }];
            let dictionary = Some(ProfilesDictionary { attribute_table, ..Default::default() });
            read(&ProfilesData { dictionary, ..Default::default() })
        };
        nested(30).unwrap();
        assert_eq!(nested(31).unwrap_err().kind, ErrorKind::TooDeep);
        assert_eq!(nested(2000).unwrap_err().kind, ErrorKind::TooDeep);
    }

    #[test]
    fn oddities_are_noted() {
        let bytes = [
            field(2, &field(7, &[0x08, 0x80, 0x80, 0x80, 0x80, 0x10])), // a location index of 2³²
            field(2, &[0x42, 0]),                                       // a second dictionary; its field 8
        ]
        .concat();
        let (_, notes) = decode(&bytes).unwrap();
        let note = |kind, offset, path: &str| crate::read_error::Note { kind, offset, path: path.into() };
        assert_eq!(
            notes.first(),
            [
                note(NoteKind::IntegerOverflow, 10, "dictionary.stack_table[0].location_indices[0]"),
                note(NoteKind::UnknownField, 12, "dictionary field 8"),
                note(NoteKind::RepeatedSingular, 10, "dictionary"),
            ]
        );
        assert_eq!(notes.count(NoteKind::UnknownField), 1);
    }

    #[test]
    fn messages_are_distinguished_from_other_bytes() {
        assert!(looks_like_message(&with_sample(&[])));
        assert!(looks_like_message(&[]));
        assert!(!looks_like_message(&[0, 0, 0, 0]));
        assert!(!looks_like_message(&[0x08, 1]));
        assert!(!looks_like_message(b"\n{\"resourceProfiles\":[]}"));
    }

    #[test]
    fn no_message_has_more_fields_than_are_counted() {
        let longest = schema::PROFILE.fields.len();
        assert_eq!(longest, MAX_FIELDS);
        let mut pending = vec![&schema::PROFILES_DATA];
        let mut seen = Vec::<&str>::new();
        while let Some(schema) = pending.pop() {
            if seen.contains(&schema.name) {
                continue;
            }
            seen.push(schema.name);
            assert!(schema.fields.len() <= MAX_FIELDS, "{}", schema.name);
            for field in schema.fields {
                if let Kind::Message(inner) = field.kind {
                    pending.push(inner);
                }
            }
        }
        assert_eq!(seen.len(), 21);
    }
}
