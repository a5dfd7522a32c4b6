//! One ELF file: its identity, its quality, and the companions that it names.

use std::fs;
use std::io;
use std::path::Path;

use goblin::elf::SectionHeader;
use goblin::elf::header::{EM_NONE, ET_DYN, ET_EXEC};
use goblin::elf::section_header::{SHF_ALLOC, SHF_EXECINSTR, SHT_NOBITS, SHT_NULL};
use otlpprof_core::build_id::BuildId;
use otlpprof_elf::build_id;
use otlpprof_elf::debug_link::DebugLink;
use otlpprof_elf::file::{ElfFile, FileError};
use otlpprof_elf::htlhash::HtlHash;
use otlpprof_elf::source::{FileSource, Source};

use super::files::Quality;
use super::identity::FileId;
use super::links::{LINK_MAX_LEN, SupplementaryLink, own_checksum};

/// An ELF file that was read as far as its identity and its sections' headers.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The GNU build-id, or else the checksum of a supplementary file (DWARF 5, section 7.3.6).
    pub build_id: Option<BuildId>,
    /// The hash of the file's content.
    pub htlhash: HtlHash,
    /// The best information that the file itself has.
    pub quality: Quality,
    /// Whether the file has the code, and so is an executable, a library or a part of one.
    pub has_code: bool,
    /// Whether a loader loads such a file: an executable or a library.
    pub is_loadable: bool,
    /// Whether the file has a complete symbol table, beside its debug information.
    pub has_symbol_table: bool,
    /// Whether the file is a package of split units (`.dwp`).
    pub is_package: bool,
    /// Whether the file has only split units of one object (`.dwo`).
    pub is_split: bool,
    /// The debug file that the file names.
    pub debug_link: Option<DebugLink>,
    /// The supplementary file that the file names.
    pub supplementary: Option<SupplementaryLink>,
}

/// The reason why a file is not used.
#[derive(Debug, thiserror::Error)]
pub enum ExamineError {
    /// The file cannot be read, or is no usable ELF file.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is for a processor on which no JVM is profiled.
    #[error("a {bits}-bit {order}-endian ELF file; only 64-bit little-endian objects are profiled")]
    OtherForm {
        /// The number of bits of the file's class.
        bits: u8,
        /// `little` or `big`.
        order: &'static str,
    },
    /// The file ends before one of its sections.
    #[error("the file is truncated: its section {section} ends after the file's {len} bytes")]
    Truncated {
        /// The section's name.
        section: String,
        /// The file's length, in bytes.
        len: u64,
    },
}

impl From<io::Error> for ExamineError {
    fn from(error: io::Error) -> Self {
        Self::File(error.into())
    }
}

/// Opens a regular file. Anything else is not opened, for opening a device may have effects.
///
/// # Errors
/// If the file cannot be opened or is not a regular file.
pub fn open(path: &Path) -> io::Result<FileSource> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    FileSource::open(path)
}

impl Examined {
    /// Examines the file at a path.
    ///
    /// # Errors
    /// If the file cannot be read, or as [`Examined::of`].
    pub fn of_path(path: &Path) -> Result<Self, ExamineError> {
        Self::of(&open(path)?)
    }

    /// Examines the bytes of a file.
    ///
    /// # Errors
    /// If they are no complete ELF file of a processor on which JVMs are profiled.
    pub fn of(source: &impl Source) -> Result<Self, ExamineError> {
        let elf = ElfFile::parse(source)?;
        if !has_profiled_form(&elf) {
            let order = if elf.is_little_endian() { "little" } else { "big" };
            return Err(ExamineError::OtherForm { bits: if elf.is_64() { 64 } else { 32 }, order });
        }
        let sections = elf.named_sections()?;
        check_inside(&sections, source.len())?;
        let segments = elf.program_headers()?;
        let has_segment = |kind| segments.iter().any(|segment| segment.kind == kind);
        let read = |name: &str| read_link(source, &sections, name);
        let little = elf.is_little_endian();
        let altlink = || SupplementaryLink::parse(&read(".gnu_debugaltlink")?);
        let dwarf5 = || SupplementaryLink::parse_dwarf5(&read(".debug_sup")?, little);
        let code_in_segments =
            || segments.iter().any(|segment| segment.is_executable() && segment.file_size > 0);
        let is_package = find(&sections, ".debug_cu_index").is_some();
        let has_code = if sections.is_empty() { code_in_segments() } else { sections.iter().any(is_code) };
        Ok(Self {
            build_id: build_id_of(source).filter(|id| FileId::of(id).is_ok()),
            htlhash: HtlHash::of(source)?,
            quality: quality(&sections),
            has_code,
            is_loadable: matches!(elf.kind(), ET_EXEC | ET_DYN)
                && elf.machine() != EM_NONE
                && has_segment(libc::PT_LOAD),
            has_symbol_table: has_symbols(&sections, ".symtab"),
            is_package,
            is_split: !is_package && find(&sections, ".debug_info.dwo").is_some(),
            debug_link: read(".gnu_debuglink").and_then(|section| DebugLink::parse(&section, little)),
            supplementary: altlink().or_else(dwarf5),
        })
    }

