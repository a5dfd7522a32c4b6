//! A VM of bytes: a code cache with one heap, an interpreter, methods, and a stack for the tests' frames.

use std::ops::Range;

use otlpprof_core::address::CodeRange;
use otlpprof_core::collections::Collections;
use otlpprof_core::interpreter_code::{InterpreterCode, InterpreterEntry, InterpreterExit};
use otlpprof_core::memory::{Memory, RecordedMemory};
use otlpprof_core::object::ObjectMap;
use otlpprof_core::record::{FrameKind, FrameRecord};
use otlpprof_core::stack_walker::StackWalker;
use otlpprof_core::vm_layout::*;

use super::counted_memory::CountedMemory;
use super::little_vm;
use super::machine;
use crate::call_trace::CallTraceSource;
use crate::walk::registers::Registers;
use crate::walk::{FrameSink, Start, Walk};

pub(super) const CODE: u64 = 0x10_0000;
const CODE_END: u64 = 0x20_0000;
const STATICS: u64 = 0x1000;
const HEAP: u64 = 0x2000;
const SEGMAP: u64 = 0x3000;
const NAMES: u64 = 0x5000;
pub(super) const METHODS: u64 = 0x30_0000;
/// The distance from one method to the next, in bytes.
pub(super) const METHOD_BYTES: u64 = 0x1000;
pub(super) const STACK: u64 = 0x70_0000;
pub(super) const STACK_HIGH: u64 = 0x71_0000;
pub(super) const THREAD: u64 = 0x60_0000;
pub(super) const INTERPRETER: CodeRange = CodeRange { start: 0x1f_0000, end: 0x1f_8000 };
/// The readable bytes of the interpreter.
const INTERPRETER_BYTES: usize = 0x1000;
pub(super) const CALL_STUB_RETURN: u64 = 0x1f_9000;
pub(super) const CONT_THAW: CodeRange = CodeRange { start: 0x1f_a000, end: 0x1f_a100 };
pub(super) const RETURN_BARRIER: CodeRange = CodeRange { start: 0x1f_a100, end: 0x1f_a200 };
const SEGMENT_SHIFT: u32 = 7;
/// The offset of the code in a blob.
pub(super) const BLOB_HEADER: u64 = 0x80;

/// The interpreter's stages in the little VM.
pub(super) const ENTRY: InterpreterEntry = InterpreterEntry {
    code: CodeRange { start: INTERPRETER.start, end: INTERPRETER.start + 0x100 },
    return_in_register: CodeRange { start: INTERPRETER.start + 0x20, end: INTERPRETER.start + 0x30 },
    push_fp: INTERPRETER.start + 0x30,
    sender_sp_saved: INTERPRETER.start + 0x36,
    method_saved: INTERPRETER.start + 0x40,
};
pub(super) const EXIT: InterpreterExit = InterpreterExit {
    return_on_stack: CodeRange { start: INTERPRETER.start + 0x201, end: INTERPRETER.start + 0x203 },
    return_in_register: CodeRange { start: INTERPRETER.start + 0x203, end: INTERPRETER.start + 0x209 },
    uses_alternate_registers: false,
};
/// An entry without a frame.
pub(super) const FRAMELESS: InterpreterEntry = InterpreterEntry {
    code: CodeRange { start: INTERPRETER.start + 0x600, end: INTERPRETER.start + 0x640 },
    return_in_register: CodeRange { start: 0, end: 0 },
    push_fp: 0,
    sender_sp_saved: 0,
    method_saved: 0,
};
/// An address in the middle of some bytecode.
pub(super) const DISPATCH: u64 = INTERPRETER.start + 0x400;

