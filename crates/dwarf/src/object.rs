//! The sections of one ELF file, decompressed: `SHF_COMPRESSED` with zlib or zstd (gABI, "Section
//! Compression"), GNU's older `.zdebug_` with zlib, or neither.

use std::io::{self, BufReader, Read};
use std::ops::Range;

use flate2::bufread::ZlibDecoder;
use goblin::container::{Container, Ctx, Endian};
use goblin::elf::SectionHeader;
use goblin::elf::section_header::{SHF_ALLOC, SHF_COMPRESSED, SHF_EXECINSTR, SHT_NOBITS};
use otlpprof_elf::file::ElfFile;
use otlpprof_elf::source::Source;
use ruzstd::decoding::StreamingDecoder;

use super::error::DwarfError;
use super::limits;

/// The bytes of a file.
pub(super) type FileBytes<'a> = &'a (dyn Source + Sync);

/// The bytes that are read from a file at once.
const READ_LEN: usize = 128 << 10;

/// An ELF file with its sections.
pub(super) struct Object<'a> {
    source: FileBytes<'a>,
    context: Ctx,
    machine: u16,
    sections: Vec<(String, SectionHeader)>,
}

#[derive(Clone, Copy)]
enum Codec {
    Plain,
    Zlib,
    Zstd,
}

/// A section's place in its file.
#[derive(Clone)]
pub(super) struct Section {
    name: String,
    /// The stored bytes.
    at: Range<u64>,
    codec: Codec,
    /// The length of the decompressed bytes.
    pub(super) len: u64,
}

impl<'a> Object<'a> {
    /// Reads the headers of an ELF file.
    ///
    /// # Errors
    /// If the file is no ELF file, or its section headers are outside the file.
    pub(super) fn parse(source: FileBytes<'a>) -> Result<Self, DwarfError> {
        let elf = ElfFile::parse(source)?;
        let sections = elf.named_sections()?;
        let container = if elf.is_64() { Container::Big } else { Container::Little };
        let endian = if elf.is_little_endian() { Endian::Little } else { Endian::Big };
        Ok(Self { source, context: Ctx::new(container, endian), machine: elf.machine(), sections })
    }

    /// The file's class and byte order.
    pub(super) fn context(&self) -> Ctx {
        self.context
    }

    /// The processor that the file is for.
    pub(super) fn machine(&self) -> u16 {
        self.machine
    }

    /// The section headers with their names.
    pub(super) fn headers(&self) -> &[(String, SectionHeader)] {
        &self.sections
    }

    /// The address ranges with code. A file that has only debug information has their headers too.
    pub(super) fn code(&self) -> Vec<Range<u64>> {
        const CODE: u64 = (SHF_ALLOC | SHF_EXECINSTR) as u64;
        let is_code = |flags: u64| flags & CODE == CODE;
        let headers =
            self.sections.iter().map(|(_, header)| header).filter(|header| is_code(header.sh_flags));
        headers.map(|header| header.sh_addr..header.sh_addr.saturating_add(header.sh_size)).collect()
    }

    /// The section with this name (`.debug_info`), or its older compressed form (`.zdebug_info`).
    ///
    /// # Errors
    /// If the section is outside the file, or its declared length is impossible.
    pub(super) fn section(&self, name: &str) -> Result<Option<Section>, DwarfError> {
        let find = |name: &str| {
            let found = self.sections.iter().find(|(found, _)| found == name);
            found.filter(|(_, header)| header.sh_type != SHT_NOBITS)
        };
        let older = || find(&name.replacen(".debug_", ".zdebug_", 1));
        let Some((found, header)) = find(name).or_else(older) else { return Ok(None) };
        let end = header.sh_offset.checked_add(header.sh_size).filter(|&end| end <= self.source.len());
        let why = io::Error::from(io::ErrorKind::UnexpectedEof);
        let end = end.ok_or(DwarfError::Section { section: found.clone(), why })?;
        let stored = header.sh_offset..end;
        let mut section =
            Section { name: found.clone(), len: header.sh_size, at: stored, codec: Codec::Plain };
        if header.sh_flags & u64::from(SHF_COMPRESSED) != 0 {
            self.read_compression_header(&mut section)?;
        } else if found.starts_with(".zdebug_") {
            // "ZLIB" and the length as a big-endian number of eight bytes (binutils' bfd/compress.c).
            let head = self.head(&section, 12)?;
            if head.starts_with(b"ZLIB") {
                section.len = head[4..].iter().fold(0, |len, &byte| len << 8 | u64::from(byte));
                section.codec = Codec::Zlib;
                section.at.start += 12;
            }
        }
        let stored = section.at.end - section.at.start;
        let expansion =
            if section.len > limits::EXPANDED_FREELY { limits::EXPANSION_OF_LONG } else { limits::EXPANSION };
        if !matches!(section.codec, Codec::Plain) && section.len > stored.saturating_mul(expansion) {
            return Err(DwarfError::Expansion { section: section.name, declared: section.len, stored });
        }
        Ok(Some(section))
    }

    fn read_compression_header(&self, section: &mut Section) -> Result<(), DwarfError> {
        const ELFCOMPRESS_ZLIB: u32 = 1;
        const ELFCOMPRESS_ZSTD: u32 = 2;
        let is_64 = self.context.container == Container::Big;
        let is_little = self.context.le == Endian::Little;
        let header_len = if is_64 { 24 } else { 12 };
        let head = self.head(section, header_len)?;
        let number = |at: Range<usize>| {
            let fold = |number: u64, &byte: &u8| number << 8 | u64::from(byte);
            let bytes = &head[at];
            if is_little { bytes.iter().rev().fold(0, fold) } else { bytes.iter().fold(0, fold) }
        };
        section.len = if is_64 { number(8..16) } else { number(4..8) };
        let method = number(0..4) as u32;
        section.codec = match method {
            ELFCOMPRESS_ZLIB => Codec::Zlib,
            ELFCOMPRESS_ZSTD => Codec::Zstd,
            _ => return Err(DwarfError::Compression { section: section.name.clone(), method }),
        };
        section.at.start += header_len;
        Ok(())
    }

