//! The limits of labels and names.

/// The longest text of a label, in bytes. Backends make a series of each text and refuse long ones: Pyroscope
/// rejects a whole request with a label above 2,048 bytes.
pub const LONGEST_LABEL: usize = 1_024;

/// The longest name of a class or method, and the longest descriptor, that is read from a recording, in
/// bytes. HotSpot allows 65,535. But a class may have any number of methods, each of whose names contains the
/// class's name.
pub const LONGEST_NAME: usize = 1_024;

/// Returns the text, cut at the last character that ends within [`LONGEST_LABEL`].
pub fn label(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_LABEL)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(label("main"), "main");
        assert_eq!(label(&"a".repeat(1_024)).len(), 1_024);
        assert_eq!(label(&"a".repeat(1_025)).len(), 1_024);
        let euros = "€".repeat(1_000);
        assert_eq!(label(&euros), "€".repeat(341));
    }
}
