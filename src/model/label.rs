//! How long a label may be.

/// The most bytes of a label's text. Backends make a series of each text and refuse long ones: Pyroscope all of a request
/// with one above 2,048 bytes.
pub const LONGEST_LABEL: usize = 1_024;

/// The most bytes of a class's or method's name, or of a descriptor, that is read from a recording. HotSpot's may have
/// 65,535, but any number of methods may be of one class, and each has a name of its own that the class's is part of.
pub const LONGEST_NAME: usize = 1_024;

/// The text, cut at the last character that ends within [`LONGEST_LABEL`].
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
