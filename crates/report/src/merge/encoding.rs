//! The bytes of a merged message. Its stacks, which are most of it, are encoded by a thread of their own.

use std::panic::resume_unwind;
use std::thread;

use otlpprof_model::{SliceInterner, StackId};
use otlpprof_otlp::wire::ProfilesData;
use prost::Message as _;

/// The keys of `ProfilesData.dictionary`, `ProfilesDictionary.stack_table` and `Stack.location_indices`: each
/// has a length.
const DICTIONARY: u8 = 2 << 3 | 2;
const STACK_TABLE: u8 = 7 << 3 | 2;
const LOCATION_INDICES: u8 = 1 << 3 | 2;

/// Encodes a message that has these stacks, each with its locations, and otherwise the content that
/// `others` returns.
pub(super) fn encode(stacks: &SliceInterner<i32, StackId>, others: impl FnOnce() -> ProfilesData) -> Vec<u8> {
    thread::scope(|scope| {
        let stacks = scope.spawn(|| encoded_stacks(stacks));
        let mut others = others();
        let tables = others.dictionary.take().unwrap_or_default().encode_to_vec();
        let mut bytes = others.encode_to_vec();
        drop(others);
        let stacks = stacks.join().unwrap_or_else(|panic| resume_unwind(panic));
        // The stacks are the dictionary's last table, and the dictionary is the last field.
        bytes.reserve_exact(tables.len() + stacks.len() + 16);
        bytes.push(DICTIONARY);
        push_varint(&mut bytes, tables.len() + stacks.len());
        bytes.extend_from_slice(&tables);
        bytes.extend_from_slice(&stacks);
        bytes
    })
}

/// The table of stacks.
fn encoded_stacks(stacks: &SliceInterner<i32, StackId>) -> Vec<u8> {
    let (mut bytes, mut packed, mut length) = (Vec::new(), Vec::new(), Vec::new());
    for locations in stacks.iter() {
        packed.clear();
        // SANITY: indices are not negative.
        locations.iter().for_each(|&location| push_varint(&mut packed, location as usize));
        length.clear();
        push_varint(&mut length, packed.len());
        bytes.push(STACK_TABLE);
        match packed.is_empty() {
            true => bytes.push(0),
            false => {
                push_varint(&mut bytes, 1 + length.len() + packed.len());
                bytes.push(LOCATION_INDICES);
                bytes.extend_from_slice(&length);
                bytes.extend_from_slice(&packed);
            }
        }
    }
    bytes
}

fn push_varint(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use otlpprof_otlp::wire::{ProfilesDictionary, ResourceProfiles, Stack};

    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_whole_message() {
        let others = ProfilesData {
            resource_profiles: vec![ResourceProfiles { schema_url: "url".into(), ..Default::default() }],
            dictionary: Some(ProfilesDictionary {
                string_table: vec![String::new(), "a".into()],
                ..Default::default()
            }),
        };
        let mut stacks = SliceInterner::default();
        let all: [&[i32]; 4] = [&[], &[1, 0, 127, 128], &[i32::MAX], &[300; 200]];
        for locations in all {
            stacks.intern(locations);
        }
        let mut whole = others.clone();
        let table = all.map(|locations| Stack { location_indices: locations.to_vec() });
        whole.dictionary.as_mut().unwrap().stack_table = table.to_vec();
        assert_eq!(encode(&stacks, || others), whole.encode_to_vec());
    }
}
