//! How recordings come in: whole, by a reader, or bit by bit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use thiserror::Error;

use super::converter::JfrToOtlp;
use super::packed::{PackedError, Unpacked};
use crate::jfr::chunk::OpenChunk;
use crate::jfr::error::JfrError;
use crate::jfr::reading::ChunkReader;
use crate::jfr::recording::Chunks;

/// How many bytes of a recording that is followed are read at a time.
const READ_LEN: usize = 1 << 16;

/// Why a recording could not be added, or not all of it.
#[derive(Debug, Error)]
pub enum AddError {
    /// It cannot be read.
    #[error(transparent)]
    Io(io::Error),
    /// Something in it is wrong; what could be read besides has been added.
    #[error(transparent)]
    Jfr(#[from] JfrError),
    /// It is compressed, and cut or damaged; what could be read before has been added.
    #[error(transparent)]
    Packed(PackedError),
}

impl From<io::Error> for AddError {
    fn from(error: io::Error) -> Self {
        match error.downcast() {
            Ok(packed) => Self::Packed(packed),
            Err(error) => Self::Io(error),
        }
    }
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

    /// Adds the recording in a file, compressed with gzip or zstd or not. One chunk at a time is in memory.
    ///
    /// # Errors
    /// If the file cannot be read, or something in it is wrong.
    pub fn add_file(&mut self, path: impl AsRef<Path>) -> Result<(), AddError> {
        self.add_reader(File::open(path)?)
    }

    /// Adds a recording from a reader, compressed with gzip or zstd or not. One chunk at a time is in memory: as much as it says that it has, up to 256 MiB, and
    /// of a longer one, or one that is not finished, as much as is one event after the other.
    ///
    /// # Errors
    /// If the reader fails, or something in the recording is wrong; what could be read before has been added.
    pub fn add_reader(&mut self, from: impl Read) -> Result<(), AddError> {
        let mut chunks = ChunkReader::new(Unpacked::new(from)?);
        let mut first_problem = Ok(());
        let added = loop {
            match chunks.next_chunk() {
                Ok(Some(chunk)) => first_problem = first_problem.and(self.add_opened(chunk)),
                Ok(None) => break first_problem.map_err(AddError::from),
                Err(error) => {
                    // That the reader failed is what is wrong: the recording is cut there.
                    let (rest, base) = chunks.rest();
                    let _ = self.add_chunks(rest, base);
                    break Err(error.into());
                }
            }
        };
        self.end_recording();
        added
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
