//! The profiles of a message that stays encoded, and their samples, one at a time.

use prost::Message;

use super::encoded::decoded;
use super::protobuf_cursor::{fields, payloads};
use super::wire::{InstrumentationScope, Profile, Resource, Sample};

/// The field of the resource, and that of the scope.
const ORIGIN: u32 = 1;
/// ResourceProfiles.scope_profiles, ScopeProfiles.profiles, and Profile.samples.
const PARTS: u32 = 2;
/// Profile.original_payload.
const PAYLOAD: u32 = 10;

/// The profiles of one resource.
#[derive(Clone, Copy, Debug)]
pub struct EncodedResource<'a> {
    bytes: &'a [u8],
}

/// The profiles of one scope.
#[derive(Clone, Copy, Debug)]
pub struct EncodedScope<'a> {
    bytes: &'a [u8],
}

/// A profile.
#[derive(Clone, Copy, Debug)]
pub struct EncodedProfile<'a> {
    bytes: &'a [u8],
}

/// A message that may be there several times, which means one with the fields of all.
fn merged<T: Message + Default>(bytes: &[u8]) -> Option<T> {
    let mut merged = None;
    for part in payloads(bytes, ORIGIN) {
        let so_far: &mut T = merged.get_or_insert_default();
        // SANITY: what has been walked decodes.
        let _ = so_far.merge(part);
    }
    merged
}

impl<'a> EncodedResource<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The resource: the process that was profiled.
    pub fn resource(self) -> Option<Resource> {
        merged(self.bytes)
    }

    /// The profiles by scope.
    pub fn scopes(self) -> impl Iterator<Item = EncodedScope<'a>> {
        payloads(self.bytes, PARTS).map(|bytes| EncodedScope { bytes })
    }
}

impl<'a> EncodedScope<'a> {
    /// The scope: the library that made the profiles.
    pub fn scope(self) -> Option<InstrumentationScope> {
        merged(self.bytes)
    }

    /// The profiles.
    pub fn profiles(self) -> impl Iterator<Item = EncodedProfile<'a>> {
        payloads(self.bytes, PARTS).map(|bytes| EncodedProfile { bytes })
    }
}

impl<'a> EncodedProfile<'a> {
    /// All but the samples and the payload.
    pub fn header(self) -> Profile {
        let header = fields(self.bytes).filter(|field| ![PARTS, PAYLOAD].contains(&field.number));
        decoded(&header.flat_map(|field| field.whole).copied().collect::<Vec<_>>())
    }

    /// The samples.
    pub fn samples(self) -> impl Iterator<Item = Sample> + use<'a> {
        payloads(self.bytes, PARTS).map(decoded)
    }

    /// How many samples there are.
    pub fn sample_count(self) -> usize {
        payloads(self.bytes, PARTS).count()
    }

    /// The original payload; empty without one.
    pub fn payload(self) -> &'a [u8] {
        payloads(self.bytes, PAYLOAD).last().unwrap_or_default()
    }
}
