//! Functions of the vDSO, the object that the kernel maps into each process (vdso(7);
//! Documentation/ABI/stable/vdso).

use otlpprof_core::memory::Memory;

/// Offsets of the ELF structures' fields that are read here (gABI, ELF64).
mod at {
    pub(super) const PROGRAM_HEADERS: u64 = 32;
    pub(super) const PROGRAM_HEADER_SIZE: u64 = 54;
    pub(super) const PROGRAM_HEADER_COUNT: u64 = 56;
    pub(super) const SEGMENT_OFFSET: u64 = 8;
    pub(super) const SEGMENT_ADDRESS: u64 = 16;
    pub(super) const SYMBOL_SECTION: u64 = 6;
    pub(super) const SYMBOL_VALUE: u64 = 8;
}

const SYMBOL_SIZE: u64 = 24;
const DYNAMIC_ENTRY_SIZE: u64 = 16;
/// A limit above the numbers of any vDSO, so that each search ends whatever the memory holds.
const MAX_ENTRIES: u64 = 1024;

const DT_NULL: u64 = 0;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// Returns the address of the function `name` in the vDSO whose image begins at `image`; `None` if there is
/// none. Allocates nothing.
pub(super) fn function(memory: &impl Memory, image: u64, name: &[u8]) -> Option<u64> {
    let (bias, dynamic) = segments(memory, image)?;
    let [mut hash, mut gnu_hash, mut strings, mut symbols] = [None; 4];
    for index in 0..MAX_ENTRIES {
        let entry = dynamic.wrapping_add(index.wrapping_mul(DYNAMIC_ENTRY_SIZE));
        let address = memory.load_u64(entry.wrapping_add(8)).map(|value| bias.wrapping_add(value));
        match memory.load_u64(entry)? {
            DT_NULL => break,
            DT_HASH => hash = address,
            DT_GNU_HASH => gnu_hash = address,
            DT_STRTAB => strings = address,
            DT_SYMTAB => symbols = address,
            _ => {}
        }
    }
    let (strings, symbols) = (strings?, symbols?);
    let count = match (hash, gnu_hash) {
        // The number of chains, which equals the number of symbols.
        (Some(hash), _) => u64::from(memory.load_u32(hash.wrapping_add(4))?),
        (None, Some(hash)) => count_by_gnu_hash(memory, hash)?,
        (None, None) => return None,
    };
    for index in 0..count.min(MAX_ENTRIES) {
        let symbol = symbols.wrapping_add(index.wrapping_mul(SYMBOL_SIZE));
        let text = strings.wrapping_add(u64::from(memory.load_u32(symbol)?));
        let is_defined = memory.load_u16(symbol.wrapping_add(at::SYMBOL_SECTION))? != 0;
        if is_defined && is_text(memory, text, name) {
            return Some(bias.wrapping_add(memory.load_u64(symbol.wrapping_add(at::SYMBOL_VALUE))?));
        }
    }
    None
}

/// Returns the load bias, and the address of the dynamic section.
fn segments(memory: &impl Memory, image: u64) -> Option<(u64, u64)> {
    if memory.load_u32(image)? != u32::from_ne_bytes(*b"\x7fELF") {
        return None;
    }
    let headers = image.wrapping_add(memory.load_u64(image.wrapping_add(at::PROGRAM_HEADERS))?);
    let size = memory.load_u16(image.wrapping_add(at::PROGRAM_HEADER_SIZE))?;
    let count = memory.load_u16(image.wrapping_add(at::PROGRAM_HEADER_COUNT))?;
    let (mut bias, mut dynamic) = (None, None);
    for index in 0..u64::from(count).min(MAX_ENTRIES) {
        let header = headers.wrapping_add(index.wrapping_mul(u64::from(size)));
        let loaded = image.wrapping_add(memory.load_u64(header.wrapping_add(at::SEGMENT_OFFSET))?);
        match memory.load_u32(header)? {
            libc::PT_LOAD if bias.is_none() => {
                let address = memory.load_u64(header.wrapping_add(at::SEGMENT_ADDRESS))?;
                bias = Some(loaded.wrapping_sub(address));
            }
            libc::PT_DYNAMIC => dynamic = Some(loaded),
            _ => {}
        }
    }
    Some((bias?, dynamic?))
}

