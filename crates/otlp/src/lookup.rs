//! Lookups in a message's dictionary. An index out of range never panics.

use std::borrow::Borrow;
use std::ops::Deref;

use super::wire::*;

/// The tables that frames are resolved with, decoded or encoded. An index out of range never panics. Index 0
/// means none.
pub trait DictionaryTables<'a>: Copy {
    /// The locations of a stack.
    type Stack: Deref<Target = [i32]>;
    /// A location.
    type Location: Borrow<Location>;
    /// A mapping.
    type Mapping: Borrow<Mapping>;
    /// A function.
    type Function: Borrow<Function>;

    /// A string.
    fn string(self, index: i32) -> Option<&'a str>;
    /// A stack's locations, leaf first.
    fn stack(self, index: i32) -> Option<Self::Stack>;
    /// A location.
    fn location(self, index: i32) -> Option<Self::Location>;
    /// A mapping; `None` for index 0.
    fn mapping(self, index: i32) -> Option<Self::Mapping>;
    /// A function; `None` for index 0.
    fn function(self, index: i32) -> Option<Self::Function>;
    /// The text of the attribute with this key; `None` if there is no such attribute or its value is not
    /// text.
    fn attribute_text(self, indices: &[i32], key: &str) -> Option<&'a str>;

    /// A string; empty for 0 and for an index out of range.
    fn text(self, index: i32) -> &'a str {
        self.string(index).unwrap_or_default()
    }

    /// The text of a value; `None` if the value is not text.
    fn value_text<'v>(self, value: &'v Value) -> Option<&'v str>
    where
        'a: 'v,
    {
        match value {
            Value::StringValue(text) => Some(text),
            Value::StringValueStrindex(index) => self.string(*index),
            _ => None,
        }
    }

    /// The key of an attribute that stands outside the dictionary: inline, or a reference to a string.
    fn key<'k>(self, attribute: &'k KeyValue) -> &'k str
    where
        'a: 'k,
    {
        match &*attribute.key {
            "" => self.text(attribute.key_strindex),
            key => key,
        }
    }

    /// The name and unit of a value type; both are empty if there is no value type.
    fn value_type(self, value_type: Option<ValueType>) -> (&'a str, &'a str) {
        let ValueType { type_strindex, unit_strindex } = value_type.unwrap_or_default();
        (self.text(type_strindex), self.text(unit_strindex))
    }
}

/// The tables of one message. Without a dictionary all tables are empty.
#[derive(Clone, Copy, Debug)]
pub struct Lookup<'a> {
    /// The tables.
    pub dictionary: &'a ProfilesDictionary,
}

static NO_DICTIONARY: ProfilesDictionary = ProfilesDictionary {
    mapping_table: Vec::new(),
    location_table: Vec::new(),
    function_table: Vec::new(),
    link_table: Vec::new(),
    string_table: Vec::new(),
    attribute_table: Vec::new(),
    stack_table: Vec::new(),
};

fn entry<T>(table: &[T], index: i32) -> Option<&T> {
    table.get(usize::try_from(index).ok()?)
}

impl<'a> Lookup<'a> {
    /// The tables of `data`.
    pub fn new(data: &'a ProfilesData) -> Self {
        Self { dictionary: data.dictionary.as_ref().unwrap_or(&NO_DICTIONARY) }
    }

    /// A link to a span; `None` for index 0, which means no link.
    pub fn link(self, index: i32) -> Option<&'a Link> {
        entry(&self.dictionary.link_table, index).filter(|_| index != 0)
    }

    /// The key and value of each attribute. Index 0 and indices out of range are skipped.
    pub fn attributes<'i>(
        self,
        indices: &'i [i32],
    ) -> impl Iterator<Item = (&'a str, Option<&'a Value>)> + use<'a, 'i> {
        let attributes = indices.iter().filter(|&&index| index != 0);
        attributes.filter_map(move |&index| {
            let attribute = entry(&self.dictionary.attribute_table, index)?;
            let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
            Some((self.text(attribute.key_strindex), value))
        })
    }
}

impl<'a> DictionaryTables<'a> for Lookup<'a> {
    type Stack = &'a [i32];
    type Location = &'a Location;
    type Mapping = &'a Mapping;
    type Function = &'a Function;

    fn string(self, index: i32) -> Option<&'a str> {
        entry(&self.dictionary.string_table, index).map(String::as_str)
    }

    fn stack(self, index: i32) -> Option<&'a [i32]> {
        entry(&self.dictionary.stack_table, index).map(|stack| &*stack.location_indices)
    }

    fn location(self, index: i32) -> Option<&'a Location> {
        entry(&self.dictionary.location_table, index)
    }

    fn mapping(self, index: i32) -> Option<&'a Mapping> {
        entry(&self.dictionary.mapping_table, index).filter(|_| index != 0)
    }

    fn function(self, index: i32) -> Option<&'a Function> {
        entry(&self.dictionary.function_table, index).filter(|_| index != 0)
    }

    fn attribute_text(self, indices: &[i32], key: &str) -> Option<&'a str> {
        let (_, value) = self.attributes(indices).find(|&(found, _)| found == key)?;
        self.value_text(value?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_index_breaks_a_lookup() {
        let data = ProfilesData::default();
        let tables = Lookup::new(&data);
        for index in [0, 1, -1, i32::MAX, i32::MIN] {
            assert_eq!(tables.string(index), None);
            assert_eq!(tables.text(index), "");
            assert_eq!(tables.stack(index), None);
            assert_eq!(tables.location(index), None);
            assert_eq!(tables.mapping(index), None);
            assert_eq!(tables.function(index), None);
            assert_eq!(tables.link(index), None);
            assert_eq!(tables.attributes(&[index]).count(), 0);
        }
    }
}
