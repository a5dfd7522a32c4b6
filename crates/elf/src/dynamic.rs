//! A loaded image's dynamic section: its tags, and the tables that they point to (gABI, "Dynamic Section").

use otlpprof_core::address::{ElfVaddr, RuntimeAddr};

use super::image::LoadedImage;
use super::program_header::ProgramHeader;

/// The tags that this project uses.
pub mod tag {
    /// Ends the section.
    pub const NULL: u64 = 0;
    /// The size of the PLT's relocations, in bytes.
    pub const PLTRELSZ: u64 = 2;
    /// The SysV hash table.
    pub const HASH: u64 = 4;
    /// The string table.
    pub const STRTAB: u64 = 5;
    /// The symbol table.
    pub const SYMTAB: u64 = 6;
    /// Relocations with addends.
    pub const RELA: u64 = 7;
    /// The size of [`RELA`], in bytes.
    pub const RELASZ: u64 = 8;
    /// The size of the string table, in bytes.
    pub const STRSZ: u64 = 10;
    /// Relocations without addends.
    pub const REL: u64 = 17;
    /// The size of [`REL`], in bytes.
    pub const RELSZ: u64 = 18;
    /// The form of the PLT's relocations: [`RELA`] or [`REL`].
    pub const PLTREL: u64 = 20;
    /// The PLT's relocations.
    pub const JMPREL: u64 = 23;
    /// The GNU hash table.
    pub const GNU_HASH: u64 = 0x6fff_fef5;
    /// The number of relocations without a symbol at the beginning of [`RELA`] (binutils'
    /// include/elf/common.h).
    pub const RELACOUNT: u64 = 0x6fff_fff9;
    /// The number of relocations without a symbol at the beginning of [`REL`].
    pub const RELCOUNT: u64 = 0x6fff_fffa;
}

/// The size of an `Elf64_Sym`, in bytes.
pub const SYMBOL_SIZE: u64 = 24;

/// The reason why a dynamic section cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DynamicError {
    /// The object has no dynamic section: it is linked statically.
    #[error("no dynamic section")]
    NoDynamicSection,
    /// A table lies outside the image.
    #[error("dynamic table {tag:#x} at {at:#x} with {size} bytes is not inside one readable segment")]
    TableOutside {
        /// The tag that points to the table.
        tag: u64,
        /// The table's declared ELF virtual address.
        at: ElfVaddr,
        /// The table's declared size, in bytes.
        size: u64,
    },
    /// A required tag is missing: symbols without names, or a table without its size.
    #[error("dynamic tag {tag:#x} is missing")]
    MissingTag {
        /// The tag.
        tag: u64,
    },
}

/// A copy of the entries of one image's dynamic section.
#[derive(Debug)]
pub struct Dynamic<'a> {
    image: &'a LoadedImage,
    entries: Vec<(u64, u64)>,
}

impl<'a> Dynamic<'a> {
    /// Reads the section that `PT_DYNAMIC` describes, up to its `DT_NULL`.
    pub fn read(image: &'a LoadedImage) -> Result<Self, DynamicError> {
        let header = image.program_header(libc::PT_DYNAMIC).ok_or(DynamicError::NoDynamicSection)?;
        let bytes = read_section(image, header).ok_or(DynamicError::NoDynamicSection)?;
        let entries = bytes
            .chunks_exact(16)
            .map(|entry| (u64_at(entry, 0), u64_at(entry, 8)))
            .take_while(|&(tag, _)| tag != tag::NULL)
            .collect();
        Ok(Self { image, entries })
    }

    /// The value of a tag, as it is in memory.
    pub fn value(&self, tag: u64) -> Option<u64> {
        self.entries.iter().find(|entry| entry.0 == tag).map(|entry| entry.1)
    }

    /// The value of a tag whose value is an address. glibc replaces these values by run-time addresses unless
    /// the section is read-only (as in the vDSO). musl leaves the ELF virtual addresses.
    pub fn address(&self, tag: u64) -> Option<ElfVaddr> {
        let value = self.value(tag)?;
        Some(if self.image.contains(RuntimeAddr(value)) {
            self.image.load_bias().to_elf(RuntimeAddr(value))
        } else {
            ElfVaddr(value)
        })
    }

    /// Copies the table that `tag` points to. `None` if the section has no such tag.
    pub fn table(&self, tag: u64, size: u64) -> Result<Option<Vec<u8>>, DynamicError> {
        self.table_from(tag, 0, size)
    }

    /// Copies the table that `tag` points to, from byte `start` on. `size` is the size of the whole table.
    pub fn table_from(&self, tag: u64, start: u64, size: u64) -> Result<Option<Vec<u8>>, DynamicError> {
        let Some(at) = self.address(tag) else { return Ok(None) };
        let rest = size
            .checked_sub(start)
            .and_then(|rest| self.image.read(ElfVaddr(at.0.checked_add(start)?), rest));
        rest.map(Some).ok_or(DynamicError::TableOutside { tag, at, size })
    }

    /// The string table.
    pub fn strings(&self) -> Result<Vec<u8>, DynamicError> {
        let size = self.value(tag::STRSZ).ok_or(DynamicError::MissingTag { tag: tag::STRSZ })?;
        self.table(tag::STRTAB, size)?.ok_or(DynamicError::MissingTag { tag: tag::STRTAB })
    }

    /// The first `count` symbols.
    pub fn symbols(&self, count: u64) -> Result<Vec<u8>, DynamicError> {
        self.table(tag::SYMTAB, count.saturating_mul(SYMBOL_SIZE))?
            .ok_or(DynamicError::MissingTag { tag: tag::SYMTAB })
    }
}

fn read_section(image: &LoadedImage, header: &ProgramHeader) -> Option<Vec<u8>> {
    image.read(header.vaddr, header.memory_size)
}

/// The string that starts at `offset`, without its NUL. `None` if it does not end inside `strings`.
pub fn string_at(strings: &[u8], offset: u64) -> Option<&[u8]> {
    let tail = strings.get(usize::try_from(offset).ok()?..)?;
    let len = tail.iter().position(|&byte| byte == 0)?;
    Some(&tail[..len])
}

/// Eight bytes of an entry that the caller has cut to its size.
pub(super) fn u64_at(entry: &[u8], at: usize) -> u64 {
    entry.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// Four bytes of an entry that the caller has cut to its size.
pub(super) fn u32_at(entry: &[u8], at: usize) -> u32 {
    entry.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_must_end_inside_their_table() {
        assert_eq!(string_at(b"\0ab\0c", 1), Some(&b"ab"[..]));
        assert_eq!(string_at(b"\0ab\0c", 0), Some(&b""[..]));
        assert_eq!(string_at(b"\0ab\0c", 4), None);
        assert_eq!(string_at(b"\0ab\0c", 5), None);
        assert_eq!(string_at(b"\0", u64::MAX), None);
    }
}
