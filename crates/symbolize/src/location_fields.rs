//! The fields of an encoded location, without decoding it as a whole: a message has thousands of locations.

use otlpprof_protobuf::{ByteCursor, fields};

/// Fields of Location.
const MAPPING: u32 = 1;
pub(super) const ADDRESS: u32 = 2;
pub(super) const LINES: u32 = 3;
const ATTRIBUTES: u32 = 4;
/// Line.function_index.
const FUNCTION: u32 = 1;

/// The parts of a location that decide whether it has a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocationFields<'a> {
    encoded: &'a [u8],
    pub(super) mapping: i32,
    pub(super) address: u64,
    pub(super) lines: usize,
    /// The function of the last line.
    pub(super) function: i32,
}

impl<'a> LocationFields<'a> {
    /// Reads an encoded location of a message that has been checked.
    pub(super) fn of(encoded: &'a [u8]) -> Self {
        let mut found = Self { encoded, mapping: 0, address: 0, lines: 0, function: 0 };
        for field in fields(encoded) {
            match field.number {
                MAPPING => found.mapping = field.value as i32,
                ADDRESS => found.address = field.value,
                LINES => {
                    let function = fields(field.payload).filter(|field| field.number == FUNCTION).last();
                    found.lines += 1;
                    found.function = function.map_or(0, |function| function.value as i32);
                }
                _ => {}
            }
        }
        found
    }

    /// The indices of the attributes.
    pub(super) fn attributes(self) -> impl Iterator<Item = i32> + use<'a> {
        // An encoder may pack the indices or not (protobuf's encoding guide, "Packed Repeated Fields").
        fields(self.encoded).filter(|field| field.number == ATTRIBUTES).flat_map(|field| {
            let mut packed = ByteCursor::new(field.payload);
            let single = field.payload.is_empty().then_some(field.value);
            let packed =
                std::iter::from_fn(move || if packed.is_empty() { None } else { packed.varint().ok() });
            single.into_iter().chain(packed).map(|index| index as i32)
        })
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_otlp::wire::{Line, Location};
    use prost::Message as _;

    use super::*;

    #[test]
    fn fields_are_those_of_the_decoded_location() {
        let line = |function_index| Line { function_index, line: 7, column: 0 };
        let location = Location {
            mapping_index: 3,
            address: 0xffff_ffff_ffff,
            lines: vec![line(4), line(300)],
            attribute_indices: vec![1, 200, 70_000],
        };
        let encoded = location.encode_to_vec();
        let found = LocationFields::of(&encoded);
        assert_eq!((found.mapping, found.address), (3, 0xffff_ffff_ffff));
        assert_eq!((found.lines, found.function), (2, 300));
        assert_eq!(found.attributes().collect::<Vec<_>>(), [1, 200, 70_000]);
        // Not packed.
        let found = LocationFields::of(&[0x20, 5, 0x20, 6]);
        assert_eq!(found.attributes().collect::<Vec<_>>(), [5, 6]);
        assert_eq!(LocationFields::of(&[]).lines, 0);
    }
}