/// The VM, its memory, and the addresses of the next blob, name and method.
pub(super) struct World {
    pub(super) memory: RecordedMemory,
    pub(super) layout: VmLayout,
    pub(super) objects: ObjectMap,
    pub(super) java_thread: u64,
    /// Whether walkers know the layout.
    pub(super) is_known: bool,
    pub(super) walker: StackWalker,
    pub(super) call_trace: Option<CallTraceSource>,
    pub(super) collections: Collections,
    /// For methods that are made from now on: the offset of the last instruction of a first scope, with bci
    /// 3.
    pub(super) first_scope_ends_at: Option<i32>,
    /// For methods that are made from now on: the offset at which the last scope ends, if it ends before the
    /// stubs.
    pub(super) scopes_end_at: Option<i32>,
    next_blob: u64,
    next_name: u64,
    next_method: u64,
    stack: Vec<u64>,
}

/// The offset of the stubs in a compiled method's code.
pub(super) const STUBS: usize = 0x700;

/// The bytes that a barrier's stub saves on the frame, and the offset in the method's code to which the stub
/// jumps back.
pub(super) const BARRIER_SAVES: u64 = 0x20;
pub(super) const BARRIER_CONTINUATION: usize = 0x80;

/// The name of an adapter from an AOT cache.
const ADAPTER_OF_AOT_CACHE: &str = "LJ";
/// A blob for safepoint polls whose name does not tell.
pub(super) const SAFEPOINT_BY_KIND: &str = "polling_page_return_handler_blob (shared runtime)";

/// The properties of a blob.
pub(super) struct BlobSpec<'a> {
    pub(super) name: &'a str,
    pub(super) code: &'a [u8],
    pub(super) frame_bytes: i32,
    pub(super) frame_complete: i32,
    pub(super) method: u64,
}

/// The expected bytecode index at `offset` of a method with its exit, or another entry, at `exit`.
/// Instructions that make or remove the frame belong to no scope.
pub(super) fn bci_beside_scopes(offset: u64, frame_complete: i32, exit: Range<u64>) -> i32 {
    match offset {
        _ if offset < frame_complete as u64 => 0,
        _ if exit.contains(&offset) => -1,
        _ => 7,
    }
}

impl World {
    pub(super) fn new() -> Self {
        let mut memory = RecordedMemory::default();
        memory.put_u64(STATICS, CODE).put_u64(STATICS + 8, CODE_END);
        memory.put_u64(HEAP, CODE).put_u64(HEAP + 8, CODE_END).put_u64(HEAP + 16, SEGMAP);
        memory.put(HEAP + 24, SEGMENT_SHIFT.to_le_bytes());
        let mut layout = little_vm::layout();
        layout.thread.entry_frame_call_wrapper = machine::CALL_WRAPPER;
        layout.code_cache.low_bound = STATICS;
        layout.code_cache.high_bound = STATICS + 8;
        layout.code_cache.heaps[0] = HEAP;
        layout.stubs = StubLayout {
            interpreter: INTERPRETER,
            call_stub_return: CALL_STUB_RETURN,
            cont_thaw: CONT_THAW,
            cont_return_barrier: RETURN_BARRIER,
            ..StubLayout::default()
        };
        layout.stubs.interpreter_code = InterpreterCode {
            entries: &[ENTRY, FRAMELESS],
            exits: &[EXIT],
            throws: &[],
            sender_sp_register: machine::SENDER_SP_REGISTER,
        };
        // The interpreter's code, and the segments, which are all free.
        memory.put(INTERPRETER.start, vec![0x90; INTERPRETER_BYTES]);
        memory.put(SEGMAP, vec![0xff; ((CODE_END - CODE) >> SEGMENT_SHIFT) as usize]);
        let stack = vec![0; ((STACK_HIGH - STACK) / 8) as usize];
        for field in [0, 8, 16, little_vm::VFRAME_ARRAY_HEAD] {
            memory.put_u64(THREAD + field, 0);
        }
        memory.put(THREAD + 24, 8_u32.to_le_bytes());
        Self {
            memory,
            layout,
            objects: ObjectMap::default(),
            java_thread: THREAD,
            is_known: true,
            walker: StackWalker::Vm,
            call_trace: None,
            collections: Collections::default(),
            first_scope_ends_at: None,
            scopes_end_at: None,
            next_blob: CODE,
            next_name: NAMES,
            next_method: METHODS,
            stack,
        }
    }

