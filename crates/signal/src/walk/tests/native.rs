//! Native frames by unwind table.

use std::sync::{Arc, OnceLock};

use otlpprof_core::address::{ElfVaddr, LoadBias, RuntimeAddr};
use otlpprof_core::collections::COLLECTIONS;
use otlpprof_core::memory::RecordedMemory;
use otlpprof_core::object::{IdentityWord, LoadedObject, ObjectIndex, ObjectMap, TextRange};
use otlpprof_core::record::{FrameKind, FrameRecord};
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::unwind_rule::{CfaRule, FpRule, ReturnAddressRule, UnwindRule};
use otlpprof_core::unwind_table::{NO_RULE, UnwindTable};

use super::machine;
use crate::walk::registers::Registers;
use crate::walk::{FrameSink, Start, Walk, WalkError};

/// The start of the object's code.
pub(super) const BASE: u64 = 0x40_0000;
pub(super) const STACK: u64 = 0x7000;

pub(super) const fn rule(cfa: CfaRule, fp: FpRule) -> UnwindRule {
    UnwindRule { cfa, fp, return_address: ReturnAddressRule::AtCfaPlus(-8) }
}

/// An object with one rule per 0x100 bytes of code. Without rules, its table is not compiled yet.
pub(super) fn object(rules: &[UnwindRule], identity: u64) -> ObjectMap {
    let starts = (0..rules.len() as u32).map(|index| index * 0x100).collect();
    let indices = (0..rules.len() as u16).collect();
    let table = UnwindTable::new(ElfVaddr(0x1000), starts, indices, rules.into());
    let object = LoadedObject {
        index: ObjectIndex(3),
        load_bias: LoadBias(BASE - 0x1000),
        build_id: None,
        identity: IdentityWord { address: RuntimeAddr(0x100), value: identity },
        unwind: if rules.is_empty() { OnceLock::new() } else { table.unwrap().into() },
        frame_header: None,
        text: ElfVaddr(0x1000)..ElfVaddr(0x2000),
    };
    let range =
        TextRange { start: RuntimeAddr(BASE), end: RuntimeAddr(BASE + 0x1000), object: Arc::new(object) };
    ObjectMap::new(vec![range], 1)
}

/// An object with one rule per 0x100 bytes of code, followed by code that no rule covers.
pub(super) fn object_with_gap(rules: &[UnwindRule], identity: u64) -> ObjectMap {
    let starts = (0..=rules.len() as u32).map(|index| index * 0x100).collect();
    let indices = (0..rules.len() as u16).chain([NO_RULE]).collect();
    let table = UnwindTable::new(ElfVaddr(0x1000), starts, indices, rules.into()).unwrap();
    let map = object(&[], identity);
    assert!(map.ranges()[0].object.unwind.set(table).is_ok());
    map
}

fn walk(objects: &ObjectMap, words: &[(u64, u64)], pc: u64, sp: u64, fp: u64) -> Vec<(FrameKind, u64)> {
    walk_by(StackWalker::Vm, objects, words, (pc, sp, fp))
}

fn walk_by(
    walker: StackWalker,
    objects: &ObjectMap,
    words: &[(u64, u64)],
    registers: (u64, u64, u64),
) -> Vec<(FrameKind, u64)> {
    walk_over(RecordedMemory::default(), walker, objects, words, registers)
}

/// Walks over `memory`, to which the stack is added.
pub(super) fn walk_over(
    mut memory: RecordedMemory,
    walker: StackWalker,
    objects: &ObjectMap,
    words: &[(u64, u64)],
    (pc, sp, fp): (u64, u64, u64),
) -> Vec<(FrameKind, u64)> {
    memory.put_u64(0x100, 42);
    let mut stack = vec![0_u64; 0x100];
    for &(address, value) in words {
        stack[((address - STACK) / 8) as usize] = value;
    }
    memory.put(STACK, stack.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
    let mut registers = Registers { pc, ..Registers::default() };
    registers.general[machine::SP] = sp;
    registers.general[machine::FP] = fp;
    let start = Start {
        vm: None,
        objects,
        java_thread: 0,
        stack_high: STACK + 0x800,
        registers,
        walker,
        call_trace: None,
        collections: &COLLECTIONS,
        loader: |_| None,
    };
    let walk = Walk::new(&memory, start);
    let empty = FrameRecord { value: 0, aux: 0, kind: FrameKind::Truncated, level: 0, reserved: 0 };
    let mut frames = vec![empty; 32];
    let mut sink = FrameSink::new(&mut frames, None);
    walk.walk(&mut sink);
    let len = sink.len();
    frames[..len].iter().map(|frame| (frame.kind, frame.value)).collect()
}

#[test]
fn return_addresses_are_looked_up_in_the_call_and_the_leaf_where_it_stands() {
    let end = rule(CfaRule::EndOfStack, FpRule::Same);
    let rules =
        [rule(CfaRule::SpPlus(16), FpRule::Same), rule(CfaRule::FpPlus(16), FpRule::AtCfaPlus(-16)), end];
    let objects = object(&rules, 42);
    let words = [
        // The first frame's return address is the very first address of the third rule's range. The call
        // before it is in the second rule's range.
        (STACK + 0x18, BASE + 0x200),
        (STACK + 0x80, 0x5555),
        (STACK + 0x88, BASE + 0x280),
    ];
    let frames = walk(&objects, &words, BASE + 0x10, STACK + 0x10, STACK + 0x80);
    let native = |value| (FrameKind::Native, value);
    assert_eq!(frames, [native(BASE + 0x10), native(BASE + 0x1ff), native(BASE + 0x27f)]);
}

#[test]
fn an_object_that_was_replaced_in_place_is_not_trusted() {
    let rules = [rule(CfaRule::SpPlus(16), FpRule::Same)];
    let objects = object(&rules, 43);
    let frames = walk(&objects, &[], BASE + 0x10, STACK + 0x10, 0);
    assert_eq!(frames[1], (FrameKind::Unwalkable, BASE + 0x10));
}

/// Nothing says that the frame pointer register holds a frame pointer here, so the words that it points to
/// prove nothing.
#[test]
fn a_zero_at_a_guessed_frame_pointer_is_no_root() {
    let frames = walk(&object(&[], 42), &[], BASE + 0x10, STACK + 0x10, STACK + 0x80);
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[1].0, FrameKind::Unwalkable);
}

