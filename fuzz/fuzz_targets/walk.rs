//! The walk that a signal handler makes, over memory of any content: it ends, within the given number of
//! frames and a bounded number of loads.
//!
//! The input is the registers, followed by all of the memory: a code cache with its heap, blobs, scopes,
//! methods, stack, chunks of frozen frames and an object's image may lie anywhere in it.
//! `cargo fuzz run walk`.

#![no_main]

#[path = "../../crates/signal/src/walk/tests/counted_memory.rs"]
mod counted_memory;
#[path = "../../crates/signal/src/walk/tests/every_rule.rs"]
mod every_rule;
#[path = "../../crates/signal/src/walk/tests/little_vm.rs"]
mod little_vm;

use std::sync::Arc;

use counted_memory::{CountedMemory, MOST_FAILED, MOST_LOADS};
use libfuzzer_sys::fuzz_target;
use otlpprof_core::address::{CodeRange, ElfVaddr, LoadBias, RuntimeAddr};
use otlpprof_core::collections::COLLECTIONS;
use otlpprof_core::continuation::*;
use otlpprof_core::interpreter_code::{
    InterpreterCode, InterpreterEntry, InterpreterExit, ThrowStage, ThrownTo, ValueLocation,
};
use otlpprof_core::memory::{Memory, RecordedMemory};
use otlpprof_core::object::{IdentityWord, LoadedObject, ObjectIndex, ObjectMap, TextRange};
use otlpprof_core::record::{FrameKind, FrameRecord};
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::unwind_table::UnwindTable;
use otlpprof_core::vm_layout::*;
use otlpprof_signal::walk;
use otlpprof_signal::walk::registers::Registers;
use otlpprof_signal::walk::{FrameSink, Start, Walk};

/// The start of memory; small, so that a byte or two of the input make an address.
const MEMORY: u64 = 0x100;
const DEPTH: usize = 64;

/// The code of an object, which ends at the start of the stubs.
const OBJECT: u64 = 0x140;
const STUBS: u64 = 0x180;
/// The number of bytes of code for each rule.
const RULE_BYTES: u32 = 3;

/// The interpreter's code: entries without a frame and with one, an exit, and the stages of a thrown
/// exception.
const INTERPRETER: CodeRange = CodeRange { start: STUBS, end: STUBS + 0x40 };
static ENTRIES: [InterpreterEntry; 2] = [
    InterpreterEntry {
        code: CodeRange { start: STUBS, end: STUBS + 0x10 },
        return_in_register: CodeRange { start: 0, end: 0 },
        push_fp: 0,
        sender_sp_saved: 0,
        method_saved: 0,
    },
    InterpreterEntry {
        code: CodeRange { start: STUBS + 0x10, end: STUBS + 0x20 },
        return_in_register: CodeRange { start: STUBS + 0x12, end: STUBS + 0x14 },
        push_fp: STUBS + 0x14,
        sender_sp_saved: STUBS + 0x1a,
        method_saved: STUBS + 0x1c,
    },
];
static EXITS: [InterpreterExit; 1] = [InterpreterExit {
    return_on_stack: CodeRange { start: STUBS + 0x20, end: STUBS + 0x24 },
    return_in_register: CodeRange { start: STUBS + 0x24, end: STUBS + 0x28 },
    uses_alternate_registers: false,
}];
static THROWS: [ThrowStage; 2] = [
    ThrowStage {
        start: STUBS + 0x28,
        caller: Some(ThrownTo {
            return_address: ValueLocation::AboveSp(8),
            sp: ValueLocation::InRegister(3),
        }),
    },
    ThrowStage { start: STUBS + 0x2c, caller: None },
];

/// The input's choices besides the content of memory.
#[derive(Clone, Copy)]
struct Choice(u64);

impl Choice {
    /// Whether the VM is like 25, or like 17.
    fn is_recent(self) -> bool {
        self.0 & 1 != 0
    }

    fn references(self) -> References {
        match self.0 >> 1 & 3 {
            0 => References::Plain,
            1 => References::Narrow { base: MEMORY, shift: 3 },
            2 => References::Mapped { bad_mask: MEMORY + 24 },
            _ => References::Coloured { bad_mask: MEMORY + 24 },
        }
    }

    fn klass_word(self) -> KlassWord {
        match self.0 >> 3 & 3 {
            0 => KlassWord::InMark(42),
            1 => KlassWord::Wide,
            _ => KlassWord::Narrow,
        }
    }

    /// Whether the object has an unwind table; otherwise call frame information is read in place.
    fn has_table(self) -> bool {
        self.0 >> 5 & 1 == 0
    }
}

