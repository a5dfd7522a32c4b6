//! Splits a message that a collector finds too large into two smaller messages.
//!
//! The input is the encoded message. The batch that it was encoded from is gone when the collector's answer
//! arrives, and keeping it would double the memory of all pending messages.

use prost::Message;

use super::encode_options::Format;
use super::json_transcode::to_json;
use super::profile_id::new_profile_id;
use super::read;
use super::wire::{
    Function, KeyValueAndUnit, Line, Link, Location, Mapping, Profile, ProfilesData, ProfilesDictionary,
    ResourceProfiles, Sample, ScopeProfiles, Stack, Value, ValueType,
};

/// Splits an encoded message into two halves by the order of its samples, and encodes both in the same
/// format. Each half has a dictionary of exactly the values that it refers to, and comes with its number of
/// samples. `None` if the message is not one that this crate writes, or has fewer than two samples.
pub fn halve(message: &[u8], format: Format) -> Option<[(Vec<u8>, u64); 2]> {
    let data = match format {
        Format::Proto => read::decode_protobuf(message),
        Format::Json => read::decode_json(message),
    };
    let data = data.ok()?.data;
    let total: usize = profiles(&data).map(|profile| profile.samples.len()).sum();
    if total < 2 {
        return None;
    }
    let first = total / 2;
    let half = |from: usize, to: usize| {
        let protobuf = Half::of(&data, from, to)?.encode_to_vec();
        let bytes = match format {
            Format::Proto => protobuf,
            Format::Json => to_json(&protobuf)?,
        };
        Some((bytes, (to - from) as u64))
    };
    Some([half(0, first)?, half(first, total)?])
}

fn profiles(data: &ProfilesData) -> impl Iterator<Item = &Profile> {
    let scopes = data.resource_profiles.iter().flat_map(|resource| &resource.scope_profiles);
    scopes.flat_map(|scope| &scope.profiles)
}

/// The new index of each entry of a table, by its old index; -1 for an entry that has not been moved.
struct NewIndices(Vec<i32>);

impl NewIndices {
    /// A map in which only the zero value has an index, which stays 0.
    fn new(len: usize) -> Self {
        let mut moved = vec![-1; len];
        if let Some(zero) = moved.first_mut() {
            *zero = 0;
        }
        Self(moved)
    }

    fn get(&self, old: i32) -> Option<i32> {
        let slot = *self.0.get(usize::try_from(old).ok()?)?;
        (slot >= 0).then_some(slot)
    }

    fn set(&mut self, old: i32, new: usize) -> Option<i32> {
        let new = i32::try_from(new).ok()?;
        *self.0.get_mut(usize::try_from(old).ok()?)? = new;
        Some(new)
    }
}

/// One half under construction. Every step returns `None` where an index is out of range.
struct Half<'a> {
    old: &'a ProfilesDictionary,
    new: ProfilesDictionary,
    strings: NewIndices,
    attributes: NewIndices,
    mappings: NewIndices,
    functions: NewIndices,
    links: NewIndices,
    locations: NewIndices,
    stacks: NewIndices,
}

/// Defines a method that copies one entry of a table, and everything that the entry refers to, to the new
/// dictionary.
macro_rules! mover {
    ($name:ident, $moved:ident, $table:ident, |$part:ident, $entry:ident| $rebuilt:expr) => {
        fn $name(&mut self, old: i32) -> Option<i32> {
            if let Some(new) = self.$moved.get(old) {
                return Some(new);
            }
            let dictionary = self.old;
            let $entry = dictionary.$table.get(usize::try_from(old).ok()?)?;
            let $part = &mut *self;
            let rebuilt = $rebuilt;
            self.new.$table.push(rebuilt);
            self.$moved.set(old, self.new.$table.len() - 1)
        }
    };
}

impl<'a> Half<'a> {
    /// The samples `from..to`, counted over all profiles.
    fn of(data: &'a ProfilesData, from: usize, to: usize) -> Option<ProfilesData> {
        let old = data.dictionary.as_ref()?;
        let mut part = Self {
            old,
            new: ProfilesDictionary {
                mapping_table: vec![Mapping::default()],
                location_table: vec![Location::default()],
                function_table: vec![Function::default()],
                link_table: vec![Link::default()],
                string_table: vec![String::new()],
                attribute_table: vec![KeyValueAndUnit::default()],
                stack_table: vec![Stack::default()],
            },
            strings: NewIndices::new(old.string_table.len()),
            attributes: NewIndices::new(old.attribute_table.len()),
            mappings: NewIndices::new(old.mapping_table.len()),
            functions: NewIndices::new(old.function_table.len()),
            links: NewIndices::new(old.link_table.len()),
            locations: NewIndices::new(old.location_table.len()),
            stacks: NewIndices::new(old.stack_table.len()),
        };
        let mut seen = 0;
        let mut resource_profiles = Vec::new();
        for resource in &data.resource_profiles {
            let mut scope_profiles = Vec::new();
            for scope in &resource.scope_profiles {
                let mut profiles = Vec::new();
                for profile in &scope.profiles {
                    let range = seen..seen + profile.samples.len();
                    seen = range.end;
                    let kept = from.clamp(range.start, range.end)..to.clamp(range.start, range.end);
                    let samples = &profile.samples[kept.start - range.start..kept.end - range.start];
                    // Some backends refuse the whole request if a Profile has no samples.
                    if !samples.is_empty() {
                        profiles.push(part.profile(profile, samples, kept.start == range.start)?);
                    }
                }
                if !profiles.is_empty() {
                    scope_profiles.push(ScopeProfiles { profiles, ..scope_without_profiles(scope) });
                }
            }
            if !scope_profiles.is_empty() {
                resource_profiles.push(ResourceProfiles {
                    resource: resource.resource.clone(),
                    scope_profiles,
                    schema_url: resource.schema_url.clone(),
                });
            }
        }
        Some(ProfilesData { resource_profiles, dictionary: Some(part.new) })
    }

