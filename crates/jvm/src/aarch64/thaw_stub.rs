//! Learns the stages of the stubs that thaw frozen frames, from the stubs' instructions (aarch64).
//!
//! Sources: cpu/aarch64/stubGenerator_aarch64.cpp (`generate_cont_thaw`),
//! cpu/aarch64/macroAssembler_aarch64.cpp (`call_VM_leaf_base`), 21 and 25. The stub
//!
//! 1. calls `prepare_thaw`;
//! 2. makes room, by `sub x8, sp, x9; and x8, x8, -16; mov sp, x8`;
//! 3. calls `thaw`, which returns the stack pointer of the youngest thawed frame;
//! 4. keeps that stack pointer, by `mov x9, x0`, and switches to it, by `sub sp, x9, 16`.
//!
//! The code pushes a pair of registers before each call, and pops the pair afterwards.

use otlpprof_core::address::CodeRange;
use otlpprof_core::continuation::ThawStub;
use otlpprof_core::memory::Memory;

/// `and x8, x8, -16; mov sp, x8`.
const MAKE_ROOM: [u32; 2] = [0x927c_ed08, 0x9100_011f];
/// `blr x8; ldp x8, x12, [sp], 16; mov x9, x0`.
const KEEP: [u32; 3] = [0xd63f_0100, 0xa8c1_33e8, 0xaa00_03e9];
/// `sub sp, x9, 16`.
const TAKE_STACK: [u32; 1] = [0xd100_413f];
/// `stp x8, x0, [sp, -16]!`, which saves the value that the method is returning, after `fmov x8, d0`.
const PUSH_RETURN_VALUES: u32 = 0xa9bf_03e8;
const PAIR_BYTES: u64 = 16;
const INSTRUCTION_BYTES: usize = 4;
/// An upper bound of the length of such a stub.
const MAX_STUB_BYTES: u64 = 4096;

/// The stages of the stub at `code`; `None` if the instructions differ from the module's description.
pub(crate) fn learn(memory: &dyn Memory, code: CodeRange) -> Option<ThawStub> {
    let length = code.end.checked_sub(code.start).filter(|length| (1..MAX_STUB_BYTES).contains(length))?;
    let mut bytes = vec![0; length as usize];
    memory.read_bytes(code.start, &mut bytes).then_some(())?;
    let instructions: Vec<_> = bytes.as_chunks().0.iter().map(|&code| u32::from_le_bytes(code)).collect();
    let find = |from: usize, pattern: &[u32]| {
        let position =
            instructions.get(from..)?.windows(pattern.len()).position(|window| window == pattern)?;
        Some(from + position)
    };
    // The second instruction of the pattern changes SP.
    let makes_room = find(0, &MAKE_ROOM)? + 1;
    let keeps = find(makes_room, &KEEP)? + KEEP.len() - 1;
    let takes_stack = find(keeps, &TAKE_STACK)?;
    let pushes = instructions[makes_room..keeps].contains(&PUSH_RETURN_VALUES);
    let at = |index: usize| code.start + (index * INSTRUCTION_BYTES) as u64;
    Some(ThawStub {
        code,
        makes_room: at(makes_room),
        pushed_bytes: if pushes { 2 * PAIR_BYTES } else { PAIR_BYTES },
        // The stub contains the call only once, so no early return exists.
        returned_early: CodeRange::default(),
        returned: at(keeps),
        takes_stack: at(takes_stack),
    })
}

#[cfg(test)]
mod tests {
    use otlpprof_core::memory::RecordedMemory;

    use super::*;

    /// cont_thaw of JDK 21 from `MAKE_ROOM` on, with the instructions before the call shortened.
    const FROM_ROOM: [u32; 14] = [
        0xcb29_63e8,
        0x927c_ed08,
        0x9100_011f,
        0x52a0_0001,
        0xaa1c_03e0,
        0xa9bf_33e8,
        0xd63f_0100,
        0xa8c1_33e8,
        0xaa00_03e9,
        0xaa1f_03e0,
        0xd100_413f,
        0x9100_03fd,
        0x9100_03bf,
        0xa8c1_7bfd,
    ];

    fn learnt(code: &[u32]) -> Option<ThawStub> {
        let bytes: Vec<_> = code.iter().flat_map(|code| code.to_le_bytes()).collect();
        let range = CodeRange { start: 0x1000, end: 0x1000 + bytes.len() as u64 };
        let mut memory = RecordedMemory::default();
        memory.put(0x1000, bytes);
        learn(&memory, range)
    }

    #[test]
    fn learns_the_stages_of_a_thaw() {
        let stub = learnt(&FROM_ROOM).unwrap();
        assert_eq!((stub.makes_room, stub.returned, stub.takes_stack), (0x1008, 0x1020, 0x1028));
        assert_eq!(stub.pushed_bytes, 16);
        assert_eq!(stub.returned_early, CodeRange::default());
    }

    #[test]
    fn a_return_barrier_keeps_the_values_that_are_returned() {
        let mut code = FROM_ROOM.to_vec();
        code.splice(3..3, [0x9e66_0008, PUSH_RETURN_VALUES]);
        assert_eq!(learnt(&code).unwrap().pushed_bytes, 32);
    }

    #[test]
    fn another_stub_has_no_stages() {
        assert_eq!(learnt(&FROM_ROOM[3..]), None);
        assert_eq!(learnt(&FROM_ROOM[..8]), None);
    }
}
