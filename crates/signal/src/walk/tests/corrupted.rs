//! Walks over states that no VM has. Whatever is read, a walk ends, within its frames and a bounded number of
//! loads.

use std::sync::Arc;

use otlpprof_core::address::{CodeRange, ElfVaddr, LoadBias, RuntimeAddr};
use otlpprof_core::collections::COLLECTIONS;
use otlpprof_core::continuation::*;
use otlpprof_core::interpreter_code::{ThrowStage, ThrownTo, ValueLocation};
use otlpprof_core::memory::Memory;
use otlpprof_core::object::{IdentityWord, LoadedObject, ObjectIndex, ObjectMap, TextRange};
use otlpprof_core::record::FrameKind::{Compiled, Native};
use otlpprof_core::record::{FrameKind, FrameRecord};
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::unwind_table::UnwindTable;
use proptest::prelude::*;

use super::continuation::{
    BAD_MASK, CHUNK, CHUNK_KLASS, CONTINUATION, CONTINUATION_KLASS, ENTRY, ENTRY_FIELD, FRAME, PARENT,
    PREEMPT, SIZE, Scene,
};
use super::counted_memory::{CountedMemory, MOST_FAILED, MOST_LOADS};
use super::relocated::{INDEX, YOUNG, entry, forward, refer};
use super::{every_rule, little_vm, machine, native, relocated};
use crate::fault;
use crate::safe_load::ProcessMemory;
use crate::walk::registers::Registers;
use crate::walk::tests::vm_world::*;
use crate::walk::{FrameSink, Start, Walk};

const DEPTH: usize = 64;
/// An emulator takes a hundred times as long as a processor.
const CASES: u32 = if cfg!(target_arch = "x86_64") { 1500 } else { 40 };
/// The word that identifies the object that was mapped.
const IDENTITY: u64 = 42;
/// The words that the frames of a complete chunk take.
const WHOLE: u32 = 2 * FRAME as u32;

static THROWS: [ThrowStage; 2] = [
    ThrowStage {
        start: DISPATCH,
        caller: Some(ThrownTo {
            return_address: ValueLocation::AboveSp(16),
            sp: ValueLocation::InRegister(3),
        }),
    },
    ThrowStage { start: DISPATCH + 0x80, caller: None },
];

/// Walks with each walker, and checks that the walk ends within its bounds.
pub(super) fn assert_ends<M: Memory>(memory: &M, start: &Start<'_>) {
    let empty = FrameRecord { value: 0, aux: 0, kind: FrameKind::Truncated, level: 0, reserved: 0 };
    for walker in StackWalker::ALL {
        let counted = CountedMemory::new(memory);
        let mut frames = [empty; DEPTH];
        let mut sink = FrameSink::new(&mut frames, None);
        Walk::new(&counted, Start { walker, ..*start }).walk(&mut sink);
        assert!(!sink.is_empty() && sink.len() <= DEPTH, "{walker:?} {:?}", start.registers);
        assert!(counted.loads() <= MOST_LOADS, "{walker:?} {:?}", start.registers);
        assert!(counted.failed() <= MOST_FAILED, "{walker:?} {:?}", start.registers);
    }
}

const NARROW: References = References::Narrow { base: 0x60_0000, shift: 3 };

/// The kind of references, and the remapping of coloured pointers. A remapping other than the highest one
/// leads to the chunk's old place.
fn references() -> impl Strategy<Value = (References, u32)> {
    let kind = prop_oneof![
        Just(References::Plain),
        Just(NARROW),
        Just(References::Mapped { bad_mask: BAD_MASK }),
        Just(References::Coloured { bad_mask: BAD_MASK }),
    ];
    (kind, 0..4_u32)
}

/// Adds native code with rules of each kind to a world.
fn with_native_code(world: &mut World) {
    world.objects = native::object(&every_rule::rules(), IDENTITY);
    world.memory.put_u64(0x100, IDENTITY);
}

/// The world of a virtual thread, with native code too, that refers to its chunk in this way.
fn scene((references, remapping): (References, u32)) -> Scene {
    let mut scene = relocated::scene(references);
    with_native_code(&mut scene.world);
    scene.world.memory.put(PREEMPT.start, vec![0x90; 0x100]);
    match references {
        References::Plain | References::Mapped { .. } => {
            scene.world.memory.put_u64(BAD_MASK, 1 << 42 | 1 << 44);
        }
        References::Narrow { base, shift } => {
            scene.object(CONTINUATION, CONTINUATION_KLASS, (CHUNK - base) >> shift);
        }
        References::Coloured { .. } => {
            scene.world.memory.put_u64(BAD_MASK, machine::bad_mask(3));
            scene.object(CONTINUATION, CONTINUATION_KLASS, machine::coloured(CHUNK, 3));
            if remapping != 3 {
                refer(&mut scene, remapping, 0);
                for generation in [YOUNG, 1 - YOUNG] {
                    forward(&mut scene, generation, &[entry(INDEX, CHUNK)], 0);
                }
            }
        }
    }
    scene
}

