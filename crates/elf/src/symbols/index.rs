//! An object's functions, sorted by address. Each takes twelve bytes; the names are stored elsewhere.

use std::ops::Range;

use otlpprof_core::address::ElfVaddr;

use crate::dynamic::{u32_at, u64_at};

/// The size of an `Elf64_Sym`, in bytes (gABI, "Symbol Table").
pub const SYMBOL_LEN: usize = 24;

/// A symbol without a type, and one that no other object file sees (gABI, "Symbol Table").
const STT_NOTYPE: u8 = 0;
const STB_LOCAL: u8 = 0;

/// The functions of one object.
#[derive(Debug, Default)]
pub struct SymbolIndex {
    base: ElfVaddr,
    functions: Box<[Function]>,
}

/// A function. `start` is relative to the index's base; `name` is an offset in the string table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Function {
    start: u32,
    /// The size in bytes; 0 if neither the symbol has a size nor the section is known. The function then
    /// extends to the next.
    size: u32,
    name: u32,
}

/// A function found by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundFunction {
    /// The function's first address.
    pub start: ElfVaddr,
    /// The offset of the function's name in the string table.
    pub name: u32,
}

/// Collects functions from the pieces of a symbol table.
#[derive(Debug)]
pub struct IndexBuilder {
    text: Range<ElfVaddr>,
    /// The ranges of the sections with code; empty if they are unknown.
    sections: Vec<Range<ElfVaddr>>,
    /// The functions with their ranks. The rank chooses between names for the same address: lower is better.
    functions: Vec<(Function, u8)>,
}

impl IndexBuilder {
    /// A builder that accepts functions inside `text`. A function without a size ends with its section, if
    /// that is known.
    pub fn new(text: Range<ElfVaddr>, sections: Vec<Range<ElfVaddr>>) -> Self {
        Self { text, sections, functions: Vec::new() }
    }

    /// Adds the functions found in some entries of a symbol table. `is_mark` tells from the offset of a name
    /// whether the symbol is a mapping symbol.
    pub fn add(&mut self, entries: &[u8], mut is_mark: impl FnMut(u32) -> bool) {
        let functions = entries.chunks_exact(SYMBOL_LEN).filter(|entry| {
            // The name is read only where the rest fits a mapping symbol (ELF for the Arm 64-bit
            // architecture, "Mapping symbols").
            let is_local_label = entry[4] == STB_LOCAL << 4 | STT_NOTYPE && u64_at(entry, 16) == 0;
            !(is_local_label && is_mark(u32_at(entry, 0)))
        });
        self.functions.extend(functions.filter_map(|entry| parse(entry, &self.text)));
    }

    /// Builds the index.
    pub fn build(mut self) -> SymbolIndex {
        // The best name of each address comes first.
        self.functions.sort_unstable_by_key(|&(function, rank)| {
            (function.start, rank, std::cmp::Reverse(function.size), function.name)
        });
        self.functions.dedup_by_key(|(function, _)| function.start);
        // A symbol without a size inside a function is a label and not a function.
        let mut sized_until = 0;
        self.functions.retain(|(function, _)| {
            let is_label = function.size == 0 && function.start < sized_until;
            sized_until = sized_until.max(function.start.saturating_add(function.size));
            !is_label
        });
        let mut functions: Box<[_]> = self.functions.into_iter().map(|(function, _)| function).collect();
        let mut next = u32::MAX;
        for function in functions.iter_mut().rev() {
            if function.size == 0 {
                let start = ElfVaddr(self.text.start.0 + u64::from(function.start));
                let section = self.sections.iter().find(|section| section.contains(&start));
                let left = section.map_or(0, |section| section.end.0 - start.0);
                function.size = u32::try_from(left).unwrap_or(u32::MAX).min(next - function.start);
            }
            next = function.start;
        }
        SymbolIndex { base: self.text.start, functions }
    }
}

