//! The protobuf wire format (protobuf.dev/programming-guides/encoding), written forward into one buffer.

use super::field_writer::FieldWriter;
use super::schema::WrittenField;
use super::wire_index::WireIndex;

const VARINT: u8 = 0;
const FIXED64: u8 = 1;
const LENGTH_DELIMITED: u8 = 2;

/// Protobuf output.
#[derive(Debug, Default)]
pub(super) struct ProtoWriter {
    bytes: Vec<u8>,
    outside: Option<OutsideBytes>,
}

/// Bytes of the message that the writer does not hold: the caller inserts them.
#[derive(Clone, Copy, Debug)]
struct OutsideBytes {
    /// The offset in [`ProtoWriter::bytes`] at which the outside bytes belong.
    at: usize,
    length: u64,
}

impl ProtoWriter {
    /// The message.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes of the message before the outside bytes, and the bytes after them.
    pub(super) fn into_parts(self) -> (Vec<u8>, Vec<u8>) {
        let mut before = self.bytes;
        let after = before.split_off(self.outside.map_or(before.len(), |outside| outside.at));
        (before, after)
    }

    fn tag(&mut self, field: WrittenField, wire_type: u8) {
        self.bytes.push(field.number << 3 | wire_type);
    }

    fn varint(&mut self, value: u64) {
        if value < 0x80 {
            self.bytes.push(value as u8);
        } else if value < 0x4000 {
            self.bytes.extend_from_slice(&[value as u8 | 0x80, (value >> 7) as u8]);
        } else {
            let (encoded, length) = encode_varint(value);
            self.bytes.extend_from_slice(&encoded[..length]);
        }
    }

    /// Writes `body` with its length before it. Most bodies are shorter than 128 bytes, so one byte is
    /// reserved for the length. A longer body is moved up once its length is known.
    fn length_delimited(&mut self, field: WrittenField, body: impl FnOnce(&mut Self)) {
        self.tag(field, LENGTH_DELIMITED);
        let length_at = self.bytes.len();
        self.bytes.push(0);
        let body_at = self.bytes.len();
        body(self);
        let body_length = self.bytes.len() - body_at;
        let outside = self.outside.as_mut().filter(|outside| outside.at > body_at);
        let whole_length = body_length as u64 + outside.as_ref().map_or(0, |outside| outside.length);
        if whole_length < 0x80 {
            self.bytes[length_at] = whole_length as u8;
            return;
        }
        let (encoded, length) = encode_varint(whole_length);
        if let Some(outside) = outside {
            outside.at += length - 1;
        }
        self.bytes.resize(self.bytes.len() + length - 1, 0);
        self.bytes.copy_within(body_at..body_at + body_length, body_at + length - 1);
        self.bytes[length_at..length_at + length].copy_from_slice(&encoded[..length]);
    }

    /// Writes a packed list of varints; an empty list is omitted. Stacks make up most of a message, so the
    /// space for all varints is allocated once and then filled.
    fn packed(&mut self, field: WrittenField, values: impl ExactSizeIterator<Item = u64> + Clone) {
        if values.len() == 0 {
            return;
        }
        let length = values.clone().map(varint_length).sum::<usize>();
        self.tag(field, LENGTH_DELIMITED);
        self.varint(length as u64);
        let start = self.bytes.len();
        self.bytes.resize(start + length, 0);
        let mut space = self.bytes[start..].iter_mut();
        let mut put = |byte: u64| {
            if let Some(place) = space.next() {
                *place = byte as u8;
            }
        };
        for mut value in values {
            while value >= 0x80 {
                put(value | 0x80);
                value >>= 7;
            }
            put(value);
        }
    }

    fn chunk(&mut self, field: WrittenField, chunk: &[u8]) {
        self.tag(field, LENGTH_DELIMITED);
        self.varint(chunk.len() as u64);
        self.bytes.extend_from_slice(chunk);
    }
}

/// The number of bytes of `value` in base 128: one for every seven bits.
fn varint_length(value: u64) -> usize {
    (value | 1).ilog2() as usize / 7 + 1
}

/// `value` in base 128, and the number of bytes used.
fn encode_varint(mut value: u64) -> ([u8; 10], usize) {
    let mut encoded = [0; 10];
    let mut length = 0;
    while value >= 0x80 {
        encoded[length] = value as u8 | 0x80;
        value >>= 7;
        length += 1;
    }
    encoded[length] = value as u8;
    (encoded, length + 1)
}

