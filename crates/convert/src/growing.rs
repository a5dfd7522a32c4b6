//! Follows a recording that a JVM is writing: a file, or the sequence of files in the JVM's repository.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use otlpprof_jfr::header::{ChunkHeader, HEADER_LEN};

/// The interval at which the file is checked. HotSpot flushes once a second.
const POLL: Duration = Duration::from_millis(200);
/// The header's state while HotSpot rewrites the header.
const BEING_REWRITTEN: u8 = 255;
/// The flag of a recording's last chunk.
const FINAL_CHUNK: u16 = 2;

/// Reads a recording as far as its writer has declared it readable, and waits for more.
///
/// The header of a chunk gives the chunk's length up to the last flush; the bytes after that may be
/// incomplete (HotSpot 17 `jfrChunkWriter.cpp`). The recording ends with a chunk whose header says that it is
/// the last one, or when the JVM removes its repository. Removed files stay readable as long as they are
/// open. This also holds for single files that the JVM removes because of their age (`maxage`).
#[derive(Debug)]
pub struct Growing {
    /// The repository, if the recording is in one.
    repository: Option<PathBuf>,
    path: PathBuf,
    file: File,
    /// The offset of the current chunk in the file.
    chunk: u64,
    at: u64,
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowingRead {
    /// This number of bytes was read.
    By(usize),
    /// Nothing can be read at the moment.
    NotYet,
    /// The recording has ended.
    ToItsEnd,
}

/// The part of the current chunk that can be read.
enum Readable {
    /// No part can be read yet.
    NotYet,
    /// The bytes up to this offset; more will follow.
    To(u64),
    /// The bytes up to this offset, which is the chunk's end.
    Whole { end: u64, is_last: bool },
}

impl Growing {
    /// Opens a file, or the newest recording in a directory or in the directory's newest subdirectory.
    ///
    /// # Errors
    /// If there is no recording, or it cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let is_repository = path.is_dir();
        let (repository, path) = match is_repository {
            true => {
                let directory = repository_of(path)?;
                let newest = chunk_files(&directory)?.pop();
                let none = || io::Error::new(io::ErrorKind::NotFound, "no recording in this directory");
                (Some(directory), newest.ok_or_else(none)?)
            }
            false => (None, path.to_owned()),
        };
        Ok(Self { repository, file: open_chunk(&path)?, path, chunk: 0, at: 0 })
    }

    fn readable(&mut self) -> io::Result<Readable> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.chunk))?;
        self.file.by_ref().take(HEADER_LEN as u64).read_to_end(&mut bytes)?;
        if bytes.is_empty() && self.at == 0 {
            // The file may have been opened before another file replaced it.
            match open_chunk(&self.path) {
                Ok(file) => self.file = file,
                // The JVM has removed the file because of its age (`maxage`).
                Err(error) if error.kind() == io::ErrorKind::NotFound && self.repository.is_some() => {
                    return Ok(Readable::Whole { end: 0, is_last: false });
                }
                Err(error) => return Err(error),
            }
        }
        if bytes.len() < HEADER_LEN {
            return Ok(Readable::NotYet);
        }
        // HotSpot before 14 reserves space for the header, and writes it last (`JfrChunkWriter`, JDK 11).
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(Readable::NotYet);
        }
        let Ok(header) = ChunkHeader::parse(&bytes, self.chunk) else {
            // The parser reports what is wrong with the header, so all bytes are passed on.
            return Ok(Readable::Whole { end: self.file.metadata()?.len(), is_last: true });
        };
        let size = u64::try_from(header.size).unwrap_or(0);
        let end = self.chunk.saturating_add(size);
        Ok(match header.state {
            BEING_REWRITTEN => Readable::NotYet,
            // Other writers write a placeholder as size, and always the state 0.
            0 if size <= HEADER_LEN as u64 || end > self.file.metadata()?.len() => Readable::NotYet,
            0 => Readable::Whole { end, is_last: header.flags & FINAL_CHUNK != 0 },
            _ if size > HEADER_LEN as u64 => Readable::To(end),
            _ => Readable::NotYet,
        })
    }

    /// Moves to the next chunk, in this file or in the repository's next file. Returns `false` if there is
    /// none yet.
    fn next_chunk(&mut self, end: u64) -> io::Result<bool> {
        if self.file.metadata()?.len() > end {
            self.chunk = end;
            return Ok(true);
        }
        let Some(repository) = self.repository.as_ref().filter(|path| path.exists()) else {
            return Ok(false);
        };
        let next = chunk_files(repository)?.into_iter().find(|path| *path > self.path);
        let Some(next) = next else { return Ok(false) };
        self.file = match open_chunk(&next) {
            Ok(file) => file,
            // The JVM has removed the file in the meantime because of its age. A newer file exists or will be
            // written.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        (self.path, self.chunk, self.at) = (next, 0, 0);
        Ok(true)
    }
}

impl Growing {
    /// Reads what can be read by now.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_now(&mut self, into: &mut [u8]) -> io::Result<GrowingRead> {
        loop {
            // Checked before the file is read, so that everything written until then is read.
            let is_gone = self.repository.as_ref().is_some_and(|path| !path.exists());
            let (end, whole) = match self.readable()? {
                Readable::NotYet => (self.at, None),
                Readable::To(end) => (end, None),
                Readable::Whole { end, is_last } => (end, Some(is_last)),
            };
            if self.at < end {
                self.file.seek(SeekFrom::Start(self.at))?;
                let count = self.file.by_ref().take(end - self.at).read(into)?;
                self.at += count as u64;
                if count > 0 {
                    return Ok(GrowingRead::By(count));
                }
            } else if let Some(is_last) = whole {
                if self.next_chunk(end)? {
                    continue;
                }
                if is_last {
                    return Ok(GrowingRead::ToItsEnd);
                }
            }
            // The JVM has ended and removed the repository.
            return Ok(if is_gone { GrowingRead::ToItsEnd } else { GrowingRead::NotYet });
        }
    }
}

impl Read for Growing {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.read_now(into)? {
                GrowingRead::By(count) => return Ok(count),
                GrowingRead::ToItsEnd => return Ok(0),
                GrowingRead::NotYet => std::thread::sleep(POLL),
            }
        }
    }
}

/// The directory with the recordings: this one, or its newest subdirectory.
fn repository_of(path: &Path) -> io::Result<PathBuf> {
    if !chunk_files(path)?.is_empty() {
        return Ok(path.to_owned());
    }
    let mut directories: Vec<_> = std::fs::read_dir(path)?
        .map_while(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    // The names begin with the time.
    directories.sort();
    Ok(directories.pop().unwrap_or_else(|| path.to_owned()))
}

/// Opens a recording at the place where it is written. HotSpot before 14 writes to a `.part` file beside it,
/// which replaces the file at the end (`JfrChunkWriter`, `JfrRepository`, JDK 11).
fn open_chunk(path: &Path) -> io::Result<File> {
    File::open(path.with_extension("part")).or_else(|_| File::open(path))
}

/// The recordings in a directory, oldest first. Their names are times.
fn chunk_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(directory)?.map_while(Result::ok).map(|entry| entry.path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "jfr")).collect();
    files.sort();
    Ok(files)
}
