//! C strings read from memory that may be unmapped.

use otlpprof_core::memory::Memory;

/// The C string at `address`, of at most `max_len` bytes; `None` if it is longer or cannot be read. Bytes
/// that are not UTF-8 become U+FFFD.
pub(super) fn read(memory: &dyn Memory, address: u64, max_len: usize) -> Option<String> {
    let mut bytes = Vec::new();
    for offset in 0..=max_len as u64 {
        match memory.load_u8(address.checked_add(offset)?)? {
            0 => return Some(String::from_utf8_lossy(&bytes).into_owned()),
            byte => bytes.push(byte),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use otlpprof_core::memory::RecordedMemory;

    use super::*;

    #[test]
    fn ends_at_the_zero_and_never_beyond_the_limit() {
        let mut memory = RecordedMemory::default();
        memory.put(0x1000, *b"abc\0def");
        assert_eq!(read(&memory, 0x1000, 3).as_deref(), Some("abc"));
        assert_eq!(read(&memory, 0x1000, 2), None);
        assert_eq!(read(&memory, 0x1004, 100), None, "the string runs off the memory");
    }
}
