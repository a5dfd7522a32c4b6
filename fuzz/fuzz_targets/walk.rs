//! The walk that a signal handler makes, over memory of any content: it ends, within the frames that it was given.
//!
//! The input is the registers, and then all the memory that there is: a code cache with its heap, blobs, scopes,
//! methods and stack may lie anywhere in it. `cargo fuzz run walk`.

#![no_main]

use libfuzzer_sys::fuzz_target;
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

/// Fields close to each other: little memory makes a VM.
fn layout(java_version: u32) -> VmLayout {
    let modern = java_version > 20;
    let excluded = u8::from(modern);
    let part =
        |offset| if modern { BlobPart::FromPointer { base: 16, offset } } else { BlobPart::FromBlob(offset) };
    VmLayout {
        java_version,
        code_cache: CodeCacheLayout {
            low_bound: MEMORY,
            high_bound: MEMORY + 8,
            heaps: [MEMORY + 16, 0, 0, 0, 0, 0, 0, 0],
            heap_memory_low: 0,
            heap_memory_high: 8,
            heap_segmap_low: 16,
            heap_log2_segment_size: 24,
            block_used: 0,
            block_size: 8,
        },
        code_blob: CodeBlobLayout {
            name: 0,
            size: 8,
            frame_size: 12,
            frame_complete: 16,
            frame_complete_width: if modern { 2 } else { 4 },
            code_begin: part(20),
            code_end: part(24),
            kind: None,
        },
        nmethod: NmethodLayout {
            method: 32,
            entry_bci: 40,
            state: 44,
            comp_level: 48,
            comp_level_width: if modern { 1 } else { 4 },
            orig_pc_offset: 52,
            deopt_handler: part(56),
            deopt_method_handle_handler: part(56),
            stub_begin: part(60),
            scopes_pcs_begin: part(64),
            scopes_pcs_end: part(68),
            scopes_data_begin: part(72),
            metadata_begin: part(76),
            pc_desc_size: 8,
            pc_desc_pc_offset: 0,
            pc_desc_scope_decode_offset: 4,
            unsigned5_excluded: excluded,
        },
        method: MethodLayout {
            const_method: 8,
            i2i_entry: 16,
            method_size: 24,
            constants: 0,
            code_size: 8,
            name_index: 10,
            signature_index: 12,
            const_method_flags: 14,
            has_line_table: 1,
            const_method_size: 16,
            pool_holder: 0,
            constant_pool_length: 8,
            constant_pool_size: 8,
            klass_constants: 8,
            source_file_name_index: SourceFileIndex::ConstantPool(8),
            klass_name: 8,
            symbol_length: 0,
            symbol_body: 2,
            unsigned5_excluded: excluded,
        },
        thread: ThreadLayout {
            last_java_sp: 0,
            last_java_pc: 8,
            last_java_fp: 16,
            thread_state: 24,
            jni_environment: 32,
            osthread: 40,
            osthread_thread_id: 0,
            list: ThreadList::Linked { head: 0, next: 0 },
            stack_base: 48,
            stack_size: 56,
            vframe_array_head: 64,
            call_wrapper_last_java_sp: 0,
            call_wrapper_last_java_pc: 8,
            call_wrapper_last_java_fp: 16,
            entry_frame_call_wrapper: -6,
        },
        vframe_array: VframeArrayLayout {
            owner_thread: 0,
            caller_pc: 8,
            caller_fp: 16,
            caller_unextended_sp: 24,
            frames: 32,
            elements: 40,
            element_size: 16,
            element_bci: 0,
            element_method: 8,
        },
        continuation: modern.then_some(ContinuationLayout { entry: 72, frozen: None }),
        stubs: StubLayout {
            interpreter: CodeRange { start: 0x180, end: 0x1c0 },
            call_stub_return: 0x1c8,
            ..StubLayout::default()
        },
    }
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
        let start =
            Start { vm, objects: &objects, java_thread, stack_high, registers, walker, call_trace };
        let mut sink = FrameSink::new(&mut frames, None);
        Walk::new(&recorded, start).walk(&mut sink);
        assert!(!sink.is_empty() && sink.len() <= DEPTH);
    }
});
