//! Finds a function in an ELF file by its name.

use std::path::Path;

use goblin::elf::SectionHeader;
use goblin::elf::section_header::{SHT_DYNSYM, SHT_SYMTAB};
use otlpprof_core::address::FileOffset;

use super::tables::{MAX_TABLE_LEN, SymbolsError};
use crate::file::ElfFile;
use crate::source::{FileSource, Source};

/// The size of an `Elf64_Sym`, in bytes (gABI, "Symbol Table").
const SYMBOL_LEN: usize = 24;

/// The file offset of the function with this linkage name; `None` if neither symbol table contains it.
///
/// # Errors
/// If the file cannot be read, or is not a usable ELF file.
pub fn function_offset(path: &Path, name: &str) -> Result<Option<FileOffset>, SymbolsError> {
    let file = ElfFile::parse(FileSource::open(path).map_err(crate::file::FileError::from)?)?;
    let sections = file.section_headers()?;
    let tables = [SHT_SYMTAB, SHT_DYNSYM]
        .into_iter()
        .filter_map(|kind| sections.iter().find(|section| section.sh_type == kind));
    for table in tables {
        let Some(vaddr) = find(&file, &sections, table, name) else { continue };
        for segment in file.program_headers()?.iter().filter(|segment| segment.is_executable()) {
            let inside = vaddr.checked_sub(segment.vaddr.0).filter(|inside| *inside < segment.file_size);
            if let Some(inside) = inside {
                return Ok(segment.offset.0.checked_add(inside).map(FileOffset));
            }
        }
    }
    Ok(None)
}

/// The address of the defined function with this name.
fn find<S: Source>(
    file: &ElfFile<S>,
    sections: &[SectionHeader],
    table: &SectionHeader,
    name: &str,
) -> Option<u64> {
    const STT_FUNC: u8 = 2;
    const STT_GNU_IFUNC: u8 = 10;
    let names = sections.get(usize::try_from(table.sh_link).ok()?)?;
    if !file.is_64() || !file.is_native_endian() || table.sh_size.max(names.sh_size) > MAX_TABLE_LEN {
        return None;
    }
    let names = file.source().read(names.sh_offset, names.sh_size).ok()?;
    let symbols = file.source().read(table.sh_offset, table.sh_size).ok()?;
    let (symbols, _) = symbols.as_chunks::<SYMBOL_LEN>();
    symbols.iter().find_map(|symbol| {
        let [n0, n1, n2, n3, info, _, s0, s1, value @ .., _, _, _, _, _, _, _, _] = *symbol;
        let is_function = [STT_FUNC, STT_GNU_IFUNC].contains(&(info & 0xf));
        let is_defined = u16::from_ne_bytes([s0, s1]) != 0;
        let at = u32::from_ne_bytes([n0, n1, n2, n3]) as usize;
        let rest = names.get(at..)?.strip_prefix(name.as_bytes())?;
        // String tables do not contain the suffix of a default version (`malloc@@GLIBC_2.2.5`), so a zero
        // byte ends the name.
        (is_function && is_defined && rest.first() == Some(&0)).then(|| u64::from_ne_bytes(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function of this test program, whose code in memory equals its code in the file.
    #[unsafe(no_mangle)]
    extern "C" fn otlpprof_test_function_by_name() -> u64 {
        0x1234_5678_9abc_def0
    }

    #[test]
    fn a_function_is_found_where_its_code_is() {
        let this = std::env::current_exe().unwrap();
        let offset = function_offset(&this, "otlpprof_test_function_by_name").unwrap().unwrap();
        let bytes = FileSource::open(&this).unwrap().read(offset.0, 8).unwrap();
        // SAFETY: the function's code is longer than 8 bytes, because it contains a constant of 8 bytes.
        let code = unsafe { *(otlpprof_test_function_by_name as *const () as *const [u8; 8]) };
        assert_eq!(bytes, code);
        assert_eq!(otlpprof_test_function_by_name(), 0x1234_5678_9abc_def0);
        assert_eq!(function_offset(&this, "otlpprof_test_function_by_nam").unwrap(), None);
        assert!(function_offset(Path::new("/proc/self/status"), "main").is_err());
    }
}