    fn head(&self, section: &Section, len: u64) -> Result<Vec<u8>, DwarfError> {
        let inside = section.at.end - section.at.start >= len;
        let head = match inside {
            true => self.source.read(section.at.start, len),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        };
        head.map_err(|why| DwarfError::Section { section: section.name.clone(), why })
    }

    /// A reader of a section's bytes.
    ///
    /// # Errors
    /// If the first compressed bytes are damaged.
    pub(super) fn reader(&self, section: &Section) -> Result<SectionReader<'a>, DwarfError> {
        let stored = Stored { source: self.source, at: section.at.clone() };
        let form = match section.codec {
            Codec::Plain => Form::Plain(stored),
            Codec::Zlib => {
                Form::Packed(Box::new(ZlibDecoder::new(BufReader::with_capacity(READ_LEN, stored))))
            }
            Codec::Zstd => {
                let decoder = StreamingDecoder::new(BufReader::with_capacity(READ_LEN, stored));
                let why = |error: ruzstd::decoding::errors::FrameDecoderError| {
                    let why = io::Error::new(io::ErrorKind::InvalidData, error.to_string());
                    DwarfError::Section { section: section.name.clone(), why }
                };
                Form::Packed(Box::new(decoder.map_err(why)?))
            }
        };
        Ok(SectionReader { form, section: section.clone() })
    }

    /// The bytes of a section; none if the file has no such section.
    ///
    /// # Errors
    /// If the section is damaged or too long.
    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, DwarfError> {
        let Some(section) = self.section(name)? else { return Ok(Vec::new()) };
        if section.len > limits::SECTION_IN_MEMORY {
            let (section, len) = (section.name, section.len);
            return Err(DwarfError::SectionTooLong { section, len, limit: limits::SECTION_IN_MEMORY });
        }
        self.reader(&section)?.read_whole()
    }
}

/// The stored bytes of a section.
struct Stored<'a> {
    source: FileBytes<'a>,
    at: Range<u64>,
}

impl Read for Stored<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = into.len().min(usize::try_from(self.at.end - self.at.start).unwrap_or(usize::MAX));
        self.source.read_into(self.at.start, &mut into[..len])?;
        self.at.start += len as u64;
        Ok(len)
    }
}

enum Form<'a> {
    Plain(Stored<'a>),
    Packed(Box<dyn Read + Send + 'a>),
}

/// Reads a section's bytes in order.
pub(super) struct SectionReader<'a> {
    form: Form<'a>,
    section: Section,
}

impl SectionReader<'_> {
    /// The declared length of the section, in bytes.
    pub(super) fn len(&self) -> u64 {
        self.section.len
    }

    /// The section's name.
    pub(super) fn name(&self) -> &str {
        &self.section.name
    }

    /// Fills `bytes`, or returns an error.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) -> Result<(), DwarfError> {
        self.form
            .read_exact(bytes)
            .map_err(|why| DwarfError::Section { section: self.section.name.clone(), why })
    }

    /// Appends the next `len` bytes. Memory grows with the bytes that are there, not with `len`.
    pub(super) fn append(&mut self, bytes: &mut Vec<u8>, len: u64) -> Result<(), DwarfError> {
        let found = (&mut self.form).take(len).read_to_end(bytes);
        match found {
            Ok(found) if found as u64 == len => Ok(()),
            Ok(found) => Err(self.wrong_length(found as u64)),
            Err(why) => Err(DwarfError::Section { section: self.section.name.clone(), why }),
        }
    }

    /// Skips `len` bytes.
    pub(super) fn skip(&mut self, len: u64) -> Result<(), DwarfError> {
        if let Form::Plain(stored) = &mut self.form {
            let start = stored.at.start.checked_add(len).filter(|&start| start <= stored.at.end);
            stored.at.start = start.ok_or(DwarfError::SectionLength {
                section: self.section.name.clone(),
                declared: self.section.len,
                found: 0,
            })?;
            return Ok(());
        }
        let skipped = io::copy(&mut (&mut self.form).take(len), &mut io::sink());
        match skipped {
            Ok(skipped) if skipped == len => Ok(()),
            Ok(skipped) => Err(self.wrong_length(skipped)),
            Err(why) => Err(DwarfError::Section { section: self.section.name.clone(), why }),
        }
    }

    fn read_whole(mut self) -> Result<Vec<u8>, DwarfError> {
        /// Longer sections grow while they are decompressed: a declared length may lie.
        const RESERVED: u64 = 64 << 20;
        let len = self.section.len;
        let mut bytes = Vec::with_capacity(len.min(RESERVED) as usize);
        self.append(&mut bytes, len)?;
        let mut past_the_end = [0];
        if matches!(self.form.read(&mut past_the_end), Ok(1)) {
            return Err(self.wrong_length(len + 1));
        }
        Ok(bytes)
    }

    fn wrong_length(&self, found: u64) -> DwarfError {
        DwarfError::SectionLength { section: self.section.name.clone(), declared: self.section.len, found }
    }
}

impl Read for Form<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stored) => stored.read(into),
            Self::Packed(decoder) => decoder.read(into),
        }
    }
}
