//! Walks over states that no VM has: whatever is read, a walk ends, within its frames and a bounded number of loads.

use proptest::prelude::*;

use crate::core::collections::COLLECTIONS;
use crate::core::memory::Memory;
use crate::core::record::{FrameKind, FrameRecord};
use crate::core::stack_walker::StackWalker;
use crate::core::vm_layout::CodeRange;
use crate::signal::fault;
use crate::signal::safe_load::ProcessMemory;
use crate::signal::walk::registers::Registers;
use crate::signal::walk::tests::continuation::{self, CHUNK, SIZE, Scene};
use crate::signal::walk::tests::counted_memory::{CountedMemory, MOST_LOADS};
use crate::signal::walk::tests::vm_world::*;
use crate::signal::walk::tests::{little_vm, machine};
use crate::signal::walk::{FrameSink, Start, Walk};

const DEPTH: usize = 64;
/// An emulator takes a hundred times as long.
const CASES: u32 = if cfg!(target_arch = "x86_64") { 1500 } else { 40 };

/// Walks with each walker.
pub(super) fn assert_ends<M: Memory>(memory: &M, start: &Start<'_>) {
    let empty = FrameRecord { value: 0, aux: 0, kind: FrameKind::Truncated, level: 0, reserved: 0 };
    for walker in StackWalker::ALL {
        let counted = CountedMemory::new(memory);
        let mut frames = [empty; DEPTH];
        let mut sink = FrameSink::new(&mut frames, None);
        Walk::new(&counted, Start { walker, ..*start }).walk(&mut sink);
        assert!(!sink.is_empty() && sink.len() <= DEPTH, "{walker:?} {:?}", start.registers);
        assert!(counted.loads() <= MOST_LOADS, "{walker:?} {:?}", start.registers);
    }
}

/// Something that means something to a walker, or nothing.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (STACK / 8..STACK_HIGH / 8).prop_map(|word| word * 8),
        4 => CODE..CODE + 0x8000,
        2 => INTERPRETER.start..INTERPRETER.start + 0x800,
        1 => Just(CALL_STUB_RETURN),
        1 => Just(RETURN_BARRIER.start),
        1 => (METHODS / 8..METHODS / 8 + 0x400).prop_map(|word| word * 8),
        1 => any::<u64>(),
        1 => 0..64_u64,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn a_walk_over_a_corrupted_vm_ends(
        general in proptest::collection::vec(word(), Registers::default().general.len()),
        (pc, sp) in (word(), STACK / 8..STACK_HIGH / 8),
        stack in proptest::collection::vec(word(), 256),
        anchor in proptest::array::uniform3(word()),
        damage in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..64),
        code in proptest::collection::vec(prop_oneof![3 => Just(0x90_u8), 1 => any::<u8>()], 0x80),
    ) {
        let mut world = World::new();
        compiled_caller(&mut world);
        let (method, _) = world.method();
        let blobs = [
            ("nmethod", 0x30, 5),
            ("native nmethod", 0x50, 9),
            ("I2C/C2I adapters", 0, -1),
            ("vtable chunks", 0, -1),
            ("slow_subtype_check Runtime1 stub", 0, -1),
            ("StubRoutines (1)", 0, -1),
            ("SafepointBlob", 0x100, 0),
            ("ExceptionBlob", 16, -1),
            ("DeoptimizationBlob", 0x80, 0),
        ];
        let starts = blobs.map(|(name, frame_bytes, frame_complete)| {
            world.blob(&BlobSpec { name, code: &code, frame_bytes, frame_complete, method })
        });
        // In the StubRoutines.
        let stub = |offset| CodeRange { start: starts[5] + offset, end: starts[5] + offset + 0x20 };
        world.layout.stubs.call_stub = stub(0);
        world.layout.stubs.catch_exception = stub(0x20);
        world.layout.stubs.forward_exception = stub(0x40);
        world.layout.stubs.method_entry_barrier = stub(0x60);
        let mut registers = Registers { pc, ..Registers::default() };
        registers.general.copy_from_slice(&general);
        registers.general[machine::SP] = sp * 8;
        let low = sp.min((STACK_HIGH - 8 * 256) / 8) * 8;
        for (address, word) in (low..).step_by(8).zip(stack) {
            world.set(address, word);
        }
        for (field, word) in (THREAD..).step_by(8).zip(anchor) {
            world.memory.put_u64(field, word);
        }
        let (memory, start) = world.start(registers);
        assert_ends(memory, &start);
        damage.iter().for_each(|&(at, value)| world.memory.corrupt(at, value));
        let (memory, start) = world.start(registers);
        assert_ends(memory, &start);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    /// From a leaf on the stack whose caller is frozen, and from whatever thawing is at.
    #[test]
    fn a_walk_over_a_corrupted_continuation_ends(
        words in proptest::collection::vec((0..SIZE as usize, word()), 0..12),
        (sp, max_thawing_size) in (0..2 * SIZE, 0..2 * SIZE),
        parent in prop_oneof![Just(0), Just(CHUNK), word()],
        thawing in prop_oneof![2 => Just(None), 1 => (CONT_THAW.start..RETURN_BARRIER.end).prop_map(Some)],
        damage in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..64),
    ) {
        let mut scene = Scene::new();
        let mut stack = scene.usual_stack();
        words.iter().for_each(|&(place, word)| stack[place] = word);
        scene.chunk(CHUNK, parent, sp, max_thawing_size, &stack);
        scene.tell_layout();
        let (_, code) = scene.world.compiled();
        let mut registers = Registers { pc: thawing.unwrap_or(code + 0x80), ..Registers::default() };
        registers.general[machine::SP] = continuation::ENTRY - 0x30;
        scene.world.set(continuation::ENTRY - 8, RETURN_BARRIER.start);
        let (memory, start) = scene.world.start(registers);
        assert_ends(memory, &start);
        damage.iter().for_each(|&(at, value)| scene.world.memory.corrupt(at, value));
        let (memory, start) = scene.world.start(registers);
        assert_ends(memory, &start);
    }
}

