//! Native code that has no call frame information, on aarch64.

use otlpprof_core::record::FrameKind::{self, Native};
use otlpprof_core::unwind_rule::{CfaRule, FpRule};

use super::machine::*;
use crate::walk::tests::native::{BASE, object, rule};
use crate::walk::tests::vm_world::*;

/// An address that no rule covers.
const PLT: u64 = BASE - 0x1000;

/// Walks from the PLT's instruction at `offset` of `code`, which code with the object's first rule has
/// called.
fn frames(code: &[u32], offset: u64) -> Vec<(FrameKind, u64)> {
    let mut world = World::new();
    world.java_thread = 0;
    let end = rule(CfaRule::EndOfStack, FpRule::Same);
    world.objects = object(&[rule(CfaRule::SpPlus(0x10), FpRule::Same), end], 42);
    world.memory.put_u64(0x100, 42).put(PLT, bytes(code));
    let sp = STACK + 0x100;
    world.set(sp + 8, BASE + 0x180);
    // x29 has the caller's value, and points to an older frame.
    world.set(sp + 0x40, 0).set(sp + 0x48, BASE + 0x20);
    let frames = world.walk(PLT + offset, sp, sp + 0x40, &[(LR, BASE + 0x80)]);
    frames.iter().map(|frame| (frame.0, frame.1)).collect()
}

#[test]
fn each_instruction_of_a_plts_entry_leads_to_the_caller() {
    // adrp x16, page; ldr x17, [x16, 24]; add x16, x16, 24; br x17; with and without bti c before it
    let entry = [0x9000_0010, 0xf940_0e11, 0x9100_6210, 0xd61f_0220];
    let protected = [&[0xd503_245f][..], &entry].concat();
    for code in [&entry[..], &protected] {
        for number in 0..code.len() as u64 {
            // The next entry follows.
            let walked = frames(&[code, &entry, &[0; 4]].concat(), 4 * number);
            let expected = [(Native, PLT + 4 * number), (Native, BASE + 0x7f), (Native, BASE + 0x17f)];
            assert_eq!(walked, expected, "instruction {number} of {}", code.len());
        }
    }
}

#[test]
fn other_code_that_jumps_is_no_plts() {
    // adrp x16, page; nop; br x17
    let walked = frames(&[0x9000_0010, NOP, 0xd61f_0220, 0, 0, 0, 0, 0], 0);
    assert_eq!(walked[1], (Native, BASE + 0x1f), "by x29");
}