/// The function that an entry defines, and its rank.
fn parse(entry: &[u8], text: &Range<ElfVaddr>) -> Option<(Function, u8)> {
    const STT_FUNC: u8 = 2;
    const STT_GNU_IFUNC: u8 = 10;
    const STB_GLOBAL: u8 = 1;
    const SHN_UNDEF: u16 = 0;
    const SHN_LORESERVE: u16 = 0xff00;
    let name = u32_at(entry, 0);
    let info = *entry.get(4)?;
    let section = (u32_at(entry, 4) >> 16) as u16;
    let (value, size) = (ElfVaddr(u64_at(entry, 8)), u64_at(entry, 16));
    let kind = info & 0xf;
    let is_defined = section != SHN_UNDEF && section < SHN_LORESERVE;
    let is_code = matches!(kind, STT_FUNC | STT_GNU_IFUNC | STT_NOTYPE) && text.contains(&value);
    if name == 0 || !is_defined || !is_code {
        return None;
    }
    let by_binding = match info >> 4 {
        STB_GLOBAL => 0,
        STB_LOCAL => 2,
        _ => 1,
    };
    let rank = by_binding + if kind == STT_NOTYPE { 3 } else { 0 };
    let start = u32::try_from(value.0 - text.start.0).ok()?;
    Some((Function { start, size: u32::try_from(size).unwrap_or(u32::MAX), name }, rank))
}

impl SymbolIndex {
    /// The function that contains `vaddr`. If functions are nested, the innermost.
    pub fn find(&self, vaddr: ElfVaddr) -> Option<FoundFunction> {
        /// The most nested functions to check. Nesting is rare and shallow (parts of hand-written assembly).
        const MAX_NESTED: usize = 16;
        let offset = u32::try_from(vaddr.0.checked_sub(self.base.0)?).ok()?;
        let after = self.functions.partition_point(|function| function.start <= offset);
        let candidates = self.functions[..after].iter().rev().take(MAX_NESTED).enumerate();
        let found = candidates.into_iter().find(|(back, function)| match function.size {
            0 => *back == 0,
            size => offset - function.start < size,
        });
        found.map(|(_, function)| FoundFunction {
            start: ElfVaddr(self.base.0 + u64::from(function.start)),
            name: function.name,
        })
    }

    /// The number of functions.
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether the index is empty.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The size of the index on the heap, in bytes.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.functions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNC: u8 = 2;
    const LOCAL: u8 = 0;
    const GLOBAL: u8 = 1 << 4;
    const WEAK: u8 = 2 << 4;
    /// The name of a mapping symbol.
    const MARK: u32 = 99;

    /// {name, binding and type, section, value, size}
    fn symbol((name, info, section, value, size): (u32, u8, u16, u64, u64)) -> Vec<u8> {
        let head = [&name.to_ne_bytes()[..], &[info, 0], &section.to_ne_bytes()].concat();
        [head, value.to_ne_bytes().to_vec(), size.to_ne_bytes().to_vec()].concat()
    }

    fn index(symbols: &[(u32, u8, u16, u64, u64)]) -> SymbolIndex {
        index_in(vec![], symbols)
    }

    fn index_in(sections: Vec<Range<ElfVaddr>>, symbols: &[(u32, u8, u16, u64, u64)]) -> SymbolIndex {
        let mut builder = IndexBuilder::new(ElfVaddr(0x1000)..ElfVaddr(0x2000), sections);
        let symbols: Vec<_> = symbols.iter().flat_map(|&parts| symbol(parts)).collect();
        builder.add(&symbols, |name| name == MARK);
        builder.build()
    }

    fn name_at(index: &SymbolIndex, vaddr: u64) -> Option<u32> {
        index.find(ElfVaddr(vaddr)).map(|found| found.name)
    }

    #[test]
    fn a_function_ends_by_its_size() {
        let index = index(&[(1, GLOBAL | FUNC, 1, 0x1000, 0x10), (2, GLOBAL | FUNC, 1, 0x1020, 0)]);
        let names =
            [0xfff, 0x1000, 0x100f, 0x1010, 0x101f, 0x1020, 0x1fff].map(|vaddr| name_at(&index, vaddr));
        assert_eq!(names, [None, Some(1), Some(1), None, None, Some(2), Some(2)]);
    }

