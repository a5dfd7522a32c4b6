//! The way out of a deoptimisation handler on x86_64. The return address is pushed:
//!
//! | Code | Compiler, until 25 |
//! |---|---|
//! | `entry: call next; next: sub qword ptr [rsp], 5; jmp blob` | C2 |
//! | `entry: mov r10, entry; push r10; jmp blob` | C1 |
//!
//! Any other order of these instructions is followed as well, such as `before: call blob; entry: jmp before`.

use super::{Interrupted, Left, MAX_INSTRUCTIONS};
use crate::address::CodeRange;
use crate::memory::Memory;

/// The DWARF number of r10, the only register that a handler uses.
pub const REGISTER: u8 = 10;

/// The length of the longest instruction, `mov r10, imm64`, in bytes.
const LONGEST: usize = 10;
const WORD_BYTES: u64 = 8;

/// The effect of an instruction on the flow of control.
enum Flow {
    /// The next instruction is this number of bytes further.
    On(u64),
    /// The next instruction is at this address.
    To(u64),
}

/// Follows the code at `at` until it leaves `stubs`. `None` if an instruction is none of a handler's, or
/// pushes a second word.
pub fn way_out<M: Memory + ?Sized>(memory: &M, stubs: CodeRange, at: Interrupted) -> Option<Left> {
    let Interrupted { mut pc, sp, register: mut r10 } = at;
    // The word on top of the stack, as soon as the code has pushed or changed it.
    let mut top = None;
    let mut is_pushed = false;
    for _ in 0..MAX_INSTRUCTIONS {
        let mut code = [0; LONGEST];
        // The last instruction before a page that is not mapped may be shorter.
        let _ = memory.read_bytes(pc, &mut code);
        let near = |length: u64, distance: [u8; 4]| {
            pc.wrapping_add(length).wrapping_add_signed(i64::from(i32::from_le_bytes(distance)))
        };
        let mut push = |word| {
            is_pushed = true;
            top.replace(word).is_none().then_some(())
        };
        let flow = match code {
            // call rel32; call r10
            [0xe8, a, b, c, d, ..] => {
                push(pc.wrapping_add(5))?;
                Flow::To(near(5, [a, b, c, d]))
            }
            [0x41, 0xff, 0xd2, ..] => {
                push(pc.wrapping_add(3))?;
                Flow::To(r10)
            }
            // jmp rel32; jmp rel8; jmp r10
            [0xe9, a, b, c, d, ..] => Flow::To(near(5, [a, b, c, d])),
            [0xeb, distance, ..] => Flow::To(near(2, i32::from(distance.cast_signed()).to_le_bytes())),
            [0x41, 0xff, 0xe2, ..] => Flow::To(r10),
            // mov r10, imm64; lea r10, [rip + disp32]
            [0x49, 0xba, a, b, c, d, e, f, g, h] => {
                r10 = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
                Flow::On(10)
            }
            [0x4c, 0x8d, 0x15, a, b, c, d, ..] => {
                r10 = near(7, [a, b, c, d]);
                Flow::On(7)
            }
            // push r10
            [0x41, 0x52, ..] => {
                push(r10)?;
                Flow::On(2)
            }
            // sub qword ptr [rsp], imm8
            [0x48, 0x83, 0x2c, 0x24, less, ..] => {
                let word = top.or_else(|| memory.load_u64(sp))?;
                top = Some(word.wrapping_add_signed(i64::from(less.cast_signed()).wrapping_neg()));
                Flow::On(5)
            }
            _ => return None,
        };
        pc = match flow {
            Flow::On(length) => pc.wrapping_add(length),
            Flow::To(target) if stubs.contains(target) => target,
            Flow::To(_) => {
                let return_address = top.or_else(|| memory.load_u64(sp))?;
                let sp = if is_pushed { sp } else { sp.wrapping_add(WORD_BYTES) };
                return Some(Left { return_address, sp });
            }
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::RecordedMemory;

    const STUBS: CodeRange = CodeRange { start: 0x1000, end: 0x1100 };

    /// The way out from `offset` in `code`, with this word on the stack.
    fn way_out_from(code: &[u8], offset: u64, word: u64, r10: u64) -> Option<Left> {
        let mut memory = RecordedMemory::default();
        memory.put(STUBS.start, [code, &[0; LONGEST]].concat()).put_u64(0x8000, word);
        way_out(&memory, STUBS, Interrupted { pc: STUBS.start + offset, sp: 0x8000, register: r10 })
    }

    #[test]
    fn the_entry_is_the_return_address_from_each_instruction_on() {
        let calls = [0xe8, 0, 0, 0, 0, 0x48, 0x83, 0x2c, 0x24, 5, 0xe9, 0, 0, 0, 0x10];
        let moves = [0x49, 0xba, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x41, 0x52, 0xe9, 0, 0, 0, 0x10];
        let loads = [0x4c, 0x8d, 0x15, 0xf9, 0xff, 0xff, 0xff, 0x41, 0x52, 0xe9, 0, 0, 0, 0x10];
        let entered_late = [0xe8, 0, 1, 2, 0x10, 0xeb, 0xf9];
        for (code, offset, word, r10, entry, removed) in [
            (&calls[..], 0, 0, 0, 0x1000, 0),
            (&calls, 5, 0x1005, 0, 0x1000, 8),
            (&calls, 10, 0x1000, 0, 0x1000, 8),
            (&moves, 0, 0, 0, 0x1000, 0),
            (&moves, 10, 0, 0x1000, 0x1000, 0),
            (&moves, 12, 0x1000, 0, 0x1000, 8),
            (&loads, 0, 0, 0, 0x1000, 0),
            (&entered_late, 0, 0, 0, 0x1005, 0),
            (&entered_late, 5, 0, 0, 0x1005, 0),
        ] {
            let left = Some(Left { return_address: entry, sp: 0x8000 + removed });
            assert_eq!(way_out_from(code, offset, word, r10), left, "{code:x?} from {offset}");
        }
    }

    #[test]
    fn other_code_has_no_way_out() {
        // nop; two pushes; a jump to itself.
        for code in [&[0x90][..], &[0x41, 0x52, 0x41, 0x52], &[0xeb, 0xfe]] {
            assert_eq!(way_out_from(code, 0, 0, 0), None, "{code:x?}");
        }
    }
}
