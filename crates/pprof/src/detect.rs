//! Distinguishes pprof from OTLP. Both are protobuf without a magic number.
//!
//! The fields of both top messages decide, in the order of the bytes:
//!
//! | Field | pprof's Profile | OTLP's ProfilesData |
//! |---|---|---|
//! | 1 | ValueType: varints | ResourceProfiles: messages and text |
//! | 2 | Sample: fields 1 to 3 | ProfilesDictionary: fields 1 to 7, always with 5, the strings |
//! | 3 and more | mappings, locations, functions, strings, times | none |
//!
//! A wrong guess ends in an error: OTLP's reader refuses a varint in field 1, and pprof's reader refuses a
//! profile without sample types or with a text that is no string.

use otlpprof_protobuf::{ByteCursor, WireType, fields};

/// Whether these are the first bytes of a profile in pprof's format, decompressed. Each field must be one of
/// pprof's, with its wire type. A short text may be taken for one, so a caller asks first whether the bytes
/// are text.
pub fn is_pprof(first: &[u8]) -> bool {
    use WireType::{Delimited, Varint};
    let mut rest = ByteCursor::new(first);
    let mut is_decided = false;
    while !rest.is_empty() {
        let Ok((number, wire_type)) = rest.key() else { return false };
        match (number, wire_type) {
            (1 | 2, Delimited) => {}
            (3..=6 | 11 | 13 | 15, Delimited) | (7..=10 | 12..=14, Varint) => is_decided = true,
            _ => return false,
        }
        // The last part may be cut off.
        let Ok((_, part)) = rest.value(wire_type) else { return is_decided };
        match number {
            1 if !part.is_empty() && !is_value_type(part) => return false,
            1 => is_decided |= !part.is_empty(),
            2 if fields(part).any(|field| field.number > 3) => return false,
            _ => {}
        }
    }
    is_decided
}

/// Whether all of the bytes are varints in the fields 1 and 2.
fn is_value_type(bytes: &[u8]) -> bool {
    let mut rest = ByteCursor::new(bytes);
    while !rest.is_empty() {
        let Ok((1 | 2, WireType::Varint)) = rest.key() else { return false };
        if rest.varint().is_err() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_the_top_message_decide() {
        for (bytes, is) in [
            // A sample type; two of them; an empty one, then a sample, then the string table.
            (&[0x0a, 4, 8, 1, 16, 2][..], true),
            (&[0x0a, 0, 0x0a, 2, 8, 1], true),
            (&[0x0a, 0, 0x12, 4, 0x0a, 0, 0x12, 0, 0x32, 0], true),
            // The string table first; the time first.
            (&[0x32, 0, 0x32, 3, b'c', b'p', b'u'], true),
            (&[0x48, 1], true),
            // OTLP: a resource; a dictionary of an empty mapping and an empty string, then a resource.
            (&[0x0a, 2, 0x0a, 0], false),
            (&[0x12, 4, 0x0a, 0, 0x2a, 0, 0x0a, 2, 0x12, 0], false),
            (&[0x12, 4, 0x0a, 0, 0x2a, 0, 0x1a, 0], false),
            // Nothing decides.
            (&[], false),
            (&[0x0a, 0], false),
            // A length prefix, JSON, a cut field, a field of neither.
            (&[0, 0, 0, 2, 0x0a, 0], false),
            (b"{\"a\": 1}", false),
            (&[0x0a, 9, 8, 1], false),
            (&[0x82, 1, 0], false),
            (&[0x0d, 1, 2, 3, 4], false),
            // Texts, whose first letters are keys of fields of pprof.
            (b"hello world\n", false),
            (b"Pool;run 5\n", false),
        ] {
            assert_eq!(is_pprof(bytes), is, "{bytes:?}");
        }
    }
}
