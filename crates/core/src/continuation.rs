//! The layout of HotSpot's StackChunks: heap objects that hold the frames of a virtual thread that are not on
//! its carrier's stack.
//!
//! `jvm::layout` determines the layout at start; a walker uses it. Offsets are in bytes within their
//! structure or object.

use super::address::CodeRange;

/// The layout of a ContinuationEntry, a C++ structure at the stack pointer of `Continuation.enterSpecial`'s
/// frame (`runtime/continuationEntry.hpp`, `cpu/*/sharedRuntime_*.cpp`: `fill_continuation_entry`,
/// `gen_continuation_enter`; 21 and 25).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContinuationLayout {
    /// JavaThread: `_cont_entry`, the innermost ContinuationEntry of the stack; null if nothing is mounted.
    pub entry: u32,
    /// How to identify the mounted virtual thread, if that could be determined.
    pub mounted: Option<MountedThreadLayout>,
    /// The layout of frozen frames, if all of it could be determined.
    pub frozen: Option<FrozenLayout>,
}

impl ContinuationLayout {
    /// ContinuationEntry: `_cont`, the plain address of the Continuation.
    pub const ENTRY_CONTINUATION: u64 = 16;
    /// ContinuationEntry: `_flags`, an int that is not 0 if the continuation belongs to a virtual thread.
    pub const ENTRY_FLAGS: u64 = 32;
    /// ContinuationEntry: `_argsize`, an int: the number of words of stack arguments of the oldest frame on
    /// the stack, if that is a compiled frame (`bottom_sender_sp`).
    pub const ENTRY_ARGUMENT_WORDS: u64 = 36;
    /// The entry's size on the stack, `ContinuationEntry::size()`: its own size (64 bytes, in 27 56), rounded
    /// up to two words. The saved frame pointer of the caller, `Continuation.run`, follows, and after it the
    /// return address.
    pub const ENTRY_BYTES: u64 = 64;
}

/// The place where a thread stores the id (`Thread.threadId()`) of the virtual thread that is mounted on it.
/// The id is set before the ContinuationEntry is made, and changed after the entry is gone:
/// `VirtualThread.mount` and `unmount`, by `Thread.setCurrentThread`, 21 and 25.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountedThreadLayout {
    /// JavaThread: `_monitor_owner_id`, a long (24 on), by which the VM identifies the owner of a monitor.
    Id(u32),
    /// In the thread's object (21-23).
    Object(ThreadObjectLayout),
}

/// How to find the mounted thread's object. It is the object of the current thread, except where a virtual
/// thread executes a few steps in its carrier's name (`VirtualThread.switchToCarrierThread`); there it is
/// found through its continuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadObjectLayout {
    /// JavaThread: `_vthread`, an OopHandle. Its target refers to the object by a full pointer, even if
    /// fields are compressed.
    pub handle: u32,
    /// The class `java.lang.VirtualThread`, as object headers encode it.
    pub klass: u64,
    /// Thread: `tid`, a long.
    pub tid: u32,
    /// Continuation: `target`, the task of the continuation.
    pub target: u32,
    /// The target of a virtual thread's continuation (`VirtualThread$VThreadContinuation$1`): the field that
    /// refers to the thread.
    pub target_thread: u32,
    /// The class of that target, as object headers encode it.
    pub target_klass: u64,
    /// The class `VirtualThread$VThreadContinuation`, as object headers encode it.
    pub continuation_klass: u64,
}

/// `oops/stackChunkOop.hpp`, `runtime/continuationJavaClasses.hpp` (jdk_internal_vm_StackChunk), 21 and 25.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrozenLayout {
    /// Continuation: `tail`, the youngest StackChunk.
    pub tail: u32,
    /// StackChunk: `parent`, the next older one.
    pub parent: u32,
    /// StackChunk: `size`, the size of its stack, an int in words.
    pub size: u32,
    /// StackChunk: `sp`, the position of the youngest frame, an int in words from the stack's start.
    pub sp: u32,
    /// StackChunk: `bottom`, an int in words: one past the oldest frame, without the frame's stack arguments.
    pub bottom: u32,
    /// StackChunk: the injected `maxThawingSize`, an int in words.
    pub max_thawing_size: u32,
    /// StackChunk: the injected `pc` of the youngest frame.
    pub pc: u32,
    /// StackChunk: the start of its stack, which is the instance size.
    pub stack: u32,
    /// How an object's header refers to its class.
    pub klass_word: KlassWord,
    /// The classes that a continuation's object may have, as object headers encode them.
    pub continuation_klasses: [u64; 2],
    /// The class StackChunk, as object headers encode it.
    pub chunk_klass: u64,
    /// How a field refers to an object.
    pub references: References,
    /// ZGC's tables of moved objects, if they could be found.
    pub forwarding: Option<ForwardingLayout>,
    /// The `Method*` of `Continuation.enter`: the oldest frame of every continuation.
    pub enter: u64,
    /// The `Method*` of `Continuation.enterSpecial`: the frame that holds the ContinuationEntry.
    pub enter_special: u64,
    /// The `Method*` of `Continuation.doYield`, which freezes frames.
    pub do_yield: u64,
    /// The stubs that thaw: cont_thaw, cont_returnBarrier and cont_returnBarrierExc.
    pub thaw_stubs: [ThawStub; 3],
    /// cont_preempt (24 on): the return address that replaces a frame that has been frozen.
    pub preempt_stub: CodeRange,
}

