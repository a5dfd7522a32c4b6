//! The offset at which a thread keeps its continuation's entry, read from the code that uses the offset
//! (aarch64).

/// The offset of `JavaThread::_cont_entry`, taken from `ldr x8, [x28, offset]; mov sp, x8`. x28 is the
/// current thread.
pub(crate) fn offset_in(code: [u8; 8]) -> Option<u32> {
    let [a, b, c, d, e, f, g, h] = code;
    let (load, moves) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    let is_taking_stack = load & 0xffc0_03ff == 0xf940_0388 && moves == 0x9100_011f;
    is_taking_stack.then_some((load >> 10 & 0xfff) << 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_instructions_of_the_return_barrier_contain_the_offset() {
        let code = |load: u32, moves: u32| {
            let [a, b, c, d] = load.to_le_bytes();
            let [e, f, g, h] = moves.to_le_bytes();
            [a, b, c, d, e, f, g, h]
        };
        assert_eq!(offset_in(code(0xf942_9b88, 0x9100_011f)), Some(1328));
        assert_eq!(offset_in(code(0xf942_9b88, 0x9100_013f)), None);
        assert_eq!(offset_in(code(0xf942_9b89, 0x9100_011f)), None);
    }
}
