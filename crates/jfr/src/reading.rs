//! Reads a recording from a reader, with one chunk at a time in memory. The buffer is reused for the next
//! chunk.

use std::io::{self, Read};

use super::chunk::OpenChunk;
use super::error::JfrError;
use super::extent::Extent;
use super::header::{ChunkHeader, HEADER_LEN};
use super::known_metadata::KnownMetadata;
use super::next_chunk::{self, ChunkSearch};
use super::recording::Chunks;

/// The number of bytes per read where the length is unknown.
const READ_LEN: usize = 1 << 16;

/// The longest declared chunk length that is trusted: such a chunk is read whole, even if the boundaries of
/// its events cannot be found, because its constants may follow. async-profiler's chunks are 100 MB long,
/// HotSpot's 12 MB.
const MAX_TRUSTED_SIZE: usize = 256 << 20;

/// The most reads to decide whether another chunk begins within a truncated one.
const MOST_READS_AHEAD: usize = 16;

/// The chunks of a reader. A finished chunk that declares at most 256 MiB is read whole. Of a longer or
/// unfinished chunk, the sequence of its events is read. Reading ends at bytes that are not a chunk, and
/// after a chunk whose end cannot be found.
#[derive(Debug)]
pub struct ChunkReader<R> {
    from: R,
    read: Vec<u8>,
    /// The number of read bytes that belong to earlier chunks.
    passed: usize,
    /// The number of the following bytes that belong to the chunk returned last.
    given: usize,
    /// The offset in the recording of the byte after the `passed` ones.
    base: u64,
    known: KnownMetadata,
    is_over: bool,
}

impl<R: Read> ChunkReader<R> {
    /// A reader of chunks that has read nothing yet.
    pub fn new(from: R) -> Self {
        let (read, known) = (Vec::new(), KnownMetadata::default());
        Self { from, read, passed: 0, given: 0, base: 0, known, is_over: false }
    }

    /// The next chunk, or the reason why it cannot be opened; `None` after the last one.
    ///
    /// # Errors
    /// If the reader fails. [`ChunkReader::rest`] then returns the bytes that belong to no returned chunk.
    pub fn next_chunk(&mut self) -> io::Result<Option<Result<OpenChunk<'_>, JfrError>>> {
        if self.is_over {
            return Ok(None);
        }
        self.pass();
        self.read_up_to(HEADER_LEN)?;
        if self.rest().0.is_empty() {
            self.is_over = true;
            return Ok(None);
        }
        let header = match ChunkHeader::parse(self.rest().0, self.base) {
            Ok(header) => header,
            Err(error) => {
                self.is_over = true;
                return Ok(Some(Err(error)));
            }
        };
        // Only bytes that exist are allocated, whatever size is declared. The additional bytes show whether
        // another chunk follows.
        let declared = usize::try_from(header.size).ok().filter(|&size| size <= MAX_TRUSTED_SIZE);
        self.read_up_to(declared.unwrap_or(0) + HEADER_LEN)?;
        let is_whole = declared.is_some_and(|size| HEADER_LEN <= size && size <= self.rest().0.len());
        if !(is_whole && header.is_finished()) {
            let mut extent = Extent::new(&header);
            while extent.is_open(self.rest().0) && self.read_more(READ_LEN)? {}
            self.read_more(HEADER_LEN)?;
        }
        self.read_to_next_chunk(&header)?;
        let mut chunks = Chunks::after(std::mem::take(&mut self.known), &self.read[self.passed..], self.base);
        let chunk = chunks.next();
        match chunks.next_at() {
            Some(next) => self.given = next,
            None => self.is_over = true,
        }
        self.known = chunks.into_known();
        Ok(chunk)
    }

    /// Reads on while another chunk may begin within a truncated one, until that can be decided.
    fn read_to_next_chunk(&mut self, header: &ChunkHeader) -> io::Result<()> {
        for _ in 0..MOST_READS_AHEAD {
            let ChunkSearch::Perhaps { needed } = next_chunk::find(self.rest().0, header) else { break };
            let missing = needed.saturating_sub(self.rest().0.len());
            if needed > MAX_TRUSTED_SIZE || !self.read_more(missing.max(READ_LEN))? {
                break;
            }
        }
        Ok(())
    }

    /// The bytes that have been read and belong to no returned chunk, and their offset in the recording.
    pub fn rest(&self) -> (&[u8], u64) {
        (&self.read[self.passed..], self.base)
    }

    /// Reads until `len` bytes are available or the reader ends.
    fn read_up_to(&mut self, len: usize) -> io::Result<()> {
        let missing = len.saturating_sub(self.rest().0.len());
        self.read_more(missing).map(drop)
    }

    /// Reads at most `len` bytes. Returns whether there were any.
    fn read_more(&mut self, len: usize) -> io::Result<bool> {
        Ok(self.from.by_ref().take(len as u64).read_to_end(&mut self.read)? > 0)
    }

    fn pass(&mut self) {
        let given = std::mem::take(&mut self.given);
        self.passed += given;
        self.base += given as u64;
        // The rest is moved only after half of the buffer has been passed, so that many small chunks do not
        // each move a long rest.
        if self.passed > self.read.len() / 2 {
            self.read.drain(..self.passed);
            self.passed = 0;
        }
    }
}
