//! A parser of the notes in one segment or section (gABI, "Note Section").

/// The reason why parsing ends before the last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// The remaining bytes are fewer than a note's header has.
    #[error("{left} bytes at {at:#x} are too few for a note header")]
    TruncatedHeader {
        /// The offset in the segment.
        at: usize,
        /// The number of bytes from there on.
        left: usize,
    },
    /// `n_namesz` exceeds the remaining bytes.
    #[error("note at {at:#x}: n_namesz {size} exceeds the {left} bytes left")]
    NameOutside {
        /// The offset of the note in the segment.
        at: usize,
        /// `n_namesz`
        size: u32,
        /// The number of bytes after the header.
        left: usize,
    },
    /// `n_descsz` exceeds the remaining bytes.
    #[error("note at {at:#x}: n_descsz {size} exceeds the {left} bytes left")]
    DescriptionOutside {
        /// The offset of the note in the segment.
        at: usize,
        /// `n_descsz`
        size: u32,
        /// The number of bytes after the name.
        left: usize,
    },
}

/// One note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note<'a> {
    /// `n_type`
    pub kind: u32,
    /// The owner's name, without the final NUL.
    pub name: &'a [u8],
    /// The description.
    pub description: &'a [u8],
    /// The offset of the description in the segment.
    pub description_offset: usize,
}

/// Iterates over the notes of one segment. An error ends the iteration.
#[derive(Clone, Debug)]
pub struct Notes<'a> {
    bytes: &'a [u8],
    at: usize,
    alignment: usize,
    little_endian: bool,
}

impl<'a> Notes<'a> {
    /// Iterates over the notes in `bytes`. Names and descriptions are padded to 8 bytes if the segment's
    /// `p_align` is 8, otherwise to 4. Binutils and the kernel apply the same rule to both ELF classes.
    pub fn new(bytes: &'a [u8], p_align: u64, little_endian: bool) -> Self {
        Self { bytes, at: 0, alignment: if p_align == 8 { 8 } else { 4 }, little_endian }
    }

    fn word(&self, header: &[u8; 12], index: usize) -> u32 {
        let word = [header[4 * index], header[4 * index + 1], header[4 * index + 2], header[4 * index + 3]];
        if self.little_endian { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) }
    }

    fn parse(&self) -> Result<(Note<'a>, usize), NoteError> {
        let at = self.at;
        let rest = self.bytes.get(at..).unwrap_or_default();
        let Some((header, after)) = rest.split_first_chunk::<12>() else {
            return Err(NoteError::TruncatedHeader { at, left: rest.len() });
        };
        let size = self.word(header, 0);
        let outside = NoteError::NameOutside { at, size, left: after.len() };
        let name = usize::try_from(size).ok().and_then(|size| after.get(..size)).ok_or(outside)?;
        let description_start = self.padded(12 + name.len());

        let after = rest.get(description_start..).unwrap_or_default();
        let size = self.word(header, 1);
        let outside = NoteError::DescriptionOutside { at, size, left: after.len() };
        let description = usize::try_from(size).ok().and_then(|size| after.get(..size)).ok_or(outside)?;
        let note = Note {
            kind: self.word(header, 2),
            name: name.strip_suffix(b"\0").unwrap_or(name),
            description,
            description_offset: at + description_start,
        };
        Ok((note, at + self.padded(description_start + description.len())))
    }

    /// Rounds `len` up to the alignment. `len` is at most the length of a slice, so the sum cannot wrap.
    fn padded(&self, len: usize) -> usize {
        len.next_multiple_of(self.alignment)
    }
}

impl<'a> Iterator for Notes<'a> {
    type Item = Result<Note<'a>, NoteError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let parsed = self.parse();
        self.at = parsed.as_ref().map_or(usize::MAX, |&(_, next)| next);
        Some(parsed.map(|(note, _)| note))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], description: &[u8], kind: u32, alignment: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [name.len() as u32, description.len() as u32, kind] {
            bytes.extend(word.to_le_bytes());
        }
        for part in [name, description] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(alignment), 0);
        }
        bytes
    }

    #[test]
    fn padding_follows_the_segments_alignment() {
        for (p_align, alignment) in [(0, 4), (1, 4), (4, 4), (8, 8), (16, 4)] {
            let bytes =
                [note(b"GNU\0", &[1, 2, 3], 5, alignment), note(b"ab\0", &[9; 5], 7, alignment)].concat();
            let notes: Vec<_> = Notes::new(&bytes, p_align, true).map(Result::unwrap).collect();
            assert_eq!(notes.len(), 2, "p_align {p_align}");
            assert_eq!(
                (notes[0].name, notes[0].description, notes[0].kind),
                (&b"GNU"[..], &[1, 2, 3][..], 5)
            );
            assert_eq!((notes[1].name, notes[1].description, notes[1].kind), (&b"ab"[..], &[9; 5][..], 7));
            assert_eq!(bytes[notes[1].description_offset..][..5], [9; 5]);
        }
    }

    #[test]
    fn the_last_notes_padding_may_be_missing() {
        let mut bytes = note(b"GNU\0", &[1, 2, 3], 3, 4);
        bytes.truncate(bytes.len() - 1);
        assert_eq!(Notes::new(&bytes, 4, true).next().unwrap().unwrap().description, [1, 2, 3]);
    }

    #[test]
    fn an_error_ends_the_iteration() {
        let bytes = note(b"GNU\0", &[0; 8], 3, 4);
        let cut = &bytes[..bytes.len() - 1];
        let mut notes = Notes::new(cut, 4, true);
        assert_eq!(notes.next(), Some(Err(NoteError::DescriptionOutside { at: 0, size: 8, left: 7 })));
        assert_eq!(notes.next(), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_panic_and_in_bounds(bytes: Vec<u8>, align in 0u64..20, little: bool) {
            for note in Notes::new(&bytes, align, little).flatten() {
                let end = note.description_offset + note.description.len();
                proptest::prop_assert_eq!(&bytes[note.description_offset..end], note.description);
            }
        }
    }
}
