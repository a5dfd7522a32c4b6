//! A recording in memory: a sequence of chunks.

use super::chunk::OpenChunk;
use super::error::JfrError;
use super::header::{ChunkHeader, HEADER_LEN, begins_chunk};
use super::known_metadata::KnownMetadata;
use super::next_chunk::{self, ChunkSearch};

/// Iterates over a recording's chunks.
///
/// An error stands for a chunk that cannot be opened, or for bytes that are not a chunk. If the next chunk
/// can be found by the size that this one declares, the iteration continues there.
#[derive(Clone, Debug)]
pub struct Chunks<'a> {
    bytes: &'a [u8],
    at: usize,
    base: u64,
    /// Whether the next chunk cannot be found.
    is_lost: bool,
    known: KnownMetadata,
}

impl<'a> Chunks<'a> {
    /// The chunks of a recording, or of several recordings in sequence.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::at(bytes, 0)
    }

    /// The chunks of bytes whose offset in their recording is `base`.
    pub fn at(bytes: &'a [u8], base: u64) -> Self {
        Self::after(KnownMetadata::default(), bytes, base)
    }

    /// The chunks that follow others in the recording. `known` is the metadata of the previous chunk, which
    /// is reused if a chunk has the same.
    pub fn after(known: KnownMetadata, bytes: &'a [u8], base: u64) -> Self {
        Self { bytes, at: 0, base, is_lost: false, known }
    }

    /// The metadata of the last chunk, for the chunks that follow.
    pub fn into_known(self) -> KnownMetadata {
        self.known
    }

    /// The offset in the bytes at which the next chunk begins or should begin; `None` if it cannot be found.
    pub fn next_at(&self) -> Option<usize> {
        (!self.is_lost).then_some(self.at)
    }

    /// The end of the chunk that begins at `at` and can be read for `readable` bytes. In this order: the end
    /// that its header declares, if another chunk begins there; the end of the readable bytes, if another
    /// chunk begins there; the beginning of the next chunk that can be found, as after a truncated one. In
    /// all other cases `None`, except for a chunk that was read to its declared end.
    fn chunk_end(&self, readable: usize) -> Option<usize> {
        let rest = &self.bytes[self.at..];
        let declared = ChunkHeader::parse(rest, 0).ok().and_then(|header| usize::try_from(header.size).ok());
        let ends = [declared, Some(readable)].into_iter().flatten().filter(|&end| end >= HEADER_LEN);
        let begins = |&end: &usize| rest.get(end..).is_some_and(begins_chunk);
        // A chunk that was read to its end is followed by another chunk, or by bytes that are reported as an
        // error.
        let is_whole = readable >= HEADER_LEN && declared == Some(readable);
        let end = ends.clone().find(begins);
        let found = || match next_chunk::find(rest, &ChunkHeader::parse(rest, 0).ok()?) {
            ChunkSearch::At(next) => Some(next),
            ChunkSearch::Perhaps { .. } | ChunkSearch::Nothing => None,
        };
        let end = end.or_else(found).or(Some(readable).filter(|_| is_whole));
        end.map(|end| self.at + end)
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<OpenChunk<'a>, JfrError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let opened = OpenChunk::open_after(&mut self.known, rest, self.base + self.at as u64);
        let next = self.chunk_end(opened.as_ref().map_or(0, OpenChunk::len));
        self.is_lost = next.is_none();
        self.at = next.unwrap_or(self.bytes.len());
        Some(opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Problem;

    #[test]
    fn a_chunk_that_says_it_has_no_bytes_ends_the_recording() {
        let mut bytes = b"FLR\0\0\x02\0\x01".to_vec();
        bytes.resize(HEADER_LEN + 5, 0);
        let mut chunks = Chunks::new(&bytes);
        let error = chunks.next().unwrap().unwrap_err();
        assert_eq!(error.problem, Problem::EventSize { size: 0, left: 5 });
        assert!(chunks.next().is_none());
    }
}
