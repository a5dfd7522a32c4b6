//! How recordings come in: whole, by a reader, or bit by bit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use thiserror::Error;

use super::converter::JfrToOtlp;
use crate::jfr::chunk::OpenChunk;
use crate::jfr::error::JfrError;
use crate::jfr::extent::Extent;
use crate::jfr::header::{ChunkHeader, HEADER_LEN};
use crate::jfr::known_metadata::KnownMetadata;
use crate::jfr::recording::Chunks;

/// How many bytes of what has no known length are read at a time.
const READ_LEN: usize = 1 << 16;

/// Up to this length a chunk is read whole, as it says that it has it, even if events cannot be told apart in it: its
/// constants may lie behind. Async-profiler's chunks have 100 MB, HotSpot's 12 MB.
const LONGEST_BELIEVED: usize = 256 << 20;

/// Why a recording could not be added, or not all of it.
#[derive(Debug, Error)]
pub enum AddError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Something in it is wrong; what could be read besides has been added.
    #[error(transparent)]
    Jfr(#[from] JfrError),
}

impl JfrToOtlp {
    /// Adds a recording, or several that follow one another.
    ///
    /// # Errors
    /// The first thing that is wrong in it; what could be read besides has been added.
    pub fn add(&mut self, recording: &[u8]) -> Result<(), JfrError> {
        let added = self.add_chunks(recording, 0);
        self.end_recording();
        added
    }

    /// Adds the recording in a file. One chunk at a time is in memory.
    ///
    /// # Errors
    /// If the file cannot be read, or something in it is wrong.
    pub fn add_file(&mut self, path: impl AsRef<Path>) -> Result<(), AddError> {
        self.add_reader(File::open(path)?)
    }

    /// Adds a recording from a reader. One chunk at a time is in memory: as much as it says that it has, up to 256 MiB, and
    /// of a longer one, or one that is not finished, as much as is one event after the other.
    ///
    /// # Errors
    /// If the reader fails, or something in the recording is wrong; what could be read before has been added.
    pub fn add_reader(&mut self, mut from: impl Read) -> Result<(), AddError> {
        let mut held = Held::default();
        let added = self.read_chunks(&mut from, &mut held);
        if let Err(AddError::Io(_)) = added {
            // That the reader failed is what is wrong: the recording is cut there.
            let _ = self.add_chunks(held.bytes(), held.base);
        }
        self.end_recording();
        added
    }

    /// Reads and adds chunk by chunk. Behind what is no chunk, or one whose end cannot be found, nothing is read.
    fn read_chunks(&mut self, from: &mut dyn Read, held: &mut Held) -> Result<(), AddError> {
        let mut first_problem = Ok(());
        let mut known = KnownMetadata::default();
        loop {
            held.read_up_to(from, HEADER_LEN)?;
            if held.bytes().is_empty() {
                return Ok(first_problem?);
            }
            let header = match ChunkHeader::parse(held.bytes(), held.base) {
                Ok(header) => header,
                Err(error) => return Ok(first_problem.and(Err(error))?),
            };
            // As many bytes as there are, however many are declared; and those by which the next chunk is known.
            let declared = usize::try_from(header.size).ok().filter(|&size| size <= LONGEST_BELIEVED);
            held.read_up_to(from, declared.unwrap_or(0) + HEADER_LEN)?;
            let is_whole = declared.is_some_and(|size| HEADER_LEN <= size && size <= held.bytes().len());
            if !(is_whole && header.is_finished()) {
                let mut extent = Extent::new(&header);
                while extent.is_open(held.bytes()) && held.read_more(from, READ_LEN)? {}
                held.read_more(from, HEADER_LEN)?;
            }
            let mut chunks = Chunks::after(std::mem::take(&mut known), held.bytes(), held.base);
            let added = chunks.next().map_or(Ok(()), |chunk| self.add_opened(chunk));
            first_problem = first_problem.and(added);
            let Some(next) = chunks.next_at() else { return Ok(first_problem?) };
            known = chunks.into_known();
            held.pass(next);
        }
    }

