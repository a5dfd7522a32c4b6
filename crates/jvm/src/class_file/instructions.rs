//! Instructions of the JVM (JVM specification, 6.5): their lengths and their jump targets.

use super::error::ClassFileError;
use super::error::ClassFileError::{Malformed, TooLarge, Truncated};
use super::reader::ClassReader;

pub(super) const LLOAD: u8 = 0x16;
pub(super) const ALOAD_0: u8 = 0x2a;
pub(super) const LSTORE: u8 = 0x37;
pub(super) const LDC2_W: u8 = 0x14;
pub(super) const INVOKESPECIAL: u8 = 0xb7;
pub(super) const INVOKESTATIC: u8 = 0xb8;
pub(super) const NEW: u8 = 0xbb;
pub(super) const ATHROW: u8 = 0xbf;
pub(super) const WIDE: u8 = 0xc4;
const TABLESWITCH: u8 = 0xaa;
const LOOKUPSWITCH: u8 = 0xab;
const IINC: u8 = 0x84;

/// An instruction of a method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instruction<'a> {
    /// The instruction's place in the method's code.
    pub(super) at: usize,
    pub(super) opcode: u8,
    /// The instruction's bytes, including the opcode.
    pub(super) bytes: &'a [u8],
}

/// An instruction with a two-byte index of a constant.
pub(super) fn with_constant(opcode: u8, constant: u16) -> [u8; 3] {
    let [high, low] = constant.to_be_bytes();
    [opcode, high, low]
}

/// Splits a method's code into its instructions, in order.
pub(super) fn instructions(code: &[u8]) -> Result<Vec<Instruction<'_>>, ClassFileError> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let bytes = code.get(at..at + length(code, at)?).ok_or(Truncated)?;
        found.push(Instruction { at, opcode: code[at], bytes });
        at += bytes.len();
    }
    Ok(found)
}

fn length(code: &[u8], at: usize) -> Result<usize, ClassFileError> {
    Ok(match code[at] {
        TABLESWITCH | LOOKUPSWITCH => {
            let padding = padding(at);
            let mut reader = ClassReader(code.get(at + 1 + padding..).ok_or(Truncated)?);
            reader.u32()?;
            let entries_bytes = if code[at] == TABLESWITCH {
                let (low, high) = (reader.u32()?.cast_signed(), reader.u32()?.cast_signed());
                let span = i64::from(high) - i64::from(low);
                8 + 4 * usize::try_from(span + 1).map_err(|_| Malformed)?
            } else {
                4 + 8 * usize::try_from(reader.u32()?.cast_signed()).map_err(|_| Malformed)?
            };
            1 + padding + 4 + entries_bytes
        }
        WIDE if code.get(at + 1) == Some(&IINC) => 6,
        WIDE => 4,
        0x10 | 0x12 | 0x15..=0x19 | 0x36..=0x3a | 0xa9 | 0xbc => 2,
        0x11 | 0x13 | 0x14 | IINC | 0x99..=0xa8 | 0xb2..=0xb8 | 0xbb | 0xbd | 0xc0 | 0xc1 | 0xc6 | 0xc7 => 3,
        0xc5 => 4,
        0xb9 | 0xba | 0xc8 | 0xc9 => 5,
        0x00..=0xc9 => 1,
        _ => return Err(Malformed),
    })
}

/// The number of padding bytes after the opcode of a switch at `at`: the operands begin at a multiple of 4.
fn padding(at: usize) -> usize {
    3 - at % 4
}

