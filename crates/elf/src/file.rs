//! The headers of an ELF file, of either class and byte order.

use std::io;

use goblin::container::{Container, Ctx};
use goblin::elf::header::{ELFCLASS32, ELFCLASS64, Header, header32, header64};
use goblin::elf::{Elf, ProgramHeader as GoblinProgramHeader, SectionHeader};

use super::program_header::ProgramHeader;
use super::source::Source;

/// The reason why bytes are not a usable ELF file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The ELF magic number is missing.
    #[error("not an ELF file")]
    NotElf,
    /// The file ends inside its ELF header.
    #[error("the file's {len} bytes end inside the ELF header")]
    TruncatedHeader {
        /// The file's length.
        len: u64,
    },
    /// `EI_CLASS` or `EI_DATA` has an undefined value.
    #[error("unknown ELF class {class} or byte order {data}")]
    UnknownIdent {
        /// `EI_CLASS`
        class: u8,
        /// `EI_DATA`
        data: u8,
    },
    /// The size of a table's entries differs from the class's.
    #[error("{table} entries of {size} bytes, not {expected}")]
    EntrySize {
        /// The table.
        table: HeaderTable,
        /// The size in the ELF header, in bytes.
        size: u16,
        /// The size that the class defines, in bytes.
        expected: usize,
    },
    /// A table lies outside the file.
    #[error("{table} table of {count} entries at {offset:#x} is outside the file's {len} bytes")]
    TableOutside {
        /// The table.
        table: HeaderTable,
        /// `e_phoff` or `e_shoff`
        offset: u64,
        /// `e_phnum` or `e_shnum`
        count: u16,
        /// The file's length, in bytes.
        len: u64,
    },
}

/// The two tables of an ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderTable {
    /// The program headers.
    ProgramHeader,
    /// The section headers.
    SectionHeader,
}

impl std::fmt::Display for HeaderTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ProgramHeader => "program header",
            Self::SectionHeader => "section header",
        })
    }
}

/// An ELF file with a parsed header. Everything else is read on demand.
#[derive(Debug)]
pub struct ElfFile<S> {
    source: S,
    header: Header,
    context: Ctx,
}

impl<S: Source> ElfFile<S> {
    /// Reads the ELF header.
    ///
    /// # Errors
    /// If there is no complete ELF header.
    pub fn parse(source: S) -> Result<Self, FileError> {
        const IDENT: u64 = 16;
        let len = source.len();
        let magic = source.read(0, len.min(4))?;
        if magic != b"\x7fELF" {
            return Err(FileError::NotElf);
        }
        if len < IDENT {
            return Err(FileError::TruncatedHeader { len });
        }
        let ident = source.read(0, IDENT)?;
        let (class, data) = (ident[4], ident[5]);
        let (container, header_len) = match class {
            ELFCLASS32 => (Container::Little, header32::SIZEOF_EHDR),
            ELFCLASS64 => (Container::Big, header64::SIZEOF_EHDR),
            _ => return Err(FileError::UnknownIdent { class, data }),
        };
        if len < header_len as u64 {
            return Err(FileError::TruncatedHeader { len });
        }
        let bytes = source.read(0, header_len as u64)?;
        let unknown = |_| FileError::UnknownIdent { class, data };
        let header = Elf::parse_header(&bytes).map_err(unknown)?;
        let context = Ctx::new(container, header.endianness().map_err(unknown)?);
        Ok(Self { source, header, context })
    }

    /// The source of the file's bytes.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Returns the source of the file's bytes.
    pub fn into_source(self) -> S {
        self.source
    }

    /// Whether the file's class is 64-bit.
    pub fn is_64(&self) -> bool {
        self.context.is_big()
    }

    /// Whether the file has this processor's byte order.
    pub fn is_native_endian(&self) -> bool {
        self.context.is_little_endian() == cfg!(target_endian = "little")
    }

    /// The kind of file (`e_type`): an executable, a library, a relocatable object, a core dump.
    pub fn kind(&self) -> u16 {
        self.header.e_type
    }

    /// The processor that the file is for (`e_machine`).
    pub fn machine(&self) -> u16 {
        self.header.e_machine
    }

