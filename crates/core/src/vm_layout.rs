//! The layout of HotSpot's structures that the walker and the method resolver read, for the JVM of this
//! process.
//!
//! `jvm::layout` determines the layout once, at start, from the tables that libjvm exports
//! (`runtime/vmStructs.cpp`) and from other sources. Offsets differ from build to build, not only from
//! version to version. All `u32` fields are byte offsets within their structure unless their comments say
//! otherwise; all `u64` fields are run-time addresses.

use super::address::CodeRange;
use super::continuation::ContinuationLayout;
use super::interpreter_code::InterpreterCode;
use super::java_thread_state::JavaThreadStates;
use super::method_ids::MethodIds;
use super::stub_frames::StubFrames;

/// The largest number of code heaps that are stored. A JVM has at most four: three segments and the
/// non-segmented heap (HotSpot 11-25).
pub const MAX_CODE_HEAPS: usize = 8;

/// The whole layout.
#[derive(Clone, Copy, Debug)]
pub struct VmLayout {
    /// Whether the VM has continuations, and with them virtual threads.
    pub has_continuations: bool,
    /// The code cache's bounds and heaps.
    pub code_cache: CodeCacheLayout,
    /// Code blobs of every kind.
    pub code_blob: CodeBlobLayout,
    /// Compiled methods.
    pub nmethod: NmethodLayout,
    /// Methods, their constant pools and names.
    pub method: MethodLayout,
    /// Threads and their anchors.
    pub thread: ThreadLayout,
    /// Frames of the interpreter.
    pub interpreter_frame: InterpreterFrameLayout,
    /// Compiled frames that are being converted to interpreter frames, if libjvm exports the layout.
    pub vframe_array: Option<VframeArrayLayout>,
    /// Monitors, if libjvm exports their layout.
    pub monitor: Option<MonitorLayout>,
    /// Continuations, if the VM has them and they could be recognised.
    pub continuation: Option<ContinuationLayout>,
    /// Ranges of the interpreter's and the stubs' code.
    pub stubs: StubLayout,
}

/// `code/codeCache.hpp`, `memory/heap.hpp`.
#[derive(Clone, Copy, Debug)]
pub struct CodeCacheLayout {
    /// The address of the static `CodeCache::_low_bound` (a pointer).
    pub low_bound: u64,
    /// The address of the static `CodeCache::_high_bound` (a pointer).
    pub high_bound: u64,
    /// The `CodeHeap*`s, followed by zeros. The heaps live as long as the VM.
    pub heaps: [u64; MAX_CODE_HEAPS],
    /// CodeHeap: `_memory._low`.
    pub heap_memory_low: u32,
    /// CodeHeap: `_memory._high`.
    pub heap_memory_high: u32,
    /// CodeHeap: `_segmap._low`.
    pub heap_segmap_low: u32,
    /// CodeHeap: `_log2_segment_size` (an int).
    pub heap_log2_segment_size: u32,
    /// HeapBlock: `_header._used` (one byte).
    pub block_used: u32,
    /// sizeof(HeapBlock). The CodeBlob follows.
    pub block_size: u32,
}

/// `code/codeBlob.hpp`.
#[derive(Clone, Copy, Debug)]
pub struct CodeBlobLayout {
    /// `_name`: the address of a C string.
    pub name: u32,
    /// `_size`: an int, header included.
    pub size: u32,
    /// `_frame_size`: an int, in words; a negative number or 0 if there is no frame.
    pub frame_size: u32,
    /// `_frame_complete_offset`, in bytes from the start of the code.
    pub frame_complete: u32,
    /// The width of `_frame_complete_offset` in bytes: 4 until 22, 2 from 23 on. Signed.
    pub frame_complete_width: u8,
    /// The start of the code.
    pub code_begin: BlobPart,
    /// The end of the code.
    pub code_end: BlobPart,
    /// How a blob states its kind, from 23 on, if libjvm describes that. Otherwise only its name tells.
    pub kinds: Option<BlobKinds>,
}