    #[test]
    fn a_function_without_a_size_ends_with_its_section_or_at_the_next() {
        let sections = [0x1000..0x1020, 0x1020..0x1100, 0x1400..0x1500]
            .map(|section: Range<u64>| ElfVaddr(section.start)..ElfVaddr(section.end));
        let symbols = [
            (1, GLOBAL | FUNC, 1, 0x1000, 0),
            (2, GLOBAL | FUNC, 3, 0x1400, 0),
            (3, LOCAL, 3, 0x1440, 0),
            (4, LOCAL | FUNC, 3, 0x14f0, 0x100),
            (5, LOCAL | FUNC, 3, 0x1600, 0),
        ];
        let index = index_in(sections.into(), &symbols);
        for (vaddr, name) in [
            (0x1000, Some(1)),
            (0x101f, Some(1)),
            (0x1020, None),
            (0x1300, None),
            (0x143f, Some(2)),
            (0x1440, Some(3)),
            (0x14ef, Some(3)),
            (0x1500, Some(4)),
            // In no section with code: treated as if no section were known.
            (0x1700, Some(5)),
        ] {
            assert_eq!(name_at(&index, vaddr), name, "{vaddr:#x}");
        }
    }

    #[test]
    fn of_several_names_the_global_functions_counts() {
        let index = index(&[
            (1, LOCAL, 1, 0x1000, 0),
            (2, LOCAL | FUNC, 1, 0x1000, 8),
            (3, WEAK | FUNC, 1, 0x1000, 8),
            (4, GLOBAL | FUNC, 1, 0x1000, 8),
        ]);
        assert_eq!((name_at(&index, 0x1000), index.len()), (Some(4), 1));
    }

    #[test]
    fn labels_inside_a_function_do_not_name_its_code() {
        let index = index(&[(1, GLOBAL | FUNC, 1, 0x1000, 0x100), (2, LOCAL, 1, 0x1010, 0)]);
        assert_eq!(name_at(&index, 0x1020), Some(1));
    }

    /// Regression: on aarch64, code between functions was named `$x`, as all mapping symbols of code.
    #[test]
    fn mapping_symbols_name_no_code_and_end_no_function() {
        let index = index(&[
            (1, GLOBAL | FUNC, 1, 0x1000, 0x10),
            (MARK, LOCAL, 1, 0x1000, 0),
            (MARK, LOCAL, 1, 0x1010, 0),
            (2, GLOBAL | FUNC, 1, 0x1020, 0),
            (MARK, LOCAL, 1, 0x1030, 0),
            // Other symbols may have any name.
            (MARK, GLOBAL, 1, 0x1040, 0),
        ]);
        let names = [0x1000, 0x1010, 0x1020, 0x1030, 0x1040].map(|vaddr| name_at(&index, vaddr));
        assert_eq!(names, [Some(1), None, Some(2), Some(2), Some(MARK)]);
    }

    #[test]
    fn a_function_inside_another_is_found_and_left_again() {
        let index = index(&[(1, GLOBAL | FUNC, 1, 0x1000, 0x100), (2, GLOBAL | FUNC, 1, 0x1010, 0x10)]);
        assert_eq!(
            [0x100f, 0x1010, 0x101f, 0x1020].map(|vaddr| name_at(&index, vaddr)),
            [1, 2, 2, 1].map(Some)
        );
    }

    #[test]
    fn symbols_without_defined_code_are_left_out() {
        const OBJECT: u8 = 1;
        let index = index(&[
            (1, GLOBAL | OBJECT, 1, 0x1000, 8),
            (2, GLOBAL | FUNC, 0, 0x1000, 8),
            (3, GLOBAL | FUNC, 0xfff1, 0x1000, 8),
            (4, GLOBAL | FUNC, 1, 0x2000, 8),
            (5, GLOBAL | FUNC, 1, u64::MAX, u64::MAX),
            (0, GLOBAL | FUNC, 1, 0x1000, 8),
        ]);
        assert!(index.is_empty());
    }

    #[test]
    fn sizes_that_overflow_are_tolerated() {
        let index = index(&[(1, GLOBAL | FUNC, 1, 0x1100, u64::MAX), (2, GLOBAL | FUNC, 1, 0x1200, 1)]);
        assert_eq!(
            [0x10ff, 0x11ff, 0x1200, 0x1fff].map(|vaddr| name_at(&index, vaddr)),
            [None, Some(1), Some(2), Some(1)]
        );
    }
}
