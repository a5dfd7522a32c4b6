//! Bounded reading of call frame information in memory.

use otlpprof_core::memory::Memory;

/// The bases of encoded pointers (LSB 5.0, 10.5.1: the upper four bits of an encoding).
const ABSOLUTE: u8 = 0x00;
const PC_RELATIVE: u8 = 0x10;
const DATA_RELATIVE: u8 = 0x30;

/// The encoding of an omitted pointer.
pub(super) const OMITTED: u8 = 0xff;

/// A reader of the bytes from one address up to another.
#[derive(Debug)]
pub(super) struct FrameInfoReader<'m, M> {
    memory: &'m M,
    /// Run-time address of the next byte.
    pub(super) at: u64,
    /// One past the last byte.
    pub(super) end: u64,
}

// Not derived, since a derived `Clone` would require `M: Clone`.
impl<M> Clone for FrameInfoReader<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for FrameInfoReader<'_, M> {}

macro_rules! integer {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $load:ident),* $(,)?) => {
        $($(#[$doc])* pub(super) fn $name(&mut self) -> Option<$type> {
            let at = self.take(size_of::<$type>() as u64)?;
            self.memory.$load(at)
        })*
    };
}

impl<'m, M: Memory> FrameInfoReader<'m, M> {
    /// Makes a reader of `len` bytes from `at` on.
    pub(super) fn new(memory: &'m M, at: u64, len: u64) -> Option<Self> {
        Some(Self { memory, at, end: at.checked_add(len)? })
    }

    /// The next `len` bytes, as a separate reader.
    pub(super) fn block(&mut self, len: u64) -> Option<Self> {
        let at = self.take(len)?;
        Some(Self { memory: self.memory, at, end: self.at })
    }

    /// Whether no byte is left.
    pub(super) const fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    fn take(&mut self, len: u64) -> Option<u64> {
        let at = self.at;
        let next = at.checked_add(len).filter(|&next| next <= self.end)?;
        self.at = next;
        Some(at)
    }

    integer! {
        /// One byte.
        byte: u8 = load_u8,
        /// Two bytes.
        half: u16 = load_u16,
        /// Four bytes.
        word: u32 = load_u32,
        /// Eight bytes.
        double: u64 = load_u64,
    }

    /// An unsigned LEB128; `None` beyond 64 bits.
    pub(super) fn uleb(&mut self) -> Option<u64> {
        self.leb().map(|(value, _, _)| value)
    }

    /// A signed LEB128; `None` beyond 64 bits.
    pub(super) fn sleb(&mut self) -> Option<i64> {
        let (value, bits, is_negative) = self.leb()?;
        let sign = if is_negative && bits < 64 { u64::MAX.wrapping_shl(bits) } else { 0 };
        Some((value | sign) as i64)
    }

    /// The value, its number of bits, and whether its topmost bit is set.
    fn leb(&mut self) -> Option<(u64, u32, bool)> {
        let (mut value, mut bits) = (0u64, 0u32);
        while bits < 64 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).wrapping_shl(bits);
            bits = bits.wrapping_add(7);
            if byte & 0x80 == 0 {
                return Some((value, bits, byte & 0x40 != 0));
            }
        }
        None
    }

    /// A pointer in the given encoding. Data-relative pointers count from `data`.
    pub(super) fn pointer(&mut self, encoding: u8, data: u64) -> Option<u64> {
        let base = match encoding & 0xf0 {
            ABSOLUTE => 0,
            PC_RELATIVE => self.at,
            DATA_RELATIVE => data,
            _ => return None,
        };
        Some(base.wrapping_add(self.offset(encoding)?))
    }

    /// The number that is added to a pointer's base, in the format of the encoding's lower four bits.
    pub(super) fn offset(&mut self, encoding: u8) -> Option<u64> {
        match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.double(),
            0x01 => self.uleb(),
            0x02 => self.half().map(u64::from),
            0x03 => self.word().map(u64::from),
            0x09 => self.sleb().map(|offset| offset as u64),
            0x0a => self.half().map(|offset| i64::from(offset as i16) as u64),
            0x0b => self.word().map(|offset| i64::from(offset as i32) as u64),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_core::memory::RecordedMemory;

    use super::*;

    fn memory(bytes: &[u8]) -> RecordedMemory {
        let mut memory = RecordedMemory::default();
        memory.put(0x1000, bytes);
        memory
    }

    fn with<T>(bytes: &[u8], read: impl Fn(&mut FrameInfoReader<'_, RecordedMemory>) -> T) -> T {
        let memory = memory(bytes);
        read(&mut FrameInfoReader::new(&memory, 0x1000, bytes.len() as u64).unwrap())
    }

    #[test]
    fn leb128_values_to_64_bits() {
        // DWARF 5, 7.6, tables 7.7 and 7.8.
        for (bytes, value) in [(&[2][..], 2), (&[0x7f], 127), (&[0x80, 1], 128), (&[0xb9, 0x64], 12857)] {
            assert_eq!(with(bytes, |reader| reader.uleb()), Some(value));
        }
        for (bytes, value) in
            [(&[2][..], 2), (&[0x7e], -2), (&[0xff, 0], 127), (&[0x81, 0x7f], -127), (&[0x80, 0x7f], -128)]
        {
            assert_eq!(with(bytes, |reader| reader.sleb()), Some(value));
        }
        let longest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(with(&longest, |reader| reader.uleb()), Some(u64::MAX));
        assert_eq!(with(&[0x80; 11], |reader| reader.uleb()), None);
        assert_eq!(with(&[0x80], |reader| reader.uleb()), None, "unfinished");
    }

    #[test]
    fn pointers_by_encoding() {
        let bytes = (-16i32).to_le_bytes();
        assert_eq!(with(&bytes, |reader| reader.pointer(0x1b, 0)), Some(0xff0));
        assert_eq!(with(&bytes, |reader| reader.pointer(0x3b, 0x5000)), Some(0x4ff0));
        assert_eq!(with(&bytes, |reader| reader.pointer(0x03, 0)), Some(0xffff_fff0));
        assert_eq!(with(&0x1234u64.to_le_bytes(), |reader| reader.pointer(0x00, 0)), Some(0x1234));
        assert_eq!(with(&bytes, |reader| reader.pointer(0x9b, 0)), None, "indirect");
        assert_eq!(with(&bytes, |reader| reader.pointer(OMITTED, 0)), None);
    }

    #[test]
    fn nothing_is_read_beyond_the_end() {
        let memory = memory(&[1; 16]);
        let mut reader = FrameInfoReader::new(&memory, 0x1000, 7).unwrap();
        assert_eq!(reader.double(), None);
        assert_eq!(reader.word(), Some(0x0101_0101));
        assert!(reader.block(4).is_none());
        assert_eq!(reader.block(3).map(|block| block.end), Some(0x1007));
        assert!(reader.is_empty());
        assert!(FrameInfoReader::new(&memory, u64::MAX, 2).is_none());
    }
}