/// The numbers of the kinds of blobs (`code/codeBlob.hpp`, CodeBlobKind).
#[derive(Clone, Copy, Debug)]
pub struct BlobKinds {
    /// CodeBlob: `_kind`, one byte.
    pub field: u32,
    /// Compiled methods, and wrappers of native methods.
    pub nmethod: u8,
    /// The code between interpreted and compiled methods.
    pub adapter: u8,
    /// The target of compiled code's safepoint polls.
    pub safepoint: u8,
}

/// The place of a part of a code blob.
#[derive(Clone, Copy, Debug)]
pub enum BlobPart {
    /// A pointer field holds the address.
    Pointer(u32),
    /// An int field holds the distance from the start of the blob.
    FromBlob(u32),
    /// The sum of the pointer field `base` and the int field `offset`.
    FromPointer {
        /// The pointer field.
        base: u32,
        /// The int field.
        offset: u32,
    },
}

/// How a compiled method's frame that is to be deoptimised is recognised: by its return address, which is
/// one of the method's handlers.
#[derive(Clone, Copy, Debug)]
pub struct DeoptimizationLayout {
    /// nmethod: `_orig_pc_offset`, an int; the offset from the frame's SP at which the frame stores its
    /// original PC.
    pub orig_pc_offset: u32,
    /// The starts of the handlers: for frames at a call, and for frames at a method handle's call. In 26 and
    /// later both are the method's one handler.
    pub handlers: [BlobPart; 2],
}

/// `code/nmethod.hpp`, `code/compiledMethod.hpp` (until 22), `code/pcDesc.hpp`.
#[derive(Clone, Copy, Debug)]
pub struct NmethodLayout {
    /// `_method`: a `Method*`.
    pub method: u32,
    /// The lowest byte of `_comp_level`: 1 to 4, or 0 in the wrapper of a native method. The field is an int
    /// until 19, and has one byte from 20 on (`CompLevel`).
    pub comp_level: u32,
    /// Frames that are to be deoptimised, if libjvm describes how to recognise them.
    pub deoptimization: Option<DeoptimizationLayout>,
    /// The start of the stub section: `_stub_offset` from the blob.
    pub stub_begin: BlobPart,
    /// The address of the first PcDesc.
    pub scopes_pcs_begin: BlobPart,
    /// The address one past the last PcDesc.
    pub scopes_pcs_end: BlobPart,
    /// The start of the compressed scopes.
    pub scopes_data_begin: BlobPart,
    /// The start of the metadata (`Method*`s of inlined frames). The first entry has index 1.
    pub metadata_begin: BlobPart,
    /// sizeof(PcDesc).
    pub pc_desc_size: u32,
    /// PcDesc: `_pc_offset`, an int from the code's start.
    pub pc_desc_pc_offset: u32,
    /// PcDesc: `_scope_decode_offset`, an int.
    pub pc_desc_scope_decode_offset: u32,
    /// The number of low byte values that UNSIGNED5 excludes: 0 until 19, 1 from 20 on
    /// (`utilities/unsigned5.hpp`).
    pub unsigned5_excluded: u8,
}