/// Returns the number of symbols by the GNU hash table: the index after the last symbol of the last chain
/// (binutils, "ld --hash-style").
fn count_by_gnu_hash(memory: &impl Memory, table: u64) -> Option<u64> {
    let word = |index: u64| memory.load_u32(table.wrapping_add(index.wrapping_mul(4))).map(u64::from);
    let (buckets, first, bloom_words) = (word(0)?, word(1)?, word(2)?);
    let bucket = |index: u64| word(bloom_words.wrapping_mul(2).wrapping_add(index).wrapping_add(4));
    let mut last = 0;
    for index in 0..buckets.min(MAX_ENTRIES) {
        last = last.max(bucket(index)?);
    }
    if last < first {
        return Some(first);
    }
    for _ in 0..MAX_ENTRIES {
        // The last hash of a chain has the lowest bit set.
        let hash = bucket(buckets.wrapping_add(last).wrapping_sub(first))?;
        last = last.wrapping_add(1);
        if hash & 1 == 1 {
            return Some(last);
        }
    }
    None
}

/// Whether the zero-terminated text at `address` is `expected`.
fn is_text(memory: &impl Memory, address: u64, expected: &[u8]) -> bool {
    let mut at = address;
    for byte in expected {
        if memory.load_u8(at) != Some(*byte) {
            return false;
        }
        at = at.wrapping_add(1);
    }
    memory.load_u8(at) == Some(0)
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]
mod tests {
    use otlpprof_core::memory::RecordedMemory;

    use super::*;
    use crate::safe_load::ProcessMemory;

    fn process_image() -> u64 {
        // SAFETY: getauxval has no preconditions.
        unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) }
    }

    #[test]
    fn the_process_s_own_has_a_clock_and_nothing_else_is_found() {
        crate::fault::install().unwrap();
        let image = process_image();
        assert_ne!(image, 0, "the kernel maps a vDSO");
        let found = function(&ProcessMemory, image, super::super::clock::VDSO_FUNCTION);
        assert!(found.is_some_and(|address| address > image && address < image + (1 << 20)), "{found:?}");
        assert_eq!(function(&ProcessMemory, image, b"no_such_function"), None);
        assert_eq!(function(&ProcessMemory, image + 8, super::super::clock::VDSO_FUNCTION), None);
    }

    /// Returns an image with one function, and one of the two hash tables.
    fn image(gnu: bool) -> RecordedMemory {
        const AT: u64 = 0x1000;
        let mut bytes = vec![0_u8; 0x400];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, b"\x7fELF");
        put(32, &64_u64.to_ne_bytes());
        put(54, &56_u16.to_ne_bytes());
        put(56, &2_u16.to_ne_bytes());
        // A segment that is loaded at its offset in the file but has another virtual address.
        put(64, &libc::PT_LOAD.to_ne_bytes());
        put(64 + 16, &0x7000_u64.to_ne_bytes());
        put(120, &libc::PT_DYNAMIC.to_ne_bytes());
        put(120 + 8, &0x100_u64.to_ne_bytes());
        let table = if gnu { DT_GNU_HASH } else { DT_HASH };
        for (index, (tag, value)) in
            [(table, 0x7300_u64), (DT_STRTAB, 0x7200), (DT_SYMTAB, 0x7240)].into_iter().enumerate()
        {
            put(0x100 + 16 * index, &tag.to_ne_bytes());
            put(0x108 + 16 * index, &value.to_ne_bytes());
        }
        put(0x200, b"\0other\0wanted\0");
        // One of the three symbols is undefined, and one is the function.
        put(0x240 + 24, &1_u32.to_ne_bytes());
        put(0x240 + 48, &7_u32.to_ne_bytes());
        put(0x240 + 48 + 6, &1_u16.to_ne_bytes());
        put(0x240 + 48 + 8, &0x7123_u64.to_ne_bytes());
        if gnu {
            // One bucket; symbols from index 1 on; a filter of one word; a chain of two symbols.
            for (index, word) in [1_u32, 1, 1, 0, 0, 0, 1, 2, 3].into_iter().enumerate() {
                put(0x300 + 4 * index, &word.to_ne_bytes());
            }
        } else {
            put(0x304, &3_u32.to_ne_bytes());
        }
        let mut memory = RecordedMemory::default();
        memory.put(AT, bytes);
        memory
    }

    #[test]
    fn a_function_is_found_by_either_hash_table() {
        for gnu in [false, true] {
            let memory = image(gnu);
            assert_eq!(function(&memory, 0x1000, b"wanted"), Some(0x1123), "{gnu}");
            assert_eq!(function(&memory, 0x1000, b"want"), None, "{gnu}");
            assert_eq!(function(&memory, 0x1000, b"other"), None, "{gnu}: it is not defined");
        }
    }
}
