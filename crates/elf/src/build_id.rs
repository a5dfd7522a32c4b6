//! GNU build-ids of loaded images and of files.

use std::path::Path;

use otlpprof_core::address::ElfVaddr;
use otlpprof_core::build_id::{BUILD_ID_MAX_LEN, BuildId};

use super::file::{ElfFile, FileError};
use super::image::LoadedImage;
use super::notes::{NoteError, Notes};
use super::program_header::ProgramHeader;
use super::source::{FileSource, Source};

/// `n_type` of a build-id (owner `GNU`).
const NT_GNU_BUILD_ID: u32 = 3;

/// The most bytes of notes to read. Real objects have some hundred bytes.
const NOTES_MAX_LEN: u64 = 1 << 20;

/// The reason why an object has no usable build-id.
#[derive(Debug, thiserror::Error)]
pub enum BuildIdError {
    /// The file is missing, or is not a usable ELF file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The object has no notes at all.
    #[error("no note segment")]
    NoNotes,
    /// The object has notes, but none is a build-id.
    #[error("no build-id among the notes")]
    NoBuildId,
    /// A note segment lies outside the file or the loaded segments, or is implausibly long.
    #[error("note segment of {size} bytes at {at:#x} is outside the object")]
    NotesOutside {
        /// The segment's file offset, or its ELF virtual address.
        at: u64,
        /// The segment's size, in bytes.
        size: u64,
    },
    /// A note is malformed.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// The build-id is empty or too long.
    #[error("build-id of {len} bytes, not 1 to {BUILD_ID_MAX_LEN}")]
    Length {
        /// `n_descsz`
        len: usize,
    },
}

impl From<std::io::Error> for BuildIdError {
    fn from(error: std::io::Error) -> Self {
        Self::File(FileError::Io(error))
    }
}

/// A build-id in a loaded image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadedBuildId {
    /// The build-id.
    pub id: BuildId,
    /// The address of the build-id's bytes.
    pub vaddr: ElfVaddr,
}

/// The build-id of a loaded image, read from its `PT_NOTE` segments in memory. Also works for deleted files
/// and the vDSO.
///
/// # Errors
/// If the image has no build-id. A malformed segment does not hide a build-id in another segment.
pub fn of_image(image: &LoadedImage) -> Result<LoadedBuildId, BuildIdError> {
    let little_endian = cfg!(target_endian = "little");
    first_build_id(image.program_headers(), |header| {
        let (at, size) = (header.vaddr, header.memory_size);
        let outside = BuildIdError::NotesOutside { at: at.0, size };
        let bytes = Some(size).filter(|&size| size <= NOTES_MAX_LEN).and_then(|size| image.read(at, size));
        let found = build_id_in(&bytes.ok_or(outside)?, header.align, little_endian)?;
        Ok(LoadedBuildId { id: found.0, vaddr: ElfVaddr(at.0.wrapping_add(found.1 as u64)) })
    })
}

/// The build-id of the file at `path`.
///
/// # Errors
/// If the file has no build-id.
pub fn of_file(path: &Path) -> Result<BuildId, BuildIdError> {
    of_source(FileSource::open(path)?)
}

/// The build-id of an ELF file of either class and byte order, from its `PT_NOTE` segments, or else from its
/// note sections.
///
/// # Errors
/// If the file has no build-id. A malformed segment does not hide a build-id in another segment.
pub fn of_source(source: impl Source) -> Result<BuildId, BuildIdError> {
    let file = ElfFile::parse(source)?;
    let from_segments = first_build_id(&file.program_headers()?, |header| {
        build_id_at(&file, header.offset.0, header.file_size, header.align)
    });
    match from_segments {
        // Separate debug files and relocatable objects may have note sections without note segments.
        Err(BuildIdError::NoNotes) => from_sections(&file),
        // A debug file that elfutils' strip has written has its object's segments, with the offsets in the
        // object's file.
        Err(error) => from_sections(&file).map_err(|_| error),
        found => found,
    }
}

/// The build-id in a sequence of notes in this machine's byte order.
///
/// # Errors
/// If no note is a build-id.
pub fn of_notes(notes: &[u8]) -> Result<BuildId, BuildIdError> {
    Ok(build_id_in(notes, 4, cfg!(target_endian = "little"))?.0)
}

fn from_sections<S: Source>(file: &ElfFile<S>) -> Result<BuildId, BuildIdError> {
    const SHT_NOTE: u32 = 7;
    let sections = file.section_headers()?;
    let notes = sections.iter().filter(|section| section.sh_type == SHT_NOTE);
    first_of(notes.map(|section| build_id_at(file, section.sh_offset, section.sh_size, section.sh_addralign)))
}

fn build_id_at<S: Source>(
    file: &ElfFile<S>,
    at: u64,
    size: u64,
    align: u64,
) -> Result<BuildId, BuildIdError> {
    let inside = file.source().len().checked_sub(at).is_some_and(|left| size <= left);
    if !inside || size > NOTES_MAX_LEN {
        return Err(BuildIdError::NotesOutside { at, size });
    }
    Ok(build_id_in(&file.source().read(at, size)?, align, file.is_little_endian())?.0)
}

fn first_build_id<T>(
    headers: &[ProgramHeader],
    read: impl Fn(&ProgramHeader) -> Result<T, BuildIdError>,
) -> Result<T, BuildIdError> {
    first_of(headers.iter().filter(|header| header.kind == libc::PT_NOTE).map(read))
}

/// The first success. Without one, the error of the first malformed segment; if none is malformed, the error
/// that there is no build-id.
fn first_of<T>(results: impl Iterator<Item = Result<T, BuildIdError>>) -> Result<T, BuildIdError> {
    let mut failure = BuildIdError::NoNotes;
    for result in results {
        match (result, &failure) {
            (Ok(found), _) => return Ok(found),
            (Err(error), BuildIdError::NoNotes | BuildIdError::NoBuildId) => failure = error,
            (Err(_), _) => {}
        }
    }
    Err(failure)
}

/// The first build-id note in a segment's bytes, and the offset of its description in the segment.
fn build_id_in(bytes: &[u8], p_align: u64, little_endian: bool) -> Result<(BuildId, usize), BuildIdError> {
    for note in Notes::new(bytes, p_align, little_endian) {
        let note = note?;
        if note.kind == NT_GNU_BUILD_ID && note.name == b"GNU" {
            let len = note.description.len();
            let id = BuildId::new(note.description).ok_or(BuildIdError::Length { len })?;
            return Ok((id, note.description_offset));
        }
    }
    Err(BuildIdError::NoBuildId)
}
