//! Decides whether the file at an object's path is the file that was loaded.
//!
//! A build-id in memory decides. Without one, the file's identity on disk decides, if the identity was
//! certain when the object was scanned. Otherwise (the file was deleted and restored, or an overlay file
//! system shows other inodes) the bytes decide: everything that is mapped read-only must equal the file's
//! content.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use otlpprof_core::address::ElfVaddr;
use otlpprof_core::build_id::BuildId;

use super::memory_maps::MappedFile;
use crate::build_id;
use crate::image::LoadedImage;
use crate::program_header::ProgramHeader;
use crate::source::{FileSource, Source};

/// The reason why an object's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BackingFileError {
    /// The object is the vDSO, which has no file.
    #[error("the object has no file")]
    NoFile,
    /// The file does not exist or cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file at the path is not the one that was loaded.
    #[error("the file is not the one that was loaded")]
    Replaced,
}

/// The identity of a file on disk, in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    modified_ns: i128,
}

impl FileIdentity {
    fn of(metadata: &Metadata) -> Self {
        let modified_ns = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        Self { device: metadata.dev(), inode: metadata.ino(), size: metadata.size(), modified_ns }
    }

    /// Whether a mapping belongs to this file, even if the path has changed.
    pub fn is_file(&self, mapped: MappedFile<'_>) -> bool {
        mapped.device_and_inode == (self.device, self.inode)
    }

    /// The identity of the file at `path`, if it is certainly the mapped file.
    pub fn of_mapped(path: &Path, mapped: MappedFile<'_>) -> Option<Self> {
        let identity = Self::of(&std::fs::metadata(path).ok()?);
        let is_mapped = !mapped.is_deleted && identity.is_file(mapped);
        is_mapped.then_some(identity)
    }
}

/// Opens the file at `path`, if it is the file that the image was loaded from. The build-id and the identity
/// belong to the loaded file, as far as they are known.
pub fn open(
    path: &Path,
    build_id: Option<&BuildId>,
    identity: Option<FileIdentity>,
    image: &LoadedImage,
) -> Result<FileSource, BackingFileError> {
    let file = FileSource::open(path)?;
    let is_the_same = match build_id {
        Some(id) => build_id::of_source(&file).is_ok_and(|found| found == *id),
        None => is_mapped(&file, identity, image),
    };
    if is_the_same { Ok(file) } else { Err(BackingFileError::Replaced) }
}

/// The build-id of the file at `path`, if the image was certainly loaded from that file. For images whose
/// notes are not in memory.
pub fn build_id_of_mapped(
    path: &Path,
    identity: Option<FileIdentity>,
    image: &LoadedImage,
) -> Option<BuildId> {
    let file = FileSource::open(path).ok()?;
    let found = build_id::of_source(&file).ok()?;
    is_mapped(&file, identity, image).then_some(found)
}

/// Whether the image was loaded from `file`: decided by the file's identity, otherwise by its bytes.
fn is_mapped(file: &FileSource, identity: Option<FileIdentity>, image: &LoadedImage) -> bool {
    let found = file.file().metadata().ok().map(|metadata| FileIdentity::of(&metadata));
    (found.is_some() && found == identity)
        || image.read_while_loaded(|image| holds_what_is_mapped(file, image)).unwrap_or(false)
}

fn holds_what_is_mapped(file: &FileSource, image: &LoadedImage) -> bool {
    let read_only = |header: &&ProgramHeader| header.is_readable() && header.flags & libc::PF_W == 0;
    image.program_headers().iter().filter(read_only).all(|segment| is_equal(file, image, segment))
}

fn is_equal(file: &FileSource, image: &LoadedImage, segment: &ProgramHeader) -> bool {
    const CHUNK: u64 = 64 << 10;
    let size = segment.file_size.min(segment.memory_size);
    (0..size).step_by(CHUNK as usize).all(|done| {
        let len = CHUNK.min(size - done);
        let in_memory = image.read(ElfVaddr(segment.vaddr.0.wrapping_add(done)), len);
        let in_file = segment.offset.0.checked_add(done).and_then(|offset| file.read(offset, len).ok());
        in_memory.is_some() && in_memory == in_file
    })
}
