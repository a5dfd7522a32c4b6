//! A recording that is read: one chunk at a time is in memory, in a place that is kept for the next one.

use std::io::{self, Read};

use super::chunk::OpenChunk;
use super::error::JfrError;
use super::extent::Extent;
use super::header::{ChunkHeader, HEADER_LEN};
use super::known_metadata::KnownMetadata;
use super::next_chunk::{self, Found};
use super::recording::Chunks;

/// How many bytes of what has no known length are read at a time.
const READ_LEN: usize = 1 << 16;

/// Up to this length a chunk is read whole, as it says that it has it, even if events cannot be told apart in it: its
/// constants may lie behind. Async-profiler's chunks have 100 MB, HotSpot's 12 MB.
const LONGEST_BELIEVED: usize = 256 << 20;

/// So often more is read to tell whether another chunk begins within one that has been cut.
const MOST_READS_AHEAD: usize = 16;

/// Gives a reader's chunks: each as much as it says that it has, up to 256 MiB, and of a longer one, or one that is not
/// finished, as much as is one event after the other. Behind what is no chunk, or one whose end cannot be found, nothing
/// is read.
#[derive(Debug)]
pub struct ChunkReader<R> {
    from: R,
    read: Vec<u8>,
    /// So many of the bytes read are of chunks that were given.
    passed: usize,
    /// So many of those that follow are of the chunk that was given last.
    given: usize,
    /// The offset in the recording of what follows those that were passed.
    base: u64,
    known: KnownMetadata,
    is_over: bool,
}

impl<R: Read> ChunkReader<R> {
    /// Nothing read yet.
    pub fn new(from: R) -> Self {
        let (read, known) = (Vec::new(), KnownMetadata::default());
        Self { from, read, passed: 0, given: 0, base: 0, known, is_over: false }
    }

    /// The next chunk, or what is wrong with it; `None` behind the last.
    ///
    /// # Errors
    /// If the reader fails. [`ChunkReader::rest`] is what it has given before, and no chunk was.
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
        // As many bytes as there are, however many are declared; and those by which the next chunk is known.
        let declared = usize::try_from(header.size).ok().filter(|&size| size <= LONGEST_BELIEVED);
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

    /// Reads on where another chunk may begin within one that has been cut, until that can be told.
    fn read_to_next_chunk(&mut self, header: &ChunkHeader) -> io::Result<()> {
        for _ in 0..MOST_READS_AHEAD {
            let Found::Perhaps { needed } = next_chunk::find(self.rest().0, header) else { break };
            let missing = needed.saturating_sub(self.rest().0.len());
            if needed > LONGEST_BELIEVED || !self.read_more(missing.max(READ_LEN))? {
                break;
            }
        }
        Ok(())
    }

    /// What has been read and was in no chunk that was given, and its offset in the recording.
    pub fn rest(&self) -> (&[u8], u64) {
        (&self.read[self.passed..], self.base)
    }

    /// Reads until there are so many bytes, or no more come.
    fn read_up_to(&mut self, len: usize) -> io::Result<()> {
        let missing = len.saturating_sub(self.rest().0.len());
        self.read_more(missing).map(drop)
    }

    /// Reads so many bytes, or those that come. Whether there were any.
    fn read_more(&mut self, len: usize) -> io::Result<bool> {
        Ok(self.from.by_ref().take(len as u64).read_to_end(&mut self.read)? > 0)
    }

    fn pass(&mut self) {
        let given = std::mem::take(&mut self.given);
        self.passed += given;
        self.base += given as u64;
        // Not for each of many small chunks in what is long.
        if self.passed > self.read.len() / 2 {
            self.read.drain(..self.passed);
            self.passed = 0;
        }
    }
}
