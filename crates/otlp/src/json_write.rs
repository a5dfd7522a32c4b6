//! Writes OTLP/JSON: protobuf's JSON mapping as amended by the OTLP specification ("JSON Protobuf Encoding"),
//! on one line. Keys are lowerCamelCase, 64-bit integers are decimal strings, ids are hexadecimal.

use base64::Engine as _;

use super::field_writer::FieldWriter;
use super::schema::WrittenField;
use super::wire_index::WireIndex;

/// JSON output: one document.
#[derive(Debug)]
pub(super) struct JsonWriter {
    bytes: Vec<u8>,
    /// Whether the open object or array has a member or element already.
    needs_comma: bool,
    /// The offset at which the caller inserts the base64 of outside bytes.
    outside: Option<usize>,
}

impl Default for JsonWriter {
    fn default() -> Self {
        Self { bytes: vec![b'{'], needs_comma: false, outside: None }
    }
}

impl JsonWriter {
    /// The document, without a line end.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.push(b'}');
        self.bytes
    }

    /// The document's text before the base64 of the outside bytes, and the text after it.
    pub(super) fn into_parts(self) -> (Vec<u8>, Vec<u8>) {
        let outside = self.outside;
        let mut before = self.into_bytes();
        let after = before.split_off(outside.unwrap_or(before.len()));
        (before, after)
    }

    pub(super) fn comma(&mut self) {
        if self.needs_comma {
            self.bytes.push(b',');
        }
        self.needs_comma = true;
    }

    pub(super) fn key(&mut self, name: &str) {
        self.comma();
        self.bytes.push(b'"');
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(b"\":");
    }

    pub(super) fn nested<R>(&mut self, open: u8, close: u8, body: impl FnOnce(&mut Self) -> R) -> R {
        self.bytes.push(open);
        self.needs_comma = false;
        let result = body(self);
        self.bytes.push(close);
        self.needs_comma = true;
        result
    }

    pub(super) fn number(&mut self, value: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = value;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.bytes.extend_from_slice(&digits[at..]);
    }

    pub(super) fn signed_number(&mut self, value: i64) {
        if value < 0 {
            self.bytes.push(b'-');
        }
        self.number(value.unsigned_abs());
    }

    pub(super) fn quoted(&mut self, value: u64) {
        self.bytes.push(b'"');
        self.number(value);
        self.bytes.push(b'"');
    }

    pub(super) fn quoted_signed(&mut self, value: i64) {
        self.bytes.push(b'"');
        self.signed_number(value);
        self.bytes.push(b'"');
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.bytes.extend_from_slice(if value { b"true" } else { b"false" });
    }

    pub(super) fn double(&mut self, value: f64) {
        // JSON has no such numbers; protobuf's JSON mapping writes them as strings.
        let text = if value.is_nan() {
            "\"NaN\"".to_owned()
        } else if value.is_infinite() {
            if value > 0.0 { "\"Infinity\"".to_owned() } else { "\"-Infinity\"".to_owned() }
        } else {
            format!("{value:?}") // the shortest form that reads back the same
        };
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(super) fn hexadecimal(&mut self, value: &[u8]) {
        self.bytes.push(b'"');
        value.iter().for_each(|&byte| self.hex(byte));
        self.bytes.push(b'"');
    }

    /// Writes bytes that are no id.
    pub(super) fn base64(&mut self, value: &[u8]) {
        let text = base64::engine::general_purpose::STANDARD.encode(value);
        self.bytes.push(b'"');
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(b'"');
    }

    /// Writes a string literal (RFC 8259, section 7).
    pub(super) fn text(&mut self, text: &str) {
        self.bytes.push(b'"');
        let mut rest = text.as_bytes();
        while let Some(at) = rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
            self.bytes.extend_from_slice(&rest[..at]);
            self.escape(rest[at]);
            rest = &rest[at + 1..];
        }
        self.bytes.extend_from_slice(rest);
        self.bytes.push(b'"');
    }

    fn escape(&mut self, byte: u8) {
        match byte {
            b'"' | b'\\' => self.bytes.extend_from_slice(&[b'\\', byte]),
            b'\n' => self.bytes.extend_from_slice(b"\\n"),
            b'\t' => self.bytes.extend_from_slice(b"\\t"),
            _ => {
                self.bytes.extend_from_slice(b"\\u00");
                self.hex(byte);
            }
        }
    }

    fn hex(&mut self, byte: u8) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        self.bytes.push(DIGITS[usize::from(byte >> 4)]);
        self.bytes.push(DIGITS[usize::from(byte & 15)]);
    }

    fn array<T: Copy>(&mut self, field: WrittenField, values: &[T], mut write: impl FnMut(&mut Self, T)) {
        if !values.is_empty() {
            self.key(field.json_name);
            self.nested(b'[', b']', |w| {
                for &value in values {
                    w.comma();
                    write(w, value);
                }
            });
        }
    }
}

impl FieldWriter for JsonWriter {
    fn index(&mut self, field: WrittenField, value: WireIndex) {
        if value != WireIndex::ZERO {
            self.key(field.json_name);
            self.number(u64::from(value.0));
        }
    }

