//! The table of the fields of every message that a file can contain.
//!
//! `wire` defines Rust types for the messages. This table gives the readers what a Rust type does not: each
//! field's wire type, its JSON name, and its name in paths. `read_protobuf` checks bytes by this table;
//! `read_json` transcodes documents to protobuf by it.

use otlpprof_protobuf::WireType;

/// A message type.
#[derive(Debug)]
pub(super) struct Schema {
    /// The name in the `.proto` files.
    pub(super) name: &'static str,
    /// The fields, ascending by number.
    pub(super) fields: &'static [Field],
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    /// The field's number.
    pub(super) number: u32,
    /// The name in the `.proto` files, in snake_case.
    pub(super) name: &'static str,
    /// The field's type.
    pub(super) kind: Kind,
    /// Whether the field may occur more than once.
    pub(super) repeated: bool,
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
    pub(super) fn by_number(&self, number: u32) -> Option<(usize, &'static Field)> {
        // Most messages have fields of all numbers from 1 on.
        let usual = (number as usize).wrapping_sub(1);
        match self.fields.get(usual) {
            Some(field) if field.number == number => Some((usual, field)),
            _ => self.fields.iter().enumerate().find(|(_, field)| field.number == number),
        }
    }
}

impl Field {
    /// Whether this is the field's name in OTLP/JSON.
    pub(super) fn has_json_name(&self, name: &str) -> bool {
        let mut letters = name.bytes();
        let mut words = self.name.split('_');
        let is_next = |letters: &mut std::str::Bytes<'_>, letter| letters.next() == Some(letter);
        let is_first =
            words.next().is_some_and(|word| word.bytes().all(|letter| is_next(&mut letters, letter)));
        let are_others = words.all(|word| {
            let (first, others) = word.as_bytes().split_at(1);
            is_next(&mut letters, first[0].to_ascii_uppercase())
                && others.iter().all(|&letter| is_next(&mut letters, letter))
        });
        is_first && are_others && letters.next().is_none()
    }

    /// The field's name in OTLP/JSON: lowerCamelCase.
    pub(super) fn json_name(&self) -> String {
        let mut upper = false;
        let mut name = String::with_capacity(self.name.len());
        for letter in self.name.chars() {
            match letter {
                '_' => upper = true,
                _ if std::mem::take(&mut upper) => name.push(letter.to_ascii_uppercase()),
                _ => name.push(letter),
            }
        }
        name
    }
}

const fn one(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, repeated: false }
}

const fn many(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, repeated: true }
}

macro_rules! schemas {
    ($($constant:ident $name:literal { $($field:expr;)* })*) => {
        $(
            #[doc = concat!("`", $name, "`.")]
            pub(super) static $constant: Schema = Schema { name: $name, fields: &[$($field),*] };
        )*
    };
}