/// Numbers that look random and are the same each time (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// The same over this process's memory, with pages that are not there, by the loads that a handler makes.
#[test]
fn a_walk_over_this_processs_memory_ends() {
    const PAGE: u64 = 4096;
    const PAGES: u64 = 16;
    fault::install().unwrap();
    // SAFETY: a fresh mapping, some of whose pages are taken away again; nothing else refers to it.
    let base = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let area = libc::mmap(std::ptr::null_mut(), (PAGE * PAGES) as usize, access, flags, -1, 0);
        assert_ne!(area, libc::MAP_FAILED);
        for hole in [3, 7, 11] {
            assert_eq!(libc::munmap(area.byte_add((hole * PAGE) as usize), PAGE as usize), 0);
        }
        area as u64
    };
    let end = base + PAGE * PAGES;
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut layout = little_vm::layout();
    layout.code_cache.low_bound = base;
    layout.code_cache.high_bound = base + 8;
    layout.code_cache.heaps[0] = base + 16;
    layout.stubs.interpreter = CodeRange { start: base + 4 * PAGE, end: base + 5 * PAGE };
    layout.stubs.call_stub = CodeRange { start: base + 5 * PAGE, end: base + 5 * PAGE + 0x100 };
    layout.stubs.call_stub_return = base + 5 * PAGE + 0x80;
    let mut word = move || match numbers.next() % 8 {
        0 => numbers.next(),
        1 => numbers.next() % 256,
        2 => base + numbers.next() % (PAGE * PAGES),
        _ => base + numbers.next() % (PAGE * PAGES) / 8 * 8,
    };
    for round in 0..4000 {
        if round % 40 == 0 {
            for address in (base..end).step_by(8).filter(|at| ![3, 7, 11].contains(&((at - base) / PAGE))) {
                // SAFETY: a word of the area, in a page that is there.
                unsafe { (address as *mut u64).write(word()) };
            }
            // SAFETY: as before: the bounds of the code.
            unsafe { (base as *mut [u64; 2]).write([base, end]) };
        }
        let registers = Registers { general: std::array::from_fn(|_| word()), pc: word() };
        assert_ends(
            &ProcessMemory,
            &Start {
                vm: Some(&layout),
                objects: &Default::default(),
                java_thread: if round % 4 == 0 { 0 } else { word() },
                stack_high: if round % 2 == 0 { end } else { u64::MAX },
                registers,
                walker: StackWalker::Vm,
                call_trace: None,
                collections: &COLLECTIONS,
            },
        );
    }
    for (start, pages) in [(0, 3), (4, 3), (8, 3), (12, 4)] {
        // SAFETY: what is left of the mapping.
        unsafe { libc::munmap((base + start * PAGE) as *mut libc::c_void, (pages * PAGE) as usize) };
    }
}
