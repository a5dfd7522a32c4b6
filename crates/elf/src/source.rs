//! Sources of an ELF file's bytes: positioned reads of a file, or a buffer.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Bytes that can be read in pieces.
pub trait Source {
    /// The number of bytes.
    fn len(&self) -> u64;

    /// Whether the number of bytes is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// If the source ends before, or cannot be read.
    fn read_into(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Copies `len` bytes from `offset` on. Checks `len` before allocating.
    ///
    /// # Errors
    /// If the source ends before, or cannot be read.
    fn read(&self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        let inside = self.len().checked_sub(offset).is_some_and(|left| len <= left);
        let len = usize::try_from(len).ok().filter(|_| inside).ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut bytes = vec![0; len];
        self.read_into(offset, &mut bytes)?;
        Ok(bytes)
    }
}

/// An open file, with its length at the time of opening. If the file shrinks afterwards, reads return errors,
/// whereas a mapping would raise SIGBUS.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    len: u64,
}

impl FileSource {
    /// Wraps an open regular file.
    ///
    /// # Errors
    /// If its metadata cannot be read, or it is not a regular file (reading a pipe could block for ever).
    pub fn new(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(Self { len: metadata.len(), file })
    }

    /// Opens a regular file. Does not block if the path is a pipe.
    ///
    /// # Errors
    /// If the file cannot be opened or is not a regular file.
    pub fn open(path: &std::path::Path) -> io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt;
        Self::new(std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?)
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_into(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }
}

impl Source for [u8] {
    fn len(&self) -> u64 {
        self.len() as u64
    }

    fn read_into(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let tail = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        let found = tail.and_then(|tail| tail.get(..bytes.len())).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(found);
        Ok(())
    }
}

impl<S: Source + ?Sized> Source for Arc<S> {
    fn len(&self) -> u64 {
        (**self).len()
    }

    fn read_into(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        (**self).read_into(offset, bytes)
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn len(&self) -> u64 {
        (**self).len()
    }

    fn read_into(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        (**self).read_into(offset, bytes)
    }
}
