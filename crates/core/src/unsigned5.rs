//! UNSIGNED5, HotSpot's variable-length integers (`utilities/unsigned5.hpp`; until 19
//! `code/compressedStream.hpp`): base 64 with the low digits first. HotSpot encodes the scopes of compiled
//! methods and line tables in this format.

/// The largest number of bytes of one integer.
pub const MAX_LEN: usize = 5;

/// The number of byte values that say "more bytes follow". All lower values, except the excluded ones, end an
/// integer.
const HIGH_VALUES: u32 = 64;
const LOW_VALUES: u32 = 256 - HIGH_VALUES;

/// Reads one integer from `next_byte`. Byte values below `excluded` (0 until 19, 1 from 20 on) occur in no
/// integer. Returns `None` if the bytes end or one of them is excluded. Allocates nothing, never panics.
pub fn read(mut next_byte: impl FnMut() -> Option<u8>, excluded: u8) -> Option<u32> {
    let excluded = u32::from(excluded);
    let low_values = LOW_VALUES.saturating_sub(excluded);
    let mut sum = 0u32;
    for shift in (0..).step_by(6).take(MAX_LEN) {
        let digit = u32::from(next_byte()?).checked_sub(excluded)?;
        sum = sum.wrapping_add(digit.wrapping_shl(shift));
        if digit < low_values {
            break;
        }
    }
    Some(sum)
}

/// Decodes the zigzag encoding of a signed integer (`(x << 1) ^ (x >> 31)`).
pub const fn to_signed(value: u32) -> i32 {
    (value >> 1) as i32 ^ ((value & 1) as i32).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(mut value: u32, excluded: u32) -> Vec<u8> {
        let low_values = LOW_VALUES - excluded;
        let mut bytes = Vec::new();
        while value >= low_values && bytes.len() < MAX_LEN - 1 {
            value -= low_values;
            bytes.push((excluded + low_values + value % HIGH_VALUES) as u8);
            value /= HIGH_VALUES;
        }
        bytes.push((excluded + value) as u8);
        bytes
    }

    fn decode(bytes: &[u8], excluded: u8) -> Option<u32> {
        let mut bytes = bytes.iter().copied();
        let value = read(|| bytes.next(), excluded);
        assert!(value.is_none() || bytes.next().is_none(), "bytes left over");
        value
    }

    #[test]
    fn known_encodings() {
        // From the description in unsigned5.hpp: 0 is the byte 1 since JDK 20, and was the byte 0 before.
        assert_eq!(decode(&[1], 1), Some(0));
        assert_eq!(decode(&[0], 0), Some(0));
        assert_eq!(decode(&[0xbf], 1), Some(190));
        assert_eq!(decode(&[0xbf], 0), Some(191));
        assert_eq!(decode(&[0xc0, 1], 1), Some(191));
        assert_eq!(decode(&[0xc0, 0], 0), Some(192));
    }

    #[test]
    fn both_forms_come_back() {
        for excluded in [0, 1] {
            for value in [0, 1, 190, 191, 192, 254, 255, 12_479, 12_480, 1 << 24, u32::MAX - 1, u32::MAX] {
                assert_eq!(decode(&encode(value, excluded), excluded as u8), Some(value), "{value}");
            }
        }
    }

    #[test]
    fn ends_and_excluded_bytes_are_refused() {
        assert_eq!(decode(&[], 1), None);
        assert_eq!(decode(&[0xc0], 1), None);
        assert_eq!(decode(&[0], 1), None);
        assert_eq!(decode(&[0xff, 0], 1), None);
    }

    #[test]
    fn zigzag() {
        assert_eq!([0, 1, 2, 3, u32::MAX].map(to_signed), [0, -1, 1, -2, i32::MIN]);
    }
}
