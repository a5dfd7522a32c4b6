//! The table of the fields of every message that a file can contain. Source: opentelemetry-proto v1.11
//! (`profiles/v1development/profiles.proto`, `common/v1/common.proto`, `resource/v1/resource.proto`). v1.10
//! has the same numbers.
//!
//! `wire` defines Rust types for the messages. This table has all else that is known of a field: number, wire
//! type, and names. Writers name the fields that they write (`schema::sample::VALUES`). Readers that decode
//! by hand name numbers (`schema::sample::number::VALUES`). `read_protobuf` and `read_json` go by the whole
//! table of a message (`schema::SAMPLE`).

use otlpprof_protobuf::WireType;

/// A message type.
#[derive(Debug)]
pub(super) struct Schema {
    /// The name in the `.proto` files.
    pub(super) name: &'static str,
    /// The fields, ascending by number.
    pub(super) fields: &'static [SchemaField],
}

/// A field of a message, as readers know it.
#[derive(Debug)]
pub(super) struct SchemaField {
    /// The field's number.
    pub(super) number: u32,
    /// The name in the `.proto` files, in snake_case.
    pub(super) name: &'static str,
    /// The name in OTLP/JSON, in lowerCamelCase.
    pub(super) json_name: &'static str,
    /// The field's type.
    pub(super) kind: Kind,
    /// Whether the field may occur more than once.
    pub(super) repeated: bool,
}

/// A field as writers name it.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenField {
    /// The field's number. It is below 16, so the tag takes one byte.
    pub(super) number: u8,
    /// The name in OTLP/JSON, in lowerCamelCase.
    pub(super) json_name: &'static str,
}

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A varint that fits 32 bits, signed.
    Int32,
    /// A varint that fits 32 bits, unsigned.
    Uint32,
    /// A varint, signed.
    Int64,
    /// A varint, unsigned.
    Uint64,
    /// A varint of 0 or 1.
    Bool,
    /// Eight bytes, an unsigned integer.
    Fixed64,
    /// Eight bytes, a floating-point number.
    Double,
    /// UTF-8 text.
    String,
    /// Bytes that JSON writes in base64.
    Bytes,
    /// Bytes that OTLP/JSON writes in hexadecimal.
    Id,
    /// A message.
    Message(&'static Schema),
}

impl Kind {
    /// The encoding of a value of this type; of a repeated one, of an element that is not packed.
    pub(super) fn wire_type(self) -> WireType {
        match self {
            Self::Int32 | Self::Uint32 | Self::Int64 | Self::Uint64 | Self::Bool => WireType::Varint,
            Self::Fixed64 | Self::Double => WireType::Eight,
            Self::String | Self::Bytes | Self::Id | Self::Message(_) => WireType::Delimited,
        }
    }
}

impl Schema {
    /// The field with this number, and its position in `fields`.
    pub(super) fn by_number(&self, number: u32) -> Option<(usize, &'static SchemaField)> {
        // Most messages have fields of all numbers from 1 on.
        let usual = (number as usize).wrapping_sub(1);
        match self.fields.get(usual) {
            Some(field) if field.number == number => Some((usual, field)),
            _ => self.fields.iter().enumerate().find(|(_, field)| field.number == number),
        }
    }
}

/// The length of a snake_case name in lowerCamelCase.
const fn camel_case_length(name: &str) -> usize {
    let (mut length, mut at) = (0, 0);
    while at < name.len() {
        length += (name.as_bytes()[at] != b'_') as usize;
        at += 1;
    }
    length
}

/// A snake_case name in lowerCamelCase.
const fn camel_case<const LENGTH: usize>(name: &str) -> [u8; LENGTH] {
    let mut letters = [0; LENGTH];
    let (mut length, mut at, mut upper) = (0, 0, false);
    while at < name.len() {
        let letter = name.as_bytes()[at];
        if letter != b'_' {
            letters[length] = if upper { letter.to_ascii_uppercase() } else { letter };
            length += 1;
        }
        upper = letter == b'_';
        at += 1;
    }
    letters
}

