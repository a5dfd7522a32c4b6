//! Lengths of instructions of user-mode code on x86_64 (Intel 64 and IA-32 Architectures Software Developer's
//! Manual, volume 2, chapter 2 and appendix A).

/// The longest instruction.
pub(super) const MAX_BYTES: usize = 15;

const OPERAND_SIZE: u8 = 0x66;

/// The number of bytes of the instruction at the start of `code`. `None` if the instruction is unknown,
/// traps, or is cut off.
pub(super) fn length(code: &[u8]) -> Option<usize> {
    let mut rest = code;
    let mut is_short = false;
    // Prefixes: operand size, repetition, lock, segments.
    while let [
        prefix @ (OPERAND_SIZE | 0xf0 | 0xf2 | 0xf3 | 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65),
        more @ ..,
    ] = rest
    {
        is_short |= *prefix == OPERAND_SIZE;
        rest = more;
    }
    let (is_wide, rest) = match rest {
        [rex @ 0x40..=0x4f, more @ ..] => (rex & 8 != 0, more),
        _ => (false, rest),
    };
    let word = if is_short && !is_wide { 2 } else { 4 };
    let after = match *rest {
        [0x50..=0x5f | 0x90..=0x99 | 0x9b..=0x9d | 0xa4..=0xa7 | 0xaa..=0xaf, ref more @ ..] => more,
        [0xc3 | 0xc9 | 0xf5 | 0xf8 | 0xf9 | 0xfc | 0xfd, ref more @ ..] => more,
        [0x6a | 0x70..=0x7f | 0xa8 | 0xb0..=0xb7 | 0xe0..=0xe3 | 0xeb, ref more @ ..] => more.get(1..)?,
        [0xc2, ref more @ ..] => more.get(2..)?,
        [0x68 | 0xe8 | 0xe9, ref more @ ..] => more.get(4..)?,
        [0xa9, ref more @ ..] => more.get(word..)?,
        [0xb8..=0xbf, ref more @ ..] => more.get(if is_wide { 8 } else { word }..)?,
        // Arithmetic and moves between a register and a register or memory; then those with a constant for
        // the accumulator.
        [op @ 0x00..=0x3f, ref more @ ..] if op & 7 < 4 => operand(more, 0)?,
        [op @ 0x00..=0x3f, ref more @ ..] if op & 7 == 4 => more.get(1..)?,
        [op @ 0x00..=0x3f, ref more @ ..] if op & 7 == 5 => more.get(word..)?,
        [0x63 | 0x84..=0x8b | 0x8d | 0x8f | 0xd0..=0xd3 | 0xd8..=0xdf | 0xfe | 0xff, ref more @ ..] => {
            operand(more, 0)?
        }
        [0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6, ref more @ ..] => operand(more, 1)?,
        [0x69 | 0x81 | 0xc7, ref more @ ..] => operand(more, word)?,
        // Only the tests of this group have a constant.
        [op @ (0xf6 | 0xf7), ref more @ ..] => {
            let is_test = more.first()? & 0x38 <= 8;
            let size = if op == 0xf6 { 1 } else { word };
            operand(more, if is_test { size } else { 0 })?
        }
        [0x0f, ref more @ ..] => two_bytes(more)?,
        // VEX and EVEX: the map of opcodes, and the opcode.
        [0xc5, _, opcode, ref more @ ..] => vector(1, opcode, more)?,
        [0xc4, map, _, opcode, ref more @ ..] => vector(map & 0x1f, opcode, more)?,
        [0x62, map, _, _, opcode, ref more @ ..] => vector(map & 7, opcode, more)?,
        _ => return None,
    };
    code.len().checked_sub(after.len())
}

/// The bytes after an instruction whose opcode has a second byte, which is the first byte of `code`.
fn two_bytes(code: &[u8]) -> Option<&[u8]> {
    match *code {
        [0x05 | 0x31 | 0x77 | 0xa2 | 0xc8..=0xcf, ref more @ ..] => Some(more),
        [0x80..=0x8f, ref more @ ..] => more.get(4..),
        // Opcodes of three bytes: SSSE3 to AES, and instructions with a constant.
        [0x38, _, ref more @ ..] => operand(more, 0),
        [0x3a, _, ref more @ ..] => operand(more, 1),
        [opcode, ref more @ ..] if has_constant(opcode) => operand(more, 1),
        [0xa4 | 0xac | 0xba, ref more @ ..] => operand(more, 1),
        [
            0x01
            | 0x0d
            | 0x10..=0x1f
            | 0x28..=0x2f
            | 0x40..=0x6f
            | 0x74..=0x7f
            | 0x90..=0x9f
            | 0xa3
            | 0xa5
            | 0xab
            | 0xad..=0xb8
            | 0xbb..=0xc1
            | 0xc3
            | 0xc7
            | 0xd0..=0xfe,
            ref more @ ..,
        ] => operand(more, 0),
        _ => None,
    }
}

