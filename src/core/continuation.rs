//! Where HotSpot keeps the frames of a virtual thread that are not on its carrier's stack: in StackChunks, objects
//! on the heap.
//!
//! `jvm::layout` learns it at start; a walker reads it. Offsets are in bytes within their structure or object.

use super::vm_layout::CodeRange;

/// `runtime/continuationEntry.hpp`, `cpu/*/sharedRuntime_*.cpp` (`fill_continuation_entry`, `gen_continuation_enter`),
/// 21 and 25: the ContinuationEntry is a C++ structure at the stack pointer of `Continuation.enterSpecial`'s frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContinuationLayout {
    /// JavaThread: `_cont_entry`, the innermost ContinuationEntry of the stack; null if nothing is mounted.
    pub entry: u32,
    /// How the mounted virtual thread is told, if that could be learnt.
    pub mounted: Option<MountedThreadLayout>,
    /// What is needed to read frozen frames, if all of it could be learnt.
    pub frozen: Option<FrozenLayout>,
}

impl ContinuationLayout {
    /// ContinuationEntry: `_cont`, the plain address of the Continuation.
    pub const ENTRY_CONTINUATION: u64 = 16;
    /// ContinuationEntry: `_flags`, an int that is not 0 where the continuation is a virtual thread's.
    pub const ENTRY_FLAGS: u64 = 32;
    /// ContinuationEntry: `_argsize`, an int: the words that the oldest frame on the stack has as arguments there, where it
    /// is a compiled one (`bottom_sender_sp`).
    pub const ENTRY_ARGUMENT_WORDS: u64 = 36;
    /// sizeof(ContinuationEntry): the saved frame pointer of the caller, `Continuation.run`, follows, and after it
    /// the return address.
    pub const ENTRY_BYTES: u64 = 64;
}

/// Where a thread has the id (`Thread.threadId()`) of the virtual thread that is mounted on it. It is set before the
/// ContinuationEntry is made and changed after that is gone: `VirtualThread.mount` and `unmount`, by
/// `Thread.setCurrentThread`, 21 and 25.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountedThreadLayout {
    /// JavaThread: `_monitor_owner_id`, a long (24 on), by which the VM tells who owns a monitor.
    Id(u32),
    /// The thread's object has it (21-23).
    Object(ThreadObjectLayout),
}

/// How the mounted thread's object is found: it is the current thread's, but where a virtual thread runs a few steps in its
/// carrier's name (`VirtualThread.switchToCarrierThread`). There its continuation leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadObjectLayout {
    /// JavaThread: `_vthread`, an OopHandle: what it points to refers to the object in full, whatever fields do.
    pub handle: u32,
    /// `java.lang.VirtualThread`, as headers name it.
    pub klass: u64,
    /// Thread: `tid`, a long.
    pub tid: u32,
    /// Continuation: `target`, what it runs.
    pub target: u32,
    /// What a virtual thread's runs (`VirtualThread$VThreadContinuation$1`): the thread.
    pub target_thread: u32,
    /// Its class, as headers name it.
    pub target_klass: u64,
    /// `VirtualThread$VThreadContinuation`, as headers name it.
    pub continuation_klass: u64,
}

/// `oops/stackChunkOop.hpp`, `classfile/javaClasses.hpp` (jdk_internal_vm_StackChunk), 21 and 25.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrozenLayout {
    /// Continuation: `tail`, the youngest StackChunk.
    pub tail: u32,
    /// StackChunk: `parent`, the next older one.
    pub parent: u32,
    /// StackChunk: `size` of its stack, an int in words.
    pub size: u32,
    /// StackChunk: `sp`, an int in words from the stack's start: the youngest frame.
    pub sp: u32,
    /// StackChunk: `bottom`, an int in words: one past the oldest frame, its stack arguments excluded.
    pub bottom: u32,
    /// StackChunk: the injected `maxThawingSize`, an int in words.
    pub max_thawing_size: u32,
    /// StackChunk: the injected `pc`, the youngest frame's.
    pub pc: u32,
    /// StackChunk: where its stack begins, the instance size.
    pub stack: u32,
    /// How an object's header names its class.
    pub klass_word: KlassWord,
    /// The classes a continuation's object may be of, as headers name them.
    pub continuation_klasses: [u64; 2],
    /// StackChunk, as headers name it.
    pub chunk_klass: u64,
    /// How a field refers to an object.
    pub references: References,
    /// Where objects are that references lead past, if it could be learnt (ZGC).
    pub forwarding: Option<ForwardingLayout>,
    /// The `Method*` of `Continuation.enter`: the oldest frame of every continuation.
    pub enter: u64,
    /// The `Method*` of `Continuation.enterSpecial`: the frame that holds the ContinuationEntry.
    pub enter_special: u64,
    /// The `Method*` of `Continuation.doYield`, which freezes.
    pub do_yield: u64,
    /// The stubs that thaw: cont_thaw, cont_returnBarrier and cont_returnBarrierExc.
    pub thaw_stubs: [ThawStub; 3],
    /// cont_preempt (24 on): returned to in place of a frame that has been frozen.
    pub preempt_stub: CodeRange,
}

