//! The operations that an output format provides. One traversal of the message drives both formats, so
//! protobuf and JSON have the same content by construction.

use super::schema::WrittenField;
use super::wire_index::WireIndex;

/// Writes the fields of the message that is open. A singular field with its default value (0, empty) is
/// omitted, as in proto3. The `any_*` methods always write: their fields are members of a `oneof`, whose
/// presence counts.
pub(super) trait FieldWriter {
    /// A field of type int32 that holds an index.
    fn index(&mut self, field: WrittenField, value: WireIndex);
    /// A field of type uint64.
    fn uint64(&mut self, field: WrittenField, value: u64);
    /// A field of type int64.
    fn int64(&mut self, field: WrittenField, value: i64);
    /// A field of type fixed64.
    fn fixed64(&mut self, field: WrittenField, value: u64);
    /// A field of type string.
    fn string(&mut self, field: WrittenField, value: &str);
    /// A field of type bytes that holds an id.
    fn identifier(&mut self, field: WrittenField, value: &[u8]);

    /// A field of type bytes, of this length in bytes. The caller inserts the bytes when writing the message
    /// out. A message has at most one such field.
    fn outside_bytes(&mut self, field: WrittenField, length: u64);

    /// A repeated field of type int32 that holds indices.
    fn indices(&mut self, field: WrittenField, values: &[WireIndex]);
    /// A repeated field of type int64.
    fn int64s(&mut self, field: WrittenField, values: &[i64]);
    /// A repeated field of type fixed64.
    fn fixed64s(&mut self, field: WrittenField, values: &[u64]);

    /// A member of AnyValue, of type string.
    fn any_string(&mut self, field: WrittenField, value: &str);
    /// A member of AnyValue, of type bool.
    fn any_bool(&mut self, field: WrittenField, value: bool);
    /// A member of AnyValue, of type int64.
    fn any_int(&mut self, field: WrittenField, value: i64);
    /// A member of AnyValue, of type double.
    fn any_double(&mut self, field: WrittenField, value: f64);

    /// A field that holds one message, empty or not.
    fn message(&mut self, field: WrittenField, body: impl FnOnce(&mut Self));
    /// A repeated field of messages or strings; `body` writes its elements and nothing else.
    fn repeated(&mut self, field: WrittenField, body: impl FnOnce(&mut Self));
    /// A message of the repeated field that is open, empty or not.
    fn element(&mut self, field: WrittenField, body: impl FnOnce(&mut Self));
    /// A string of the repeated field that is open, empty or not.
    fn string_element(&mut self, field: WrittenField, value: &str);
}
