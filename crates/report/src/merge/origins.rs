//! The resources and scopes of a merged message, each distinct one once.

use std::collections::{BTreeSet, HashMap};

use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::encoded_profiles::{EncodedResource, EncodedScope};
use otlpprof_otlp::wire::{KeyValue, Profile, ResourceProfiles, ScopeProfiles};
use prost::Message;
use thiserror::Error;

use super::dictionary::pair_written_out;

/// A scope of a resource, by its number.
pub type ScopeId = usize;

/// Resources with their scopes.
#[derive(Debug, Default)]
pub struct Origins {
    resources: Vec<ResourceProfiles>,
    /// The numbers of resources, by the encoded resource.
    resource_ids: HashMap<Vec<u8>, usize>,
    /// Each scope with the number of its resource.
    scopes: Vec<(usize, ScopeProfiles)>,
    /// The numbers of scopes, by the number of their resource and the encoded scope.
    scope_ids: HashMap<(usize, Vec<u8>), ScopeId>,
}

impl Origins {
    /// The number of a resource of a message.
    pub fn resource(&mut self, tables: EncodedTables<'_>, resource: EncodedResource<'_>) -> usize {
        let described = resource.resource().map(|mut described| {
            described.attributes = sorted(tables, described.attributes);
            described
        });
        let schema_url = resource.schema_url().to_owned();
        let entry = ResourceProfiles { resource: described, scope_profiles: Vec::new(), schema_url };
        let next = self.resources.len();
        *self.resource_ids.entry(entry.encode_to_vec()).or_insert_with(|| {
            self.resources.push(entry);
            next
        })
    }

    /// The number of a scope of a resource.
    pub fn scope(&mut self, tables: EncodedTables<'_>, resource: usize, scope: EncodedScope<'_>) -> ScopeId {
        let described = scope.scope().map(|mut described| {
            described.attributes = sorted(tables, described.attributes);
            described
        });
        let schema_url = scope.schema_url().to_owned();
        let entry = ScopeProfiles { scope: described, profiles: Vec::new(), schema_url };
        let next = self.scopes.len();
        *self.scope_ids.entry((resource, entry.encode_to_vec())).or_insert_with(|| {
            self.scopes.push((resource, entry));
            next
        })
    }

    /// Makes one of all resources that have equal values of these attributes. The other attributes remain
    /// where all of them agree. Returns the new number of each scope, and the keys of the attributes that are
    /// left out.
    ///
    /// # Errors
    /// If no resource has one of the attributes: its key, and the keys that exist.
    pub fn unite(&mut self, by: &[String]) -> Result<United, NoSuchKey> {
        let keys: BTreeSet<&str> =
            self.resources.iter().flat_map(attributes).map(|pair| &*pair.key).collect();
        if let Some(missing) = by.iter().find(|key| !keys.contains(&***key)) {
            let existing = keys.iter().map(|&key| key.to_owned()).collect();
            return Err(NoSuchKey { missing: missing.clone(), existing });
        }
        // Each with the keys of the attributes that differ.
        let mut united: Vec<(ResourceProfiles, BTreeSet<String>)> = Vec::new();
        let mut ids: HashMap<Vec<Option<Vec<u8>>>, usize> = HashMap::new();
        let mut new_resources = Vec::new();
        for resource in std::mem::take(&mut self.resources) {
            let value = |key: &String| {
                attributes(&resource).find(|pair| pair.key == *key).map(Message::encode_to_vec)
            };
            let values = by.iter().map(value).collect();
            let next = united.len();
            let id = *ids.entry(values).or_insert(next);
            new_resources.push(id);
            match united.get_mut(id) {
                Some((known, differing)) => keep_shared(known, &resource, differing),
                None => united.push((resource, BTreeSet::new())),
            }
        }
        let left_out = united.iter().flat_map(|(_, differing)| differing).cloned().collect();
        self.resources =
            united.into_iter().map(|(resource, differing)| without(resource, &differing)).collect();
        let mut new_scopes: Vec<ScopeId> = Vec::new();
        let mut scope_ids: HashMap<(usize, Vec<u8>), ScopeId> = HashMap::new();
        let mut scopes = Vec::new();
        for (resource, scope) in std::mem::take(&mut self.scopes) {
            let resource = new_resources[resource];
            let next = scopes.len();
            let id = *scope_ids.entry((resource, scope.encode_to_vec())).or_insert(next);
            if id == next {
                scopes.push((resource, scope));
            }
            new_scopes.push(id);
        }
        (self.scopes, self.scope_ids) = (scopes, scope_ids);
        Ok(United { new_scopes, left_out })
    }

    /// The resources with profiles, each of which comes with the number of its scope.
    pub fn into_wire(self, profiles: impl IntoIterator<Item = (ScopeId, Profile)>) -> Vec<ResourceProfiles> {
        let Self { mut resources, mut scopes, .. } = self;
        for (scope, profile) in profiles {
            scopes[scope].1.profiles.push(profile);
        }
        for (resource, scope) in scopes {
            if !scope.profiles.is_empty() {
                resources[resource].scope_profiles.push(scope);
            }
        }
        resources.retain(|resource| !resource.scope_profiles.is_empty());
        resources
    }
}

/// Resources that have become one.
#[derive(Debug)]
pub struct United {
    /// By the old number of a scope: its new number.
    pub new_scopes: Vec<ScopeId>,
    /// The keys of attributes that differed.
    pub left_out: BTreeSet<String>,
}

/// No resource has an attribute.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no resource has the attribute {missing}; the resources have {}", existing.join(", "))]
pub struct NoSuchKey {
    missing: String,
    existing: Vec<String>,
}

fn attributes(resource: &ResourceProfiles) -> impl Iterator<Item = &KeyValue> {
    resource.resource.iter().flat_map(|described| &described.attributes)
}

/// Removes the attributes of a resource that another one lacks or has with another value. Notes the keys of
/// the attributes that only one of them has, or that differ.
fn keep_shared(known: &mut ResourceProfiles, other: &ResourceProfiles, differing: &mut BTreeSet<String>) {
    let of_known: Vec<_> = attributes(known).cloned().collect();
    let is_shared = |pair: &KeyValue| attributes(other).any(|other| other == pair);
    let (shared, of_known): (Vec<_>, Vec<_>) = of_known.into_iter().partition(is_shared);
    let of_other = attributes(other).filter(|pair| !shared.contains(pair));
    differing.extend(of_known.iter().chain(of_other).map(|pair| pair.key.clone()));
    if let Some(described) = &mut known.resource {
        described.attributes = shared;
    }
}

/// The resource with notes that its attributes of these keys were left out.
fn without(mut resource: ResourceProfiles, left_out: &BTreeSet<String>) -> ResourceProfiles {
    if let Some(described) = &mut resource.resource {
        let count = u32::try_from(left_out.len()).unwrap_or(u32::MAX);
        described.dropped_attributes_count = described.dropped_attributes_count.saturating_add(count);
        // The attributes that an entity refers to must exist.
        let exists = |key: &String| !left_out.contains(key);
        described.entity_refs.retain(|entity| entity.id_keys.iter().all(exists));
        described.entity_refs.iter_mut().for_each(|entity| entity.description_keys.retain(exists));
    }
    resource
}

/// Attributes in the order of their keys, without references to the string table.
fn sorted(tables: EncodedTables<'_>, attributes: Vec<KeyValue>) -> Vec<KeyValue> {
    let mut attributes: Vec<_> = attributes.into_iter().map(|pair| pair_written_out(tables, pair)).collect();
    attributes.sort_by(|one, other| one.key.cmp(&other.key));
    attributes
}
