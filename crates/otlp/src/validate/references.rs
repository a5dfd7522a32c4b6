//! Enumerates every index in a message.

use super::super::encoded::{EncodedMessage, EncodedTables};
use super::super::encoded_profiles::EncodedProfile;
use super::super::wire::*;
use super::report::Part;

/// A dictionary table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum DictionaryTable {
    Mapping,
    Location,
    Function,
    Link,
    String,
    Attribute,
    Stack,
}

impl DictionaryTable {
    pub(super) const ALL: [Self; 7] = [
        Self::Mapping,
        Self::Location,
        Self::Function,
        Self::Link,
        Self::String,
        Self::Attribute,
        Self::Stack,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mapping => "mapping_table",
            Self::Location => "location_table",
            Self::Function => "function_table",
            Self::Link => "link_table",
            Self::String => "string_table",
            Self::Attribute => "attribute_table",
            Self::Stack => "stack_table",
        }
    }

    pub(super) fn len(self, tables: EncodedTables<'_>) -> usize {
        match self {
            Self::Mapping => tables.mappings().len(),
            Self::Location => tables.locations().len(),
            Self::Function => tables.functions().len(),
            Self::Link => tables.links().len(),
            Self::String => tables.strings().len(),
            Self::Attribute => tables.attribute_table().len(),
            Self::Stack => tables.stacks().len(),
        }
    }
}

/// An index, the part of the message that contains it, and the table that it refers to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    pub(super) from: Part,
    pub(super) field: &'static str,
    pub(super) table: DictionaryTable,
    pub(super) index: i32,
}

/// Calls `visit` with every index of a message.
pub(super) fn visit(data: &EncodedMessage, visit: &mut dyn FnMut(Reference)) {
    let mut visitor = Visitor { visit };
    visitor.dictionary(data.tables());
    let mut profiles = 0..;
    for (resource_index, resource) in data.resources().enumerate() {
        for attribute in resource.resource().iter().flat_map(|resource| &resource.attributes) {
            visitor.key_value(Part::Resource(resource_index), attribute);
        }
        for (scope_index, scope) in resource.scopes().enumerate() {
            for attribute in scope.scope().iter().flat_map(|scope| &scope.attributes) {
                visitor.key_value(Part::Scope(resource_index, scope_index), attribute);
            }
            for (profile, profile_index) in scope.profiles().zip(&mut profiles) {
                visitor.profile(profile_index, profile);
            }
        }
    }
}

struct Visitor<'v> {
    visit: &'v mut dyn FnMut(Reference),
}

impl Visitor<'_> {
    fn one(&mut self, from: Part, field: &'static str, table: DictionaryTable, index: i32) {
        (self.visit)(Reference { from, field, table, index });
    }

    fn attributes(&mut self, from: Part, indices: &[i32]) {
        for &index in indices {
            self.one(from, "attribute_indices", DictionaryTable::Attribute, index);
        }
    }

    fn dictionary(&mut self, tables: EncodedTables<'_>) {
        for (entry, mapping) in tables.mappings().enumerate() {
            let from = Part::Entry(DictionaryTable::Mapping.name(), entry);
            self.one(from, "filename_strindex", DictionaryTable::String, mapping.filename_strindex);
            self.attributes(from, &mapping.attribute_indices);
        }
        for (entry, location) in tables.locations().enumerate() {
            let from = Part::Entry(DictionaryTable::Location.name(), entry);
            self.one(from, "mapping_index", DictionaryTable::Mapping, location.mapping_index);
            for line in &location.lines {
                self.one(from, "lines.function_index", DictionaryTable::Function, line.function_index);
            }
            self.attributes(from, &location.attribute_indices);
        }
        for (entry, function) in tables.functions().enumerate() {
            let from = Part::Entry(DictionaryTable::Function.name(), entry);
            self.one(from, "name_strindex", DictionaryTable::String, function.name_strindex);
            self.one(from, "system_name_strindex", DictionaryTable::String, function.system_name_strindex);
            self.one(from, "filename_strindex", DictionaryTable::String, function.filename_strindex);
        }
        for (entry, attribute) in tables.attribute_table().enumerate() {
            let from = Part::Entry(DictionaryTable::Attribute.name(), entry);
            self.one(from, "key_strindex", DictionaryTable::String, attribute.key_strindex);
            self.one(from, "unit_strindex", DictionaryTable::String, attribute.unit_strindex);
            self.any_value(from, attribute.value.as_ref());
        }
        for (entry, stack) in tables.stacks().enumerate() {
            let from = Part::Entry(DictionaryTable::Stack.name(), entry);
            for index in stack {
                self.one(from, "location_indices", DictionaryTable::Location, index);
            }
        }
    }

    fn key_value(&mut self, from: Part, attribute: &KeyValue) {
        self.one(from, "attributes.key_strindex", DictionaryTable::String, attribute.key_strindex);
        self.any_value(from, attribute.value.as_ref());
    }

    /// Visits the indices in a value and in its nested values. The reader has limited the depth of nesting.
    fn any_value(&mut self, from: Part, value: Option<&AnyValue>) {
        match value.and_then(|value| value.value.as_ref()) {
            Some(Value::StringValueStrindex(index)) => {
                self.one(from, "string_value_strindex", DictionaryTable::String, *index);
            }
            Some(Value::ArrayValue(array)) => {
                array.values.iter().for_each(|value| self.any_value(from, Some(value)));
            }
            Some(Value::KvlistValue(map)) => map.values.iter().for_each(|entry| self.key_value(from, entry)),
            _ => {}
        }
    }

    fn profile(&mut self, profile_index: usize, encoded: EncodedProfile<'_>) {
        let (from, profile) = (Part::Profile(profile_index), encoded.header());
        for value_type in [profile.sample_type, profile.period_type].into_iter().flatten() {
            self.one(from, "type_strindex", DictionaryTable::String, value_type.type_strindex);
            self.one(from, "unit_strindex", DictionaryTable::String, value_type.unit_strindex);
        }
        self.attributes(from, &profile.attribute_indices);
        for (sample_index, sample) in encoded.samples().enumerate() {
            let from = Part::Sample(profile_index, sample_index);
            self.one(from, "stack_index", DictionaryTable::Stack, sample.stack_index);
            self.one(from, "link_index", DictionaryTable::Link, sample.link_index);
            self.attributes(from, &sample.attribute_indices);
        }
    }
}
