//! The profiles of a message that stays encoded, and their samples. Each is decoded when a caller asks for
//! it.

use otlpprof_protobuf::{decoded, fields, payloads};
use prost::Message;

use super::schema::profile::number::{ORIGINAL_PAYLOAD, SAMPLES};
use super::schema::{resource_profiles, scope_profiles};
use super::wire::{InstrumentationScope, Profile, Resource, Sample};

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

/// A sample.
#[derive(Clone, Copy, Debug)]
pub struct EncodedSample<'a> {
    bytes: &'a [u8],
}

/// A field, merged from all its occurrences, as protobuf has it; `None` if it does not occur.
fn merged<T: Message + Default>(bytes: &[u8], field: u32) -> Option<T> {
    let mut merged = None;
    for part in payloads(bytes, field) {
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
        merged(self.bytes, resource_profiles::number::RESOURCE)
    }

    /// The schema of the resource's attributes; empty if there is none.
    pub fn schema_url(self) -> &'a str {
        last_text(self.bytes, resource_profiles::number::SCHEMA_URL)
    }

    /// The profiles, grouped by scope.
    pub fn scopes(self) -> impl Iterator<Item = EncodedScope<'a>> {
        payloads(self.bytes, resource_profiles::number::SCOPE_PROFILES).map(|bytes| EncodedScope { bytes })
    }
}

impl<'a> EncodedScope<'a> {
    /// The scope, which names the library that made the profiles.
    pub fn scope(self) -> Option<InstrumentationScope> {
        merged(self.bytes, scope_profiles::number::SCOPE)
    }

    /// The schema of the scope's and the profiles' attributes; empty if there is none.
    pub fn schema_url(self) -> &'a str {
        last_text(self.bytes, scope_profiles::number::SCHEMA_URL)
    }

    /// The profiles.
    pub fn profiles(self) -> impl Iterator<Item = EncodedProfile<'a>> {
        payloads(self.bytes, scope_profiles::number::PROFILES).map(|bytes| EncodedProfile { bytes })
    }
}

impl<'a> EncodedProfile<'a> {
    /// The profile without its samples and its payload.
    pub fn header(self) -> Profile {
        let header = fields(self.bytes).filter(|field| ![SAMPLES, ORIGINAL_PAYLOAD].contains(&field.number));
        decoded(&header.flat_map(|field| field.whole).copied().collect::<Vec<_>>())
    }

    /// The samples.
    pub fn samples(self) -> impl Iterator<Item = Sample> + use<'a> {
        payloads(self.bytes, SAMPLES).map(decoded)
    }

    /// The samples, encoded.
    pub fn encoded_samples(self) -> impl Iterator<Item = EncodedSample<'a>> {
        payloads(self.bytes, SAMPLES).map(|bytes| EncodedSample { bytes })
    }

    /// The number of samples.
    pub fn sample_count(self) -> usize {
        payloads(self.bytes, SAMPLES).count()
    }

    /// The original payload; empty if there is none.
    pub fn payload(self) -> &'a [u8] {
        payloads(self.bytes, ORIGINAL_PAYLOAD).last().unwrap_or_default()
    }
}

impl EncodedSample<'_> {
    /// Decodes the sample into the memory of another one, whose lists mostly have room for these.
    pub fn decode_to(self, sample: &mut Sample) {
        use super::schema::sample::number::{
            ATTRIBUTE_INDICES, LINK_INDEX, STACK_INDEX, TIMESTAMPS_UNIX_NANO, VALUES,
        };
        let Sample { stack_index, attribute_indices, link_index, values, timestamps_unix_nano } = sample;
        (*stack_index, *link_index) = (0, 0);
        attribute_indices.clear();
        values.clear();
        timestamps_unix_nano.clear();
        for field in fields(self.bytes) {
            // The upper half of an index is dropped, as protobuf has it.
            match field.number {
                STACK_INDEX => *stack_index = field.value as i32,
                ATTRIBUTE_INDICES => field.each_varint(|index| attribute_indices.push(index as i32)),
                LINK_INDEX => *link_index = field.value as i32,
                VALUES => field.each_varint(|value| values.push(value as i64)),
                // Packed or not, each time has eight bytes.
                TIMESTAMPS_UNIX_NANO => {
                    let (times, _) = field.payload.as_chunks();
                    timestamps_unix_nano.extend(times.iter().map(|&time| u64::from_le_bytes(time)));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sample that the bytes are, decoded into one that had something else.
    fn read(bytes: &[u8]) -> Sample {
        let mut sample = Sample {
            stack_index: 8,
            attribute_indices: vec![8; 3],
            link_index: 8,
            values: vec![8],
            timestamps_unix_nano: vec![8],
        };
        EncodedSample { bytes }.decode_to(&mut sample);
        sample
    }

    #[test]
    fn a_sample_is_decoded_as_protobuf_does() {
        let whole = Sample {
            stack_index: -1,
            attribute_indices: vec![1, 300, -5],
            link_index: 1 << 20,
            values: vec![i64::MIN, 0, 7],
            timestamps_unix_nano: vec![u64::MAX, 0, 1 << 60],
        };
        let (mut bytes, mut unpacked) = (whole.encode_to_vec(), vec![0x10, 4, 0x20, 0, 0x29]);
        unpacked.extend(9_u64.to_le_bytes());
        assert_eq!(read(&bytes), whole);
        assert_eq!(read(&unpacked), Sample::decode(&*unpacked).unwrap());
        // Lists in several parts are joined. The last index counts, without its upper half.
        bytes.extend(unpacked);
        bytes.extend([0x08, 0x85, 0x80, 0x80, 0x80, 0x10]);
        assert_eq!(read(&bytes), Sample::decode(&*bytes).unwrap());
        assert_eq!(read(&[]), Sample::default());
    }
}
