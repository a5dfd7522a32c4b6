//! A recording that a JVM is writing: a file, or the files of its repository one behind the other.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::jfr::header::{ChunkHeader, HEADER_LEN};

/// How often a file is looked at, which HotSpot flushes once a second.
const POLL: Duration = Duration::from_millis(200);
/// HotSpot is rewriting the header.
const BEING_REWRITTEN: u8 = 255;
/// The flag of a recording's last chunk.
const FINAL_CHUNK: u16 = 2;

/// Gives a recording's bytes as far as their writer says that they can be read, and waits for more.
///
/// The header of a chunk says its length up to the last flush; what is behind may be half written (HotSpot 17
/// `jfrChunkWriter.cpp`). The end is that of a chunk that says it is the last, or when the JVM takes its repository away,
/// which leaves the file to those who have it open, as one that is too old to be kept (`maxage`) is left.
#[derive(Debug)]
pub struct Growing {
    /// The repository, if it is one.
    repository: Option<PathBuf>,
    path: PathBuf,
    file: File,
    /// Where the current chunk begins in the file.
    chunk: u64,
    at: u64,
}

/// What there was to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grown {
    /// So many bytes.
    By(usize),
    /// Nothing at the moment.
    NotYet,
    /// Nothing, and nothing will come.
    ToItsEnd,
}

/// How far the current chunk can be read.
enum Readable {
    /// Not at all yet.
    NotYet,
    /// To this place, with more to come.
    To(u64),
    /// To this place, which is its end.
    Whole { end: u64, is_last: bool },
}

impl Growing {
    /// A file, or a directory: the newest recording in it, or in one of those that it has.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
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
            // Perhaps it has been opened before the file that takes its place was there.
            match open_chunk(&self.path) {
                Ok(file) => self.file = file,
                // The JVM has taken it away: it keeps what is young enough alone (`maxage`).
                Err(error) if error.kind() == io::ErrorKind::NotFound && self.repository.is_some() => {
                    return Ok(Readable::Whole { end: 0, is_last: false });
                }
                Err(error) => return Err(error),
            }
        }
        if bytes.len() < HEADER_LEN {
            return Ok(Readable::NotYet);
        }
        // HotSpot before 14 leaves room for the header, and writes it last (`JfrChunkWriter`, JDK 11).
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(Readable::NotYet);
        }
        let Ok(header) = ChunkHeader::parse(&bytes, self.chunk) else {
            // What it is, the parser says.
            return Ok(Readable::Whole { end: self.file.metadata()?.len(), is_last: true });
        };
        let size = u64::try_from(header.size).unwrap_or(0);
        let end = self.chunk.saturating_add(size);
        Ok(match header.state {
            BEING_REWRITTEN => Readable::NotYet,
            // Others reserve the size, and never say a state.
            0 if size <= HEADER_LEN as u64 || end > self.file.metadata()?.len() => Readable::NotYet,
            0 => Readable::Whole { end, is_last: header.flags & FINAL_CHUNK != 0 },
            _ if size > HEADER_LEN as u64 => Readable::To(end),
            _ => Readable::NotYet,
        })
    }

    /// The next chunk, in this file or in the repository's next; `false` if there is none yet.
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
            // Taken away in the meantime, as those that are too old are: there is a younger one, or will be.
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
    pub fn read_now(&mut self, into: &mut [u8]) -> io::Result<Grown> {
        loop {
            // Asked before the file is looked at: what was written until then is read.
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
                    return Ok(Grown::By(count));
                }
            } else if let Some(is_last) = whole {
                if self.next_chunk(end)? {
                    continue;
                }
                if is_last {
                    return Ok(Grown::ToItsEnd);
                }
            }
            // The JVM has ended, and taken it away.
            return Ok(if is_gone { Grown::ToItsEnd } else { Grown::NotYet });
        }
    }
}

impl Read for Growing {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.read_now(into)? {
                Grown::By(count) => return Ok(count),
                Grown::ToItsEnd => return Ok(0),
                Grown::NotYet => std::thread::sleep(POLL),
            }
        }
    }
}

/// The directory with recordings: this one, or the newest of those that it has.
fn repository_of(path: &Path) -> io::Result<PathBuf> {
    if !chunk_files(path)?.is_empty() {
        return Ok(path.to_owned());
    }
    let mut directories: Vec<_> = std::fs::read_dir(path)?
        .map_while(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    // Their names begin with the time.
    directories.sort();
    Ok(directories.pop().unwrap_or_else(|| path.to_owned()))
}

/// Opens a recording where it is written. HotSpot before 14 writes to a file beside it, which takes its place when it is
/// finished (`JfrChunkWriter`, `JfrRepository`, JDK 11).
fn open_chunk(path: &Path) -> io::Result<File> {
    File::open(path.with_extension("part")).or_else(|_| File::open(path))
}

/// The recordings in a directory, oldest first: their names are times.
fn chunk_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(directory)?.map_while(Result::ok).map(|entry| entry.path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "jfr")).collect();
    files.sort();
    Ok(files)
}
