//! Texts, one after another in one memory.

use std::ops::Range;

/// Texts, numbered from 0 in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct TextList {
    bytes: Vec<u8>,
    /// The end of each text in `bytes`; it begins where the text before ends.
    ends: Vec<usize>,
}

impl TextList {
    /// Adds a text.
    pub(super) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// Adds the texts of another list.
    pub(super) fn append(&mut self, other: &Self) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| before + end));
    }

    /// The text of this number.
    pub(super) fn get(&self, number: usize) -> &[u8] {
        &self.bytes[self.place(number)]
    }

    fn place(&self, number: usize) -> Range<usize> {
        number.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[number]
    }

    /// The number of texts.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The length of all texts together, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Frees memory that no text is in.
    pub(super) fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_in_the_order_of_their_addition() {
        let (mut list, mut other) = (TextList::default(), TextList::default());
        [&b"a"[..], b"", b"bc"].iter().for_each(|text| list.push(text));
        [&b""[..], b"d"].iter().for_each(|text| other.push(text));
        list.append(&other);
        let texts: Vec<_> = (0..list.len()).map(|number| list.get(number)).collect();
        assert_eq!(texts, [&b"a"[..], b"", b"bc", b"", b"d"]);
        assert_eq!(list.bytes(), 4);
    }
}
