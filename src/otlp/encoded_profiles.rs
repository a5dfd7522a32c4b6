//! The profiles of a message that stays encoded, and their samples. Each is decoded when a caller asks for
//! it.

use prost::Message;

use super::wire::{InstrumentationScope, Profile, Resource, Sample};
use crate::protobuf::{decoded, fields, payloads};

/// ResourceProfiles.resource and ScopeProfiles.scope.
const ORIGIN: u32 = 1;
/// ResourceProfiles.scope_profiles, ScopeProfiles.profiles, and Profile.samples.
const PARTS: u32 = 2;
/// ResourceProfiles.schema_url and ScopeProfiles.schema_url.
const SCHEMA_URL: u32 = 3;
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

/// The field [`ORIGIN`], merged from all its occurrences, as protobuf has it; `None` if it does not occur.
fn merged<T: Message + Default>(bytes: &[u8]) -> Option<T> {
    let mut merged = None;
    for part in payloads(bytes, ORIGIN) {
        let so_far: &mut T = merged.get_or_insert_default();
        // SANITY: every part of a checked message decodes.
        let _ = so_far.merge(part);
    }
    merged
}

/// The text of a field, of which the last occurrence counts.
fn last_text(bytes: &[u8], field: u32) -> &str {
    // SANITY: the check has found this text to be UTF-8.
    payloads(bytes, field).last().and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default()
}

impl<'a> EncodedResource<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The resource, which describes the profiled process.
    pub fn resource(self) -> Option<Resource> {
        merged(self.bytes)
    }

    /// The schema of the resource's attributes; empty if there is none.
    pub fn schema_url(self) -> &'a str {
        last_text(self.bytes, SCHEMA_URL)
    }

    /// The profiles, grouped by scope.
    pub fn scopes(self) -> impl Iterator<Item = EncodedScope<'a>> {
        payloads(self.bytes, PARTS).map(|bytes| EncodedScope { bytes })
    }
}

impl<'a> EncodedScope<'a> {
    /// The scope, which names the library that made the profiles.
    pub fn scope(self) -> Option<InstrumentationScope> {
        merged(self.bytes)
    }

    /// The schema of the scope's and the profiles' attributes; empty if there is none.
    pub fn schema_url(self) -> &'a str {
        last_text(self.bytes, SCHEMA_URL)
    }

    /// The profiles.
    pub fn profiles(self) -> impl Iterator<Item = EncodedProfile<'a>> {
        payloads(self.bytes, PARTS).map(|bytes| EncodedProfile { bytes })
    }
}

impl<'a> EncodedProfile<'a> {
    /// The profile without its samples and its payload.
    pub fn header(self) -> Profile {
        let header = fields(self.bytes).filter(|field| ![PARTS, PAYLOAD].contains(&field.number));
        decoded(&header.flat_map(|field| field.whole).copied().collect::<Vec<_>>())
    }

    /// The samples.
    pub fn samples(self) -> impl Iterator<Item = Sample> + use<'a> {
        payloads(self.bytes, PARTS).map(decoded)
    }

    /// The number of samples.
    pub fn sample_count(self) -> usize {
        payloads(self.bytes, PARTS).count()
    }

    /// The original payload; empty if there is none.
    pub fn payload(self) -> &'a [u8] {
        payloads(self.bytes, PAYLOAD).last().unwrap_or_default()
    }
}
