//! Reads memory that may not be mapped.
//!
//! Walkers and resolvers read a JVM's structures through this trait: in the process by fault-tolerant loads
//! (`signal::safe_load`), in tests from recorded bytes.

/// Loads from run-time addresses. A load that fails returns `None`; no load faults or allocates.
pub trait Memory {
    /// Reads `bytes.len()` bytes. Returns `false`, with unspecified bytes, if any of them is not readable.
    fn read_bytes(&self, address: u64, bytes: &mut [u8]) -> bool;

    /// Reads eight bytes.
    fn load_u64(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read_bytes(address, &mut bytes).then(|| u64::from_ne_bytes(bytes))
    }

    /// Reads four bytes.
    fn load_u32(&self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read_bytes(address, &mut bytes).then(|| u32::from_ne_bytes(bytes))
    }

    /// Reads two bytes.
    fn load_u16(&self, address: u64) -> Option<u16> {
        let mut bytes = [0; 2];
        self.read_bytes(address, &mut bytes).then(|| u16::from_ne_bytes(bytes))
    }

    /// Reads one byte.
    fn load_u8(&self, address: u64) -> Option<u8> {
        let mut bytes = [0; 1];
        self.read_bytes(address, &mut bytes).then(|| u8::from_ne_bytes(bytes))
    }
}

/// Recorded memory: pieces of bytes, each at an address.
#[derive(Clone, Debug, Default)]
pub struct RecordedMemory {
    pieces: std::collections::BTreeMap<u64, Vec<u8>>,
}

impl RecordedMemory {
    /// Puts `bytes` at `address`. Pieces must not overlap.
    pub fn put(&mut self, address: u64, bytes: impl Into<Vec<u8>>) -> &mut Self {
        self.pieces.insert(address, bytes.into());
        self
    }

    /// Overwrites one byte of all recorded bytes, the one at index `at` modulo their number.
    pub fn corrupt(&mut self, at: usize, value: u8) {
        let total: usize = self.pieces.values().map(Vec::len).sum();
        let mut left = at.checked_rem(total).unwrap_or(0);
        for piece in self.pieces.values_mut() {
            match piece.get_mut(left) {
                Some(byte) => {
                    *byte = value;
                    return;
                }
                None => left = left.saturating_sub(piece.len()),
            }
        }
    }

    /// Puts eight bytes at `address`.
    pub fn put_u64(&mut self, address: u64, value: u64) -> &mut Self {
        self.put(address, value.to_ne_bytes())
    }
}

impl Memory for RecordedMemory {
    #[expect(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "no handler reads recordings"
    )]
    fn read_bytes(&self, address: u64, bytes: &mut [u8]) -> bool {
        // A read may span adjacent pieces.
        let mut done = 0;
        while done < bytes.len() {
            let Some(at) = address.checked_add(done as u64) else { return false };
            let Some((start, piece)) = self.pieces.range(..=at).next_back() else { return false };
            let Some(rest) = piece.get((at - start) as usize..).filter(|rest| !rest.is_empty()) else {
                return false;
            };
            let count = rest.len().min(bytes.len() - done);
            bytes[done..done + count].copy_from_slice(&rest[..count]);
            done += count;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_memory_reads_across_pieces_and_refuses_gaps() {
        let mut memory = RecordedMemory::default();
        memory.put(0x1000, [1, 2, 3, 4]).put(0x1004, [5, 6, 7, 8]);
        assert_eq!(memory.load_u64(0x1000), Some(u64::from_ne_bytes([1, 2, 3, 4, 5, 6, 7, 8])));
        assert_eq!(memory.load_u16(0x1003), Some(u16::from_ne_bytes([4, 5])));
        assert_eq!(memory.load_u64(0x1001), None);
        assert_eq!(memory.load_u8(0xfff), None);
        assert_eq!(memory.load_u64(u64::MAX), None);
    }
}