impl FieldWriter for ProtoWriter {
    fn index(&mut self, field: WrittenField, value: WireIndex) {
        self.uint64(field, u64::from(value.0));
    }

    fn uint64(&mut self, field: WrittenField, value: u64) {
        if value != 0 {
            self.tag(field, VARINT);
            self.varint(value);
        }
    }

    fn int64(&mut self, field: WrittenField, value: i64) {
        self.uint64(field, value as u64);
    }

    fn fixed64(&mut self, field: WrittenField, value: u64) {
        if value != 0 {
            self.tag(field, FIXED64);
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
    }

    fn string(&mut self, field: WrittenField, value: &str) {
        self.identifier(field, value.as_bytes());
    }

    fn identifier(&mut self, field: WrittenField, value: &[u8]) {
        if !value.is_empty() {
            self.chunk(field, value);
        }
    }

    fn outside_bytes(&mut self, field: WrittenField, length: u64) {
        self.tag(field, LENGTH_DELIMITED);
        self.varint(length);
        self.outside = Some(OutsideBytes { at: self.bytes.len(), length });
    }

    fn indices(&mut self, field: WrittenField, values: &[WireIndex]) {
        self.packed(field, values.iter().map(|value| u64::from(value.0)));
    }

    fn int64s(&mut self, field: WrittenField, values: &[i64]) {
        self.packed(field, values.iter().map(|&value| value as u64));
    }

    fn fixed64s(&mut self, field: WrittenField, values: &[u64]) {
        if !values.is_empty() {
            self.tag(field, LENGTH_DELIMITED);
            self.varint(8 * values.len() as u64);
            values.iter().for_each(|value| self.bytes.extend_from_slice(&value.to_le_bytes()));
        }
    }

    fn any_string(&mut self, field: WrittenField, value: &str) {
        self.chunk(field, value.as_bytes());
    }

    fn any_bool(&mut self, field: WrittenField, value: bool) {
        self.any_int(field, i64::from(value));
    }

    fn any_int(&mut self, field: WrittenField, value: i64) {
        self.tag(field, VARINT);
        self.varint(value as u64);
    }

    fn any_double(&mut self, field: WrittenField, value: f64) {
        self.tag(field, FIXED64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    fn message(&mut self, field: WrittenField, body: impl FnOnce(&mut Self)) {
        self.length_delimited(field, body);
    }

    fn repeated(&mut self, _: WrittenField, body: impl FnOnce(&mut Self)) {
        body(self);
    }

    fn element(&mut self, field: WrittenField, body: impl FnOnce(&mut Self)) {
        self.length_delimited(field, body);
    }

    fn string_element(&mut self, field: WrittenField, value: &str) {
        self.chunk(field, value.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIELD: WrittenField = WrittenField { number: 11, json_name: "unused" };

    proptest! {
        #[test]
        fn varints_are_those_of_prost(bits in 0u32..64, low in any::<u64>()) {
            let value = low >> bits;
            let mut expected = Vec::new();
            prost::encoding::encode_varint(value, &mut expected);
            let mut writer = ProtoWriter::default();
            writer.varint(value);
            prop_assert_eq!(&writer.into_bytes(), &expected);
            prop_assert_eq!(varint_length(value), expected.len());
        }
    }

    #[test]
    fn bodies_of_every_length_class_get_their_length() {
        for length in [0, 1, 127, 128, 129, 16_383, 16_384, 2_097_152] {
            let body = vec![7; length];
            let mut expected = vec![11 << 3 | 2];
            prost::encoding::encode_varint(length as u64, &mut expected);
            expected.extend_from_slice(&body);
            let mut writer = ProtoWriter::default();
            writer.message(FIELD, |w| w.bytes.extend_from_slice(&body));
            assert!(writer.into_bytes() == expected, "length {length}");
        }
    }

    #[test]
    fn defaults_are_left_out_except_in_a_oneof() {
        let mut writer = ProtoWriter::default();
        writer.uint64(FIELD, 0);
        writer.string(FIELD, "");
        writer.fixed64(FIELD, 0);
        writer.int64s(FIELD, &[]);
        assert!(writer.bytes.is_empty());
        writer.any_bool(FIELD, false);
        writer.string_element(FIELD, "");
        assert_eq!(writer.bytes, [11 << 3, 0, 11 << 3 | 2, 0]);
    }
}
