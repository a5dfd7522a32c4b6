//! The tables of a message with an index of the attributes that locations are asked for. So each key is
//! decoded once, although a location is asked for several keys, and many locations have the same attributes.
//!
//! A large message has millions of attributes. So the index has one byte for each, and a text is decoded when
//! an attribute of the wanted key is found.

use otlpprof_model::attribute_keys::{BUILD_ID_GNU, FRAME_KIND, FRAME_REMOTE, FRAME_TYPE};
use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::lookup::DictionaryTables;
use otlpprof_otlp::wire::{Function, Location, Mapping};

/// The keys that locations and their mappings are asked for.
const KEYS: [&str; 4] = [FRAME_TYPE, FRAME_KIND, FRAME_REMOTE, BUILD_ID_GNU];

/// The tables of a message, with an index of the attributes of [`KEYS`].
#[derive(Debug)]
pub(super) struct IndexedTables<'a> {
    tables: EncodedTables<'a>,
    /// By attribute: the number of its key.
    keys: Vec<u8>,
}

impl<'a> IndexedTables<'a> {
    /// Decodes the keys of a message's attributes.
    pub(super) fn new(tables: EncodedTables<'a>) -> Self {
        Self { tables, keys: tables.all_attribute_keys().map(number).collect() }
    }

    fn key_number(&self, index: i32) -> Option<u8> {
        self.keys.get(usize::try_from(index).ok()?).copied()
    }
}

/// The number of a key: its place in [`KEYS`], or a number beyond for other keys.
fn number(key: &str) -> u8 {
    // SANITY: there are few keys.
    KEYS.iter().position(|&wanted| wanted == key).unwrap_or(KEYS.len()) as u8
}

impl<'a> DictionaryTables<'a> for &IndexedTables<'a> {
    type Stack = Vec<i32>;
    type Location = Location;
    type Mapping = Mapping;
    type Function = Function;

    fn string(self, index: i32) -> Option<&'a str> {
        self.tables.string(index)
    }

    fn stack(self, index: i32) -> Option<Vec<i32>> {
        self.tables.stack(index)
    }

    fn location(self, index: i32) -> Option<Location> {
        self.tables.location(index)
    }

    fn mapping(self, index: i32) -> Option<Mapping> {
        self.tables.mapping(index)
    }

    fn function(self, index: i32) -> Option<Function> {
        self.tables.function(index)
    }

    fn attribute_text(self, indices: &[i32], key: &str) -> Option<&'a str> {
        let wanted = number(key);
        if usize::from(wanted) == KEYS.len() {
            return self.tables.attribute_text(indices, key);
        }
        let mut indices = indices.iter().copied().filter(|&index| index != 0);
        let found = indices.find(|&index| self.key_number(index) == Some(wanted))?;
        Some(self.tables.text_attribute(found)?.1)
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_otlp::encoded::EncodedMessage;
    use otlpprof_otlp::wire::*;
    use prost::Message as _;

    use super::*;

    #[test]
    fn attributes_equal_the_attributes_of_the_message() {
        let attribute = |key_strindex, value| KeyValueAndUnit {
            key_strindex,
            value: Some(AnyValue { value: Some(value) }),
            ..KeyValueAndUnit::default()
        };
        let dictionary = ProfilesDictionary {
            string_table: ["", FRAME_TYPE, FRAME_REMOTE, "text", "a"].map(str::to_owned).to_vec(),
            attribute_table: vec![
                attribute(1, Value::StringValue("none".into())),
                attribute(1, Value::IntValue(7)),
                attribute(1, Value::StringValue("one".into())),
                attribute(2, Value::StringValueStrindex(3)),
                attribute(9, Value::StringValue("of no key".into())),
                attribute(4, Value::StringValue("other".into())),
            ],
            ..ProfilesDictionary::default()
        };
        let data = ProfilesData { dictionary: Some(dictionary), ..ProfilesData::default() };
        let message = EncodedMessage::of_protobuf(data.encode_to_vec()).unwrap();
        let tables = IndexedTables::new(message.tables());
        for indices in [&[2, 3, 5][..], &[3, 2], &[1, 2], &[0, 4, -1, 6, 2], &[5, 5], &[]] {
            for key in ["", FRAME_TYPE, FRAME_REMOTE, BUILD_ID_GNU, "a", "b"] {
                let expected = message.tables().attribute_text(indices, key);
                assert_eq!(tables.attribute_text(indices, key), expected, "{indices:?} {key}");
            }
        }
        let texts = [FRAME_TYPE, FRAME_REMOTE, "a"].map(|key| tables.attribute_text(&[2, 3, 5], key));
        assert_eq!(texts, [Some("one"), Some("text"), Some("other")]);
        assert_eq!(tables.keys.len(), 6);
    }
}