const fn ascii(letters: &'static [u8]) -> &'static str {
    match std::str::from_utf8(letters) {
        Ok(text) => text,
        Err(_) => panic!("a name is ASCII"),
    }
}

/// Defines, for each message, its [`Schema`] and a module of its fields.
macro_rules! messages {
    (@repeated one) => { false };
    (@repeated many) => { true };
    ($($message:ident $module:ident $message_name:literal {
        $($field:ident: $count:ident $number:literal $name:literal $kind:ident $(($type:ident))?,)*
    })*) => {$(
        #[doc = concat!("`", $message_name, "`.")]
        pub(super) static $message: Schema = Schema {
            name: $message_name,
            fields: &[$(SchemaField {
                number: $number,
                name: $name,
                json_name: $module::$field.json_name,
                kind: Kind::$kind $((&$type))?,
                repeated: messages!(@repeated $count),
            }),*],
        };

        #[doc = concat!("The fields of `", $message_name, "`.")]
        #[allow(dead_code, reason = "the table has all fields, the code names those that it writes or reads")]
        pub(super) mod $module {
            use super::{WrittenField, ascii, camel_case, camel_case_length};

            $(pub(crate) const $field: WrittenField = WrittenField {
                number: $number,
                json_name: {
                    const LETTERS: [u8; camel_case_length($name)] = camel_case($name);
                    ascii(&LETTERS)
                },
            };)*

            /// The fields' numbers.
            pub(crate) mod number {
                $(pub(crate) const $field: u32 = $number;)*
            }
        }
    )*};
}

messages! {
    PROFILES_DATA profiles_data "ProfilesData" {
        RESOURCE_PROFILES: many 1 "resource_profiles" Message(RESOURCE_PROFILES),
        DICTIONARY: one 2 "dictionary" Message(DICTIONARY),
    }
    DICTIONARY dictionary "ProfilesDictionary" {
        MAPPING_TABLE: many 1 "mapping_table" Message(MAPPING),
        LOCATION_TABLE: many 2 "location_table" Message(LOCATION),
        FUNCTION_TABLE: many 3 "function_table" Message(FUNCTION),
        LINK_TABLE: many 4 "link_table" Message(LINK),
        STRING_TABLE: many 5 "string_table" String,
        ATTRIBUTE_TABLE: many 6 "attribute_table" Message(KEY_VALUE_AND_UNIT),
        STACK_TABLE: many 7 "stack_table" Message(STACK),
    }
    RESOURCE_PROFILES resource_profiles "ResourceProfiles" {
        RESOURCE: one 1 "resource" Message(RESOURCE),
        SCOPE_PROFILES: many 2 "scope_profiles" Message(SCOPE_PROFILES),
        SCHEMA_URL: one 3 "schema_url" String,
    }
    SCOPE_PROFILES scope_profiles "ScopeProfiles" {
        SCOPE: one 1 "scope" Message(SCOPE),
        PROFILES: many 2 "profiles" Message(PROFILE),
        SCHEMA_URL: one 3 "schema_url" String,
    }
    PROFILE profile "Profile" {
        SAMPLE_TYPE: one 1 "sample_type" Message(VALUE_TYPE),
        SAMPLES: many 2 "samples" Message(SAMPLE),
        TIME_UNIX_NANO: one 3 "time_unix_nano" Fixed64,
        DURATION_NANO: one 4 "duration_nano" Uint64,
        PERIOD_TYPE: one 5 "period_type" Message(VALUE_TYPE),
        PERIOD: one 6 "period" Int64,
        PROFILE_ID: one 7 "profile_id" Id,
        DROPPED_ATTRIBUTES_COUNT: one 8 "dropped_attributes_count" Uint32,
        ORIGINAL_PAYLOAD_FORMAT: one 9 "original_payload_format" String,
        ORIGINAL_PAYLOAD: one 10 "original_payload" Bytes,
        ATTRIBUTE_INDICES: many 11 "attribute_indices" Int32,
    }
    SAMPLE sample "Sample" {
        STACK_INDEX: one 1 "stack_index" Int32,
        ATTRIBUTE_INDICES: many 2 "attribute_indices" Int32,
        LINK_INDEX: one 3 "link_index" Int32,
        VALUES: many 4 "values" Int64,
        TIMESTAMPS_UNIX_NANO: many 5 "timestamps_unix_nano" Fixed64,
    }
    MAPPING mapping "Mapping" {
        MEMORY_START: one 1 "memory_start" Uint64,
        MEMORY_LIMIT: one 2 "memory_limit" Uint64,
        FILE_OFFSET: one 3 "file_offset" Uint64,
        FILENAME_STRINDEX: one 4 "filename_strindex" Int32,
        ATTRIBUTE_INDICES: many 5 "attribute_indices" Int32,
    }
    STACK stack "Stack" {
        LOCATION_INDICES: many 1 "location_indices" Int32,
    }
    LOCATION location "Location" {
        MAPPING_INDEX: one 1 "mapping_index" Int32,
        ADDRESS: one 2 "address" Uint64,
        LINES: many 3 "lines" Message(LINE),
        ATTRIBUTE_INDICES: many 4 "attribute_indices" Int32,
    }
    LINE line "Line" {
        FUNCTION_INDEX: one 1 "function_index" Int32,
        LINE: one 2 "line" Int64,
        COLUMN: one 3 "column" Int64,
    }
    FUNCTION function "Function" {
        NAME_STRINDEX: one 1 "name_strindex" Int32,
        SYSTEM_NAME_STRINDEX: one 2 "system_name_strindex" Int32,
        FILENAME_STRINDEX: one 3 "filename_strindex" Int32,
        START_LINE: one 4 "start_line" Int64,
    }
    LINK link "Link" {
        TRACE_ID: one 1 "trace_id" Id,
        SPAN_ID: one 2 "span_id" Id,
    }
    VALUE_TYPE value_type "ValueType" {
        TYPE_STRINDEX: one 1 "type_strindex" Int32,
        UNIT_STRINDEX: one 2 "unit_strindex" Int32,
    }
    KEY_VALUE_AND_UNIT key_value_and_unit "KeyValueAndUnit" {
        KEY_STRINDEX: one 1 "key_strindex" Int32,
        VALUE: one 2 "value" Message(ANY_VALUE),
        UNIT_STRINDEX: one 3 "unit_strindex" Int32,
    }
    RESOURCE resource "Resource" {
        ATTRIBUTES: many 1 "attributes" Message(KEY_VALUE),
        DROPPED_ATTRIBUTES_COUNT: one 2 "dropped_attributes_count" Uint32,
        ENTITY_REFS: many 3 "entity_refs" Message(ENTITY_REF),
    }
    SCOPE scope "InstrumentationScope" {
        NAME: one 1 "name" String,
        VERSION: one 2 "version" String,
        ATTRIBUTES: many 3 "attributes" Message(KEY_VALUE),
        DROPPED_ATTRIBUTES_COUNT: one 4 "dropped_attributes_count" Uint32,
    }
    ENTITY_REF entity_ref "EntityRef" {
        SCHEMA_URL: one 1 "schema_url" String,
        TYPE: one 2 "type" String,
        ID_KEYS: many 3 "id_keys" String,
        DESCRIPTION_KEYS: many 4 "description_keys" String,
    }
    KEY_VALUE key_value "KeyValue" {
        KEY: one 1 "key" String,
        VALUE: one 2 "value" Message(ANY_VALUE),
        KEY_STRINDEX: one 3 "key_strindex" Int32,
    }
    ANY_VALUE any_value "AnyValue" {
        STRING_VALUE: one 1 "string_value" String,
        BOOL_VALUE: one 2 "bool_value" Bool,
        INT_VALUE: one 3 "int_value" Int64,
        DOUBLE_VALUE: one 4 "double_value" Double,
        ARRAY_VALUE: one 5 "array_value" Message(ARRAY_VALUE),
        KVLIST_VALUE: one 6 "kvlist_value" Message(KEY_VALUE_LIST),
        BYTES_VALUE: one 7 "bytes_value" Bytes,
        STRING_VALUE_STRINDEX: one 8 "string_value_strindex" Int32,
    }
    ARRAY_VALUE array_value "ArrayValue" {
        VALUES: many 1 "values" Message(ANY_VALUE),
    }
    KEY_VALUE_LIST key_value_list "KeyValueList" {
        VALUES: many 1 "values" Message(KEY_VALUE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_are_lower_camel_case() {
        let json = |schema: &Schema| schema.fields.iter().map(|field| field.json_name).collect::<Vec<_>>();
        assert_eq!(json(&VALUE_TYPE), ["typeStrindex", "unitStrindex"]);
        assert_eq!(json(&STACK), ["locationIndices"]);
        assert_eq!(json(&SAMPLE)[4], "timestampsUnixNano");
        assert_eq!(json(&KEY_VALUE)[0], "key");
    }
}