schemas! {
    PROFILES_DATA "ProfilesData" {
        many(1, "resource_profiles", Kind::Message(&RESOURCE_PROFILES));
        one(2, "dictionary", Kind::Message(&DICTIONARY));
    }
    DICTIONARY "ProfilesDictionary" {
        many(1, "mapping_table", Kind::Message(&MAPPING));
        many(2, "location_table", Kind::Message(&LOCATION));
        many(3, "function_table", Kind::Message(&FUNCTION));
        many(4, "link_table", Kind::Message(&LINK));
        many(5, "string_table", Kind::String);
        many(6, "attribute_table", Kind::Message(&KEY_VALUE_AND_UNIT));
        many(7, "stack_table", Kind::Message(&STACK));
    }
    RESOURCE_PROFILES "ResourceProfiles" {
        one(1, "resource", Kind::Message(&RESOURCE));
        many(2, "scope_profiles", Kind::Message(&SCOPE_PROFILES));
        one(3, "schema_url", Kind::String);
    }
    SCOPE_PROFILES "ScopeProfiles" {
        one(1, "scope", Kind::Message(&SCOPE));
        many(2, "profiles", Kind::Message(&PROFILE));
        one(3, "schema_url", Kind::String);
    }
    PROFILE "Profile" {
        one(1, "sample_type", Kind::Message(&VALUE_TYPE));
        many(2, "samples", Kind::Message(&SAMPLE));
        one(3, "time_unix_nano", Kind::Fixed64);
        one(4, "duration_nano", Kind::Uint64);
        one(5, "period_type", Kind::Message(&VALUE_TYPE));
        one(6, "period", Kind::Int64);
        one(7, "profile_id", Kind::Id);
        one(8, "dropped_attributes_count", Kind::Uint32);
        one(9, "original_payload_format", Kind::String);
        one(10, "original_payload", Kind::Bytes);
        many(11, "attribute_indices", Kind::Int32);
    }
    SAMPLE "Sample" {
        one(1, "stack_index", Kind::Int32);
        many(2, "attribute_indices", Kind::Int32);
        one(3, "link_index", Kind::Int32);
        many(4, "values", Kind::Int64);
        many(5, "timestamps_unix_nano", Kind::Fixed64);
    }
    MAPPING "Mapping" {
        one(1, "memory_start", Kind::Uint64);
        one(2, "memory_limit", Kind::Uint64);
        one(3, "file_offset", Kind::Uint64);
        one(4, "filename_strindex", Kind::Int32);
        many(5, "attribute_indices", Kind::Int32);
    }
    STACK "Stack" {
        many(1, "location_indices", Kind::Int32);
    }
    LOCATION "Location" {
        one(1, "mapping_index", Kind::Int32);
        one(2, "address", Kind::Uint64);
        many(3, "lines", Kind::Message(&LINE));
        many(4, "attribute_indices", Kind::Int32);
    }
    LINE "Line" {
        one(1, "function_index", Kind::Int32);
        one(2, "line", Kind::Int64);
        one(3, "column", Kind::Int64);
    }
    FUNCTION "Function" {
        one(1, "name_strindex", Kind::Int32);
        one(2, "system_name_strindex", Kind::Int32);
        one(3, "filename_strindex", Kind::Int32);
        one(4, "start_line", Kind::Int64);
    }
    LINK "Link" {
        one(1, "trace_id", Kind::Id);
        one(2, "span_id", Kind::Id);
    }
    VALUE_TYPE "ValueType" {
        one(1, "type_strindex", Kind::Int32);
        one(2, "unit_strindex", Kind::Int32);
    }
    KEY_VALUE_AND_UNIT "KeyValueAndUnit" {
        one(1, "key_strindex", Kind::Int32);
        one(2, "value", Kind::Message(&ANY_VALUE));
        one(3, "unit_strindex", Kind::Int32);
    }
    RESOURCE "Resource" {
        many(1, "attributes", Kind::Message(&KEY_VALUE));
        one(2, "dropped_attributes_count", Kind::Uint32);
        many(3, "entity_refs", Kind::Message(&ENTITY_REF));
    }
    SCOPE "InstrumentationScope" {
        one(1, "name", Kind::String);
        one(2, "version", Kind::String);
        many(3, "attributes", Kind::Message(&KEY_VALUE));
        one(4, "dropped_attributes_count", Kind::Uint32);
    }
    ENTITY_REF "EntityRef" {
        one(1, "schema_url", Kind::String);
        one(2, "type", Kind::String);
        many(3, "id_keys", Kind::String);
        many(4, "description_keys", Kind::String);
    }
    KEY_VALUE "KeyValue" {
        one(1, "key", Kind::String);
        one(2, "value", Kind::Message(&ANY_VALUE));
        one(3, "key_strindex", Kind::Int32);
    }
    ANY_VALUE "AnyValue" {
        one(1, "string_value", Kind::String);
        one(2, "bool_value", Kind::Bool);
        one(3, "int_value", Kind::Int64);
        one(4, "double_value", Kind::Double);
        one(5, "array_value", Kind::Message(&ARRAY_VALUE));
        one(6, "kvlist_value", Kind::Message(&KEY_VALUE_LIST));
        one(7, "bytes_value", Kind::Bytes);
        one(8, "string_value_strindex", Kind::Int32);
    }
    ARRAY_VALUE "ArrayValue" {
        many(1, "values", Kind::Message(&ANY_VALUE));
    }
    KEY_VALUE_LIST "KeyValueList" {
        many(1, "values", Kind::Message(&KEY_VALUE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_are_lower_camel_case() {
        let json = |schema: &Schema| schema.fields.iter().map(Field::json_name).collect::<Vec<_>>();
        assert_eq!(json(&VALUE_TYPE), ["typeStrindex", "unitStrindex"]);
        assert_eq!(json(&STACK), ["locationIndices"]);
        assert_eq!(json(&SAMPLE)[4], "timestampsUnixNano");
        assert_eq!(json(&KEY_VALUE)[0], "key");
        let name = |name| VALUE_TYPE.fields[0].has_json_name(name);
        assert!(name("typeStrindex"));
        assert!(
            !["", "type", "type_strindex", "typeStrinde", "typeStrindexx", "typestrindex"]
                .into_iter()
                .any(name)
        );
    }
}
