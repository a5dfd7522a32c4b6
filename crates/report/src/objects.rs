//! Loaded objects that frames are in, interned.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use otlpprof_core::build_id::BuildId;
use otlpprof_model::attribute_keys;
use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::lookup::DictionaryTables as _;

/// An object, by its number in an [`ObjectTable`]. 0 is none.
pub type ObjectId = u32;

/// A loaded object, such as a shared library.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// The path; empty if unknown.
    pub path: Box<str>,
    /// The GNU build-id.
    pub build_id: Option<BuildId>,
}

impl Object {
    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// Objects, each with a number. Segments of one object are one.
#[derive(Debug, Default)]
pub struct ObjectTable {
    objects: Vec<Object>,
    by_object: HashMap<Object, ObjectId>,
}

impl ObjectTable {
    /// The object of a message's mapping; 0 if the message does not identify it.
    pub fn of_mapping(&mut self, tables: EncodedTables<'_>, mapping_index: i32) -> ObjectId {
        let Some(mapping) = tables.mapping(mapping_index) else { return 0 };
        let build_id = tables.attribute_text(&mapping.attribute_indices, attribute_keys::BUILD_ID_GNU);
        let path = tables.text(mapping.filename_strindex).into();
        let object = Object { path, build_id: build_id.and_then(BuildId::from_hex) };
        if object.path.is_empty() && object.build_id.is_none() {
            return 0;
        }
        match self.by_object.entry(object) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                self.objects.push(place.key().clone());
                // SANITY: a message of 2^32 mappings is refused.
                *place.insert(self.objects.len() as ObjectId)
            }
        }
    }

    /// All objects; the first has the number 1.
    pub fn all(&self) -> &[Object] {
        &self.objects
    }
}
