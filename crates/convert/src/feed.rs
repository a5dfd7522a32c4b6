//! Input of recordings: as a whole, from a reader, or in parts.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use otlpprof_jfr::chunk::OpenChunk;
use otlpprof_jfr::error::JfrError;
use otlpprof_jfr::reading::ChunkReader;
use otlpprof_jfr::recording::Chunks;
use thiserror::Error;

use super::converter::JfrToOtlp;
use super::packed::{PackedError, Unpacked};

/// The number of bytes per read while a recording is followed.
const READ_LEN: usize = 1 << 16;

/// The reason why a recording could not be added, or only in part.
#[derive(Debug, Error)]
pub enum AddError {
    /// The recording cannot be read.
    #[error(transparent)]
    Io(io::Error),
    /// The recording has an error. Everything that could be read has been added.
    #[error(transparent)]
    Jfr(#[from] JfrError),
    /// The recording is compressed, and truncated or corrupt. Everything before the error has been added.
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
    /// Adds a recording, or several recordings in sequence.
    ///
    /// # Errors
    /// The first error in the recording. Everything that could be read has been added.
    pub fn add(&mut self, recording: &[u8]) -> Result<(), JfrError> {
        let added = self.add_chunks(recording, 0);
        self.end_recording();
        added
    }

    /// Adds the recording in a file, which may be compressed with gzip or zstd. One chunk at a time is in
    /// memory.
    ///
    /// # Errors
    /// If the file cannot be read, or the recording has an error.
    pub fn add_file(&mut self, path: impl AsRef<Path>) -> Result<(), AddError> {
        self.add_reader(File::open(path)?)
    }

    /// Adds a recording from a reader, which may be compressed with gzip or zstd. One chunk at a time is in
    /// memory. A finished chunk that declares at most 256 MiB is read whole. Of a longer or unfinished chunk,
    /// the sequence of its events is read.
    ///
    /// # Errors
    /// If the reader fails, or the recording has an error. Everything that could be read has been added.
    pub fn add_reader(&mut self, from: impl Read) -> Result<(), AddError> {
        self.add_reader_by_chunk(from, |_| {})
    }

    /// Adds a recording as [`JfrToOtlp::add_reader`] does. `after` is called after each chunk and after the
    /// last one, and may take the profiles ([`JfrToOtlp::convert`]): no more than one chunk's then are in
    /// memory.
    ///
    /// # Errors
    /// As [`JfrToOtlp::add_reader`].
    pub fn add_reader_by_chunk(
        &mut self,
        from: impl Read,
        mut after: impl FnMut(&mut Self),
    ) -> Result<(), AddError> {
        let mut chunks = ChunkReader::new(Unpacked::new(from)?);
        let mut first_problem = Ok(());
        let added = loop {
            match chunks.next_chunk() {
                Ok(Some(chunk)) => {
                    first_problem = first_problem.and(self.add_opened(chunk));
                    after(self);
                }
                Ok(None) => break first_problem.map_err(AddError::from),
                Err(error) => {
                    // The reader's error is returned. It also explains the truncation of the rest, so errors
                    // in the rest are ignored.
                    let (rest, base) = chunks.rest();
                    let _ = self.add_chunks(rest, base);
                    break Err(error.into());
                }
            }
        };
        self.end_recording();
        after(self);
        added
    }

    /// Adds the chunks in these bytes, whose offset in their recording is `base`.
    fn add_chunks(&mut self, bytes: &[u8], base: u64) -> Result<(), JfrError> {
        let mut first_problem = Ok(());
        for chunk in Chunks::at(bytes, base) {
            first_problem = first_problem.and(self.add_opened(chunk));
        }
        first_problem
    }

    /// Adds the readable part of a chunk.
    fn add_opened(&mut self, chunk: Result<OpenChunk<'_>, JfrError>) -> Result<(), JfrError> {
        let chunk = chunk?;
        let added = self.add_chunk(chunk.contents());
        chunk.problem().map_or(added, Err)
    }

    /// Takes more bytes of a recording that is still arriving, and adds the events that can be read so far.
    ///
    /// # Errors
    /// The first error in the bytes. If the next chunk can be found, later calls continue there.
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

    /// Ends the recording, and adds the remaining events.
    ///
    /// # Errors
    /// If the bytes end within a chunk, or have another error.
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

    /// Adds a recording from a reader while it arrives, until the reader ends. `after` is called after each
    /// part, and may take the profiles ([`JfrToOtlp::convert`]).
    ///
    /// # Errors
    /// If the reader or `after` fails. Errors in the recording are passed to `problem`, and reading
    /// continues.
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