    /// Sets a word of the stack.
    pub(super) fn set(&mut self, address: u64, value: u64) -> &mut Self {
        self.stack[((address - STACK) / 8) as usize] = value;
        self
    }

    /// Puts `code` at `address` of the interpreter's code, with `nop`s around it.
    pub(super) fn put_interpreter_code(&mut self, address: u64, code: &[u8]) -> &mut Self {
        let mut interpreter = vec![0x90; INTERPRETER_BYTES];
        interpreter[(address - INTERPRETER.start) as usize..][..code.len()].copy_from_slice(code);
        self.memory.put(INTERPRETER.start, interpreter);
        self
    }

    /// Makes a method with some bytecodes. Returns the Method and the start of its bytecodes.
    pub(super) fn method(&mut self) -> (u64, u64) {
        let method = self.next_method;
        self.next_method += METHOD_BYTES;
        let (const_method, pool, holder) = (method + 0x100, method + 0x200, method + 0x300);
        self.memory.put_u64(method + 8, const_method).put_u64(const_method + 8, pool);
        self.memory.put_u64(pool + 8, holder).put(const_method + 16, 20_u16.to_le_bytes());
        (method, const_method + 32)
    }

    /// Allocates a blob. Returns the address of its code.
    pub(super) fn blob(&mut self, spec: &BlobSpec<'_>) -> u64 {
        let block = self.next_blob;
        let blob = block + little_vm::BLOCK_HEADER;
        self.next_blob += 0x1000;
        let name = self.next_name;
        self.next_name += 0x40;
        let mut name_bytes = spec.name.as_bytes().to_vec();
        name_bytes.resize(0x40, 0);
        self.memory.put(name, name_bytes);
        let mut bytes = vec![0_u8; 0xff0];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let int = |value: i64| (value as i32).to_le_bytes();
        put(0, &name.to_le_bytes());
        put(8, &int(0xff0));
        put(12, &int(i64::from(spec.frame_bytes / 8)));
        put(16, &int(i64::from(spec.frame_complete)));
        put(20, &int(BLOB_HEADER as i64));
        let kind = match spec.name {
            ADAPTER_OF_AOT_CACHE => 3,
            SAFEPOINT_BY_KIND => 8,
            _ => 0,
        };
        put(28, &[kind]);
        put(32, &spec.method.to_le_bytes());
        // A native method's wrapper has compilation level 0.
        put(48, &int(if spec.name == "native nmethod" { 0 } else { 4 }));
        put(52, &int(16));
        put(56, &int(0xe00));
        put(60, &int(STUBS as i64 + BLOB_HEADER as i64));
        put(BLOB_HEADER as usize, spec.code);
        // A single PcDesc and a single scope: sender 0, method 1, bci 7.
        put(64, &int(0xd00));
        put(68, &int(0xd20));
        put(72, &int(0xd40));
        put(76, &int(0xd60));
        put(0xd00, &int(-1));
        put(0xd10, &int(0x800));
        put(0xd14, &int(1));
        put(0xd41, &[0, 1, 8]);
        if let Some(end) = self.scopes_end_at {
            put(68, &int(0xd30));
            put(0xd10, &int(i64::from(end)));
            // The last PcDesc is after the blob's content, and has no scope.
            put(0xd20, &int(0xff0 - BLOB_HEADER as i64 + 1));
        }
        if let Some(end) = self.first_scope_ends_at {
            put(68, &int(0xd30));
            put(0xd10, &int(i64::from(end)));
            put(0xd14, &int(5));
            put(0xd20, &int(0x800));
            put(0xd24, &int(1));
            put(0xd45, &[0, 1, 4]);
        }
        put(0xd60, &spec.method.to_le_bytes());
        self.memory.put(blob, bytes);
        self.memory.put(block, [0_u8; 8]).put(block + 8, [1_u8; 8]);
        // The segment map has 0 for the first segment of a block, and the distance back to it for the next
        // ones.
        let first = ((block - CODE) >> SEGMENT_SHIFT) as usize;
        let mut segmap = vec![0xff; ((CODE_END - CODE) >> SEGMENT_SHIFT) as usize];
        for blob_block in (CODE..self.next_blob).step_by(0x1000) {
            let at = ((blob_block - CODE) >> SEGMENT_SHIFT) as usize;
            for hop in 0..(0x1000 >> SEGMENT_SHIFT) {
                segmap[at + hop] = hop as u8;
            }
        }
        assert!(first < segmap.len());
        self.memory.put(SEGMAP, segmap);
        blob + BLOB_HEADER
    }

