//! The walk that a signal handler makes, over memory of any content: it ends, within the frames that it was given.
//!
//! The input is the registers, and then all the memory that there is: a code cache with its heap, blobs, scopes,
//! methods and stack may lie anywhere in it. `cargo fuzz run walk`.

#![no_main]

#[path = "../../src/signal/walk/tests/little_vm.rs"]
mod little_vm;

use libfuzzer_sys::fuzz_target;
use otlpprof::core;
use otlpprof::core::collections::COLLECTIONS;
use otlpprof::core::continuation::ContinuationLayout;
use otlpprof::core::memory::RecordedMemory;
use otlpprof::core::object::ObjectMap;
use otlpprof::core::record::{FrameKind, FrameRecord};
use otlpprof::core::stack_walker::StackWalker;
use otlpprof::core::vm_layout::*;
use otlpprof::signal::walk::registers::Registers;
use otlpprof::signal::walk::{FrameSink, Start, Walk};

/// Where memory begins; small, so that a byte or two of the input make an address.
const MEMORY: u64 = 0x100;
const DEPTH: usize = 64;

/// The little VM of the walkers' tests, with its statics at the beginning of memory and its code in what follows.
fn layout(java_version: u32) -> VmLayout {
    let mut layout = little_vm::layout();
    layout.java_version = java_version;
    layout.code_cache.low_bound = MEMORY;
    layout.code_cache.high_bound = MEMORY + 8;
    layout.code_cache.heaps[0] = MEMORY + 16;
    layout.stubs.interpreter = CodeRange { start: 0x180, end: 0x1c0 };
    layout.stubs.call_stub = CodeRange { start: 0x1c0, end: 0x1e0 };
    layout.stubs.call_stub_return = 0x1c8;
    layout.stubs.forward_exception = CodeRange { start: 0x1e0, end: 0x200 };
    if java_version > 20 {
        let part = |offset| BlobPart::FromPointer { base: 16, offset };
        layout.code_blob.frame_complete_width = 2;
        (layout.code_blob.code_begin, layout.code_blob.code_end) = (part(20), part(24));
        layout.nmethod.comp_level_width = 1;
        layout.nmethod.unsigned5_excluded = 1;
        layout.method.unsigned5_excluded = 1;
        layout.continuation = Some(ContinuationLayout { entry: 72, frozen: None });
    }
    layout
}

fuzz_target!(|bytes: &[u8]| {
    let Some((registers, memory)) = bytes.split_first_chunk::<38>() else { return };
    let mut words = registers.as_chunks::<2>().0.iter().map(|&word| u64::from(u16::from_le_bytes(word)));
    let mut word = || words.next().unwrap_or(0);
    let registers = Registers { general: std::array::from_fn(|_| word()), pc: word() };
    let (java_thread, choice) = (word(), word());
    let layout = layout(if choice & 1 == 0 { 17 } else { 25 });
    let mut recorded = RecordedMemory::default();
    recorded.put(MEMORY, memory);
    let objects = ObjectMap::default();
    let empty = FrameRecord { value: 0, aux: 0, kind: FrameKind::Truncated, level: 0, reserved: 0 };
    let mut frames = [empty; DEPTH];
    for walker in StackWalker::ALL {
        let vm = Some(&layout);
        let (stack_high, call_trace) = (u64::MAX, None);
        let (objects, collections) = (&objects, &COLLECTIONS);
        let start =
            Start { vm, objects, java_thread, stack_high, registers, walker, call_trace, collections };
        let mut sink = FrameSink::new(&mut frames, None);
        Walk::new(&recorded, start).walk(&mut sink);
        assert!(!sink.is_empty() && sink.len() <= DEPTH);
    }
});
