//! Native code that has no call frame information, on x86_64.

use otlpprof_core::memory::RecordedMemory;
use otlpprof_core::record::FrameKind::{self, Native};
use otlpprof_core::unwind_rule::{CfaRule, FpRule};

use super::machine;
use crate::walk::registers::is_signal_return;
use crate::walk::tests::native::{BASE, object, rule};
use crate::walk::tests::vm_world::*;

/// An address that no rule covers.
const PLT: u64 = BASE - 0x1000;

/// Walks from the PLT's instruction at `offset` of `code`, with `pushed` bytes on the stack below the return
/// address.
fn frames(code: &[u8], offset: u64, pushed: u64) -> Vec<(FrameKind, u64)> {
    let mut world = World::new();
    world.java_thread = 0;
    let end = rule(CfaRule::EndOfStack, FpRule::Same);
    world.objects = object(&[rule(CfaRule::SpPlus(0x10), FpRule::Same), end], 42);
    let between_others = [&[0xcc; 0x10], code, &[0xcc; 0x10]].concat();
    world.memory.put_u64(0x100, 42).put(PLT - 0x10, between_others);
    let sp = STACK + 0x100;
    world.set(sp, BASE + 0x80).set(sp + 0x10, BASE + 0x180);
    // RBP has the caller's value, and points to an older frame.
    world.set(sp + 0x40, 0).set(sp + 0x48, BASE + 0x20);
    let frames = world.walk(PLT + offset, sp - pushed, sp + 0x40, &[]);
    frames.iter().map(|frame| (frame.0, frame.1)).collect()
}

/// Regression: samples in the PLT of a library that LLD has linked, as in this test, were marked.
#[test]
fn each_instruction_of_a_plts_entry_leads_to_the_caller() {
    // push [rip + 2]; jmp [rip + 4]; nop dword ptr [rax]
    let first = [0xff, 0x35, 2, 0, 0, 0, 0xff, 0x25, 4, 0, 0, 0, 0x0f, 0x1f, 0x40, 0];
    // jmp [rip + 8]; push 1; jmp
    let entry = [0xff, 0x25, 8, 0, 0, 0, 0x68, 1, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff];
    let code = [&first[..], &entry, &entry].concat();
    for (offset, pushed) in [(0, 8), (6, 16), (16, 0), (22, 0), (27, 8), (32, 0), (38, 0), (43, 8)] {
        let expected = [(Native, PLT + offset), (Native, BASE + 0x7f), (Native, BASE + 0x17f)];
        assert_eq!(frames(&code, offset, pushed), expected, "at {offset}");
    }
}

#[test]
fn other_code_that_jumps_is_no_plts() {
    // jmp [rip + 8]; nop…
    let mut code = vec![0xff, 0x25, 8, 0, 0, 0];
    code.resize(0x20, 0x90);
    assert_eq!(frames(&code, 0, 0)[1], (Native, BASE + 0x1f), "by RBP");
}

/// musl's code, and the shorter form of its first instruction, which other assemblers choose.
#[test]
fn both_forms_of_a_signal_trampoline_are_known_at_each_instruction() {
    let forms = [machine::SIGNAL_TRAMPOLINE, &[0xb8, 15, 0, 0, 0, 0x0f, 0x05]];
    for code in forms {
        let mut memory = RecordedMemory::default();
        memory.put(PLT - 0x10, [&[0xcc; 0x10], code, &[0xcc; 0x10]].concat());
        let found: Vec<_> = (0..code.len() as u64).filter(|at| is_signal_return(&memory, PLT + at)).collect();
        assert_eq!(found, [0, code.len() as u64 - 2], "{code:x?}");
    }
}