    /// Integer attributes of a profile are counts of the whole profile, so only the first part keeps them.
    fn profile(&mut self, profile: &Profile, samples: &[Sample], is_first_part: bool) -> Option<Profile> {
        let attributes = profile.attribute_indices.iter().copied();
        let kept = attributes.filter(|&index| is_first_part || !self.is_integer(index));
        let attributes: Vec<_> = kept.collect();
        Some(Profile {
            sample_type: self.value_type(profile.sample_type.as_ref())?,
            samples: samples.iter().map(|sample| self.sample(sample)).collect::<Option<_>>()?,
            time_unix_nano: profile.time_unix_nano,
            duration_nano: profile.duration_nano,
            period_type: self.value_type(profile.period_type.as_ref())?,
            period: profile.period,
            // Each part is a profile of its own, and so needs its own id.
            profile_id: new_profile_id().to_vec(),
            dropped_attributes_count: profile.dropped_attributes_count,
            original_payload_format: profile.original_payload_format.clone(),
            original_payload: profile.original_payload.clone(),
            attribute_indices: self.attribute_list(&attributes)?,
        })
    }

    fn is_integer(&self, attribute: i32) -> bool {
        let attribute = usize::try_from(attribute).ok().and_then(|index| self.old.attribute_table.get(index));
        let value = attribute.and_then(|attribute| attribute.value.as_ref()?.value.as_ref());
        matches!(value, Some(Value::IntValue(_)))
    }

    fn value_type(&mut self, value_type: Option<&ValueType>) -> Option<Option<ValueType>> {
        let Some(value_type) = value_type else { return Some(None) };
        Some(Some(ValueType {
            type_strindex: self.string(value_type.type_strindex)?,
            unit_strindex: self.string(value_type.unit_strindex)?,
        }))
    }

    fn sample(&mut self, sample: &Sample) -> Option<Sample> {
        Some(Sample {
            stack_index: self.stack(sample.stack_index)?,
            attribute_indices: self.attribute_list(&sample.attribute_indices)?,
            link_index: self.link(sample.link_index)?,
            values: sample.values.clone(),
            timestamps_unix_nano: sample.timestamps_unix_nano.clone(),
        })
    }

    fn attribute_list(&mut self, indices: &[i32]) -> Option<Vec<i32>> {
        indices.iter().map(|&index| self.attribute(index)).collect()
    }

    mover!(string, strings, string_table, |_part, string| string.clone());
    mover!(link, links, link_table, |_part, link| link.clone());
    mover!(attribute, attributes, attribute_table, |part, attribute| KeyValueAndUnit {
        key_strindex: part.string(attribute.key_strindex)?,
        // Our values are inline and never refer to strings.
        value: attribute.value.clone(),
        unit_strindex: part.string(attribute.unit_strindex)?,
    });
    mover!(mapping, mappings, mapping_table, |part, mapping| Mapping {
        filename_strindex: part.string(mapping.filename_strindex)?,
        attribute_indices: part.attribute_list(&mapping.attribute_indices)?,
        ..mapping.clone()
    });
    mover!(function, functions, function_table, |part, function| Function {
        name_strindex: part.string(function.name_strindex)?,
        system_name_strindex: part.string(function.system_name_strindex)?,
        filename_strindex: part.string(function.filename_strindex)?,
        start_line: function.start_line,
    });
    mover!(location, locations, location_table, |part, location| Location {
        mapping_index: part.mapping(location.mapping_index)?,
        address: location.address,
        lines: location
            .lines
            .iter()
            .map(|line| {
                let function_index = part.function(line.function_index)?;
                Some(Line { function_index, line: line.line, column: line.column })
            })
            .collect::<Option<_>>()?,
        attribute_indices: part.attribute_list(&location.attribute_indices)?,
    });
    mover!(stack, stacks, stack_table, |part, stack| Stack {
        location_indices: stack
            .location_indices
            .iter()
            .map(|&index| part.location(index))
            .collect::<Option<_>>()?,
    });
}

fn scope_without_profiles(scope: &ScopeProfiles) -> ScopeProfiles {
    ScopeProfiles { scope: scope.scope.clone(), profiles: Vec::new(), schema_url: scope.schema_url.clone() }
}
