//! Percent-decoding, as in lists of resource attributes.

/// The reasons for which a text cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PercentError {
    /// Two hexadecimal digits do not follow a `%`.
    NoDigits,
    /// The decoded bytes are not UTF-8.
    NoText,
}

/// Replaces each %XX by the byte that it encodes (RFC 3986, 2.1).
///
/// # Errors
/// If a `%` is not followed by two hexadecimal digits, or the decoded bytes are not UTF-8.
pub fn percent_decoded(text: &str) -> Result<String, PercentError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else { return Err(PercentError::NoDigits) };
        bytes.push((high << 4 | low) as u8);
    }
    String::from_utf8(bytes).map_err(|_| PercentError::NoText)
}
