//! The resources and scopes of a merged message, each distinct one once.

use std::collections::HashMap;

use prost::Message as _;

use super::dictionary::pair_written_out;
use crate::otlp::encoded::EncodedTables;
use crate::otlp::encoded_profiles::{EncodedResource, EncodedScope};
use crate::otlp::wire::{KeyValue, Profile, ResourceProfiles, ScopeProfiles};

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

/// Attributes in the order of their keys, without references to the string table.
fn sorted(tables: EncodedTables<'_>, attributes: Vec<KeyValue>) -> Vec<KeyValue> {
    let mut attributes: Vec<_> = attributes.into_iter().map(|pair| pair_written_out(tables, pair)).collect();
    attributes.sort_by(|one, other| one.key.cmp(&other.key));
    attributes
}
