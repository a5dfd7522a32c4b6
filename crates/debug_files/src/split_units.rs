//! The files of split units (`.dwo`), which an object names by the paths of its compilation.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goblin::elf::section_header::SHF_COMPRESSED;
use otlpprof_elf::file::ElfFile;
use otlpprof_elf::source::{FileSource, Source};

use super::examined::{has_profiled_form, open};
use super::path_indexes::PathIndexes;

/// Finds the files of split units of one object.
#[derive(Clone, Debug)]
pub struct SplitUnits {
    /// The folders of the object's files.
    beside: Vec<PathBuf>,
    indexes: Arc<PathIndexes>,
}

impl SplitUnits {
    pub(super) fn new(beside: Vec<PathBuf>, indexes: Arc<PathIndexes>) -> Self {
        Self { beside, indexes }
    }

    /// The `.dwo` file of a unit, from its name and the folder of its compilation as the compiler recorded
    /// them: at that place, beside the object's files, or of that name below the folders to search. A file
    /// whose id cannot be told at a glance is used if no file has the right one.
    pub fn find(&self, name: &str, folder: Option<&str>, dwo_id: u64) -> Option<FileSource> {
        let name = Path::new(name);
        let recorded = folder.map_or_else(|| name.to_owned(), |folder| Path::new(folder).join(name));
        let last = name.file_name()?;
        let beside = self.beside.iter().flat_map(|beside| [beside.join(name), beside.join(last)]);
        let indexed = self.indexes.called(last).map(Path::to_owned);
        let all = [recorded].into_iter().chain(beside).chain(indexed);
        let mut perhaps = None;
        for source in all.filter(|path| path.is_absolute()).filter_map(|path| open(&path).ok()) {
            match id_of(&source) {
                Ok(Some(found)) if found == dwo_id => return Some(source),
                Ok(None) => perhaps = perhaps.or(Some(source)),
                _ => {}
            }
        }
        perhaps
    }
}

/// The file is no ELF file with a split unit.
#[derive(Clone, Copy, Debug)]
pub struct NotSplit;

/// The id of the first unit of `.debug_info.dwo`; `None` if its header does not show the id: units before
/// DWARF 5 have it elsewhere, type units have none, and the section may be compressed.
///
/// # Errors
///
/// The file is not ELF, or has no such section.
pub fn id_of(source: &impl Source) -> Result<Option<u64>, NotSplit> {
    /// `DW_UT_split_compile` (DWARF 5, section 7.5.1).
    const SPLIT_COMPILE: u8 = 5;
    let elf = ElfFile::parse(source).ok().filter(has_profiled_form).ok_or(NotSplit)?;
    let section = elf.section(".debug_info.dwo").ok().flatten().ok_or(NotSplit)?;
    if section.sh_flags & u64::from(SHF_COMPRESSED) != 0 {
        return Ok(None);
    }
    let head = source.read(section.sh_offset, section.sh_size.min(32)).map_err(|_| NotSplit)?;
    // Lengths and offsets have 4 bytes, or 8 after an escape of 4 (section 7.4).
    let (version_at, offset_len) = if head.starts_with(&[0xff; 4]) { (12, 8) } else { (4, 4) };
    let number = |at: usize, len: usize| {
        let bytes = head.get(at..at + len)?.iter();
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(if elf.is_little_endian() { bytes.rev().fold(0, add) } else { bytes.fold(0, add) })
    };
    let is_split = number(version_at, 2) == Some(5) && head.get(version_at + 2) == Some(&SPLIT_COMPILE);
    Ok(number(version_at + 4 + offset_len, 8).filter(|_| is_split))
}
