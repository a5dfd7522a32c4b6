//! The structures of a VM that tests build of bytes: like HotSpot's, but smaller. The fuzz target uses them
//! too.

use otlpprof_core::java_thread_state::{JavaThreadState, JavaThreadStates};
use otlpprof_core::method_ids::MethodIds;
use otlpprof_core::vm_layout::*;

/// `JavaThread::_vframe_array_head`.
pub(super) const VFRAME_ARRAY_HEAD: u64 = 64;
/// The numbers of a thread's states until 27.
const STATES: [(u32, JavaThreadState); 6] = [
    (2, JavaThreadState::New),
    (4, JavaThreadState::InNative),
    (6, JavaThreadState::InVm),
    (8, JavaThreadState::InJava),
    (9, JavaThreadState::InJava),
    (10, JavaThreadState::Blocked),
];
/// The bytes before each blob.
pub(super) const BLOCK_HEADER: u64 = 16;

/// The layout. The caller fills in the addresses of the code.
pub(super) fn layout() -> VmLayout {
    let part = BlobPart::FromBlob;
    VmLayout {
        has_continuations: false,
        code_cache: CodeCacheLayout {
            low_bound: 0,
            high_bound: 0,
            heaps: [0; 8],
            heap_memory_low: 0,
            heap_memory_high: 8,
            heap_segmap_low: 16,
            heap_log2_segment_size: 24,
            block_used: 8,
            block_size: BLOCK_HEADER as u32,
        },
        code_blob: CodeBlobLayout {
            name: 0,
            size: 8,
            frame_size: 12,
            frame_complete: 16,
            frame_complete_width: 4,
            code_begin: part(20),
            code_end: part(24),
            kinds: Some(BlobKinds { field: 28, nmethod: 1, adapter: 3, safepoint: 8 }),
        },
        nmethod: NmethodLayout {
            method: 32,
            comp_level: 48,
            deoptimization: Some(DeoptimizationLayout { orig_pc_offset: 52, handlers: [part(56); 2] }),
            stub_begin: part(60),
            scopes_pcs_begin: part(64),
            scopes_pcs_end: part(68),
            scopes_data_begin: part(72),
            metadata_begin: part(76),
            pc_desc_size: 16,
            pc_desc_pc_offset: 0,
            pc_desc_scope_decode_offset: 4,
            unsigned5_excluded: 0,
        },
        method: MethodLayout {
            ids: MethodIds::Cells,
            of_class: None,
            const_method: 8,
            method_size: 64,
            constants: 8,
            code_size: 16,
            name_index: 18,
            signature_index: 20,
            const_method_flags: 22,
            has_line_table: 1,
            const_method_size: 32,
            pool_holder: 8,
            constant_pool_length: 24,
            constant_pool_size: 32,
            klass_constants: 16,
            source_file_name_index: SourceFileIndex::ConstantPool(16),
            klass_name: 8,
            symbol_length: 0,
            symbol_body: 8,
            unsigned5_excluded: 0,
        },
        interpreter_frame: InterpreterFrameLayout::IN_SOURCES,
        thread: ThreadLayout {
            last_java_sp: 0,
            last_java_pc: 8,
            last_java_fp: 16,
            thread_state: 24,
            states: JavaThreadStates::new(&STATES),
            jni_environment: 32,
            osthread: 40,
            osthread_thread_id: 0,
            list: ThreadList::Linked { head: 0, next: 0 },
            call_wrapper_last_java_sp: 0,
            call_wrapper_last_java_pc: 8,
            call_wrapper_last_java_fp: 16,
            entry_frame_call_wrapper: -6,
        },
        vframe_array: Some(VframeArrayLayout {
            head: VFRAME_ARRAY_HEAD as u32,
            owner_thread: 0,
            caller_pc: 8,
            caller_fp: 16,
            caller_unextended_sp: 24,
            frames: 32,
            elements: 40,
            element_size: 16,
            element_bci: 0,
            element_method: 8,
        }),
        monitor: None,
        continuation: None,
        stubs: StubLayout::default(),
    }
}