/// `oops/method.hpp`, `oops/constMethod.hpp`, `oops/constantPool.hpp`, `oops/klass.hpp`, `oops/symbol.hpp`.
#[derive(Clone, Copy, Debug)]
pub struct MethodLayout {
    /// The meaning of jmethodIDs.
    pub ids: MethodIds,
    /// The way from a class's object to its methods, if libjvm describes all of it.
    pub of_class: Option<ClassMethodsLayout>,
    /// Method: `_constMethod`.
    pub const_method: u32,
    /// sizeof(Method). The pointer to a native function follows.
    pub method_size: u32,
    /// ConstMethod: `_constants`.
    pub constants: u32,
    /// ConstMethod: `_code_size`, u2.
    pub code_size: u32,
    /// ConstMethod: `_name_index`, u2.
    pub name_index: u32,
    /// ConstMethod: `_signature_index`, u2.
    pub signature_index: u32,
    /// ConstMethod: the flags, of which only the first two bytes are used.
    pub const_method_flags: u32,
    /// ConstMethod: the mask of the flag "a line table follows the bytecodes" in the first two bytes of the
    /// flags.
    pub has_line_table: u16,
    /// sizeof(ConstMethod). The bytecodes follow.
    pub const_method_size: u32,
    /// ConstantPool: `_pool_holder`, an `InstanceKlass*`.
    pub pool_holder: u32,
    /// ConstantPool: `_length`, an int: the number of entries.
    pub constant_pool_length: u32,
    /// sizeof(ConstantPool). The entries, 8 bytes each, follow.
    pub constant_pool_size: u32,
    /// InstanceKlass: `_constants`, the class's own ConstantPool.
    pub klass_constants: u32,
    /// `_source_file_name_index`, u2, and the structure that has the field.
    pub source_file_name_index: SourceFileIndex,
    /// Klass: `_name`, a `Symbol*`.
    pub klass_name: u32,
    /// Symbol: `_length`, u2.
    pub symbol_length: u32,
    /// Symbol: `_body`.
    pub symbol_body: u32,
    /// The number of low byte values that UNSIGNED5 excludes, as in [`NmethodLayout`]. Line tables use
    /// UNSIGNED5 too.
    pub unsigned5_excluded: u8,
}

/// `classfile/javaClasses.hpp` (java_lang_Class), `oops/instanceKlass.hpp`, `oops/array.hpp`: the way from
/// the object of a class to its methods.
#[derive(Clone, Copy, Debug)]
pub struct ClassMethodsLayout {
    /// `java.lang.Class`: the field that the VM adds, a `Klass*`. The static
    /// `java_lang_Class::_klass_offset` holds this offset.
    pub klass: u32,
    /// InstanceKlass: `_methods`, an `Array<Method*>*`.
    pub methods: u32,
    /// Array: `_length`, an int.
    pub length: u32,
    /// `Array<Method*>`: `_data`, the first element.
    pub first: u32,
}

/// The structure that has `_source_file_name_index`.
#[derive(Clone, Copy, Debug)]
pub enum SourceFileIndex {
    /// In InstanceKlass (11).
    InstanceKlass(u32),
    /// In ConstantPool (17 on).
    ConstantPool(u32),
}

/// `runtime/javaThread.hpp` (11 and 17: `runtime/thread.hpp`), `runtime/javaFrameAnchor.hpp`,
/// `runtime/javaCalls.hpp`.
#[derive(Clone, Copy, Debug)]
pub struct ThreadLayout {
    /// JavaThread: `_anchor._last_Java_sp`.
    pub last_java_sp: u32,
    /// JavaThread: `_anchor._last_Java_pc`.
    pub last_java_pc: u32,
    /// JavaThread: `_anchor._last_Java_fp`.
    pub last_java_fp: u32,
    /// JavaThread: `_thread_state`, an int.
    pub thread_state: u32,
    /// The states by their numbers.
    pub states: JavaThreadStates,
    /// JavaThread: the JNIEnv's structure. The `JavaThread*` is a `JNIEnv*` minus this offset.
    pub jni_environment: u32,
    /// JavaThread or Thread: `_osthread`.
    pub osthread: u32,
    /// OSThread: `_thread_id`.
    pub osthread_thread_id: u32,
    /// The list of all JavaThreads.
    pub list: ThreadList,
    /// JavaCallWrapper: `_anchor._last_Java_sp`.
    pub call_wrapper_last_java_sp: u32,
    /// JavaCallWrapper: `_anchor._last_Java_pc`.
    pub call_wrapper_last_java_pc: u32,
    /// JavaCallWrapper: `_anchor._last_Java_fp`.
    pub call_wrapper_last_java_fp: u32,
    /// The JavaCallWrapper's slot in an entry frame, in words from its FP (-6 on x86_64, -8 on aarch64).
    pub entry_frame_call_wrapper: i32,
}

