//! The GOT slots through which a loaded object calls an imported function.
//!
//! To replace a function in other objects, write to these slots. Only the loaded image is read, so this also
//! works for objects whose file was deleted.

use std::ops::Range;

use otlpprof_core::address::{ElfVaddr, RuntimeAddr};

use super::arch::native;
use super::dynamic::{Dynamic, DynamicError, string_at, tag, u32_at, u64_at};
use super::image::LoadedImage;

/// The ways in which code reaches a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotKind {
    /// Through a PLT entry. Until the first call in a lazily bound object, the slot points back into the PLT.
    JumpSlot,
    /// Through the GOT: `-fno-plt` calls, and addresses taken.
    GlobDat,
    /// A function pointer in initialised data.
    Data,
}

/// A word in memory that contains the address of an imported function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportSlot {
    /// The function, as an index into the requested names.
    pub symbol: usize,
    /// The address of the word; aligned to its size.
    pub address: RuntimeAddr,
    /// The way in which code reaches the slot.
    pub kind: SlotKind,
}

/// The result of [`import_slots`] for one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportSlots {
    /// The slots, ascending by address, each once.
    pub slots: Vec<ImportSlot>,
    /// Whole pages that are read-only since relocation. To write to a slot inside, make the page writable by
    /// `mprotect` first and read-only again afterwards. Slots outside are writable.
    pub relro: Option<Range<RuntimeAddr>>,
}

/// Finds the words of `image` that relocations fill with the addresses of the functions in `names`. An object
/// without a dynamic section has none.
///
/// # Errors
/// If a table that the dynamic section declares lies outside the image.
pub fn import_slots(image: &LoadedImage, names: &[&str]) -> Result<ImportSlots, DynamicError> {
    let dynamic = match Dynamic::read(image) {
        Err(DynamicError::NoDynamicSection) => return Ok(ImportSlots::default()),
        dynamic => dynamic?,
    };
    let mut relocations = relocations_with_symbols(&dynamic)?;
    let Some(last_symbol) = relocations.iter().map(|relocation| relocation.symbol).max() else {
        return Ok(ImportSlots::default());
    };
    let wanted = wanted_symbols(&dynamic, last_symbol, names)?;
    // A slot that two relocations fill is listed once; the later relocation wins, as in the dynamic linker.
    relocations.sort_by_key(|relocation| relocation.vaddr);
    relocations.reverse();
    relocations.dedup_by_key(|relocation| relocation.vaddr);
    let slots = relocations.iter().rev().filter_map(|relocation| {
        let symbol = *wanted.get(relocation.symbol as usize)?;
        let address = image.load_bias().to_runtime(relocation.vaddr);
        let usable = address.0.is_multiple_of(8) && is_writable_data(image, relocation.vaddr);
        usable.then_some(ImportSlot { symbol: symbol?, address, kind: relocation.kind })
    });
    Ok(ImportSlots { slots: slots.collect(), relro: image.relro() })
}

struct Relocation {
    vaddr: ElfVaddr,
    symbol: u32,
    kind: SlotKind,
}

/// The relocations that store a symbol's plain address.
fn relocations_with_symbols(dynamic: &Dynamic<'_>) -> Result<Vec<Relocation>, DynamicError> {
    const WITH_ADDEND: usize = 24;
    const WITHOUT_ADDEND: usize = 16;
    let plt_entry = if dynamic.value(tag::PLTREL) == Some(tag::REL) { WITHOUT_ADDEND } else { WITH_ADDEND };
    let tables = [
        (tag::RELA, tag::RELASZ, Some(tag::RELACOUNT), WITH_ADDEND),
        (tag::REL, tag::RELSZ, Some(tag::RELCOUNT), WITHOUT_ADDEND),
        (tag::JMPREL, tag::PLTRELSZ, None, plt_entry),
    ];
    let mut found = Vec::new();
    for (table, size, relative, entry_len) in tables {
        let size = dynamic.value(size).unwrap_or(0);
        // The relocations without a symbol come first and are skipped. In libjvm they are megabytes, and the
        // others a few kilobytes.
        let relative = relative.and_then(|count| dynamic.value(count)).unwrap_or(0);
        let start = relative.saturating_mul(entry_len as u64).min(size);
        let bytes = dynamic.table_from(table, start, size)?.unwrap_or_default();
        found.extend(bytes.chunks_exact(entry_len).filter_map(|entry| {
            let info = u64_at(entry, 8);
            let addend = if entry_len == WITH_ADDEND { u64_at(entry, 16) } else { 0 };
            let symbol = (info >> 32) as u32;
            let kind = match info as u32 {
                native::R_JUMP_SLOT => SlotKind::JumpSlot,
                native::R_GLOB_DAT => SlotKind::GlobDat,
                native::R_ABSOLUTE if addend == 0 => SlotKind::Data,
                _ => return None,
            };
            (symbol != 0).then_some(Relocation { vaddr: ElfVaddr(u64_at(entry, 0)), symbol, kind })
        }));
    }
    Ok(found)
}

/// For each symbol up to number `last`, the index of its name in `names`.
fn wanted_symbols(
    dynamic: &Dynamic<'_>,
    last: u32,
    names: &[&str],
) -> Result<Vec<Option<usize>>, DynamicError> {
    let strings = dynamic.strings()?;
    let symbols = dynamic.symbols(u64::from(last) + 1)?;
    let wanted = symbols.chunks_exact(24).map(|symbol| {
        let name = string_at(&strings, u64::from(u32_at(symbol, 0)))?;
        names.iter().position(|wanted| wanted.as_bytes() == name)
    });
    Ok(wanted.collect())
}

/// Whether the word at `vaddr` is in a segment that is mapped writable, at least during relocation.
fn is_writable_data(image: &LoadedImage, vaddr: ElfVaddr) -> bool {
    image.readable_from(vaddr) >= 8
        && image.segment_at(vaddr).is_some_and(|segment| segment.flags & libc::PF_W != 0)
}