/// Where an object's header has its class (`oops/oop.hpp`, `oops/markWord.hpp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KlassWord {
    /// The upper bits of the mark word, from this bit on (compact object headers).
    InMark(u32),
    /// A u4 behind the mark word.
    Narrow,
    /// A `Klass*` behind the mark word.
    Wide,
}

/// What a field that refers to an object holds, by collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum References {
    /// A u4: the address less `base`, shifted right.
    Narrow {
        /// `CompressedOops::_narrow_oop._base`.
        base: u64,
        /// `CompressedOops::_narrow_oop._shift`.
        shift: u32,
    },
    /// An address.
    Plain,
    /// An address with colour bits that the collector has mapped (single-generation ZGC, until 23).
    Mapped {
        /// Where the mask of bits is that a reference must not have to be followed as it is.
        bad_mask: u64,
    },
    /// A coloured pointer (generational ZGC).
    Coloured {
        /// The same, `ZPointerLoadBadMask`.
        bad_mask: u64,
    },
}

impl References {
    /// Whether objects are moved in pauses, which a thread in native code does not take part in. ZGC says by its masks
    /// and tables where an object is.
    pub const fn are_moved_in_pauses(&self) -> bool {
        matches!(self, Self::Narrow { .. } | Self::Plain)
    }
}

/// `gc/z/zForwarding.hpp`, `gc/z/zForwardingTable.hpp` (21 and 25), and the same of gc/x (21): where ZGC says where it has
/// moved objects to. Offsets are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardingLayout {
    /// The young and the old generation's arrays of `ZForwarding*`, by granule of the heap; one array if there is one
    /// generation.
    pub tables: [u64; 2],
    /// A granule's size, as a power of two.
    pub granule_shift: u32,
    /// The bits of an address that are an offset in the heap.
    pub offset_mask: u64,
    /// Single-generation ZGC's colour of references that are up to date until the next marking ends; 0 elsewhere.
    pub remapped_bit: u64,
    /// ZForwarding: `_virtual._start`, an offset in the heap.
    pub start: u32,
    /// ZForwarding: `_object_alignment_shift`.
    pub alignment_shift: u32,
    /// ZForwarding: `_ref_count`, an int.
    pub ref_count: u32,
    /// ZForwarding: `_entries._length`, a power of two.
    pub length: u32,
    /// From a ZForwarding to its entries: its size.
    pub entries: u32,
}

/// A stub that puts frozen frames back onto the stack, by what its registers mean. Empty where it could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThawStub {
    /// The whole stub.
    pub code: CodeRange,
    /// The instruction that makes room on the stack: nothing is thawed before it.
    pub makes_room: u64,
    /// Behind it, the bytes that the stub has pushed when it calls `thaw`, one word for alignment excluded.
    pub pushed_bytes: u64,
    /// The first of the two calls of `thaw`, of which one is done, has returned: from here to the jump to
    /// `returned` (inclusive) the first return register has the stack pointer of the youngest thawed frame.
    pub returned_early: CodeRange,
    /// Where both ways meet, and that register is saved in a callee-saved one.
    pub returned: u64,
    /// Where that callee-saved register becomes the stack pointer.
    pub takes_stack: u64,
}

impl FrozenLayout {
    /// The thawing stub around `pc`.
    pub fn thaw_stub_at(&self, pc: u64) -> Option<&ThawStub> {
        self.thaw_stubs.iter().find(|stub| stub.code.contains(pc))
    }
}
