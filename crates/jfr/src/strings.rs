//! Strings, in their six encodings.
//!
//! Sources: JDK 17 `jdk.jfr.internal.consumer.StringParser`; HotSpot 17 `jfrEncoders`, `jfrStringPool.cpp`.

use std::borrow::Cow;

use super::cursor::ChunkCursor;
use super::error::{JfrError, Problem};

const NULL: u8 = 0;
const EMPTY: u8 = 1;
const POOL: u8 = 2;
const UTF_8: u8 = 3;
const UTF_16: u8 = 4;
const LATIN_1: u8 = 5;

/// A string as it is encoded in the recording.
#[derive(Clone, Copy, Debug)]
pub enum RawString<'c> {
    /// No string.
    Null,
    /// The key of a string in the chunk's string pool.
    Pool(i64),
    /// UTF-8. Some writers use the modified form: NUL takes two bytes, and characters outside the basic plane
    /// are pairs of surrogates.
    Utf8(&'c [u8]),
    /// UTF-16 code units.
    Utf16(Utf16Units<'c>),
    /// Latin-1: one byte for each character.
    Latin1(&'c [u8]),
}

/// UTF-16 code units, each encoded as a char of the chunk.
#[derive(Clone, Copy, Debug)]
pub struct Utf16Units<'c> {
    first: ChunkCursor<'c>,
    count: usize,
}

impl<'c> RawString<'c> {
    /// Reads a string.
    #[inline]
    pub(super) fn read(cursor: &mut ChunkCursor<'c>) -> Result<Self, JfrError> {
        let at = *cursor;
        match cursor.byte()? {
            NULL => Ok(Self::Null),
            EMPTY => Ok(Self::Latin1(&[])),
            POOL => cursor.long().map(Self::Pool),
            UTF_8 => {
                let len = cursor.count()?;
                cursor.take(len).map(Self::Utf8)
            }
            UTF_16 => {
                let count = cursor.count()?;
                let first = *cursor;
                skip_chars(cursor, count)?;
                Ok(Self::Utf16(Utf16Units { first, count }))
            }
            LATIN_1 => {
                let len = cursor.count()?;
                cursor.take(len).map(Self::Latin1)
            }
            other => Err(at.error(Problem::StringEncoding(other))),
        }
    }

    /// Skips a string.
    pub(super) fn skip(cursor: &mut ChunkCursor<'_>) -> Result<(), JfrError> {
        let at = *cursor;
        match cursor.byte()? {
            NULL | EMPTY => Ok(()),
            POOL => cursor.long().map(drop),
            UTF_8 | LATIN_1 => {
                let len = cursor.count()?;
                cursor.skip_bytes(len)
            }
            UTF_16 => {
                let count = cursor.count()?;
                skip_chars(cursor, count)
            }
            other => Err(at.error(Problem::StringEncoding(other))),
        }
    }

    /// The beginning of the string: at most `most` bytes or UTF-16 units. In UTF-8 the last character is
    /// whole.
    pub(super) fn up_to(self, most: usize) -> Self {
        match self {
            Self::Utf8(bytes) if bytes.len() > most => {
                let is_first = |&at: &usize| bytes[at] & 0xc0 != 0x80;
                Self::Utf8(&bytes[..(0..=most).rev().find(is_first).unwrap_or(most)])
            }
            Self::Latin1(bytes) => Self::Latin1(&bytes[..bytes.len().min(most)]),
            Self::Utf16(units) => Self::Utf16(Utf16Units { count: units.count.min(most), ..units }),
            _ => self,
        }
    }

    /// The text of an inline string; `None` for a null or a reference into the pool. Invalid Unicode becomes
    /// U+FFFD.
    pub fn text(self) -> Option<Cow<'c, str>> {
        match self {
            Self::Null | Self::Pool(_) => None,
            Self::Utf8(bytes) => Some(match std::str::from_utf8(bytes) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) => Cow::Owned(from_modified_utf8(bytes)),
            }),
            Self::Utf16(units) => Some(Cow::Owned(units.text())),
            Self::Latin1(bytes) => Some(match std::str::from_utf8(bytes) {
                Ok(text) if bytes.is_ascii() => Cow::Borrowed(text),
                _ => Cow::Owned(bytes.iter().map(|&byte| char::from(byte)).collect()),
            }),
        }
    }
}

impl Utf16Units<'_> {
    fn text(self) -> String {
        let mut cursor = self.first;
        let units = (0..self.count).map_while(|_| cursor.short().ok());
        char::decode_utf16(units).map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    }
}

fn skip_chars(cursor: &mut ChunkCursor<'_>, count: usize) -> Result<(), JfrError> {
    if cursor.compressed() {
        cursor.skip_compressed(count)
    } else {
        cursor.skip_bytes(count.saturating_mul(2))
    }
}

