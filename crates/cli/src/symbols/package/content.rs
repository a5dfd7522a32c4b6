//! The content of a file in an archive: read, and skipped to its end.

use std::io::{self, Read};

use super::error::PackageError;

/// Reads and discards what is left.
fn drain(from: &mut dyn Read) -> io::Result<u64> {
    io::copy(from, &mut io::sink())
}

/// Reads exactly so many bytes.
pub(super) fn skip(from: &mut dyn Read, len: u64) -> io::Result<()> {
    match drain(&mut from.take(len))? {
        skipped if skipped == len => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Calls `take` with a file of an archive, and goes on to the file's end and its padding.
pub(super) fn with_content(
    from: &mut dyn Read,
    len: u64,
    alignment: u64,
    take: impl FnOnce(&mut dyn Read) -> Result<(), PackageError>,
) -> Result<(), PackageError> {
    let mut content = Content { from: &mut *from, left: len };
    take(&mut content)?;
    drain(&mut content)?;
    Ok(skip(from, len.next_multiple_of(alignment) - len)?)
}

/// The bytes of a file of an archive, which must be as many as the archive declares.
struct Content<'a> {
    from: &'a mut dyn Read,
    left: u64,
}

impl Read for Content<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = into.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        // A reader of xz takes a read of no bytes for the end of a block.
        if len == 0 {
            return Ok(0);
        }
        let read = self.from.read(&mut into[..len])?;
        self.left -= read as u64;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the package ends within a file"));
        }
        Ok(read)
    }
}
