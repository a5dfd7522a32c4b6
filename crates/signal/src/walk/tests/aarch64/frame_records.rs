//! Frame records, which are at the bottom of their frames on aarch64.

use std::sync::Arc;

use otlpprof_core::address::{ElfVaddr, LoadBias, RuntimeAddr};
use otlpprof_core::memory::RecordedMemory;
use otlpprof_core::object::{LoadedObject, ObjectMap, TextRange};
use otlpprof_core::record::FrameKind::Native;
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::unwind_rule::{CfaRule, FpRule, ReturnAddressRule, UnwindRule};
use otlpprof_core::unwind_table::UnwindTable;

use crate::walk::tests::native::{BASE, STACK, object, rule, walk_over};

/// The start of the code of an object without frame pointers.
const WITHOUT: u64 = BASE + 0x1000;
/// The bytes of a frame with a record at its bottom.
const FRAME: i32 = 0x40;

/// An object whose functions have records, but for the first, and an object without.
fn objects() -> ObjectMap {
    let record = UnwindRule {
        cfa: CfaRule::SpPlus(FRAME),
        fp: FpRule::AtCfaPlus(-FRAME),
        return_address: ReturnAddressRule::AtCfaPlus(8 - FRAME),
    };
    let with = object(&[&[rule(CfaRule::SpPlus(16), FpRule::Same)][..], &[record; 8]].concat(), 42);
    let rules = [rule(CfaRule::SpPlus(0x20), FpRule::Same), rule(CfaRule::EndOfStack, FpRule::Same)];
    let table =
        UnwindTable::new(ElfVaddr(0x1000), Box::new([0, 0x100]), Box::new([0, 1]), rules.into()).unwrap();
    assert!(!table.keeps_frame_pointers());
    let first = &with.ranges()[0];
    let without = LoadedObject {
        index: first.object.index,
        load_bias: LoadBias(WITHOUT - 0x1000),
        build_id: None,
        identity: first.object.identity,
        unwind: table.into(),
        frame_header: None,
        text: ElfVaddr(0x1000)..ElfVaddr(0x2000),
    };
    let range = TextRange {
        start: RuntimeAddr(WITHOUT),
        end: RuntimeAddr(WITHOUT + 0x1000),
        object: Arc::new(without),
    };
    ObjectMap::new(vec![first.clone(), range], 1)
}

/// Regression: below a function with a frame record, functions without frame pointers were walked from the
/// end of the record, and the rest of the stack was lost: 5 % of the stacks of a program under `cstack=fp`.
#[test]
fn fp_has_the_stack_pointer_of_callers_without_frame_pointers() {
    let record = STACK + 0x20;
    let caller_sp = record + FRAME as u64;
    let words = [
        (record - 8, BASE + 0x110),
        (record, 0x55),
        (record + 8, WITHOUT + 0x10),
        // Words that are read if the stack pointer is that above the record.
        (record + 0x28, WITHOUT + 0x90),
        (caller_sp + 0x18, WITHOUT + 0x110),
    ];
    let registers = (BASE + 0x10, STACK + 0x10, record);
    let frames = walk_over(RecordedMemory::default(), StackWalker::Fp, &objects(), &words, registers);
    let expected = [BASE + 0x10, BASE + 0x10f, WITHOUT + 0xf, WITHOUT + 0x10f];
    assert_eq!(frames, expected.map(|pc| (Native, pc)));
}