/// Decodes UTF-8 that may contain the modified form's NUL and surrogates.
fn from_modified_utf8(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        let valid = match std::str::from_utf8(rest) {
            Ok(all) => {
                text.push_str(all);
                break;
            }
            Err(error) => error.valid_up_to(),
        };
        let (before, after) = rest.split_at(valid);
        text.push_str(&String::from_utf8_lossy(before));
        let (character, len) = irregular(after);
        text.push(character);
        rest = &after[len..];
    }
    text
}

/// The character that begins here and is not UTF-8, and its length in bytes.
fn irregular(bytes: &[u8]) -> (char, usize) {
    let surrogate = |bytes: &[u8]| match bytes {
        [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, ..] => {
            Some(0xd000 | u32::from(second & 0x3f) << 6 | u32::from(third & 0x3f))
        }
        _ => None,
    };
    if let [0xc0, 0x80, ..] = bytes {
        return ('\0', 2);
    }
    let Some(high) = surrogate(bytes) else { return (char::REPLACEMENT_CHARACTER, 1) };
    let low = surrogate(&bytes[3..]).filter(|low| (0xdc00..0xe000).contains(low));
    match low {
        Some(low) if high < 0xdc00 => {
            let scalar = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            (char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
        }
        _ => (char::REPLACEMENT_CHARACTER, 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(bytes: &[u8], compressed: bool) -> Option<String> {
        let mut cursor = ChunkCursor::new(bytes, 0, 0, compressed);
        let string = RawString::read(&mut cursor).unwrap();
        let mut skipping = ChunkCursor::new(bytes, 0, 0, compressed);
        RawString::skip(&mut skipping).unwrap();
        assert_eq!((cursor.at(), skipping.at()), (bytes.len(), bytes.len()));
        string.text().map(Cow::into_owned)
    }

    #[test]
    fn every_encoding_is_read() {
        assert_eq!(text(&[0], true), None);
        assert_eq!(text(&[1], true).as_deref(), Some(""));
        assert_eq!(text(b"\x03\x04a\xc3\xa4b", true).as_deref(), Some("aäb"));
        assert_eq!(text(&[4, 2, 0x61, 0xac, 0x41], true).as_deref(), Some("a€"));
        assert_eq!(text(&[4, 3, 0xbd, 0xb0, 3, 0x80, 0xb8, 3, 0x21], true).as_deref(), Some("\u{1f400}!"));
        assert_eq!(text(b"\x05\x03a\xe4b", true).as_deref(), Some("aäb"));
        let pooled = RawString::read(&mut ChunkCursor::new(&[2, 0x85, 1], 0, 0, true)).unwrap();
        assert!(matches!(pooled, RawString::Pool(133)));
    }

    #[test]
    fn uncompressed_lengths_and_units_are_big_endian() {
        assert_eq!(text(b"\x03\0\0\0\x02ab", false).as_deref(), Some("ab"));
        assert_eq!(text(b"\x04\0\0\0\x01\x20\xac", false).as_deref(), Some("€"));
    }

    #[test]
    fn modified_utf_8_and_damage_are_taken() {
        assert_eq!(text(b"\x03\x04a\xc0\x80b", true).as_deref(), Some("a\0b"));
        assert_eq!(text(b"\x03\x07\xed\xa0\xbd\xed\xb0\x80!", true).as_deref(), Some("\u{1f400}!"));
        assert_eq!(text(b"\x03\x04\xed\xa0\xbd!", true).as_deref(), Some("\u{fffd}!"));
        assert_eq!(text(b"\x03\x02\xff!", true).as_deref(), Some("\u{fffd}!"));
        assert_eq!(text(&[4, 1, 0xbd, 0xb0, 3], true).as_deref(), Some("\u{fffd}"));
    }

    #[test]
    fn beginnings_have_whole_characters() {
        let begin = |bytes: &[u8], most| {
            let mut cursor = ChunkCursor::new(bytes, 0, 0, true);
            RawString::read(&mut cursor).unwrap().up_to(most).text().map(Cow::into_owned)
        };
        assert_eq!(begin(b"\x03\x04a\xc3\xa4b", 2).as_deref(), Some("a"));
        assert_eq!(begin(b"\x03\x04a\xc3\xa4b", 3).as_deref(), Some("aä"));
        assert_eq!(begin(b"\x03\x04a\xc3\xa4b", 4).as_deref(), Some("aäb"));
        assert_eq!(begin(b"\x05\x03a\xe4b", 2).as_deref(), Some("aä"));
        assert_eq!(begin(&[4, 2, 0x61, 0xac, 0x41], 1).as_deref(), Some("a"));
        assert_eq!(begin(b"\x03\x02\x80\x80", 1).as_deref(), Some("\u{fffd}"));
    }

    #[test]
    fn an_unknown_encoding_is_refused_where_it_stands() {
        let error = RawString::read(&mut ChunkCursor::new(&[0, 9], 1, 100, true)).unwrap_err();
        assert_eq!(error, Problem::StringEncoding(9).at(101));
    }

    proptest! {
        #[test]
        fn any_bytes_give_some_text(bytes: Vec<u8>) {
            from_modified_utf8(&bytes);
        }
    }
}