/// The registers of a leaf whose caller is frozen. The leaf is Java code, or native code that Java has
/// called.
fn registers_of_leaf(world: &mut World, code: u64, native_pc: Option<u64>) -> Registers {
    let sp = ENTRY - 0x30;
    world.set(ENTRY - 8, RETURN_BARRIER.start).set(sp - 8, code + 0x80);
    let mut registers = Registers { pc: native_pc.unwrap_or(code + 0x80), ..Registers::default() };
    registers.general[machine::SP] = if native_pc.is_some() { sp - 16 } else { sp };
    registers
}

/// Before it is damaged, the world that is damaged below is walked through native, Java and frozen frames.
#[test]
fn the_undamaged_world_is_walked_through_frames_of_each_kind() {
    for references in [
        References::Plain,
        NARROW,
        References::Mapped { bad_mask: BAD_MASK },
        References::Coloured { bad_mask: BAD_MASK },
    ] {
        for remapping in 0..4 {
            let mut scene = scene((references, remapping));
            let (leaf, code) = scene.world.compiled();
            let pc = native::BASE + 0x10;
            let registers = registers_of_leaf(&mut scene.world, code, Some(pc));
            let [caller, enter] = scene.whole();
            let frames = scene.walk_from(pc, registers.general[machine::SP], &[]);
            let expected = [(Native, pc, 3), (Compiled, leaf, 7), caller, enter];
            assert_eq!(frames, expected, "{references:?} {remapping}");
        }
    }
}

/// A word that a walker may take for an address or value of some kind, or a meaningless word.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => (STACK / 8..STACK_HIGH / 8).prop_map(|word| word * 8),
        4 => CODE..CODE + 0x8000,
        2 => INTERPRETER.start..INTERPRETER.start + 0x800,
        1 => Just(CALL_STUB_RETURN),
        1 => Just(RETURN_BARRIER.start),
        2 => native::BASE..native::BASE + 0x1000,
        1 => (METHODS / 8..METHODS / 8 + 0x400).prop_map(|word| word * 8),
        2 => (0..4_u64).prop_map(|number| METHODS + number * METHOD_BYTES),
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
        with_native_code(&mut world);
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
            ("MethodHandles adapters", 0, -1),
        ];
        let starts = blobs.map(|(name, frame_bytes, frame_complete)| {
            world.blob(&BlobSpec { name, code: &code, frame_bytes, frame_complete, method })
        });
        // A range in the blob of StubRoutines.
        let stub = |offset| CodeRange { start: starts[5] + offset, end: starts[5] + offset + 0x20 };
        world.layout.stubs.call_stub = stub(0);
        world.layout.stubs.catch_exception = stub(0x20);
        world.layout.stubs.forward_exception = stub(0x40);
        world.layout.stubs.method_entry_barrier = stub(0x60);
        world.put_interpreter_code(FRAMELESS.code.start, &code[..0x40]);
        world.layout.stubs.interpreter_code.throws = &THROWS;
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

    /// Walks from a leaf on the stack whose caller is frozen, or from any instruction of the stubs that thaw.
    #[test]
    fn a_walk_over_a_corrupted_continuation_ends(
        references in references(),
        words in proptest::collection::vec((0..SIZE as usize, word()), 0..12),
        sp in prop_oneof![2 => Just(SIZE - WHOLE), 1 => 0..2 * SIZE],
        max_thawing_size in prop_oneof![2 => Just(WHOLE), 2 => 0..2 * SIZE, 1 => any::<u32>()],
        parent in prop_oneof![2 => Just(0), 2 => Just(PARENT), 1 => Just(CHUNK), 1 => word()],
        (native_pc, thawing) in (
            prop_oneof![Just(None), (native::BASE..native::BASE + 0x1000).prop_map(Some)],
            prop_oneof![2 => Just(None), 1 => (CONT_THAW.start..PREEMPT.end).prop_map(Some)],
        ),
        damage in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..64),
    ) {
        let mut scene = scene(references);
        let mut stack = scene.usual_stack();
        scene.chunk(PARENT, 0, SIZE - FRAME as u32, FRAME as u32, &stack);
        words.iter().for_each(|&(place, word)| stack[place] = word);
        scene.chunk(CHUNK, parent, sp, max_thawing_size, &stack);
        scene.publish_layout();
        let (_, code) = scene.world.compiled();
        let mut registers = registers_of_leaf(&mut scene.world, code, native_pc);
        registers.pc = thawing.unwrap_or(registers.pc);
        let (memory, start) = scene.world.start(registers);
        assert_ends(memory, &start);
        damage.iter().for_each(|&(at, value)| scene.world.memory.corrupt(at, value));
        let (memory, start) = scene.world.start(registers);
        assert_ends(memory, &start);
    }
}