    /// Whether the byte order is little-endian.
    pub fn is_little_endian(&self) -> bool {
        self.context.is_little_endian()
    }

    /// The program headers; none if the file has no table.
    ///
    /// # Errors
    /// If the table is not inside the file.
    pub fn program_headers(&self) -> Result<Vec<ProgramHeader>, FileError> {
        let (offset, count) = (self.header.e_phoff, self.header.e_phnum);
        let entry = GoblinProgramHeader::size(self.context);
        let Some(bytes) =
            self.table(HeaderTable::ProgramHeader, offset, count, self.header.e_phentsize, entry)?
        else {
            return Ok(Vec::new());
        };
        let headers = GoblinProgramHeader::parse(&bytes, 0, usize::from(count), self.context);
        // SANITY: the bytes contain exactly `count` entries.
        let headers = headers.map_err(|_| FileError::NotElf)?;
        Ok(headers.iter().map(ProgramHeader::from).collect())
    }

    /// The section headers; none if the file has no table.
    ///
    /// # Errors
    /// If the table is not inside the file.
    pub fn section_headers(&self) -> Result<Vec<SectionHeader>, FileError> {
        let (offset, count) = (self.header.e_shoff, self.header.e_shnum);
        let entry = SectionHeader::size(self.context);
        let Some(bytes) =
            self.table(HeaderTable::SectionHeader, offset, count, self.header.e_shentsize, entry)?
        else {
            return Ok(Vec::new());
        };
        // SANITY: the bytes contain exactly `count` entries.
        SectionHeader::parse_from(&bytes, 0, usize::from(count), self.context).map_err(|_| FileError::NotElf)
    }

    /// The header of the first section with this name that has bytes in the file.
    ///
    /// # Errors
    /// If the section headers are not inside the file.
    pub fn section(&self, name: &str) -> Result<Option<SectionHeader>, FileError> {
        const SHT_NOBITS: u32 = 8;
        let sections = self.section_headers()?;
        let Some(names) = sections.get(usize::from(self.header.e_shstrndx)) else { return Ok(None) };
        Ok(sections
            .iter()
            .find(|section| section.sh_type != SHT_NOBITS && self.is_called(section, names, name))
            .cloned())
    }

    /// The section headers with their names, in the table's order. A name outside the table of names is
    /// empty.
    ///
    /// # Errors
    /// If the section headers or their names are not inside the file.
    pub fn named_sections(&self) -> Result<Vec<(String, SectionHeader)>, FileError> {
        let sections = self.section_headers()?;
        let names = match sections.get(usize::from(self.header.e_shstrndx)) {
            Some(names) => self.source.read(names.sh_offset, names.sh_size)?,
            None => Vec::new(),
        };
        let name = |section: &SectionHeader| {
            let tail = names.get(section.sh_name..).unwrap_or_default();
            let end = tail.iter().position(|&byte| byte == 0).unwrap_or_default();
            String::from_utf8_lossy(&tail[..end]).into_owned()
        };
        Ok(sections.into_iter().map(|section| (name(&section), section)).collect())
    }

    fn is_called(&self, section: &SectionHeader, names: &SectionHeader, name: &str) -> bool {
        let offset = section.sh_name as u64;
        let len = name.len() as u64 + 1;
        let inside = names.sh_size.checked_sub(offset).is_some_and(|left| len <= left);
        let at = names.sh_offset.checked_add(offset).filter(|_| inside);
        at.and_then(|at| self.source.read(at, len).ok())
            .is_some_and(|found| found.strip_suffix(b"\0").is_some_and(|found| found == name.as_bytes()))
    }

    fn table(
        &self,
        table: HeaderTable,
        offset: u64,
        count: u16,
        size: u16,
        expected: usize,
    ) -> Result<Option<Vec<u8>>, FileError> {
        if offset == 0 || count == 0 {
            return Ok(None);
        }
        if usize::from(size) != expected {
            return Err(FileError::EntrySize { table, size, expected });
        }
        let (len, wanted) = (self.source.len(), u64::from(count) * expected as u64);
        if len.checked_sub(offset).is_none_or(|left| wanted > left) {
            return Err(FileError::TableOutside { table, offset, count, len });
        }
        Ok(Some(self.source.read(offset, wanted)?))
    }
}