/// The bytes after the opcode of a vector instruction of this map.
fn vector(map: u8, opcode: u8, code: &[u8]) -> Option<&[u8]> {
    match (map, opcode) {
        // vzeroupper, vzeroall
        (1, 0x77) => Some(code),
        (1, opcode) => operand(code, usize::from(has_constant(opcode))),
        (map, _) => operand(code, usize::from(map == 3)),
    }
}

/// Whether vector instructions with this opcode in the two-byte map have a constant: shuffles, shifts,
/// comparisons, insertions.
fn has_constant(opcode: u8) -> bool {
    matches!(opcode, 0x70..=0x73 | 0xc2 | 0xc4..=0xc6)
}

/// The bytes after an operand that begins with a ModRM byte, and after a constant of `constant` bytes.
fn operand(code: &[u8], constant: usize) -> Option<&[u8]> {
    let (&modrm, rest) = code.split_first()?;
    let (mode, register) = (modrm >> 6, modrm & 7);
    let (base, rest) = match (mode, register) {
        (0..=2, 4) => rest.split_first().map(|(sib, rest)| (sib & 7, rest))?,
        _ => (register, rest),
    };
    let displacement = match mode {
        0 if base == 5 => 4,
        1 => 1,
        2 => 4,
        _ => 0,
    };
    rest.get(displacement..)?.get(constant..)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodings as assemblers produce them, for instructions of all kinds.
    #[test]
    fn lengths_are_those_of_assemblers() {
        for code in [
            &[0x50][..],                                    // push rax
            &[0x41, 0x5b],                                  // pop r11
            &[0x9d],                                        // popf
            &[0xc3],                                        // ret
            &[0x75, 0x10],                                  // jne
            &[0xe9, 0x00, 0x00, 0x00, 0x00],                // jmp
            &[0x0f, 0x84, 0x00, 0x00, 0x00, 0x00],          // je
            &[0xff, 0xe7],                                  // jmp rdi
            &[0x41, 0xff, 0xd2],                            // call r10
            &[0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8],          // mov r10, constant
            &[0xb8, 1, 2, 3, 4],                            // mov eax, constant
            &[0x48, 0x83, 0xec, 0x08],                      // sub rsp, 8
            &[0x48, 0x81, 0xc4, 0x50, 0x01, 0x00, 0x00],    // add rsp, 0x150
            &[0x48, 0x8b, 0x44, 0x24, 0x08],                // mov rax, [rsp + 8]
            &[0x48, 0x8b, 0x84, 0x24, 0x90, 0, 0, 0],       // mov rax, [rsp + 0x90]
            &[0x4c, 0x8b, 0x1c, 0x24],                      // mov r11, [rsp]
            &[0x8b, 0x40, 0x0c],                            // mov eax, [rax + 12]
            &[0x48, 0x8b, 0x0d, 0x07, 0xa6, 0x6c, 0x16],    // mov rcx, [rip + distance]
            &[0x49, 0x8b, 0xe5],                            // mov rsp, r13
            &[0x48, 0x8d, 0x58, 0x10],                      // lea rbx, [rax + 16]
            &[0x48, 0x33, 0xc0],                            // xor rax, rax
            &[0x48, 0xc1, 0xe0, 0x03],                      // shl rax, 3
            &[0x48, 0xd3, 0xe8],                            // shr rax, cl
            &[0x41, 0x80, 0x7f, 0x38, 0x00],                // cmp byte [r15 + 0x38], 0
            &[0x41, 0xf6, 0x47, 0x20, 0x11],                // test byte [r15 + 0x20], 0x11
            &[0xf7, 0xc4, 0x0f, 0x00, 0x00, 0x00],          // test esp, 15
            &[0x40, 0xf6, 0xc4, 0x0f],                      // test spl, 15
            &[0xa8, 0xff],                                  // test al, 255
            &[0xa9, 0x0f, 0x00, 0x00, 0x00],                // test eax, 15
            &[0xf7, 0xd0],                                  // not eax
            &[0x48, 0x85, 0xc0],                            // test rax, rax
            &[0xf2, 0x0f, 0x10, 0x44, 0x24, 0x08],          // movsd xmm0, [rsp + 8]
            &[0xf2, 0x44, 0x0f, 0x10, 0x7c, 0x24, 0x78],    // movsd xmm15, [rsp + 0x78]
            &[0xc5, 0xfb, 0x10, 0x44, 0x24, 0x08],          // vmovsd xmm0, [rsp + 8]
            &[0xc5, 0xf8, 0x77],                            // vzeroupper
            &[0xc4, 0xe3, 0x7d, 0x19, 0x04, 0x24, 0x01],    // vextractf128 [rsp], ymm0, 1
            &[0xc4, 0xe2, 0xf1, 0xb9, 0xc2],                // vfmadd231sd xmm0, xmm1, xmm2
            &[0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x44, 0x24, 1], // vmovdqu64 zmm0, [rsp + 64]
            &[0x66, 0x0f, 0x57, 0xc0],                      // xorpd xmm0, xmm0
            &[0x0f, 0xae, 0x0c, 0x24],                      // fxrstor [rsp]
            &[0xc9],                                        // leave
            &[0x6a, 0x10],                                  // push 16
            &[0x68, 0, 1, 0, 0],                            // push 256
            &[0xff, 0x70, 0x68],                            // push [rax + 0x68]
            &[0x48, 0x8f, 0x44, 0x24, 8],                   // pop [rsp + 8]
            &[0x48, 0x05, 0, 1, 0, 0],                      // add rax, 256
            &[0x66, 0x05, 0, 1],                            // add ax, 256
            &[0x66, 0xc7, 0x00, 0, 1],                      // mov word [rax], 256
            &[0x66, 0x81, 0xf9, 0, 1],                      // cmp cx, 256
            &[0x3c, 0x10],                                  // cmp al, 16
            &[0xb2, 0x10],                                  // mov dl, 16
            &[0xf3, 0xc3],                                  // rep ret
            &[0xf3, 0xa4],                                  // rep movsb
            &[0xf0, 0x0f, 0xb1, 0x0f],                      // lock cmpxchg [rdi], ecx
            &[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0], // mov rax, fs:[0x28]
            &[0xf3, 0x0f, 0x1e, 0xfa],                      // endbr64
            &[0x0f, 0x18, 0x0e],                            // prefetcht0 [rsi]
            &[0x0f, 0x94, 0xc0],                            // sete al
            &[0x0f, 0xc9],                                  // bswap ecx
            &[0x49, 0x0f, 0xa3, 0xc1],                      // bt r9, rax
            &[0x66, 0x0f, 0x38, 0xdc, 0xc1],                // aesenc xmm0, xmm1
            &[0x66, 0x0f, 0x3a, 0x0f, 0xc1, 8],             // palignr xmm0, xmm1, 8
            &[0x66, 0x0f, 0x70, 0xc0, 0x4e],                // pshufd xmm0, xmm0, 0x4e
            &[0xc5, 0xf9, 0x70, 0xc0, 0x4e],                // vpshufd xmm0, xmm0, 0x4e
            &[0xc5, 0xf5, 0x73, 0xd1, 0x20],                // vpsrlq ymm1, ymm1, 32
            &[0xc4, 0xc1, 0x7d, 0x70, 0xc0, 0x4e],          // vpshufd ymm0, ymm8, 0x4e
            &[0xc4, 0x62, 0x83, 0xf7, 0xfd],                // shrx r15, rbp, r15
            &[0x62, 0xf1, 0x7d, 0x48, 0x70, 0xc0, 0x4e],    // vpshufd zmm0, zmm0, 0x4e
            &[0xd9, 0x44, 0x24, 8],                         // fld [rsp + 8]
            &[0xe3, 0x10],                                  // jrcxz
        ] {
            let more = [code, &[0x90; MAX_BYTES]].concat();
            assert_eq!(length(&more), Some(code.len()), "{code:02x?}");
            assert_eq!(length(code), Some(code.len()), "{code:02x?}");
            assert_eq!(length(&code[..code.len() - 1]), None, "{code:02x?}");
        }
        for unknown in [&[][..], &[0xcc], &[0xf4], &[0x0f, 0x0b], &[0x66]] {
            assert_eq!(length(unknown), None, "{unknown:02x?}");
        }
    }
}