/// A generator of numbers that look random and are the same in each run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// An object whose code begins at `start`, and has each rule in turn.
fn objects_at(start: u64, identity: RuntimeAddr) -> ObjectMap {
    const CODE_BYTES: u64 = 0x2000;
    const RULE_BYTES: u32 = 0x20;
    let rules = every_rule::rules();
    let starts = (0..CODE_BYTES as u32).step_by(RULE_BYTES as usize).collect();
    let indices = (0..(CODE_BYTES as u32 / RULE_BYTES) as u16).map(|at| at % rules.len() as u16).collect();
    let table = UnwindTable::new(ElfVaddr(0), starts, indices, rules.into()).unwrap();
    let object = LoadedObject {
        index: ObjectIndex(0),
        load_bias: LoadBias(start),
        build_id: None,
        identity: IdentityWord { address: identity, value: IDENTITY },
        unwind: table.into(),
        frame_header: None,
        text: ElfVaddr(0)..ElfVaddr(CODE_BYTES),
    };
    let range = TextRange {
        start: RuntimeAddr(start),
        end: RuntimeAddr(start + CODE_BYTES),
        object: Arc::new(object),
    };
    ObjectMap::new(vec![range], 1)
}

/// Walks over this process's memory, some of whose pages are unmapped, by the loads that a handler makes.
#[test]
fn a_walk_over_this_processs_memory_ends() {
    const PAGE: u64 = 4096;
    const PAGES: u64 = 16;
    fault::install().unwrap();
    // SAFETY: a fresh mapping, some of whose pages are unmapped again; nothing else refers to it.
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
    let (thread, entry) = (base + 2 * PAGE, base + 6 * PAGE);
    let (continuation, chunk) = (base + 8 * PAGE, base + 9 * PAGE);
    let mut layout = little_vm::layout();
    layout.continuation = Some(ContinuationLayout {
        entry: ENTRY_FIELD as u32,
        mounted: Some(MountedThreadLayout::Id(80)),
        frozen: Some(Scene::new().frozen),
    });
    layout.code_cache.low_bound = base;
    layout.code_cache.high_bound = base + 8;
    layout.code_cache.heaps[0] = base + 16;
    layout.stubs.interpreter = CodeRange { start: base + 4 * PAGE, end: base + 5 * PAGE };
    layout.stubs.call_stub = CodeRange { start: base + 5 * PAGE, end: base + 5 * PAGE + 0x100 };
    layout.stubs.call_stub_return = base + 5 * PAGE + 0x80;
    let objects = objects_at(base + 12 * PAGE, RuntimeAddr(base + 48));
    let mut word = move || match numbers.next() % 8 {
        0 => numbers.next(),
        1 => numbers.next() % 256,
        2 => base + numbers.next() % (PAGE * PAGES),
        _ => base + numbers.next() % (PAGE * PAGES) / 8 * 8,
    };
    for round in 0..4000 {
        if round % 40 == 0 {
            for address in (base..end).step_by(8).filter(|at| ![3, 7, 11].contains(&((at - base) / PAGE))) {
                // SAFETY: a word of the area, in a page that is mapped.
                unsafe { (address as *mut u64).write(word()) };
            }
            // SAFETY: the first words of the area, in a mapped page: the bounds of the code, its heap, and
            // the object's identity word.
            unsafe { (base as *mut [u64; 7]).write([base, end, base, end, base + PAGE, 7, IDENTITY]) };
            let fields = [(thread + ENTRY_FIELD, entry), (entry + 16, continuation)];
            let references = [(continuation, CONTINUATION_KLASS, chunk), (chunk, CHUNK_KLASS, continuation)];
            let words = references.into_iter().flat_map(|(object, klass, reference)| {
                [(object, 1), (object + 8, u64::from(klass)), (object + 16, reference)]
            });
            // Size, sp, bottom, and `maxThawingSize`.
            let bounds = [(chunk + 24, 0x1e0 | 8 << 32), (chunk + 32, 0x1e0 | 0x1d8 << 32)];
            for (address, value) in fields.into_iter().chain(words).chain(bounds) {
                // SAFETY: words of the area, in pages that are mapped.
                unsafe { (address as *mut u64).write(value) };
            }
        }
        let registers = Registers { general: std::array::from_fn(|_| word()), pc: word() };
        assert_ends(
            &ProcessMemory,
            &Start {
                vm: Some(&layout),
                objects: &objects,
                java_thread: [0, word(), thread, thread][round % 4],
                stack_high: if round % 2 == 0 { end } else { u64::MAX },
                registers,
                walker: StackWalker::Vm,
                call_trace: None,
                collections: &COLLECTIONS,
                loader: |_| None,
            },
        );
    }
    for (start, pages) in [(0, 3), (4, 3), (8, 3), (12, 4)] {
        // SAFETY: the parts of the mapping that are left.
        unsafe { libc::munmap((base + start * PAGE) as *mut libc::c_void, (pages * PAGE) as usize) };
    }
}
