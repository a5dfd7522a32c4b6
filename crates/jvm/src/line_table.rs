//! A method's line table, kept in HotSpot's compressed form (`code/compressedStream.hpp`, `oops/method.cpp`,
//! CompressedLineNumberReadStream). Each entry holds the differences of bytecode index and line number to the
//! entry before. A byte 0 ends the table, 0xFF begins two signed integers, and any other byte has five bits
//! of bytecode index and three of line number.

use otlpprof_core::memory::Memory;
use otlpprof_core::unsigned5;

/// The most bytes of a table. A method has at most 65,535 bytecodes, each with its own entry of at most
/// eleven bytes, but real tables have some dozen bytes.
const MAX_LEN: usize = 64 << 10;

const CHUNK: usize = 64;

/// A method's line table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineTable {
    compressed: Box<[u8]>,
    unsigned5_excluded: u8,
}

impl LineTable {
    /// Reads the table that begins at `address`; `None` if it cannot be read to its end.
    pub(super) fn read(memory: &dyn Memory, address: u64, unsigned5_excluded: u8) -> Option<Self> {
        let mut bytes = Vec::new();
        loop {
            if let Some(len) = complete_len(&bytes, unsigned5_excluded) {
                bytes.truncate(len);
                return Some(Self { compressed: bytes.into_boxed_slice(), unsigned5_excluded });
            }
            if bytes.len() >= MAX_LEN {
                return None;
            }
            let start = address.checked_add(bytes.len() as u64)?;
            let mut chunk = [0; CHUNK];
            if memory.read_bytes(start, &mut chunk) {
                bytes.extend_from_slice(&chunk);
            } else {
                // The table may end shortly before the mapped memory does.
                bytes.push(memory.load_u8(start)?);
            }
        }
    }

    /// The line of the bytecode at `bci`: the line of the entry with the largest index up to `bci`. `None` if
    /// there is none.
    pub fn line_of(&self, bci: u32) -> Option<u32> {
        let mut best = None;
        let mut best_bci = 0;
        let mut entries = Entries::new(&self.compressed, self.unsigned5_excluded);
        while let Some(Some((entry_bci, line))) = entries.next() {
            // Entries need not ascend: javac places a loop's condition after the loop's body.
            if entry_bci <= bci && entry_bci >= best_bci {
                (best, best_bci) = (Some(line), entry_bci);
            }
        }
        best
    }

    /// The size of the table on the heap, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.compressed.len()
    }
}

/// The length of the table at the beginning of `bytes`, including its end mark; `None` if the end mark is
/// missing.
fn complete_len(bytes: &[u8], unsigned5_excluded: u8) -> Option<usize> {
    let mut entries = Entries::new(bytes, unsigned5_excluded);
    while entries.next()?.is_some() {}
    Some(bytes.len() - entries.rest.len())
}

struct Entries<'a> {
    rest: &'a [u8],
    unsigned5_excluded: u8,
    bci: u32,
    line: u32,
}

impl<'a> Entries<'a> {
    fn new(bytes: &'a [u8], unsigned5_excluded: u8) -> Self {
        Self { rest: bytes, unsigned5_excluded, bci: 0, line: 0 }
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn signed(&mut self) -> Option<u32> {
        let excluded = self.unsigned5_excluded;
        unsigned5::read(|| self.byte(), excluded).map(|value| unsigned5::to_signed(value) as u32)
    }

    /// The next entry as bytecode index and line; `Some(None)` at the end mark; `None` if the bytes end
    /// before it.
    fn next(&mut self) -> Option<Option<(u32, u32)>> {
        let (bci, line) = match self.byte()? {
            0 => return Some(None),
            0xff => (self.signed()?, self.signed()?),
            byte => (u32::from(byte >> 3), u32::from(byte & 7)),
        };
        self.bci = self.bci.wrapping_add(bci);
        self.line = self.line.wrapping_add(line);
        Some(Some((self.bci, self.line)))
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_core::memory::RecordedMemory;

    use super::*;

    /// bci 0 line 40 (escaped: 0 and 40 in zigzag encoding), bci 5 line 42, bci 9 line 41 (escaped: +4, -1),
    /// end.
    fn example(excluded: u8) -> Vec<u8> {
        vec![0xff, excluded, 80 + excluded, 5 << 3 | 2, 0xff, 8 + excluded, 1 + excluded, 0]
    }

    #[test]
    fn lines_are_found_in_both_forms() {
        for excluded in [0, 1] {
            let mut memory = RecordedMemory::default();
            memory.put(0x1000, example(excluded));
            let table = LineTable::read(&memory, 0x1000, excluded).unwrap();
            assert_eq!(
                [0, 4, 5, 8, 9, 1000].map(|bci| table.line_of(bci).unwrap()),
                [40, 40, 42, 42, 41, 41]
            );
            assert_eq!(table.heap_bytes(), 8);
        }
    }

    #[test]
    fn entries_that_go_back_do_not_hide_later_bytecodes() {
        // bci 10 line 5, then back to bci 2 line 4.
        let table = vec![10 << 3 | 5, 0xff, 15 + 1, 1 + 1, 0];
        let mut memory = RecordedMemory::default();
        memory.put(0x1000, table);
        let table = LineTable::read(&memory, 0x1000, 1).unwrap();
        assert_eq!(
            [1, 2, 9, 10, 11].map(|bci| table.line_of(bci)),
            [None, Some(4), Some(4), Some(5), Some(5)]
        );
    }

    #[test]
    fn a_table_that_never_ends_or_runs_off_the_memory_is_none() {
        let mut memory = RecordedMemory::default();
        memory.put(0x1000, vec![9; MAX_LEN + 2 * CHUNK]);
        assert_eq!(LineTable::read(&memory, 0x1000, 1), None);
        let mut memory = RecordedMemory::default();
        memory.put(0x1000, vec![9; 3]);
        assert_eq!(LineTable::read(&memory, 0x1000, 1), None);
        assert_eq!(LineTable::default().line_of(0), None);
    }
}
