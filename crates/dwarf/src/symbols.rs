//! Symbol tables, which name the function that has the code at an address.
//!
//! The rules are LLVM's (`SymbolizableObjectFile`): symbols with an address are sorted by address and size;
//! of one address the last counts; the greatest address at or below the one that is looked up has it, if its
//! size is 0 or reaches so far. A local symbol also gives the name of its source file, by the STT_FILE symbol
//! before it. One rule is added: a symbol without a size ends with its section.

use goblin::elf::SectionHeader;
use goblin::elf::section_header::{SHF_ALLOC, SHT_DYNSYM, SHT_SYMTAB};
use goblin::elf::sym::{STB_LOCAL, STT_FILE, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT, Symtab};
use otlpprof_elf::symbols::mapping_symbols::is_mapping_symbol;

use super::error::DwarfError;
use super::object::Object;
use super::texts::{NO_TEXT, SharedTexts};

/// A symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    /// The first address.
    pub(super) start: u64,
    /// The address after the last one.
    pub(super) end: u64,
    /// The number of its name.
    pub(super) name: u32,
    /// The number of its source file's name.
    pub(super) file: u32,
}

/// The symbols of an object, one for each address, in ascending order.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    pub(super) symbols: Vec<Symbol>,
}

/// A symbol with its size.
struct Sized {
    symbol: Symbol,
    size: u64,
}

impl Symbols {
    /// Reads the symbols of an object from its files, the fullest first. The first file with a `.symtab`
    /// counts, otherwise the first file with a `.dynsym`, together with the `.symtab` of `minidebug`, which
    /// has what `.dynsym` lacks.
    ///
    /// # Errors
    /// If a symbol table is damaged.
    pub(super) fn read(
        files: &[&Object<'_>],
        minidebug: Option<&Object<'_>>,
        texts: &SharedTexts,
    ) -> Result<Self, DwarfError> {
        let mut sized = Vec::new();
        let whole = files.iter().find(|file| table(file, SHT_SYMTAB).is_some());
        match whole {
            Some(file) => read_table(file, SHT_SYMTAB, &mut sized, texts)?,
            None => {
                if let Some(file) = files.iter().find(|file| table(file, SHT_DYNSYM).is_some()) {
                    read_table(file, SHT_DYNSYM, &mut sized, texts)?;
                }
                if let Some(file) = minidebug {
                    read_table(file, SHT_SYMTAB, &mut sized, texts)?;
                }
            }
        }
        sized.sort_by_key(|sized| (sized.symbol.start, sized.size));
        let mut symbols: Vec<Symbol> = Vec::with_capacity(sized.len());
        for Sized { symbol, .. } in sized {
            match symbols.last_mut().filter(|last| last.start == symbol.start) {
                Some(last) => *last = symbol,
                None => symbols.push(symbol),
            }
        }
        Ok(Self { symbols })
    }

    /// The symbol at an address.
    pub(super) fn find(&self, vaddr: u64) -> Option<Symbol> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= vaddr);
        let before = self.symbols.get(after.checked_sub(1)?)?;
        (vaddr < before.end).then_some(*before)
    }
}

/// The table of this type, if it has more than the first symbol, which is empty.
fn table<'o>(file: &'o Object<'_>, of_type: u32) -> Option<&'o (String, SectionHeader)> {
    let is_used = |header: &SectionHeader| header.sh_type == of_type && header.sh_size > header.sh_entsize;
    file.headers().iter().find(|(_, header)| is_used(header))
}

fn read_table(
    file: &Object<'_>,
    of_type: u32,
    into: &mut Vec<Sized>,
    texts: &SharedTexts,
) -> Result<(), DwarfError> {
    let Some((table_name, header)) = table(file, of_type) else { return Ok(()) };
    let Some((names_name, _)) = file.headers().get(header.sh_link as usize) else { return Ok(()) };
    let (bytes, names) = (file.read(table_name)?, file.read(names_name)?);
    let entry = goblin::elf::Sym::size(file.context().container);
    let parsed = Symtab::parse(&bytes, 0, bytes.len() / entry, file.context());
    let Ok(parsed) = parsed else { return Ok(()) };
    let mut source_file = NO_TEXT;
    for symbol in parsed.iter().skip(1) {
        let name = names.get(symbol.st_name..).unwrap_or_default();
        let name = &name[..name.iter().position(|&byte| byte == 0).unwrap_or_default()];
        if symbol.st_type() == STT_FILE {
            // A file without a name ends the symbols of the file before.
            source_file = if name.is_empty() { NO_TEXT } else { texts.add(name)? };
            continue;
        }
        let is_named = matches!(symbol.st_type(), STT_NOTYPE | STT_OBJECT | STT_FUNC | STT_GNU_IFUNC);
        let section = file.headers().get(symbol.st_shndx).filter(|_| symbol.st_shndx != 0);
        let Some((_, section)) = section.filter(|(_, section)| section.sh_flags & u64::from(SHF_ALLOC) != 0)
        else {
            continue;
        };
        if !is_named || is_mark(file.machine(), name) {
            continue;
        }
        let end = match symbol.st_size {
            0 => section.sh_addr.saturating_add(section.sh_size),
            size => symbol.st_value.saturating_add(size),
        };
        let of_file = if symbol.st_bind() == STB_LOCAL { source_file } else { NO_TEXT };
        let symbol_size = symbol.st_size;
        let symbol = Symbol { start: symbol.st_value, end, name: texts.add(name)?, file: of_file };
        into.push(Sized { symbol, size: symbol_size });
    }
    Ok(())
}

/// Whether a symbol marks data or code inside a function, or has no name.
fn is_mark(machine: u16, name: &[u8]) -> bool {
    name.is_empty() || is_mapping_symbol(machine, name)
}

#[cfg(test)]
mod tests {
    use goblin::elf::header::{EM_AARCH64, EM_ARM};

    use super::*;

    /// Regression: the marks of this processor were used, whatever processor the file is for.
    #[test]
    fn marks_are_those_of_the_files_processor() {
        const EM_X86_64: u16 = 62;
        assert!(is_mark(EM_AARCH64, b"$x.1") && is_mark(EM_AARCH64, b"$d") && is_mark(EM_ARM, b"$t"));
        assert!(!is_mark(EM_X86_64, b"$x") && !is_mark(EM_AARCH64, b"x") && is_mark(EM_X86_64, b""));
    }
}