impl Instruction<'_> {
    pub(super) fn is_return(self) -> bool {
        (0xac..=0xb1).contains(&self.opcode)
    }

    fn is_switch(self) -> bool {
        [TABLESWITCH, LOOKUPSWITCH].contains(&self.opcode)
    }

    /// The length of this instruction when it is placed at `at`.
    pub(super) fn length_at(self, at: usize) -> usize {
        if self.is_switch() { self.bytes.len() - padding(self.at) + padding(at) } else { self.bytes.len() }
    }

    /// The constant that this instruction refers to by a two-byte index.
    pub(super) fn constant(self) -> Option<u16> {
        ClassReader(self.bytes.get(1..)?).u16().ok()
    }

    /// Appends this instruction to `out` for the place `at`. `place` maps the old place of an instruction to
    /// its new place.
    pub(super) fn write_at(
        self,
        at: usize,
        out: &mut Vec<u8>,
        place: impl Fn(usize) -> Result<usize, ClassFileError>,
    ) -> Result<(), ClassFileError> {
        let moved = |offset: i64| {
            let old = usize::try_from(self.at as i64 + offset).map_err(|_| Malformed)?;
            Ok::<_, ClassFileError>(place(old)? as i64 - at as i64)
        };
        let near = |offset: i64| i16::try_from(offset).map_err(|_| TooLarge);
        // Never fails: a method has at most 64 KiB of code.
        let far = |offset: i64| i32::try_from(offset).map_err(|_| TooLarge);
        let mut reader = ClassReader(self.bytes.get(1..).ok_or(Truncated)?);
        match self.opcode {
            // Conditional jumps, goto, jsr, ifnull and ifnonnull.
            0x99..=0xa8 | 0xc6 | 0xc7 => {
                let offset = near(moved(i64::from(reader.u16()?.cast_signed()))?)?;
                out.push(self.opcode);
                out.extend(offset.to_be_bytes());
            }
            // goto_w, jsr_w.
            0xc8 | 0xc9 => {
                let offset = far(moved(i64::from(reader.u32()?.cast_signed()))?)?;
                out.push(self.opcode);
                out.extend(offset.to_be_bytes());
            }
            _ if self.is_switch() => {
                out.push(self.opcode);
                out.resize(out.len() + padding(at), 0);
                reader.take(padding(self.at))?;
                let offset = |reader: &mut ClassReader<'_>, out: &mut Vec<u8>| {
                    let offset = far(moved(i64::from(reader.u32()?.cast_signed()))?)?;
                    out.extend(offset.to_be_bytes());
                    Ok::<_, ClassFileError>(())
                };
                offset(&mut reader, out)?;
                // A tableswitch has its lowest and highest key here, a lookupswitch its number of pairs.
                let has_keys = self.opcode == LOOKUPSWITCH;
                out.extend(reader.take(if has_keys { 4 } else { 8 })?);
                while !reader.0.is_empty() {
                    if has_keys {
                        out.extend(reader.take(4)?);
                    }
                    offset(&mut reader, out)?;
                }
            }
            _ => out.extend(self.bytes),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tableswitch at 1 with default 32. Keys 0 and 1 lead to 28 and 0.
    fn switching() -> Vec<u8> {
        let mut code = vec![0x1a, TABLESWITCH, 0, 0];
        for number in [31, 0, 1, 27, -1] {
            code.extend(i32::to_be_bytes(number));
        }
        code.extend([0xa7, 0xff, 0xe9, 0x00, 0xb1, 0x00, 0x00, 0x00, 0xb1]);
        code
    }

    #[test]
    fn instructions_are_as_long_as_they_are() {
        let code = switching();
        let found: Vec<_> = instructions(&code).unwrap().iter().map(|i| (i.at, i.bytes.len())).collect();
        assert_eq!(found[..4], [(0, 1), (1, 23), (24, 3), (27, 1)]);
        for (bytes, error) in [
            (&[0xb8, 0][..], Truncated),
            (&[0xca], Malformed),
            (&[LOOKUPSWITCH, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff], Malformed),
            (&[TABLESWITCH, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff], Truncated),
            (&[WIDE], Truncated),
        ] {
            assert_eq!(instructions(bytes).map(drop), Err(error), "{bytes:x?}");
        }
        assert_eq!(instructions(&[WIDE, IINC, 0, 0, 0, 0, 0xb1]).unwrap().len(), 2);
    }

    #[test]
    fn switches_and_jumps_are_adjusted_to_moved_targets() {
        let code = switching();
        let found = instructions(&code).unwrap();
        // Six more bytes before all instructions change the switch's padding.
        let (place, new_switch_at) = (|old: usize| Ok(if old < 24 { old + 6 } else { old + 4 }), 7);
        let mut out = Vec::new();
        found[1].write_at(new_switch_at, &mut out, place).unwrap();
        assert_eq!(out.len(), found[1].length_at(new_switch_at));
        assert_eq!(out[0], TABLESWITCH);
        let numbers: Vec<i32> =
            out[1..].as_chunks::<4>().0.iter().map(|bytes| i32::from_be_bytes(*bytes)).collect();
        assert_eq!(numbers, [32 + 4 - 7, 0, 1, 28 + 4 - 7, 6 - 7]);
        let mut out = Vec::new();
        found[2].write_at(28, &mut out, place).unwrap();
        // The jump from 24, now 28, to 1, now 7.
        assert_eq!(out, [0xa7, 0xff, (7 - 28_i8) as u8]);
        let far = |_| Ok(40_000);
        assert_eq!(found[2].write_at(28, &mut Vec::new(), far), Err(TooLarge));
    }
}