/// Returns the layout of the walkers' little test VM, with its statics at the start of memory and its code
/// after them.
fn layout(choice: Choice) -> VmLayout {
    let mut layout = little_vm::layout();
    layout.code_cache.low_bound = MEMORY;
    layout.code_cache.high_bound = MEMORY + 8;
    layout.code_cache.heaps[0] = MEMORY + 16;
    let range = |start, bytes| CodeRange { start, end: start + bytes };
    layout.stubs.interpreter = INTERPRETER;
    layout.stubs.interpreter_code =
        InterpreterCode { entries: &ENTRIES, exits: &EXITS, throws: &THROWS, sender_sp_register: 13 };
    layout.stubs.call_stub = range(STUBS + 0x40, 0x20);
    layout.stubs.call_stub_return = STUBS + 0x48;
    layout.stubs.forward_exception = range(STUBS + 0x60, 0x20);
    if choice.is_recent() {
        layout.has_continuations = true;
        let part = |offset| BlobPart::FromPointer { base: 16, offset };
        layout.code_blob.frame_complete_width = 2;
        (layout.code_blob.code_begin, layout.code_blob.code_end) = (part(20), part(24));
        layout.nmethod.unsigned5_excluded = 1;
        layout.method.unsigned5_excluded = 1;
        layout.stubs.cont_thaw = range(STUBS + 0x80, 0x20);
        layout.stubs.cont_return_barrier = range(STUBS + 0xa0, 0x20);
        layout.stubs.cont_return_barrier_exception = range(STUBS + 0xc0, 0x20);
        let frozen = Some(frozen_layout(&layout.stubs, choice));
        layout.continuation =
            Some(ContinuationLayout { entry: 72, mounted: Some(MountedThreadLayout::Id(80)), frozen });
    }
    layout
}

fn frozen_layout(stubs: &StubLayout, choice: Choice) -> FrozenLayout {
    let thaw_stub = |code: CodeRange, pushed_bytes| ThawStub {
        code,
        makes_room: code.start + 4,
        pushed_bytes,
        returned_early: CodeRange { start: code.start + 8, end: code.start + 12 },
        returned: code.start + 14,
        takes_stack: code.start + 18,
    };
    FrozenLayout {
        tail: 16,
        parent: 16,
        size: 24,
        sp: 28,
        bottom: 32,
        max_thawing_size: 36,
        pc: 40,
        stack: 48,
        klass_word: choice.klass_word(),
        continuation_klasses: [1, 2],
        chunk_klass: 3,
        references: choice.references(),
        forwarding: Some(ForwardingLayout {
            tables: [MEMORY + 32, MEMORY + 40],
            granule_shift: 6,
            offset_mask: 0xffff,
            remapped_bit: 1 << 44,
            start: 0,
            alignment_shift: 8,
            ref_count: 12,
            length: 16,
            entries: 24,
        }),
        enter: 0x300,
        enter_special: 0x340,
        do_yield: 0x380,
        thaw_stubs: [
            thaw_stub(stubs.cont_thaw, 0),
            thaw_stub(stubs.cont_return_barrier, 24),
            thaw_stub(stubs.cont_return_barrier_exception, 24),
        ],
        preempt_stub: CodeRange { start: STUBS + 0xe0, end: STUBS + 0x100 },
    }
}

/// Returns an object with code for each kind of rule.
fn objects(memory: &RecordedMemory, choice: Choice) -> ObjectMap {
    let rules = every_rule::rules();
    let starts = (0..rules.len() as u32).map(|index| index * RULE_BYTES).collect();
    let indices = (0..rules.len() as u16).collect();
    let table = UnwindTable::new(ElfVaddr(0), starts, indices, rules.into()).expect("its parts fit");
    let object = LoadedObject {
        index: ObjectIndex(0),
        load_bias: LoadBias(OBJECT),
        build_id: None,
        identity: IdentityWord {
            address: RuntimeAddr(MEMORY),
            value: memory.load_u64(MEMORY).unwrap_or_default(),
        },
        unwind: if choice.has_table() { table.into() } else { Default::default() },
        frame_header: Some(RuntimeAddr(MEMORY + 48)),
        text: ElfVaddr(0)..ElfVaddr(STUBS - OBJECT),
    };
    let (start, end) = (RuntimeAddr(OBJECT), RuntimeAddr(STUBS));
    ObjectMap::new(vec![TextRange { start, end, object: Arc::new(object) }], 1)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((registers, memory)) = bytes.split_first_chunk::<38>() else { return };
    let mut words = registers.as_chunks::<2>().0.iter().map(|&word| u64::from(u16::from_le_bytes(word)));
    let mut word = || words.next().unwrap_or(0);
    let registers = Registers { general: std::array::from_fn(|_| word()), pc: word() };
    let (java_thread, choice) = (word(), Choice(word()));
    let layout = layout(choice);
    let mut recorded = RecordedMemory::default();
    recorded.put(MEMORY, memory);
    let objects = objects(&recorded, choice);
    let empty = FrameRecord { value: 0, aux: 0, kind: FrameKind::Truncated, level: 0, reserved: 0 };
    let mut frames = [empty; DEPTH];
    for walker in StackWalker::ALL {
        let vm = Some(&layout);
        let (stack_high, call_trace) = (u64::MAX, None);
        let (objects, collections) = (&objects, &COLLECTIONS);
        let start = Start {
            vm,
            objects,
            java_thread,
            stack_high,
            registers,
            walker,
            call_trace,
            collections,
            loader: |_| None,
        };
        let mut sink = FrameSink::new(&mut frames, None);
        let counted = CountedMemory::new(&recorded);
        Walk::new(&counted, start).walk(&mut sink);
        assert!(!sink.is_empty() && sink.len() <= DEPTH);
        assert!(counted.loads() <= MOST_LOADS, "{}", counted.loads());
        assert!(counted.failed() <= MOST_FAILED, "{}", counted.failed());
    }
});
