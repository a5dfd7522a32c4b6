//! Names and paths, each kept once.

use std::hash::BuildHasher as _;
use std::sync::{Mutex, PoisonError};

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::error::DwarfError;
use super::limits;
use super::text_list::TextList;

/// The number that stands for no text.
pub(super) const NO_TEXT: u32 = u32::MAX;

/// Texts that several threads add to.
#[derive(Debug, Default)]
pub(super) struct SharedTexts(Mutex<Texts>);

impl SharedTexts {
    /// The number of a text, which is added if it is new.
    ///
    /// # Errors
    /// If the text, or all texts together, are too long.
    pub(super) fn add(&self, text: &[u8]) -> Result<u32, DwarfError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(text)
    }

    /// The texts, without the memory by which equal ones are found.
    pub(super) fn into_inner(self) -> Texts {
        let mut texts = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        texts.numbers = HashTable::new();
        texts.list.shrink_to_fit();
        texts
    }
}

/// Texts, numbered in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Texts {
    list: TextList,
    numbers: HashTable<u32>,
    hasher: FixedState,
}

impl Texts {
    /// The number of a text, which is added if it is new.
    ///
    /// # Errors
    /// If the text, or all texts together, are too long.
    pub(super) fn add(&mut self, text: &[u8]) -> Result<u32, DwarfError> {
        if text.len() > limits::TEXT {
            return Err(DwarfError::Text { len: text.len() });
        }
        let hash = self.hasher.hash_one(text);
        if let Some(&number) = self.numbers.find(hash, |&number| self.get(number) == text) {
            return Ok(number);
        }
        let number = u32::try_from(self.list.len()).ok().filter(|&number| number < NO_TEXT);
        let number = number.filter(|_| self.list.bytes() + text.len() <= limits::TEXTS);
        let number = number.ok_or(DwarfError::Texts)?;
        self.list.push(text);
        let (list, hasher) = (&self.list, &self.hasher);
        self.numbers.insert_unique(hash, number, |&number| hasher.hash_one(list.get(number as usize)));
        Ok(number)
    }

    /// The text of this number.
    pub(super) fn get(&self, number: u32) -> &[u8] {
        self.list.get(number as usize)
    }

    /// The number of texts.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_one_number() {
        let mut texts = Texts::default();
        let numbers: Vec<_> =
            [&b"a"[..], b"", b"bc", b"a", b""].iter().map(|text| texts.add(text).unwrap()).collect();
        assert_eq!(numbers, [0, 1, 2, 0, 1]);
        assert_eq!(
            (texts.get(0), texts.get(1), texts.get(2), texts.len()),
            (&b"a"[..], &b""[..], &b"bc"[..], 3)
        );
    }

    #[test]
    fn a_text_of_megabytes_is_refused() {
        let mut texts = Texts::default();
        assert!(texts.add(&vec![b'x'; limits::TEXT]).is_ok());
        let refused = texts.add(&vec![b'x'; limits::TEXT + 1]);
        assert!(matches!(refused, Err(DwarfError::Text { len }) if len == limits::TEXT + 1));
    }
}
