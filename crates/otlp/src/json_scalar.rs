//! JSON values that are neither lists nor objects, and their conversion to the types of fields.

use std::fmt;

use super::schema::Kind;

/// A JSON value that is neither a list nor an object.
pub(super) enum Scalar<'t> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Negative(i64),
    Float(f64),
    Text(&'t str),
}

impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(_) => f.write_str("a boolean"),
            Self::Unsigned(number) => write!(f, "{number}"),
            Self::Negative(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Text(text) if text.len() <= 40 => write!(f, "{text:?}"),
            Self::Text(_) => f.write_str("a string"),
        }
    }
}

/// The description of a field's kind, for error messages.
pub(super) fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Int32 => "a 32-bit integer",
        Kind::Uint32 => "an unsigned 32-bit integer",
        Kind::Int64 => "a 64-bit integer",
        Kind::Uint64 | Kind::Fixed64 => "an unsigned 64-bit integer",
        Kind::Bool => "true or false",
        Kind::Double => "a number",
        Kind::String => "a string",
        Kind::Bytes => "a base64 string",
        Kind::Id => "an id in hexadecimal",
        Kind::Message(_) => "an object",
    }
}

/// The encoded form of an integer of this kind; `None` if the integer is out of range or the kind is not an
/// integer's.
pub(super) fn encoded_integer(kind: Kind, number: i128) -> Option<u64> {
    match kind {
        Kind::Int32 => i32::try_from(number).ok().map(|number| i64::from(number).cast_unsigned()),
        Kind::Uint32 => u32::try_from(number).ok().map(u64::from),
        Kind::Int64 => i64::try_from(number).ok().map(i64::cast_unsigned),
        Kind::Uint64 | Kind::Fixed64 => u64::try_from(number).ok(),
        _ => None,
    }
}

/// The integer that a number or a decimal string denotes. In proto3's JSON mapping `1.0` and `1e3` are
/// integers.
pub(super) fn integer(value: &Scalar<'_>) -> Option<i128> {
    /// 2⁵³: above this, a floating-point number cannot represent every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Scalar::Unsigned(number) => Some(i128::from(*number)),
        Scalar::Negative(number) => Some(i128::from(*number)),
        Scalar::Float(number) if number.fract() == 0.0 && number.abs() <= EXACT => Some(*number as i128),
        Scalar::Text(text) if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    }
}

pub(super) fn double(value: &Scalar<'_>) -> Option<f64> {
    match value {
        Scalar::Unsigned(number) => Some(*number as f64),
        Scalar::Negative(number) => Some(*number as f64),
        Scalar::Float(number) => Some(*number),
        Scalar::Text(text) => match *text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            number => number.parse().ok().filter(|number: &f64| number.is_finite()),
        },
        _ => None,
    }
}

pub(super) fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

/// Decodes base64 in either alphabet, padded or not (proto3's JSON mapping; RFC 4648, 4 and 5).
pub(super) fn base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let padding = text.len() - digits.len();
    if digits.len() % 4 == 1 || padding > 2 || (padding > 0 && !text.len().is_multiple_of(4)) {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let mut bits = 0_u32;
        for &digit in group {
            bits = bits << 6 | base64_digit(digit)?;
        }
        bits <<= 6 * (4 - group.len());
        out.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(out)
}

/// The six bits of a digit in either alphabet.
pub(super) fn base64_digit(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_in_all_its_forms() {
        assert_eq!(base64("").unwrap(), b"");
        assert_eq!(base64("Zg==").unwrap(), b"f");
        assert_eq!(base64("Zg").unwrap(), b"f");
        assert_eq!(base64("Zm9vYmE=").unwrap(), b"fooba");
        assert_eq!(base64("Zm9vYmFy").unwrap(), b"foobar");
        assert_eq!(base64("+/-_").unwrap(), [0xfb, 0xff, 0xbf]);
        for bad in ["Z", "Zg=", "Z===", "=", "Zg==Zg==", "Z g="] {
            assert_eq!(base64(bad), None, "{bad}");
        }
    }
}