/// The place of the class in an object's header (`oops/oop.hpp`, `oops/markWord.hpp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KlassWord {
    /// The bits of the mark word from this bit on (compact object headers).
    InMark(u32),
    /// A u4 after the mark word.
    Narrow,
    /// A `Klass*` after the mark word.
    Wide,
}

/// The encoding of a field that refers to an object, by collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum References {
    /// A u4: the address minus `base`, shifted right.
    Narrow {
        /// `CompressedOops::_narrow_oop._base` (21), `CompressedOops::_base` (25).
        base: u64,
        /// `CompressedOops::_narrow_oop._shift` (21), `CompressedOops::_shift` (25).
        shift: u32,
    },
    /// An address.
    Plain,
    /// An address with colour bits, at which the collector has mapped the heap too (single-generation ZGC,
    /// until 23).
    Mapped {
        /// The address of the mask of bits that must be clear in a reference that can be followed as it is.
        bad_mask: u64,
    },
    /// A coloured pointer (generational ZGC).
    Coloured {
        /// The address of that mask, `ZPointerLoadBadMask`.
        bad_mask: u64,
    },
}

impl References {
    /// Whether objects are moved only in pauses, in which a thread in native code does not take part. With
    /// ZGC, masks and tables say where an object is.
    pub const fn are_moved_in_pauses(&self) -> bool {
        matches!(self, Self::Narrow { .. } | Self::Plain)
    }
}

/// `gc/z/zForwarding.hpp`, `gc/z/zForwardingTable.hpp` (21 and 25), and the equivalents in gc/x (21): the
/// tables in which ZGC records where it has moved objects. Offsets are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardingLayout {
    /// The arrays of `ZForwarding*` of the young and the old generation, indexed by granule of the heap; one
    /// array if there is one generation.
    pub tables: [u64; 2],
    /// The size of a granule, as a power of two.
    pub granule_shift: u32,
    /// The bits of an address that form an offset in the heap.
    pub offset_mask: u64,
    /// The colour that single-generation ZGC gives to references that are up to date until the next marking
    /// ends; 0 for generational ZGC.
    pub remapped_bit: u64,
    /// ZForwarding: `_virtual._start`, an offset in the heap.
    pub start: u32,
    /// ZForwarding: `_object_alignment_shift`.
    pub alignment_shift: u32,
    /// ZForwarding: `_ref_count`, an int.
    pub ref_count: u32,
    /// ZForwarding: `_entries._length`, a power of two.
    pub length: u32,
    /// The distance from a ZForwarding to its entries: the size of the ZForwarding.
    pub entries: u32,
}

/// A stub that puts frozen frames back onto the stack, with the places where the meaning of its registers
/// changes. Empty if the stub's code was not recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThawStub {
    /// The whole stub.
    pub code: CodeRange,
    /// The instruction that makes room on the stack. No frame is thawed before it.
    pub makes_room: u64,
    /// After that instruction, the number of bytes that the stub has pushed when it calls `thaw`, without one
    /// word for alignment.
    pub pushed_bytes: u64,
    /// The range after the first of the two alternative calls of `thaw`, up to and including the jump to
    /// `returned`. In this range the first return register holds the stack pointer of the youngest thawed
    /// frame.
    pub returned_early: CodeRange,
    /// The address where both alternatives join, and where that register is saved in a callee-saved register.
    pub returned: u64,
    /// The address where that callee-saved register becomes the stack pointer.
    pub takes_stack: u64,
}

impl FrozenLayout {
    /// Returns the thawing stub that contains `pc`.
    #[inline]
    pub fn thaw_stub_at(&self, pc: u64) -> Option<&ThawStub> {
        self.thaw_stubs.iter().find(|stub| stub.code.contains(pc))
    }
}
