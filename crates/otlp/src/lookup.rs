//! Lookups in a message's dictionary. An index out of range never panics.

use std::borrow::Cow;

use super::wire::*;

/// The tables that frames are resolved with, decoded or encoded. An index out of range never panics. Index 0
/// means none.
pub trait Tables<'a>: Copy {
    /// A string; empty for 0 and for an index out of range.
    fn text(self, index: i32) -> &'a str;
    /// A stack's locations, leaf first.
    fn stack(self, index: i32) -> Option<Cow<'a, [i32]>>;
    /// A location.
    fn location(self, index: i32) -> Option<Cow<'a, Location>>;
    /// A mapping.
    fn mapping(self, index: i32) -> Option<Cow<'a, Mapping>>;
    /// A function.
    fn function(self, index: i32) -> Option<Function>;
    /// The text of the attribute with this key; `None` if there is no such attribute or its value is not
    /// text.
    fn attribute_text(self, indices: &[i32], key: &str) -> Option<&'a str>;
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

    /// A string.
    pub fn string(self, index: i32) -> Option<&'a str> {
        entry(&self.dictionary.string_table, index).map(String::as_str)
    }

    /// A string; empty for 0 and for an index out of range.
    pub fn text(self, index: i32) -> &'a str {
        self.string(index).unwrap_or_default()
    }

    /// A stack's locations, leaf first.
    pub fn stack(self, index: i32) -> Option<&'a [i32]> {
        entry(&self.dictionary.stack_table, index).map(|stack| &*stack.location_indices)
    }

    /// A location.
    pub fn location(self, index: i32) -> Option<&'a Location> {
        entry(&self.dictionary.location_table, index)
    }

    /// A mapping; `None` for index 0, which means no mapping.
    pub fn mapping(self, index: i32) -> Option<&'a Mapping> {
        entry(&self.dictionary.mapping_table, index).filter(|_| index != 0)
    }

    /// A function; `None` for index 0, which means no function.
    pub fn function(self, index: i32) -> Option<&'a Function> {
        entry(&self.dictionary.function_table, index).filter(|_| index != 0)
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

    /// The text of the attribute with this key; `None` if there is no such attribute or its value is not
    /// text.
    pub fn attribute_text(self, indices: &[i32], key: &str) -> Option<&'a str> {
        let (_, value) = self.attributes(indices).find(|&(found, _)| found == key)?;
        self.value_text(value?)
    }

    /// The text of a value; `None` if the value is not text.
    pub fn value_text(self, value: &'a Value) -> Option<&'a str> {
        match value {
            Value::StringValue(text) => Some(text),
            Value::StringValueStrindex(index) => self.string(*index),
            _ => None,
        }
    }

    /// The key of an attribute that stands outside the dictionary: inline, or a reference to a string.
    pub fn key(self, attribute: &'a KeyValue) -> &'a str {
        match &*attribute.key {
            "" => self.text(attribute.key_strindex),
            key => key,
        }
    }

    /// The name and unit of a value type; both are empty if there is no value type.
    pub fn value_type(self, value_type: Option<ValueType>) -> (&'a str, &'a str) {
        let ValueType { type_strindex, unit_strindex } = value_type.unwrap_or_default();
        (self.text(type_strindex), self.text(unit_strindex))
    }
}

impl<'a> Tables<'a> for Lookup<'a> {
    fn text(self, index: i32) -> &'a str {
        Lookup::text(self, index)
    }

    fn stack(self, index: i32) -> Option<Cow<'a, [i32]>> {
        Lookup::stack(self, index).map(Cow::Borrowed)
    }

    fn location(self, index: i32) -> Option<Cow<'a, Location>> {
        Lookup::location(self, index).map(Cow::Borrowed)
    }

    fn mapping(self, index: i32) -> Option<Cow<'a, Mapping>> {
        Lookup::mapping(self, index).map(Cow::Borrowed)
    }

    fn function(self, index: i32) -> Option<Function> {
        Lookup::function(self, index).copied()
    }

    fn attribute_text(self, indices: &[i32], key: &str) -> Option<&'a str> {
        Lookup::attribute_text(self, indices, key)
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
