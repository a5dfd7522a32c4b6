//! The tables that the profiles of one batch share.

use super::attributes::{Attribute, AttributeValue, Link};
use super::frame::{Frame, Function, Mapping};
use super::ids::{AttributeId, AttributeSetId, FrameId, FunctionId, LinkId, MappingId, StackId, StringId};
use super::intern::{Interner, SliceInterner, StringInterner};
use super::java_names::JavaMethod;

/// All values that samples refer to, each distinct value once.
#[derive(Clone, Debug)]
pub struct Tables {
    /// Strings.
    pub strings: StringInterner<StringId>,
    /// Functions.
    pub functions: Interner<Function, FunctionId>,
    /// Mappings.
    pub mappings: Interner<Mapping, MappingId>,
    /// Frames.
    pub frames: Interner<Frame, FrameId>,
    /// Stacks, leaf first.
    pub stacks: SliceInterner<FrameId, StackId>,
    /// Attributes.
    pub attributes: Interner<Attribute, AttributeId>,
    attribute_sets: SliceInterner<AttributeId, AttributeSetId>,
    /// Links to spans.
    pub links: Interner<Link, LinkId>,
}

impl Default for Tables {
    fn default() -> Self {
        let mut tables = Self {
            strings: StringInterner::default(),
            functions: Interner::default(),
            mappings: Interner::default(),
            frames: Interner::default(),
            stacks: SliceInterner::default(),
            attributes: Interner::default(),
            attribute_sets: SliceInterner::default(),
            links: Interner::default(),
        };
        // The constants `EMPTY` and `NONE` are the ids of these values.
        tables.strings.intern("");
        tables.stacks.intern(&[]);
        tables.attribute_sets.intern(&[]);
        tables.links.intern(Link::default());
        tables
    }
}

impl Tables {
    /// Tables that contain only the empty values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Interns an attribute with a string value and no unit.
    pub fn string_attribute(&mut self, key: &str, value: &str) -> AttributeId {
        let value = AttributeValue::Str(self.strings.intern(value));
        self.attribute(key, value, "")
    }

    /// Interns an attribute with an integer value. `unit` may be empty.
    pub fn int_attribute(&mut self, key: &str, value: i64, unit: &str) -> AttributeId {
        self.attribute(key, AttributeValue::Int(value), unit)
    }

    /// Interns an attribute. `unit` may be empty.
    pub fn attribute(&mut self, key: &str, value: AttributeValue, unit: &str) -> AttributeId {
        let key = self.strings.intern(key);
        let unit = self.strings.intern(unit);
        self.attributes.intern(Attribute { key, value, unit })
    }

    /// Interns the set of these attributes, in any order. Of several with one key the last counts. Attributes
    /// with an empty key are left out.
    pub fn attribute_set(&mut self, attributes: &[AttributeId]) -> AttributeSetId {
        let key = |id: AttributeId| self.attributes.get(id).key;
        let mut set: Vec<AttributeId> = Vec::with_capacity(attributes.len());
        for &attribute in attributes.iter().filter(|&&attribute| key(attribute) != StringId::EMPTY) {
            match set.iter_mut().find(|other| key(**other) == key(attribute)) {
                Some(other) => *other = attribute,
                None => set.push(attribute),
            }
        }
        set.sort_unstable();
        self.attribute_sets.intern(&set)
    }

    /// The attributes of a set. Their keys are distinct.
    pub fn attributes_of(&self, set: AttributeSetId) -> &[AttributeId] {
        self.attribute_sets.get(set)
    }

    /// Returns the text value of a key in a set; `None` if there is none.
    pub fn text_of(&self, set: AttributeSetId, key: &str) -> Option<&str> {
        self.attributes_of(set).iter().find_map(|&id| {
            let attribute = self.attributes.get(id);
            match attribute.value {
                AttributeValue::Str(text) if self.strings.get(attribute.key) == key => {
                    Some(self.strings.get(text))
                }
                _ => None,
            }
        })
    }

    /// Returns the union of both sets. For keys in both, the attribute of `wins` is used.
    pub fn union_of_attributes(&mut self, set: AttributeSetId, wins: AttributeSetId) -> AttributeSetId {
        let both = [self.attributes_of(set), self.attributes_of(wins)].concat();
        self.attribute_set(&both)
    }

    /// The number of attribute sets.
    pub fn attribute_set_count(&self) -> usize {
        self.attribute_sets.len()
    }

    /// Interns a Java method, named by [`JavaMethod`]. `source_file` may be empty, `start_line` 0.
    pub fn java_function(
        &mut self,
        method: JavaMethod<'_>,
        source_file: &str,
        start_line: u32,
    ) -> FunctionId {
        let name = self.strings.intern(&method.name());
        let system_name = self.strings.intern(&method.system_name());
        let filename = self.strings.intern(source_file);
        // Without a class and a descriptor both names are equal.
        let is_method = system_name != name;
        self.functions.intern(Function { name, system_name, is_method, filename, start_line })
    }

    /// Interns a function of a loaded object. `linkage_name` may be empty.
    pub fn native_function(&mut self, name: &str, linkage_name: &str) -> FunctionId {
        let name = self.strings.intern(name);
        let system_name = self.strings.intern(linkage_name);
        self.functions.intern(Function { name, system_name, ..Function::default() })
    }

    /// Interns a function of which only a name is known.
    pub fn named_function(&mut self, name: &str) -> FunctionId {
        let name = self.strings.intern(name);
        self.functions.intern(Function { name, ..Function::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_values_have_their_constant_ids() {
        let tables = Tables::new();
        assert_eq!(tables.strings.get(StringId::EMPTY), "");
        assert!(tables.stacks.get(StackId::EMPTY).is_empty());
        assert!(tables.attributes_of(AttributeSetId::EMPTY).is_empty());
        assert_eq!(*tables.links.get(LinkId::NONE), Link::default());
    }

    #[test]
    fn attribute_sets_ignore_order_and_keep_one_value_per_key() {
        let mut tables = Tables::new();
        let a = tables.string_attribute("a", "1");
        let later_a = tables.string_attribute("a", "2");
        let b = tables.int_attribute("b", 1, "ns");
        let set = tables.attribute_set(&[b, a]);
        assert_eq!(set, tables.attribute_set(&[a, b]));
        assert_eq!(set, tables.attribute_set(&[a, b, a]));
        assert_ne!(set, tables.attribute_set(&[a, b, later_a]));
        let replaced = tables.attribute_set(&[a, b, later_a]);
        assert_eq!(replaced, tables.attribute_set(&[later_a, b]));
        let nameless = tables.string_attribute("", "1");
        assert_eq!(tables.attribute_set(&[nameless]), AttributeSetId::EMPTY);
    }
}
