//! The offset at which a thread keeps its continuation's entry, read from the code that uses the offset
//! (x86_64).

/// The offset of `JavaThread::_cont_entry`, taken from `mov rsp, [r15 + disp32]`. r15 is the current thread.
pub(crate) fn offset_in(code: [u8; 8]) -> Option<u32> {
    let [0x49, 0x8b, 0xa7, a, b, c, d, _] = code else { return None };
    Some(u32::from_le_bytes([a, b, c, d]))
}
