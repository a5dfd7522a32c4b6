//! How recordings come in: whole, by a reader, or bit by bit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use thiserror::Error;

use super::converter::JfrToOtlp;
use crate::jfr::chunk::OpenChunk;
use crate::jfr::error::JfrError;
use crate::jfr::header::{ChunkHeader, HEADER_LEN};
use crate::jfr::recording::Chunks;

/// How many bytes of what has no known length are read at a time.
const READ_LEN: usize = 1 << 16;

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

    /// Adds a recording from a reader. One chunk at a time is in memory; of a recording that is damaged, or whose last
    /// chunk is not finished, all that follows.
    ///
    /// # Errors
    /// If the reader fails, or something in the recording is wrong; what could be read before has been added.
    pub fn add_reader(&mut self, mut from: impl Read) -> Result<(), AddError> {
        let (mut bytes, mut base) = (Vec::new(), 0);
        let added = self.read_chunks(&mut from, &mut bytes, &mut base);
        if let Err(AddError::Io(_)) = added {
            // That the reader failed is what is wrong: the recording is cut there.
            let _ = self.add_chunks(&bytes, base);
        }
        self.end_recording();
        added
    }

    /// Reads and adds chunk by chunk. `bytes` has what has been read of the current one, which is at `base`.
    fn read_chunks(
        &mut self,
        from: &mut dyn Read,
        bytes: &mut Vec<u8>,
        base: &mut u64,
    ) -> Result<(), AddError> {
        let mut first_problem = Ok(());
        loop {
            from.take((HEADER_LEN - bytes.len()) as u64).read_to_end(bytes)?;
            if bytes.is_empty() && *base > 0 {
                return Ok(first_problem?);
            }
            let header = ChunkHeader::parse(bytes, *base).ok().filter(ChunkHeader::is_finished);
            let size = header.and_then(|header| usize::try_from(header.size).ok());
            let Some(size) = size.filter(|&size| size >= HEADER_LEN) else { break };
            // As many bytes as there are, however many are declared; and those by which the next chunk is known.
            from.take((size - bytes.len() + HEADER_LEN) as u64).read_to_end(bytes)?;
            let is_followed = bytes.len() <= size || ChunkHeader::parse(&bytes[size..], 0).is_ok();
            if bytes.len() < size || !is_followed {
                break;
            }
            let opened =
                OpenChunk::open(&bytes[..size], *base).ok().filter(|chunk| chunk.problem().is_none());
            let Some(chunk) = opened else { break };
            first_problem = first_problem.and(self.add_chunk(chunk.contents()));
            bytes.drain(..size);
            *base += size as u64;
        }
        // What is wrong, and where it goes on, is known from the whole.
        from.read_to_end(bytes)?;
        Ok(first_problem.and(self.add_chunks(bytes, *base))?)
    }

    /// Adds the chunks in these bytes, which are at `base` in their recording.
    fn add_chunks(&mut self, bytes: &[u8], base: u64) -> Result<(), JfrError> {
        let mut first_problem = Ok(());
        for chunk in Chunks::at(bytes, base) {
            let added = chunk.and_then(|chunk| {
                let problem = chunk.problem();
                let added = self.add_chunk(chunk.contents());
                problem.map_or(added, Err)
            });
            first_problem = first_problem.and(added);
        }
        first_problem
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