    /// Adds the chunks in these bytes, which are at `base` in their recording.
    fn add_chunks(&mut self, bytes: &[u8], base: u64) -> Result<(), JfrError> {
        let mut first_problem = Ok(());
        for chunk in Chunks::at(bytes, base) {
            first_problem = first_problem.and(self.add_opened(chunk));
        }
        first_problem
    }

    /// Adds what can be read of a chunk.
    fn add_opened(&mut self, chunk: Result<OpenChunk<'_>, JfrError>) -> Result<(), JfrError> {
        let chunk = chunk?;
        let added = self.add_chunk(chunk.contents());
        chunk.problem().map_or(added, Err)
    }

    /// Takes more bytes of a recording that is still coming, and adds the events that can be read by now.
    ///
    /// # Errors
    /// The first thing that is wrong in them. If the next chunk can be found, later calls go on there.
    pub fn push(&mut self, more: &[u8]) -> Result<(), JfrError> {
        let mut parser = std::mem::take(&mut self.parser);
        let mut first_problem = Ok(());
        let pushed = parser.push(more, &mut |event| {
            if let Err(error) = self.add_event(event) {
                first_problem = first_problem.and(Err(error));
            }
        });
        self.parser = parser;
        first_problem.and(pushed)
    }

    /// Says that no more bytes of the recording come, and adds what is left.
    ///
    /// # Errors
    /// If the bytes end within a chunk, or another thing is wrong.
    pub fn finish(&mut self) -> Result<(), JfrError> {
        let mut parser = std::mem::take(&mut self.parser);
        let mut first_problem = Ok(());
        let finished = parser.finish(&mut |event| {
            if let Err(error) = self.add_event(event) {
                first_problem = first_problem.and(Err(error));
            }
        });
        self.end_recording();
        first_problem.and(finished)
    }

    /// Adds what a reader gives as it comes, until it ends. `after` is called behind each part, and may take profiles
    /// ([`JfrToOtlp::convert`]).
    ///
    /// # Errors
    /// If the reader or `after` fails. What is wrong in the recording is given to `problem`, and reading goes on.
    pub fn follow<E: From<io::Error>>(
        &mut self,
        from: &mut dyn Read,
        mut problem: impl FnMut(JfrError),
        mut after: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut bytes = vec![0; READ_LEN];
        loop {
            let count = match from.read(&mut bytes) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            let read = if count == 0 { self.finish() } else { self.push(&bytes[..count]) };
            if let Err(error) = read {
                problem(error);
            }
            if count == 0 {
                return Ok(());
            }
            after(self)?;
        }
    }
}

/// What has been read of a recording, and not been added.
#[derive(Debug, Default)]
struct Held {
    read: Vec<u8>,
    /// So many of them have been added.
    passed: usize,
    /// The offset in the recording of what follows those.
    base: u64,
}

impl Held {
    fn bytes(&self) -> &[u8] {
        &self.read[self.passed..]
    }

    /// Reads until there are so many bytes, or no more come.
    fn read_up_to(&mut self, from: &mut dyn Read, len: usize) -> io::Result<()> {
        let missing = len.saturating_sub(self.bytes().len());
        self.read_more(from, missing).map(drop)
    }

    /// Reads so many bytes, or those that come. Whether there were any.
    fn read_more(&mut self, from: &mut dyn Read, len: usize) -> io::Result<bool> {
        Ok(from.take(len as u64).read_to_end(&mut self.read)? > 0)
    }

    fn pass(&mut self, len: usize) {
        self.passed += len;
        self.base += len as u64;
        // Not for each of many small chunks in what is long.
        if self.passed > self.read.len() / 2 {
            self.read.drain(..self.passed);
            self.passed = 0;
        }
    }
}
