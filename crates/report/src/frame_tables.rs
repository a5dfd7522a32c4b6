//! The tables of a message for the frames of all its locations: each attribute is decoded once, although a
//! location is asked for several attributes, and many locations have the same.

use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::lookup::DictionaryTables;
use otlpprof_otlp::wire::{Function, Location, Mapping};

/// The tables of a message, with its attributes.
#[derive(Debug)]
pub(super) struct FrameTables<'a> {
    tables: EncodedTables<'a>,
    /// By attribute: the key, and the text if the value is text.
    attributes: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> FrameTables<'a> {
    /// Decodes the attributes of a message.
    pub(super) fn new(tables: EncodedTables<'a>) -> Self {
        Self { tables, attributes: tables.attribute_texts().collect() }
    }
}

impl<'a> DictionaryTables<'a> for &FrameTables<'a> {
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
        let attributes = indices.iter().filter(|&&index| index != 0);
        let mut attributes =
            attributes.filter_map(|&index| self.attributes.get(usize::try_from(index).ok()?));
        attributes.find(|(of_attribute, _)| *of_attribute == key)?.1
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_otlp::encoded::EncodedMessage;
    use otlpprof_otlp::wire::*;
    use prost::Message as _;

    use super::*;

    #[test]
    fn attributes_are_those_of_the_message() {
        let attribute = |key_strindex, value| KeyValueAndUnit {
            key_strindex,
            value: Some(AnyValue { value: Some(value) }),
            ..KeyValueAndUnit::default()
        };
        let dictionary = ProfilesDictionary {
            string_table: ["", "a", "b", "text"].map(str::to_owned).to_vec(),
            attribute_table: vec![
                KeyValueAndUnit::default(),
                attribute(1, Value::IntValue(7)),
                attribute(1, Value::StringValue("one".into())),
                attribute(2, Value::StringValueStrindex(3)),
                attribute(9, Value::StringValue("other".into())),
            ],
            ..ProfilesDictionary::default()
        };
        let data = ProfilesData { dictionary: Some(dictionary), ..ProfilesData::default() };
        let message = EncodedMessage::of_protobuf(data.encode_to_vec()).unwrap();
        let tables = FrameTables::new(message.tables());
        for indices in [&[2, 3][..], &[3, 2], &[1, 2], &[0, 4, -1, 5, 2], &[]] {
            for key in ["", "a", "b", "c"] {
                let expected = message.tables().attribute_text(indices, key);
                assert_eq!(tables.attribute_text(indices, key), expected, "{indices:?} {key}");
            }
        }
        assert_eq!(tables.attribute_text(&[2, 3], "b"), Some("text"));
    }
}