    /// Allocates a blob without a frame: stubs, entries of method handles. Returns the address of its code.
    pub(super) fn frameless_blob(&mut self, name: &str, code: &[u8]) -> u64 {
        self.blob(&BlobSpec { name, code, frame_bytes: 0, frame_complete: -1, method: 0 })
    }

    pub(super) fn adapter(&mut self, code: &[u8]) -> u64 {
        self.frameless_blob("I2C/C2I adapters", code)
    }

    /// An adapter as an AOT cache has it: known only by its kind.
    pub(super) fn adapter_of_aot_cache(&mut self, code: &[u8]) -> u64 {
        self.frameless_blob(ADAPTER_OF_AOT_CACHE, code)
    }

    /// Makes a compiled method of the usual shape, with a frame of 0x30 bytes.
    pub(super) fn compiled(&mut self) -> (u64, u64) {
        self.compiled_with(&[])
    }

    /// Makes a compiled method of the usual shape, with these bytes at these offsets of its code.
    pub(super) fn compiled_with(&mut self, patches: &[(usize, &[u8])]) -> (u64, u64) {
        let (method, _) = self.method();
        let mut code = machine::compiled_code();
        for &(at, bytes) in patches {
            code.resize(code.len().max(at + bytes.len()), 0);
            code[at..at + bytes.len()].copy_from_slice(bytes);
        }
        let spec = BlobSpec {
            name: "nmethod",
            code: &code,
            frame_bytes: 0x30,
            frame_complete: machine::FRAME_COMPLETE,
            method,
        };
        (method, self.blob(&spec))
    }

    /// Puts the entry frame of a thread without earlier Java frames at `fp`.
    pub(super) fn entry_frame(&mut self, fp: u64) {
        let wrapper = STACK_HIGH - 0x100;
        self.set(entry_wrapper_slot(fp), wrapper).set(wrapper, 0).set(wrapper + 8, 0).set(wrapper + 16, 0);
    }

    /// The memory and the start of a walk from these registers.
    pub(super) fn start(&mut self, registers: Registers) -> (&RecordedMemory, Start<'_>) {
        let stack: Vec<u8> = self.stack.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.memory.put(STACK, stack);
        let start = Start {
            vm: self.is_known.then_some(&self.layout),
            objects: &self.objects,
            java_thread: self.java_thread,
            stack_high: STACK_HIGH,
            registers,
            walker: self.walker,
            call_trace: self.call_trace,
            collections: &self.collections,
            loader: |_| None,
        };
        (&self.memory, start)
    }

    /// Walks from these registers. Returns the frames as (kind, value, auxiliary): for Java frames the method
    /// and the bci.
    pub(super) fn walk(
        &mut self,
        pc: u64,
        sp: u64,
        fp: u64,
        more: &[(usize, u64)],
    ) -> Vec<(FrameKind, u64, i32)> {
        let (memory, start) = self.start(registers(pc, sp, fp, more));
        frames(memory, start)
    }

