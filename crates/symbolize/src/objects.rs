//! Numbers for objects, over all messages.

use std::collections::HashMap;

use otlpprof_core::build_id::BuildId;
use otlpprof_debug_files::ObjectIdentity;
use otlpprof_elf::htlhash::HtlHash;
use otlpprof_model::attribute_keys::{BUILD_ID_GNU, BUILD_ID_HTLHASH};
use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::wire::Mapping;

/// The number of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ObjectNumber(pub(super) u32);

/// The objects of all messages.
#[derive(Debug, Default)]
pub(super) struct Objects {
    numbers: HashMap<ObjectIdentity, ObjectNumber>,
    identities: Vec<ObjectIdentity>,
}

impl Objects {
    /// The number of an object.
    pub(super) fn number(&mut self, identity: &ObjectIdentity) -> ObjectNumber {
        if let Some(&number) = self.numbers.get(identity) {
            return number;
        }
        let number = ObjectNumber(self.identities.len() as u32);
        self.identities.push(identity.clone());
        self.numbers.insert(identity.clone(), number);
        number
    }

    /// An object.
    pub(super) fn get(&self, number: ObjectNumber) -> &ObjectIdentity {
        &self.identities[number.0 as usize]
    }

    /// The number of objects.
    pub(super) fn len(&self) -> usize {
        self.identities.len()
    }
}

/// The identity of a mapping's object. Without build-id and hash the object has a path at most, which
/// identifies nothing.
pub(super) fn identity_of(tables: EncodedTables<'_>, mapping: &Mapping) -> ObjectIdentity {
    let text = |key| tables.attribute_text(&mapping.attribute_indices, key);
    let path = tables.text(mapping.filename_strindex);
    ObjectIdentity {
        build_id: text(BUILD_ID_GNU).and_then(BuildId::from_hex),
        htlhash: text(BUILD_ID_HTLHASH).and_then(HtlHash::from_hex),
        path: (!path.is_empty()).then(|| path.to_owned()),
    }
}