#[test]
fn an_unsupported_rule_is_marked() {
    let rules = [rule(CfaRule::Unsupported, FpRule::Same), rule(CfaRule::SpPlus(-16), FpRule::Same)];
    let objects = object(&rules, 42);
    assert_eq!(walk(&objects, &[], BASE + 0x10, STACK + 0x10, 0)[1].0, FrameKind::Unwalkable);
    // A walk with a CFA below SP would never end.
    let words = [(STACK + 0x28, BASE + 0x110)];
    let frames = walk(&objects, &words, BASE + 0x110, STACK + 0x40, 0);
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[1].0, FrameKind::Unwalkable);
    assert!(WalkError::ALL.contains(&WalkError::BadStackPointer));
}

#[test]
fn a_signal_frame_gives_the_interrupted_registers() {
    let rules = [rule(CfaRule::SignalFrame, FpRule::Same), rule(CfaRule::EndOfStack, FpRule::Same)];
    let objects = object(&rules, 42);
    let words = [
        (STACK + 0x100 + machine::SIGNAL_FRAME_PC, BASE + 0x100),
        (STACK + 0x100 + machine::SIGNAL_FRAME_SP, STACK + 0x40),
        (STACK + 0x100 + machine::SIGNAL_FRAME_FP, 0x77),
    ];
    let frames = walk(&objects, &words, BASE + 0x10, STACK + 0x100, 0);
    // The interrupted instruction's own address is looked up, not the address less one: the instruction may
    // be the first of a function.
    assert_eq!(frames, [(FrameKind::Native, BASE + 0x10), (FrameKind::Native, BASE + 0x100)]);
}

/// Regression: musl has no call frame information, and the stack of a signal handler ended at its trampoline.
#[test]
fn a_signal_trampoline_without_call_frame_information_gives_the_interrupted_registers() {
    const TRAMPOLINE: u64 = BASE + 0x280;
    let rules = [rule(CfaRule::SpPlus(0x10), FpRule::Same), rule(CfaRule::EndOfStack, FpRule::Same)];
    let objects = object_with_gap(&rules, 42);
    let words = [
        (STACK + 0xf8, TRAMPOLINE),
        (STACK + 0x100 + machine::SIGNAL_FRAME_PC, BASE + 0x100),
        (STACK + 0x100 + machine::SIGNAL_FRAME_SP, STACK + 0x40),
    ];
    let walk = |code: &[u8], pc: u64, sp: u64| {
        let mut memory = RecordedMemory::default();
        // The code before the trampoline has no call frame information either.
        memory.put(TRAMPOLINE - 0x10, [&[0x90; 0x10][..], code, &[0x90; 0x10]].concat());
        walk_over(memory, StackWalker::Vm, &objects, &words, (pc, sp, 0))
    };
    let native = |value| (FrameKind::Native, value);
    let handler = walk(machine::SIGNAL_TRAMPOLINE, BASE + 0x10, STACK + 0xf0);
    assert_eq!(handler, [native(BASE + 0x10), native(TRAMPOLINE - 1), native(BASE + 0x100)]);
    // The trampoline itself is interrupted, after the handler has returned to it.
    let trampoline = walk(machine::SIGNAL_TRAMPOLINE, TRAMPOLINE, STACK + 0x100);
    assert_eq!(trampoline, [native(TRAMPOLINE), native(BASE + 0x100)]);
    // Another system call has no signal frame.
    let mut other = machine::SIGNAL_TRAMPOLINE.to_vec();
    other[if cfg!(target_arch = "x86_64") { 3 } else { 0 }] ^= 0x20;
    assert_eq!(walk(&other, TRAMPOLINE, STACK + 0x100)[1].0, FrameKind::Unwalkable);
}