/// `cpu/x86/frame_x86.hpp`, `cpu/aarch64/frame_aarch64.hpp` (11-25): the slots of an interpreter frame, in
/// words from its frame pointer.
#[derive(Clone, Copy, Debug)]
pub struct InterpreterFrameLayout {
    /// `interpreter_frame_sender_sp_offset`: the stack pointer of the sender's frame.
    pub sender_sp: i64,
    /// `interpreter_frame_last_sp_offset`: the top of the expression stack while the method calls another.
    pub last_sp: i64,
    /// `interpreter_frame_method_offset`: a `Method*`.
    pub method: i64,
    /// `interpreter_frame_locals_offset`: the place of the first local variable.
    pub locals: i64,
    /// `interpreter_frame_bcp_offset`: the bytecode pointer.
    pub bcp: i64,
}

impl InterpreterFrameLayout {
    /// The layout in HotSpot's sources (11-27), for tests: `jvm::layout` reads the interpreter's code.
    pub const IN_SOURCES: Self = match cfg!(target_arch = "aarch64") {
        true => Self { sender_sp: -1, last_sp: -2, method: -3, locals: -8, bcp: -9 },
        false => Self { sender_sp: -1, last_sp: -2, method: -3, locals: -7, bcp: -8 },
    };
}

/// `runtime/vframeArray.hpp`: the data that a thread keeps of a compiled frame while it unpacks the frame
/// into interpreter frames.
#[derive(Clone, Copy, Debug)]
pub struct VframeArrayLayout {
    /// JavaThread: `_vframe_array_head`, the address of the array.
    pub head: u32,
    /// vframeArray: `_owner_thread`, a `JavaThread*`.
    pub owner_thread: u32,
    /// vframeArray: `_caller._pc`.
    pub caller_pc: u32,
    /// vframeArray: `_caller._fp`.
    pub caller_fp: u32,
    /// vframeArray: `_caller._unextended_sp`.
    pub caller_unextended_sp: u32,
    /// vframeArray: `_frames`, an int: the number of elements.
    pub frames: u32,
    /// vframeArray: `_elements`, beginning with the youngest frame.
    pub elements: u32,
    /// sizeof(vframeArrayElement).
    pub element_size: u32,
    /// vframeArrayElement: `_bci`, an int.
    pub element_bci: u32,
    /// vframeArrayElement: `_method`, a `Method*`.
    pub element_method: u32,
}

/// The owner of the monitor that a thread waits for (`runtime/javaThread.hpp`, in 11 and 17
/// `runtime/thread.hpp`; `runtime/objectMonitor.hpp`).
#[derive(Clone, Copy, Debug)]
pub struct MonitorLayout {
    /// JavaThread or Thread: `_current_pending_monitor`, the `ObjectMonitor*` that the thread waits to enter.
    pub pending: u32,
    /// ObjectMonitor: `_owner`, a word.
    pub owner: u32,
    /// The encoding of the owner.
    pub owner_is: MonitorOwnerWord,
}

/// The content of `ObjectMonitor::_owner`. From 17 on the VM also stores values that identify no owner:
/// `ANONYMOUS_OWNER` (1, from 21 on) means that the owner has entered the monitor by the object's header
/// alone; `DEFLATER_MARKER` (-1 in 17, 2 from 21 on) means that the monitor is being deflated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorOwnerWord {
    /// Until 23: a `Thread*`, or an address on the owner's stack (of its BasicLock) if the owner had locked
    /// the object before the monitor was made.
    ThreadOrStack(StackBounds),
    /// From 24 on: `Thread.threadId()` of the owner, which is a platform thread, or the virtual thread itself
    /// rather than its carrier. 1 and 2 are marks (`ANONYMOUS_OWNER`, `DEFLATER_MARKER`); the first thread's
    /// id is 3 (`ThreadIdentifier::initial`).
    ThreadId,
}

