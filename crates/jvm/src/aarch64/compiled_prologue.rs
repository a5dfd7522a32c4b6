//! The instructions by which compiled methods build their frames (aarch64;
//! cpu/aarch64/macroAssembler_aarch64.cpp `build_frame`, 11-25): `sub sp, sp, imm`, and in a large frame two
//! registers pushed before that.

/// `sub sp, sp, #imm12`, without the immediate and the bit that shifts the immediate by 12.
const SUB_SP: u32 = 0xd100_03ff;
const SUB_SP_MASK: u32 = 0xff80_03ff;
const SHIFTED: u32 = 1 << 22;
/// `sub sp, sp, x8` in the extended-register form, for a frame too large for an immediate. `mov x8, imm` has
/// loaded the size.
const SUB_SP_X8: u32 = 0xcb28_63ff;
/// Bytes of the frame that may already have been pushed before the subtraction.
const PUSHED_BYTES: [u64; 2] = [0, 16];

/// Whether `code`, the instructions of a method up to the point where its frame is complete, builds a frame
/// of `frame_bytes`.
pub(crate) fn builds_frame(code: &[u8], frame_bytes: u64) -> bool {
    let instructions = code.as_chunks::<4>().0.iter().map(|&bytes| u32::from_le_bytes(bytes));
    for instruction in instructions {
        if instruction & SUB_SP_MASK == SUB_SP {
            let number = u64::from(instruction >> 10 & 0xfff);
            let made = if instruction & SHIFTED == 0 { number } else { number << 12 };
            return PUSHED_BYTES.iter().any(|pushed| made + pushed == frame_bytes);
        }
        if instruction == SUB_SP_X8 {
            return frame_bytes >= 1 << 12;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::builds_frame;

    fn code(instructions: &[u32]) -> Vec<u8> {
        instructions.iter().flat_map(|instruction| instruction.to_le_bytes()).collect()
    }

    #[test]
    fn the_prologue_determines_the_frames_size() {
        // nop; sub sp, sp, 0x30; stp x29, x30, [sp, 0x20]
        let small = code(&[0xd503_201f, 0xd100_c3ff, 0xa902_7bfd]);
        // stp x29, x30, [sp, -16]!; sub sp, sp, 0x400
        let medium = code(&[0xa9bf_7bfd, 0xd110_03ff]);
        // stp x29, x30, [sp, -16]!; mov x8, 0x2000; sub sp, sp, x8
        let large = code(&[0xa9bf_7bfd, 0xd284_0008, 0xcb28_63ff]);
        assert!(builds_frame(&small, 0x30) && builds_frame(&medium, 0x410) && builds_frame(&large, 0x2010));
        assert!(!builds_frame(&small, 0x50) && !builds_frame(&medium, 0x420) && !builds_frame(&large, 0x20));
        assert!(!builds_frame(&small[..7], 0x30));
    }
}