    fn uint64(&mut self, field: WrittenField, value: u64) {
        if value != 0 {
            self.key(field.json_name);
            self.quoted(value);
        }
    }

    fn int64(&mut self, field: WrittenField, value: i64) {
        if value != 0 {
            self.any_int(field, value);
        }
    }

    fn fixed64(&mut self, field: WrittenField, value: u64) {
        self.uint64(field, value);
    }

    fn string(&mut self, field: WrittenField, value: &str) {
        if !value.is_empty() {
            self.any_string(field, value);
        }
    }

    fn identifier(&mut self, field: WrittenField, value: &[u8]) {
        if !value.is_empty() {
            self.key(field.json_name);
            self.hexadecimal(value);
        }
    }

    fn outside_bytes(&mut self, field: WrittenField, _: u64) {
        self.key(field.json_name);
        self.bytes.push(b'"');
        self.outside = Some(self.bytes.len());
        self.bytes.push(b'"');
    }

    fn indices(&mut self, field: WrittenField, values: &[WireIndex]) {
        self.array(field, values, |w, value| w.number(u64::from(value.0)));
    }

    fn int64s(&mut self, field: WrittenField, values: &[i64]) {
        self.array(field, values, Self::quoted_signed);
    }

    fn fixed64s(&mut self, field: WrittenField, values: &[u64]) {
        self.array(field, values, Self::quoted);
    }

    fn any_string(&mut self, field: WrittenField, value: &str) {
        self.key(field.json_name);
        self.text(value);
    }

    fn any_bool(&mut self, field: WrittenField, value: bool) {
        self.key(field.json_name);
        self.boolean(value);
    }

    fn any_int(&mut self, field: WrittenField, value: i64) {
        self.key(field.json_name);
        self.quoted_signed(value);
    }

    fn any_double(&mut self, field: WrittenField, value: f64) {
        self.key(field.json_name);
        self.double(value);
    }

    fn message(&mut self, field: WrittenField, body: impl FnOnce(&mut Self)) {
        self.key(field.json_name);
        self.nested(b'{', b'}', body);
    }

    fn repeated(&mut self, field: WrittenField, body: impl FnOnce(&mut Self)) {
        self.key(field.json_name);
        self.nested(b'[', b']', body);
    }

    fn element(&mut self, _: WrittenField, body: impl FnOnce(&mut Self)) {
        self.comma();
        self.nested(b'{', b'}', body);
    }

    fn string_element(&mut self, _: WrittenField, value: &str) {
        self.comma();
        self.text(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    const FIELD: WrittenField = WrittenField { number: 1, json_name: "aField" };

    fn written(body: impl FnOnce(&mut JsonWriter)) -> String {
        let mut writer = JsonWriter::default();
        body(&mut writer);
        String::from_utf8(writer.into_bytes()).unwrap()
    }

    #[test]
    fn members_and_elements_are_separated() {
        let text = written(|w| {
            w.repeated(FIELD, |w| {
                w.element(FIELD, |w| {
                    w.index(FIELD, WireIndex(1));
                    w.uint64(FIELD, u64::MAX);
                });
                w.element(FIELD, |_| ());
            });
            w.identifier(FIELD, &[0, 0xab]);
            w.int64s(FIELD, &[i64::MIN, 0]);
            w.int64(FIELD, 0);
            w.any_bool(FIELD, false);
        });
        let expected = concat!(
            r#"{"aField":[{"aField":1,"aField":"18446744073709551615"},{}],"#,
            r#""aField":"00ab","aField":["-9223372036854775808","0"],"aField":false}"#
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn doubles_that_json_lacks_are_strings() {
        for (value, expected) in [
            (f64::NAN, json!("NaN")),
            (f64::INFINITY, json!("Infinity")),
            (f64::NEG_INFINITY, json!("-Infinity")),
            (-0.5, json!(-0.5)),
            (1e300, json!(1e300)),
        ] {
            let document: Value = serde_json::from_str(&written(|w| w.any_double(FIELD, value))).unwrap();
            assert_eq!(document["aField"], expected);
        }
    }

    proptest! {
        #[test]
        fn strings_and_numbers_read_back(
            text in "[\\x00-\\x7f\"\\\\é\u{1f600}]{0,40}",
            signed in any::<i64>(),
            double in any::<f64>().prop_filter("JSON has it", |value| value.is_finite()),
        ) {
            let line = written(|w| {
                w.any_string(WrittenField { number: 1, json_name: "s" }, &text);
                w.any_int(WrittenField { number: 1, json_name: "i" }, signed);
                w.any_double(WrittenField { number: 1, json_name: "d" }, double);
            });
            prop_assert!(!line.contains('\n'));
            let document: Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(&document["s"], &json!(text));
            prop_assert_eq!(&document["i"], &json!(signed.to_string()));
            prop_assert!(document["d"].is_number());
            // serde_json parses doubles accurately only up to the last bit.
            let (_, digits) = line.rsplit_once(':').unwrap();
            prop_assert_eq!(digits.trim_end_matches('}').parse(), Ok(double));
        }
    }
}
