//! Numbers that archives hold as text.

/// Parses a number whose text is padded with spaces and NULs. Text without a digit is 0.
pub(super) fn of_text(text: &[u8], radix: u32) -> Option<u64> {
    let is_filler = |byte: &u8| matches!(byte, b' ' | 0);
    let start = text.iter().position(|byte| !is_filler(byte)).unwrap_or(text.len());
    let digits = &text[start..];
    let end = digits.iter().position(is_filler).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    let add = |sum: u64, digit: &u8| {
        sum.checked_mul(radix.into())?.checked_add(char::from(*digit).to_digit(radix)?.into())
    };
    digits.iter().try_fold(0, add).filter(|_| rest.iter().all(is_filler))
}

#[cfg(test)]
mod tests {
    use super::of_text;

    #[test]
    fn numbers_may_be_padded_and_nothing_else() {
        for (text, radix, number) in [
            (&b"0000017\0"[..], 8, Some(15)),
            (b" 17  ", 10, Some(17)),
            (b"000000fF", 16, Some(255)),
            (b"        ", 8, Some(0)),
            (b"", 8, Some(0)),
            (b"9", 8, None),
            (b"1 1", 10, None),
            (b"-1", 10, None),
            (b"ffffffffffffffff0", 16, None),
        ] {
            assert_eq!(of_text(text, radix), number, "{text:?}");
        }
    }
}
