//! Reads an object's symbols and their names, from its file or its image.

use std::ops::Range;

use goblin::elf::SectionHeader;
use goblin::elf::section_header::{SHT_DYNSYM, SHT_SYMTAB};
use otlpprof_core::address::ElfVaddr;

use super::index::{IndexBuilder, SYMBOL_LEN, SymbolIndex};
use super::mapping_symbols::{is_mapping_symbol, mapping_symbols};
use crate::dynamic::{Dynamic, DynamicError, string_at, tag};
use crate::file::{ElfFile, FileError};
use crate::image::LoadedImage;
use crate::objects::ObjectDetails;
use crate::objects::backing_file::BackingFileError;
use crate::source::{FileSource, Source};
use crate::unwind::sections::executable_range;

/// The largest symbol table to read, in bytes: 44 million symbols.
pub(super) const MAX_TABLE_LEN: u64 = 1 << 30;

/// The longest name to read, in bytes. Longer names are cut.
const MAX_NAME_LEN: u64 = 16 << 10;

/// The reason why an object has no symbols.
#[derive(Debug, thiserror::Error)]
pub enum SymbolsError {
    /// The object's file cannot be used.
    #[error(transparent)]
    BackingFile(#[from] BackingFileError),
    /// The object's file is malformed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The object's dynamic section is malformed.
    #[error(transparent)]
    Dynamic(#[from] DynamicError),
    /// The object was unloaded, and its file cannot be used.
    #[error("the object was unloaded")]
    Unloaded,
    /// The object has no symbol table.
    #[error("no symbol table")]
    NoTable,
}

/// An object's functions, and the source of their names.
#[derive(Debug)]
pub struct Symbols {
    index: SymbolIndex,
    names: Names,
    is_whole: bool,
}

/// The names of functions. From a file they are read one by one, because an object's string table can be much
/// larger than its index, and few of its names are ever requested.
#[derive(Debug)]
enum Names {
    InFile { file: FileSource, table: Range<u64> },
    Copied(Vec<u8>),
}

impl Symbols {
    /// The functions in the object's file, from `.symtab` or otherwise `.dynsym`. If the file is missing,
    /// replaced or has neither table, the functions of the `.dynsym` in memory.
    ///
    /// # Errors
    /// If no symbol table can be read.
    pub fn of(details: &ObjectDetails) -> Result<Self, SymbolsError> {
        let text = executable_range(details.image()).ok_or(SymbolsError::NoTable)?;
        let in_file = details.open_file().map_err(SymbolsError::from);
        match in_file.and_then(|file| Self::of_file(file, &text)) {
            Err(error) => match details.read_while_loaded(|image| Self::of_image(image, &text)) {
                Some(Ok(symbols)) => Ok(symbols),
                _ => Err(error),
            },
            found => found,
        }
    }

    /// The functions inside `text`, from a file's `.symtab` or otherwise `.dynsym`.
    ///
    /// # Errors
    /// If the file has no such functions, or is malformed.
    pub fn of_file(file: FileSource, text: &Range<ElfVaddr>) -> Result<Self, SymbolsError> {
        let file = ElfFile::parse(file)?;
        let whole = read_table(&file, SHT_SYMTAB, text);
        let is_whole = whole.is_ok();
        let (index, table) = whole.or_else(|_| read_table(&file, SHT_DYNSYM, text))?;
        Ok(Self { index, names: Names::InFile { table, file: file.into_source() }, is_whole })
    }

    /// The functions inside `text`, from the `.symtab` of a debug file.
    ///
    /// # Errors
    /// If the file has no such functions, or is malformed.
    pub fn of_debug_file(file: FileSource, text: &Range<ElfVaddr>) -> Result<Self, SymbolsError> {
        let file = ElfFile::parse(file)?;
        let (index, table) = read_table(&file, SHT_SYMTAB, text)?;
        Ok(Self { index, names: Names::InFile { table, file: file.into_source() }, is_whole: true })
    }

    /// The functions inside `text`, from the `.symtab` of the ELF file that [MiniDebugInfo] contains. Of the
    /// file, the names are kept.
    ///
    /// [MiniDebugInfo]: crate::mini_debug_info
    ///
    /// # Errors
    /// If the file has no such functions, or is malformed.
    pub fn of_mini_debug_info(image: &[u8], text: &Range<ElfVaddr>) -> Result<Self, SymbolsError> {
        let file = ElfFile::parse(image)?;
        let (index, table) = read_table(&file, SHT_SYMTAB, text)?;
        let len = table.end.min(image.len() as u64).saturating_sub(table.start);
        let names = image.read(table.start, len).map_err(FileError::from)?;
        Ok(Self { index, names: Names::Copied(names), is_whole: false })
    }

    /// The functions inside `text`, from a loaded image's `.dynsym`.
    ///
    /// # Errors
    /// If the image has no `.dynsym`, or is malformed.
    pub fn of_image(image: &LoadedImage, text: &Range<ElfVaddr>) -> Result<Self, SymbolsError> {
        let dynamic = Dynamic::read(image)?;
        let count = symbol_count(image, &dynamic).ok_or(SymbolsError::NoTable)?;
        // Section headers are not loaded into memory.
        let mut builder = IndexBuilder::new(text.clone(), Vec::new());
        // Mapping symbols are local, and this table has what is exported.
        builder.add(&dynamic.symbols(count)?, |_| false);
        Ok(Self { index: builder.build(), names: Names::Copied(dynamic.strings()?), is_whole: false })
    }

    /// The first address and the linkage name of the function that contains `vaddr`.
    pub fn find(&self, vaddr: ElfVaddr) -> Option<(ElfVaddr, String)> {
        let found = self.index.find(vaddr)?;
        let name = self.name_at(u64::from(found.name))?;
        (!name.is_empty()).then_some((found.start, name))
    }

    fn name_at(&self, offset: u64) -> Option<String> {
        let read;
        let name = match &self.names {
            Names::Copied(strings) => string_at(strings, offset)?,
            Names::InFile { file, table } => {
                read = read_name(file, table, offset)?;
                &read
            }
        };
        Some(String::from_utf8_lossy(name).into_owned())
    }

    /// Whether these are all functions of the object, not only those that it exports.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The number of functions.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether the number of functions is 0.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The size on the heap, in bytes.
    pub fn heap_bytes(&self) -> usize {
        let names = if let Names::Copied(strings) = &self.names { strings.len() } else { 0 };
        self.index.heap_bytes() + names
    }
}

/// The functions of the first table of this kind, and the range of its names in the file.
fn read_table<S: Source>(
    file: &ElfFile<S>,
    kind: u32,
    text: &Range<ElfVaddr>,
) -> Result<(SymbolIndex, Range<u64>), SymbolsError> {
    let sections = file.section_headers()?;
    read_functions(file, &sections, kind, text).ok_or(SymbolsError::NoTable)
}

/// As [`read_table`]. `None` without functions.
fn read_functions<S: Source>(
    file: &ElfFile<S>,
    sections: &[SectionHeader],
    kind: u32,
    text: &Range<ElfVaddr>,
) -> Option<(SymbolIndex, Range<u64>)> {
    const CHUNK: u64 = 4096 * SYMBOL_LEN as u64;
    let table = sections.iter().find(|section| section.sh_type == kind)?;
    let names = sections.get(usize::try_from(table.sh_link).ok()?)?;
    if !file.is_64() || !file.is_native_endian() || table.sh_size > MAX_TABLE_LEN {
        return None;
    }
    let names = names.sh_offset..names.sh_offset.checked_add(names.sh_size)?;
    // Names are read only where the file may have mapping symbols.
    let has_marks = !mapping_symbols(file.machine()).is_empty();
    let is_mark = |name: u32| {
        let mut start = [0; 2];
        let at = names.start.saturating_add(u64::from(name));
        has_marks
            && file.source().read_into(at, &mut start).is_ok()
            && is_mapping_symbol(file.machine(), &start)
    };
    let mut builder = IndexBuilder::new(text.clone(), with_code(sections));
    let mut done = 0;
    while done < table.sh_size {
        let len = CHUNK.min(table.sh_size - done);
        builder.add(&file.source().read(table.sh_offset.checked_add(done)?, len).ok()?, is_mark);
        done += len;
    }
    let index = builder.build();
    (!index.is_empty()).then_some((index, names))
}

/// The address ranges of the sections with code.
fn with_code(sections: &[SectionHeader]) -> Vec<Range<ElfVaddr>> {
    const SHF_EXECINSTR: u64 = 4;
    let has_code = |section: &&SectionHeader| section.sh_flags & SHF_EXECINSTR != 0;
    let range = |section: &SectionHeader| {
        Some(ElfVaddr(section.sh_addr)..ElfVaddr(section.sh_addr.checked_add(section.sh_size)?))
    };
    sections.iter().filter(has_code).filter_map(range).collect()
}

fn read_name(file: &FileSource, table: &Range<u64>, offset: u64) -> Option<Vec<u8>> {
    let at = table.start.checked_add(offset)?;
    let left = table.end.min(file.len()).checked_sub(at)?.min(MAX_NAME_LEN);
    // Most names are shorter than 256 bytes, so the first read is small.
    for len in [left.min(256), left] {
        let bytes = file.read(at, len).ok()?;
        if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
            return Some(bytes[..end].to_vec());
        }
    }
    file.read(at, left).ok()
}

/// The number of dynamic symbols, which no tag declares. Taken from the SysV hash table's chain count,
/// otherwise from the last chain of the GNU hash table.
fn symbol_count(image: &LoadedImage, dynamic: &Dynamic<'_>) -> Option<u64> {
    let word = |at: u64| {
        let mut bytes = [0; 4];
        image.read_into(ElfVaddr(at), &mut bytes).then(|| u64::from(u32::from_ne_bytes(bytes)))
    };
    if let Some(hash) = dynamic.address(tag::HASH) {
        return word(hash.0.checked_add(4)?);
    }
    let hash = dynamic.address(tag::GNU_HASH)?.0;
    let (bucket_count, first_hashed, filter_words) =
        (word(hash)?, word(hash.checked_add(4)?)?, word(hash.checked_add(8)?)?);
    let buckets_at = hash.checked_add(16 + 8 * filter_words)?;
    let buckets = image.read(ElfVaddr(buckets_at), 4 * bucket_count)?;
    let last = buckets.as_chunks::<4>().0.iter().map(|bytes| u64::from(u32::from_ne_bytes(*bytes))).max()?;
    let chains_at = buckets_at.checked_add(4 * bucket_count)?;
    // Bit 0 marks the end of a chain, and the chain of the highest bucket ends the table.
    let mut symbol = last;
    while word(chains_at.checked_add(4 * symbol.checked_sub(first_hashed)?)?)? & 1 == 0 {
        symbol += 1;
    }
    Some(symbol + 1)
}