/// The bounds of a thread's stack (`runtime/thread.hpp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackBounds {
    /// JavaThread: `_stack_base`, one past the highest address of the stack.
    pub base: u32,
    /// JavaThread: `_stack_size`.
    pub size: u32,
}

/// The list of all JavaThreads (`runtime/thread.hpp`, in 21 and 25 `runtime/threads.hpp`;
/// `runtime/threadSMR.hpp`).
#[derive(Clone, Copy, Debug)]
pub enum ThreadList {
    /// A linked list (11).
    Linked {
        /// The address of the static `Threads::_thread_list`.
        head: u64,
        /// JavaThread: `_next`.
        next: u32,
    },
    /// An immutable array, which is replaced as a whole (17 on).
    Array {
        /// The address of the static `ThreadsSMRSupport::_java_thread_list`.
        list: u64,
        /// ThreadsList: `_length`, u4.
        length: u32,
        /// ThreadsList: `_threads`.
        threads: u32,
    },
}

/// Ranges of the VM's own generated code.
#[derive(Clone, Copy, Debug, Default)]
pub struct StubLayout {
    /// The template interpreter's code.
    pub interpreter: CodeRange,
    /// `StubRoutines::_call_stub_return_address`: the address to which callees of an entry frame return.
    pub call_stub_return: u64,
    /// The call stub, by which native code calls Java.
    pub call_stub: CodeRange,
    /// The stub through which an exception leaves Java for the call stub's frame.
    pub catch_exception: CodeRange,
    /// The stub that forwards an exception from another stub to its Java caller.
    pub forward_exception: CodeRange,
    /// The interpreter's codelets, in ascending order. The codelets and the list live as long as the VM.
    pub codelets: &'static [Codelet],
    /// The stages of the codelets that build and remove frames.
    pub interpreter_code: InterpreterCode,
    /// The stubs that have a frame of their own.
    pub framed: Option<&'static StubFrames>,
    /// The stub of the nmethod entry barrier, if there is one.
    pub method_entry_barrier: CodeRange,
    /// The stub cont_thaw (21 on).
    pub cont_thaw: CodeRange,
    /// The stub cont_returnBarrier (21 on).
    pub cont_return_barrier: CodeRange,
    /// The stub cont_returnBarrierExc (21 on).
    pub cont_return_barrier_exception: CodeRange,
}

impl StubLayout {
    /// Returns the codelet that contains `pc`. Allocates nothing, never panics.
    #[inline]
    pub fn codelet_at(&self, pc: u64) -> Option<&'static Codelet> {
        let next = self.codelets.partition_point(|codelet| codelet.code.start <= pc);
        let codelet = self.codelets.get(next.checked_sub(1)?)?;
        codelet.code.contains(pc).then_some(codelet)
    }
}

/// One piece of the template interpreter's code (`interpreter/interpreter.hpp`, InterpreterCodelet).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codelet {
    /// The range of its instructions.
    pub code: CodeRange,
    /// The task of its instructions.
    pub kind: CodeletKind,
}

/// The kinds of codelets that a walker must distinguish at the interrupted frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeletKind {
    /// Entry of an ordinary method (`zerolocals`): builds a frame, then dispatches the first bytecode.
    MethodEntry,
    /// Entry of a synchronized method.
    SynchronizedMethodEntry,
    /// Entry of a native method: builds a frame, calls, removes the frame, returns.
    NativeMethodEntry,
    /// Entry of a synchronized native method.
    SynchronizedNativeMethodEntry,
    /// Entry of a method that the interpreter executes in a few instructions without a frame (math, CRC32,
    /// `Reference.get`, `Thread.currentThread`), or refuses to execute (an abstract method).
    FramelessEntry,
    /// A return bytecode: removes the frame and returns.
    Return,
    /// Any other codelet: executes within a complete frame.
    Other,
}

impl CodeletKind {
    /// Whether the codelet enters native methods. Native frames then return to it.
    pub const fn is_native_entry(self) -> bool {
        matches!(self, Self::NativeMethodEntry | Self::SynchronizedNativeMethodEntry)
    }
}
