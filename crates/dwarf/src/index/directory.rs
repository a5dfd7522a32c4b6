//! The header and the directory of an index.

use std::io;

use twox_hash::XxHash64;

use super::codec::{Malformed, Numbers, put};

/// The first bytes of an index.
pub(super) const MAGIC: [u8; 8] = *b"OTLPPSYM";
/// The version of the format. Any change of the format, or of the rules by which it is filled, changes it.
pub const VERSION: u32 = 2;
/// The length of the header, in bytes.
pub(super) const HEADER_LEN: usize = 64;
/// The most bytes of a directory, and of a block.
const DIRECTORY_MAX_LEN: u64 = 64 << 20;
const BLOCK_MAX_LEN: u32 = 4 << 20;
/// The most bytes of one file's identity.
const IDENTITY_MAX_LEN: u64 = 64;

/// The reason why an index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is no index.
    #[error("not a symbol index")]
    NoIndex,
    /// The index was written by another version of this program.
    #[error("a symbol index of version {0}, not {VERSION}")]
    Version(u32),
    /// The index is shorter or longer than it was written.
    #[error("a symbol index of {found} bytes, not {declared}")]
    Length {
        /// The length in the header, in bytes.
        declared: u64,
        /// The length of the file, in bytes.
        found: u64,
    },
    /// A part does not have its checksum, or is malformed.
    #[error("a damaged symbol index ({0})")]
    Damaged(&'static str),
}

/// The files that an index was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The identity of the executable or library: its build-id, or its content's hash. At most 64 bytes.
    pub object: Vec<u8>,
    /// The build-id of the file with the debug information; empty if it has none. At most 64 bytes.
    pub debug: Vec<u8>,
    /// The length of the file with the debug information, in bytes.
    pub debug_len: u64,
}

/// The place of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The key of its first entry.
    pub(super) first_key: u64,
    /// Its offset in the file.
    pub(super) offset: u64,
    /// Its length, in bytes.
    pub(super) len: u32,
    /// The checksum of its bytes.
    pub(super) checksum: u64,
}

/// Everything but the blocks.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) identity: Identity,
    /// The number of units that were lost.
    pub(super) problems: u64,
    /// The blocks of rows, functions, texts, names and symbols, each in ascending order of their keys.
    pub(super) tables: [Vec<Block>; 5],
}

/// The checksum of these bytes: XXH64 with seed 0.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}

/// Computes the checksums of an index again, after bytes were changed. Tests reach the code behind the
/// checksums with it.
#[doc(hidden)]
pub fn reseal(bytes: &mut [u8]) {
    let Some(header) = bytes.first_chunk::<HEADER_LEN>().copied() else { return };
    let long = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes) as usize);
    let (offset, len) = (long(24), long(32));
    let place = offset..offset.saturating_add(len);
    let Some(directory) = bytes.get(place.clone()) else { return };
    if let Ok(mut directory) = Directory::decode(directory, bytes.len() as u64) {
        for block in directory.tables.iter_mut().flatten() {
            let at = block.offset as usize;
            block.checksum = checksum(&bytes[at..at + block.len as usize]);
        }
        let directory = directory.encode();
        if directory.len() == len {
            bytes[place.clone()].copy_from_slice(&directory);
        }
    }
    let mut header = header;
    header[40..48].copy_from_slice(&checksum(&bytes[place]).to_le_bytes());
    header[16..24].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    header[56..].fill(0);
    let own = checksum(&header);
    header[56..].copy_from_slice(&own.to_le_bytes());
    bytes[..HEADER_LEN].copy_from_slice(&header);
}

impl Directory {
    /// The bytes of the directory.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for identity in [&self.identity.object, &self.identity.debug] {
            put(&mut out, identity.len() as u64);
            out.extend_from_slice(identity);
        }
        put(&mut out, self.identity.debug_len);
        put(&mut out, self.problems);
        for blocks in &self.tables {
            put(&mut out, blocks.len() as u64);
            let (mut key, mut offset) = (0, 0);
            for block in blocks {
                put(&mut out, block.first_key - key);
                put(&mut out, block.offset - offset);
                put(&mut out, block.len.into());
                out.extend_from_slice(&block.checksum.to_le_bytes());
                (key, offset) = (block.first_key, block.offset);
            }
        }
        out
    }

    fn decode(bytes: &[u8], file_len: u64) -> Result<Self, Malformed> {
        let mut numbers = Numbers(bytes);
        let mut directory = Self::default();
        for identity in [&mut directory.identity.object, &mut directory.identity.debug] {
            let len = numbers.number()?;
            if len > IDENTITY_MAX_LEN {
                return Err(Malformed);
            }
            identity.extend_from_slice(numbers.bytes(len)?);
        }
        directory.identity.debug_len = numbers.number()?;
        directory.problems = numbers.number()?;
        for blocks in &mut directory.tables {
            let count = numbers.number()?;
            let (mut first_key, mut offset) = (0u64, 0u64);
            for _ in 0..count {
                first_key = first_key.checked_add(numbers.number()?).ok_or(Malformed)?;
                offset = offset.checked_add(numbers.number()?).ok_or(Malformed)?;
                let len = numbers.short()?;
                let end = offset.checked_add(len.into()).filter(|&end| end <= file_len);
                if end.is_none() || len > BLOCK_MAX_LEN {
                    return Err(Malformed);
                }
                let checksum = numbers.bytes(8)?.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                blocks.push(Block { first_key, offset, len, checksum });
            }
        }
        if numbers.is_empty() { Ok(directory) } else { Err(Malformed) }
    }

    /// The header of a file of `file_len` bytes whose directory, with these bytes, is at `offset`.
    pub(super) fn header(directory: &[u8], offset: u64, file_len: u64) -> [u8; HEADER_LEN] {
        let mut header = [0; HEADER_LEN];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[16..24].copy_from_slice(&file_len.to_le_bytes());
        header[24..32].copy_from_slice(&offset.to_le_bytes());
        header[32..40].copy_from_slice(&(directory.len() as u64).to_le_bytes());
        header[40..48].copy_from_slice(&checksum(directory).to_le_bytes());
        let own = checksum(&header);
        header[56..].copy_from_slice(&own.to_le_bytes());
        header
    }

    /// Reads header and directory.
    pub(super) fn read(source: &dyn otlpprof_elf::source::Source) -> Result<Self, IndexError> {
        let found = source.len();
        let mut header = [0; HEADER_LEN];
        let known = header.len().min(usize::try_from(found).unwrap_or(usize::MAX));
        source.read_into(0, &mut header[..known])?;
        if header[..8] != MAGIC {
            return Err(IndexError::NoIndex);
        }
        let short = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let long = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if short(8) != VERSION {
            return Err(IndexError::Version(short(8)));
        }
        let mut without_checksum = header;
        without_checksum[56..].fill(0);
        if checksum(&without_checksum) != long(56) {
            return Err(IndexError::Damaged("header"));
        }
        if long(16) != found {
            return Err(IndexError::Length { declared: long(16), found });
        }
        let (offset, len) = (long(24), long(32));
        let is_inside = offset.checked_add(len).is_some_and(|end| end <= found);
        if !is_inside || len > DIRECTORY_MAX_LEN {
            return Err(IndexError::Damaged("directory"));
        }
        let bytes = source.read(offset, len)?;
        if checksum(&bytes) != long(40) {
            return Err(IndexError::Damaged("directory"));
        }
        Self::decode(&bytes, found).map_err(|Malformed| IndexError::Damaged("directory"))
    }
}