    /// The number of loads of a walk from these registers, and the number of those that fail.
    pub(super) fn reads_of_walk(&mut self, pc: u64, sp: u64, fp: u64) -> (usize, usize) {
        let (memory, start) = self.start(registers(pc, sp, fp, &[]));
        let counted = CountedMemory::new(memory);
        frames(&counted, start);
        (counted.loads(), counted.failed())
    }
}

fn registers(pc: u64, sp: u64, fp: u64, more: &[(usize, u64)]) -> Registers {
    let mut registers = Registers { pc, ..Registers::default() };
    registers.general[machine::SP] = sp;
    registers.general[machine::FP] = fp;
    for &(number, value) in more {
        registers.general[number] = value;
    }
    registers
}

fn frames(memory: &impl Memory, start: Start<'_>) -> Vec<(FrameKind, u64, i32)> {
    let empty = FrameRecord { value: 0, aux: 0, kind: FrameKind::Truncated, level: 0, reserved: 0 };
    let mut frames = vec![empty; 64];
    let walk = Walk::new(memory, start);
    let mut sink = FrameSink::new(&mut frames, None);
    walk.walk(&mut sink);
    let len = sink.len();
    frames[..len].iter().map(|frame| (frame.kind, frame.value, frame.aux as i32)).collect()
}

/// The slot of the JavaCallWrapper in the entry frame at `fp`.
pub(super) fn entry_wrapper_slot(fp: u64) -> u64 {
    fp.wrapping_add_signed(8 * i64::from(machine::CALL_WRAPPER))
}

/// The stack pointer to which a frame under test returns. Stack addresses of the scenes grow from leaf to
/// root.
pub(super) const CALLER_SP: u64 = STACK + 0x1000;

/// The caller's frame pointer, which a callee must restore.
pub(super) const ENTRY_FP: u64 = STACK + 0x3000;

/// A compiled caller whose frame begins at `CALLER_SP` and which the entry frame called. Returns its method
/// and a return address into it.
pub(super) fn compiled_caller(world: &mut World) -> (u64, u64) {
    let (method, code) = world.compiled();
    world.set(CALLER_SP + 0x20, ENTRY_FP).set(CALLER_SP + 0x28, CALL_STUB_RETURN);
    world.entry_frame(ENTRY_FP);
    (method, code + 0x80)
}

/// The frame pointer of the younger of the [`interpreted_callers`].
pub(super) const INTERPRETED_FP: u64 = CALLER_SP - 0x120;

/// Two interpreted methods, as a walk returns them. The frame of the younger one is at `INTERPRETED_FP`, and
/// has `return_pc` and `sender_sp`. The older one was called by the [`compiled_caller`].
pub(super) fn interpreted_callers(
    world: &mut World,
    return_pc: u64,
    sender_sp: u64,
) -> [(FrameKind, u64, i32); 3] {
    let (root, root_pc) = compiled_caller(world);
    let (outer, outer_code) = world.method();
    let (inner, inner_code) = world.method();
    let outer_fp = CALLER_SP - 0x20;
    interpreted_frame(world, outer_fp, outer, outer_code + 3, root_pc, (CALLER_SP, 0x1234));
    interpreted_frame(world, INTERPRETED_FP, inner, inner_code + 2, return_pc, (sender_sp, outer_fp));
    [(FrameKind::Interpreted, inner, 2), (FrameKind::Interpreted, outer, 3), (FrameKind::Compiled, root, 7)]
}

/// Puts an interpreted frame at `fp`, called from `return_pc` with `sender_sp` and `sender_fp`.
pub(super) fn interpreted_frame(
    world: &mut World,
    fp: u64,
    method: u64,
    bcp: u64,
    return_pc: u64,
    sender: (u64, u64),
) {
    let (sender_sp, sender_fp) = sender;
    world.set(fp, sender_fp).set(fp + 8, return_pc).set(fp - 8, sender_sp);
    let slots = InterpreterFrameLayout::IN_SOURCES;
    let slot = |words: i64| fp.wrapping_add_signed(8 * words);
    world.set(slot(slots.method), method).set(slot(slots.bcp), bcp);
}
