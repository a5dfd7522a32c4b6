//! Modified UTF-8, the encoding of HotSpot's symbols and JNI's strings (JVM specification 4.4.7): U+0000
//! takes two bytes, and a character beyond U+FFFF is a pair of surrogates of three bytes each.

use std::borrow::Cow;

/// Decodes `bytes`. Malformed bytes become U+FFFD.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let (unit, len) = match (*first, tail) {
            (0..=0x7f, _) => (u16::from(*first), 1),
            (0xc0..=0xdf, [second, ..]) => (u16::from(first & 0x1f) << 6 | low_bits(*second), 2),
            (0xe0..=0xef, [second, third, ..]) => {
                (u16::from(first & 0x0f) << 12 | low_bits(*second) << 6 | low_bits(*third), 3)
            }
            _ => (0xfffd, 1),
        };
        units.push(unit);
        rest = &rest[len..];
    }
    Cow::Owned(String::from_utf16_lossy(&units))
}

fn low_bits(byte: u8) -> u16 {
    u16::from(byte & 0x3f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed() {
        assert!(matches!(decode("gr\u{f6}\u{df}e/\u{540d}".as_bytes()), Cow::Borrowed("größe/名")));
    }

    #[test]
    fn zero_and_surrogate_pairs_are_decoded() {
        assert_eq!(decode(&[b'a', 0xc0, 0x80, b'b']), "a\0b");
        // U+1F600 as the surrogates D83D DE00.
        assert_eq!(decode(&[0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80, b'!']), "\u{1f600}!");
    }

    #[test]
    fn truncated_or_invalid_utf8_is_replaced() {
        assert_eq!(decode(&[b'x', 0xe5]), "x\u{fffd}");
        assert_eq!(decode(&[0xed, 0xa0, 0xbd]), "\u{fffd}");
        assert_eq!(decode(&[0xff, b'y']), "\u{fffd}y");
    }
}