    /// Whether the file is the object's with this key: by its build-id; or by its content, if it has none.
    pub fn is(&self, id: &FileId) -> bool {
        match &self.build_id {
            Some(build_id) => id.is(build_id) || id.is_hash(&self.htlhash),
            None => id.is_hash(&self.htlhash),
        }
    }

    /// The identity, as a message names it.
    pub fn described(&self) -> String {
        match &self.build_id {
            Some(build_id) => format!("build-id {build_id}"),
            None => format!("no build-id, htlhash {}", self.htlhash),
        }
    }
}

/// Whether a file has the class and the byte order of the objects that are profiled, on each processor.
pub(super) fn has_profiled_form<S: Source>(elf: &ElfFile<S>) -> bool {
    elf.is_64() && elf.is_little_endian()
}

/// The build-id of an ELF file, or the checksum that takes its place in a supplementary file of DWARF 5.
pub(super) fn build_id_of(source: &impl Source) -> Option<BuildId> {
    let checksum = || {
        let elf = ElfFile::parse(source).ok()?;
        let section = read_link(source, &elf.named_sections().ok()?, ".debug_sup")?;
        own_checksum(&section, elf.is_little_endian())
    };
    build_id::of_source(source).ok().or_else(checksum)
}

/// Reads a section that names another file.
fn read_link(source: &impl Source, sections: &Sections, name: &str) -> Option<Vec<u8>> {
    let section = find(sections, name).filter(|section| section.sh_size <= LINK_MAX_LEN)?;
    source.read(section.sh_offset, section.sh_size).ok()
}

type Sections = [(String, SectionHeader)];

fn find<'a>(sections: &'a Sections, name: &str) -> Option<&'a SectionHeader> {
    let found = sections.iter().find(|(found, section)| found == name && section.sh_type != SHT_NOBITS);
    found.map(|(_, section)| section)
}

/// Whether a symbol table has more than the null symbol.
fn has_symbols(sections: &Sections, name: &str) -> bool {
    find(sections, name).is_some_and(|table| table.sh_size > table.sh_entsize.max(1))
}

fn quality(sections: &Sections) -> Quality {
    let has = |name: &str| find(sections, name).is_some_and(|section| section.sh_size > 0);
    if has(".debug_info") || has(".zdebug_info") || has(".debug_info.dwo") {
        Quality::DebugInfo
    } else if has_symbols(sections, ".symtab") {
        Quality::SymbolTable
    } else if has(".gnu_debugdata") {
        Quality::MiniSymbols
    } else if has_symbols(sections, ".dynsym") {
        Quality::DynamicSymbols
    } else {
        Quality::Nothing
    }
}

fn is_code((_, section): &(String, SectionHeader)) -> bool {
    const CODE: u64 = (SHF_ALLOC | SHF_EXECINSTR) as u64;
    section.sh_flags & CODE == CODE && section.sh_type != SHT_NOBITS && section.sh_size > 0
}

fn check_inside(sections: &Sections, len: u64) -> Result<(), ExamineError> {
    let is_outside = |section: &SectionHeader| {
        let has_bytes = !matches!(section.sh_type, SHT_NOBITS | SHT_NULL);
        has_bytes && section.sh_offset.checked_add(section.sh_size).is_none_or(|end| end > len)
    };
    match sections.iter().find(|(_, section)| is_outside(section)) {
        Some((name, _)) => Err(ExamineError::Truncated { section: name.clone(), len }),
        None => Ok(()),
    }
}
