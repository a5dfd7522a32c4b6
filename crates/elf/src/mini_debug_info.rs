//! MiniDebugInfo: `.gnu_debugdata`, an ELF file in xz form inside of an object, whose `.symtab` has the
//! functions that the object's `.dynsym` lacks (GDB manual, "MiniDebugInfo").

use std::io::{self, Read};

use lzma_rust2::XzReader;

use super::file::{ElfFile, FileError};
use super::source::Source;

/// The longest section to decompress, in bytes. Sections of distributions' libraries have less than 3 MiB.
const MAX_COMPRESSED: u64 = 16 << 20;

/// The largest file to decompress the section to, in bytes.
pub const MAX_LEN: usize = 64 << 20;

/// The most memory that the decoder may take beside the file, in KiB. The largest preset of xz has a
/// dictionary of 64 MiB, of which no more memory is touched than the file is long.
const MAX_DECODER_KIB: u32 = (64 << 10) + 256;

/// The reason why MiniDebugInfo cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MiniDebugInfoError {
    /// The object's file is malformed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The section is longer than any that is known.
    #[error(".gnu_debugdata of {len} bytes is longer than {MAX_COMPRESSED}")]
    TooLong {
        /// The section's length, in bytes.
        len: u64,
    },
    /// The decompressed file is larger than any that is known.
    #[error(".gnu_debugdata holds more than {MAX_LEN} bytes")]
    TooLarge,
    /// The section is not in xz form, or needs too much memory.
    #[error(".gnu_debugdata: {0}")]
    Xz(io::Error),
}

/// The ELF file in the object's `.gnu_debugdata`; `None` if the object's file has no such section.
///
/// # Errors
/// If the section is malformed, or too large.
pub fn of_file<S: Source>(file: &ElfFile<S>) -> Result<Option<Vec<u8>>, MiniDebugInfoError> {
    let Some(section) = file.section(".gnu_debugdata")? else { return Ok(None) };
    if section.sh_size > MAX_COMPRESSED {
        return Err(MiniDebugInfoError::TooLong { len: section.sh_size });
    }
    let compressed = file.source().read(section.sh_offset, section.sh_size).map_err(FileError::from)?;
    decompress(&compressed).map(Some)
}

/// Decompresses one xz stream of at most [`MAX_LEN`] bytes. Bytes after the stream are ignored.
///
/// # Errors
/// If the stream is malformed, or too large.
pub fn decompress(compressed: &[u8]) -> Result<Vec<u8>, MiniDebugInfoError> {
    let reader = XzReader::new_mem_limit(compressed, false, MAX_DECODER_KIB);
    let mut bytes = Vec::new();
    reader.take(MAX_LEN as u64 + 1).read_to_end(&mut bytes).map_err(MiniDebugInfoError::Xz)?;
    if bytes.len() > MAX_LEN {
        return Err(MiniDebugInfoError::TooLarge);
    }
    bytes.shrink_to_fit();
    Ok(bytes)
}
