//! The instructions by which compiled methods build their frames (x86_64): `sub rsp, imm`. The return
//! address, and usually RBP, have been pushed before. A frame of only these two has no `sub`.
//!
//! Sources: `build_frame` in cpu/x86/c1_MacroAssembler_x86.cpp (11-25); `verified_entry` in
//! cpu/x86/c2_MacroAssembler_x86.cpp (21 and 25) and cpu/x86/macroAssembler_x86.cpp (11 and 17).

/// `sub rsp, imm8` and `sub rsp, imm32`, without the immediate.
const SUB_RSP_8: &[u8] = &[0x48, 0x83, 0xec];
const SUB_RSP_32: &[u8] = &[0x48, 0x81, 0xec];
/// Bytes of the frame that have already been pushed before the subtraction.
const PUSHED_BYTES: [u64; 2] = [8, 16];

/// Whether `code`, the instructions of a method up to the point where its frame is complete, builds a frame
/// of `frame_bytes`.
pub(crate) fn builds_frame(code: &[u8], frame_bytes: u64) -> bool {
    let made = (0..code.len()).find_map(|at| {
        let code = &code[at..];
        if let Some(rest) = code.strip_prefix(SUB_RSP_8) {
            return rest.first().map(|&bytes| u64::from(bytes));
        }
        let number = code.strip_prefix(SUB_RSP_32)?.first_chunk::<4>()?;
        Some(u64::from(u32::from_le_bytes(*number)))
    });
    PUSHED_BYTES.iter().any(|pushed| made.unwrap_or(0) + pushed == frame_bytes)
}

#[cfg(test)]
mod tests {
    use super::builds_frame;

    #[test]
    fn the_prologue_determines_the_frames_size() {
        // mov [rsp-0x14000], eax; push rbp; sub rsp, 0x30
        let short = [0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff, 0x55, 0x48, 0x83, 0xec, 0x30];
        // sub rsp, 0x118; mov [rsp+0x110], rbp
        let long = [0x48, 0x81, 0xec, 0x18, 1, 0, 0, 0x48, 0x89, 0xac, 0x24, 0x10, 1, 0, 0];
        assert!(builds_frame(&short, 0x40) && builds_frame(&long, 0x120) && builds_frame(&[0x55], 0x10));
        assert!(!builds_frame(&short, 0x30) && !builds_frame(&long, 0x118) && !builds_frame(&[0x55], 0x20));
        // Truncated in the middle of an instruction.
        assert!(!builds_frame(&short[..11], 0x40) && !builds_frame(&long[..6], 0x120));
    }
}
