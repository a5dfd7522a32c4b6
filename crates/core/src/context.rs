//! The profiling context of a thread: the work that it does, in a block of 64 bytes that the thread itself
//! writes and that a handler on the same thread copies.
//!
//! The first 28 bytes are a record of OpenTelemetry's thread context (OTEP 4947, "Thread-Local Context
//! Record"): trace id, span id, `valid`, trace flags, size of the attributes. That size is always 0, so that
//! a reader of that format does not take a slot for an attribute. Nine slots follow, each a reference to a
//! string of the dictionary.
//!
//! By OTEP 4947 a record is valid while `valid` is 1, and none of its other bytes is to be read while `valid`
//! is 0. So a block has three states, in the four bytes from `valid` on:
//!
//! | `valid` | trace flags | |
//! |---|---|---|
//! | 1 | any | trace, span and slots are valid |
//! | 0 | 1 | no trace is active, whatever the ids contain; the slots are valid (`LABELS`) |
//! | 0 | 0 | the slots are being written; nothing is valid |
//!
//! A trace is set by way of the second state, so that clearing the trace is a single store.
//!
//! Only the owner writes, and only a handler on the owner reads. So compilers must keep the order of the
//! stores; the processor does so by itself.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, compiler_fence, fence};

/// The number of slots in a block.
pub const SLOTS: usize = 9;

/// The size of a block, in bytes.
pub const BLOCK_BYTES: usize = 64;

/// The size of a block, in words.
pub const BLOCK_WORDS: usize = BLOCK_BYTES / 8;

/// The index of the word that holds the state in its lower half, with `valid` in the lowest byte, on a
/// little-endian machine.
const STATE_WORD: usize = 3;

/// The state of a block in which the slots are valid and the ids are not.
const LABELS: u32 = 1 << 8;

const fn has_trace(state: u32) -> bool {
    state & 0xff == 1
}

/// A copy of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ContextRecord {
    /// W3C trace id, big-endian; zeros if no trace is active.
    pub trace_id: [u8; 16],
    /// W3C span id, big-endian; zeros if no trace is active.
    pub span_id: [u8; 8],
    /// 1 if the record has a context, 0 if there is none.
    pub valid: u8,
    /// W3C trace flags.
    pub trace_flags: u8,
    /// Always 0.
    pub attributes_size: u16,
    /// References to entries of the dictionary; 0 for none.
    pub slots: [ValueRef; SLOTS],
}

const _: () = assert!(size_of::<ContextRecord>() == BLOCK_BYTES);
const _: () = assert!(std::mem::offset_of!(ContextRecord, valid) == 8 * STATE_WORD);
const _: () = assert!(std::mem::offset_of!(ContextRecord, slots) == 28);
const _: () = assert!(cfg!(target_endian = "little"), "`valid` is looked for in a word's lowest byte");

impl ContextRecord {
    /// The record of a thread without context.
    pub const NONE: Self = Self {
        trace_id: [0; 16],
        span_id: [0; 8],
        valid: 0,
        trace_flags: 0,
        attributes_size: 0,
        slots: [ValueRef::NONE; SLOTS],
    };

    /// Whether a trace is active. A span needs both ids.
    #[inline]
    pub fn has_span(&self) -> bool {
        self.trace_id != [0; 16] && self.span_id != [0; 8]
    }

    /// Whether the record has a context.
    pub fn is_some(&self) -> bool {
        self.valid == 1
    }

    /// Decodes a block with these words; `None` if it was copied in the middle of a write.
    #[inline]
    pub fn of_block(words: [u64; BLOCK_WORDS]) -> Option<Self> {
        let [.., state, _, _, _, _] = words;
        let record = Self::of_words(words);
        match state as u32 {
            state if has_trace(state) => Some(record),
            LABELS => Some(Self { valid: 1, slots: record.slots, ..Self::NONE }),
            _ => None,
        }
    }

    fn of_words(words: [u64; BLOCK_WORDS]) -> Self {
        // SAFETY: both types are 64 bytes without padding, and every bit pattern is a valid record.
        unsafe { std::mem::transmute::<[u64; BLOCK_WORDS], Self>(words) }
    }
}

/// Refers to a string of the dictionary: the index of an entry, and a generation, which counts the strings
/// that the entry has held. Zero is no reference, since no entry has generation 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct ValueRef(pub u32);

impl ValueRef {
    /// No value.
    pub const NONE: Self = Self(0);

    /// Returns the reference to entry `index` in its generation `generation`, which is not 0.
    pub const fn new(index: u16, generation: u16) -> Self {
        Self((generation as u32) << 16 | index as u32)
    }

    /// The index of the entry.
    pub const fn index(self) -> u16 {
        self.0 as u16
    }

    /// The generation of the entry.
    pub const fn generation(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

/// A block. Its memory has the layout of a [`ContextRecord`]; Java writes it through a direct buffer.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct ContextBlock {
    words: [AtomicU64; BLOCK_WORDS],
}

const _: () = assert!(size_of::<ContextBlock>() == BLOCK_BYTES);

impl ContextBlock {
    /// Reads the block; `None` while its thread is in the middle of a write. For a handler on the block's
    /// thread, or for a block that no thread writes.
    #[inline]
    pub fn read(&self) -> Option<ContextRecord> {
        let [.., state, _, _, _, _] = &self.words;
        let state = state.load(Ordering::Relaxed) as u32;
        if !has_trace(state) && state != LABELS {
            return None;
        }
        compiler_fence(Ordering::SeqCst);
        ContextRecord::of_block(self.words.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }

    /// Reads the block of another thread; `None` if it was being changed. Reliable only if at most one change
    /// can happen during the call. A change shows either in the state, which differs while anything else is
    /// stored, or in the words that it has stored. (A single slot is changed by one store.)
    #[inline]
    pub fn read_of_another_thread(&self) -> Option<ContextRecord> {
        let read = || {
            // Loads the state first, so that all stores before a final state are visible in the words.
            let state = self.words.get(STATE_WORD).map_or(0, |word| word.load(Ordering::Acquire));
            (state, self.words.each_ref().map(|word| word.load(Ordering::Relaxed)))
        };
        let first = read();
        fence(Ordering::Acquire);
        let (state, words) = read();
        ((state, words) == first && words.get(STATE_WORD) == Some(&state))
            .then(|| ContextRecord::of_block(words))
            .flatten()
    }

    /// Reads the slots, even if a write is under way.
    #[inline]
    pub fn slots(&self) -> [ValueRef; SLOTS] {
        ContextRecord::of_words(self.words.each_ref().map(|word| word.load(Ordering::Relaxed))).slots
    }

    /// Empties a block that no handler reads.
    pub fn clear(&self) {
        for (index, word) in self.words.iter().enumerate() {
            word.store(if index == STATE_WORD { u64::from(LABELS) } else { 0 }, Ordering::Relaxed);
        }
    }
}

/// The context blocks of a kernel thread, and its registration.
#[derive(Debug)]
pub struct BlockEntry {
    /// The block of the platform thread itself; null if it has none.
    pub own: AtomicPtr<ContextBlock>,
    /// The block of the mounted virtual thread, if the VM's events report mounting: [`EMPTY_BLOCK`] while no
    /// virtual thread is mounted, or if it has no block. Null if no event has been received, or if the events
    /// are not enabled.
    pub mounted: AtomicPtr<ContextBlock>,
    /// Whether the platform thread has registered itself to be sampled.
    pub is_registered: AtomicBool,
}

impl BlockEntry {
    /// Returns the entry of a thread without blocks.
    pub const fn new() -> Self {
        Self {
            own: AtomicPtr::new(ptr::null_mut()),
            mounted: AtomicPtr::new(ptr::null_mut()),
            is_registered: AtomicBool::new(false),
        }
    }

    /// Returns the block of the platform thread itself.
    #[inline]
    pub fn own_block(&self) -> Option<&'static ContextBlock> {
        // SAFETY: the pointer is null, or leads to a block, whose memory is never unmapped.
        unsafe { self.own.load(Ordering::Acquire).as_ref() }
    }

    /// Returns the block of the virtual thread that is mounted according to the VM's events.
    #[inline]
    pub fn mounted_block(&self) -> Option<&'static ContextBlock> {
        // SAFETY: the pointer is null, or leads to a block, whose memory is never unmapped.
        unsafe { self.mounted.load(Ordering::Acquire).as_ref() }
    }
}

impl Default for BlockEntry {
    fn default() -> Self {
        Self::new()
    }
}

/// A block that always reads as "no context".
pub static EMPTY_BLOCK: ContextBlock = ContextBlock { words: [const { AtomicU64::new(0) }; BLOCK_WORDS] };

/// The number of threads in a chunk of the map.
pub const THREADS_PER_CHUNK: usize = 1024;
/// The largest number of chunks: thread ids are below 2^22 (`PID_MAX_LIMIT`, include/linux/threads.h).
pub const MAX_THREAD_CHUNKS: usize = 4096;

/// A chunk of the map.
pub type BlockEntryChunk = [BlockEntry; THREADS_PER_CHUNK];

static ENTRIES: [AtomicPtr<BlockEntryChunk>; MAX_THREAD_CHUNKS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_THREAD_CHUNKS];

fn place_of(os_tid: i32) -> Option<(&'static AtomicPtr<BlockEntryChunk>, usize)> {
    let tid = usize::try_from(os_tid).ok()?;
    Some((ENTRIES.get(tid.checked_div(THREADS_PER_CHUNK)?)?, tid.checked_rem(THREADS_PER_CHUNK)?))
}

/// Returns the entry of the thread with this kernel id; `None` if its chunk does not exist.
#[inline]
pub fn entry_of(os_tid: i32) -> Option<&'static BlockEntry> {
    let (chunk, index) = place_of(os_tid)?;
    // SAFETY: `publish_chunk` publishes whole chunks, which are never freed.
    unsafe { chunk.load(Ordering::Acquire).as_ref() }?.get(index)
}

/// Publishes the chunk of this thread id. Returns `false` if there is one already, or no place for it.
pub fn publish_chunk(os_tid: i32, chunk: &'static BlockEntryChunk) -> bool {
    place_of(os_tid).is_some_and(|(place, _)| {
        let chunk = ptr::from_ref(chunk).cast_mut();
        place.compare_exchange(ptr::null_mut(), chunk, Ordering::AcqRel, Ordering::Acquire).is_ok()
    })
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::arithmetic_side_effects)]
mod tests {
    use super::*;

    fn write(block: &ContextBlock, record: ContextRecord) {
        // SAFETY: both types are 64 bytes without padding.
        let words = unsafe { std::mem::transmute::<ContextRecord, [u64; BLOCK_WORDS]>(record) };
        for (word, value) in block.words.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_layout_is_that_of_opentelemetrys_thread_context() {
        let block = ContextBlock::default();
        let slots = std::array::from_fn(|slot| ValueRef::new(slot as u16, 1));
        write(
            &block,
            ContextRecord {
                trace_id: [0xa1; 16],
                span_id: [0xb2; 8],
                valid: 1,
                trace_flags: 3,
                attributes_size: 0,
                slots,
            },
        );
        // SAFETY: the block has these bytes, and nobody changes them meanwhile.
        let bytes = unsafe { &*(&raw const block).cast::<[u8; 64]>() };
        assert_eq!(bytes[..16], [0xa1; 16]);
        assert_eq!(bytes[16..24], [0xb2; 8]);
        assert_eq!(bytes[24..28], [1, 3, 0, 0]);
        assert_eq!(bytes[28 + 4 * 8..], [8, 0, 1, 0]);
        assert_eq!((&raw const block) as usize % 64, 0);
        assert_eq!(block.read().unwrap().slots, slots);
    }

    #[test]
    fn a_half_written_block_is_no_context_and_a_block_without_a_trace_is_one() {
        let block = ContextBlock::default();
        assert_eq!(block.read(), None, "never made ready");
        block.clear();
        assert_eq!(block.read(), Some(ContextRecord { valid: 1, ..ContextRecord::NONE }));
        let slots = [ValueRef::new(7, 1); SLOTS];
        let ids = ContextRecord { trace_id: [1; 16], span_id: [2; 8], slots, ..ContextRecord::NONE };
        write(&block, ContextRecord { trace_flags: 1, ..ids });
        let labels = ContextRecord { valid: 1, slots, ..ContextRecord::NONE };
        assert_eq!(block.read(), Some(labels), "ids of a trace that is over");
        write(&block, ContextRecord { valid: 1, trace_flags: 1, ..ids });
        assert_eq!(block.read(), Some(ContextRecord { valid: 1, trace_flags: 1, ..ids }));
        assert_eq!(block.read_of_another_thread(), block.read());
        for invalid in [0, 2, 0xff] {
            write(&block, ContextRecord { trace_id: [1; 16], valid: invalid, slots, ..ContextRecord::NONE });
            assert_eq!(block.read(), None);
            assert_eq!(block.read_of_another_thread(), None);
            assert_eq!(block.slots(), slots, "references that a write under way leaves alone are seen");
        }
    }

    #[test]
    fn threads_are_found_once_their_chunk_is_there() {
        let tid = (MAX_THREAD_CHUNKS * THREADS_PER_CHUNK) as i32 - 1;
        assert!(entry_of(tid).is_none());
        let chunk = || Box::leak(Box::new([const { BlockEntry::new() }; THREADS_PER_CHUNK]));
        assert!(publish_chunk(tid, chunk()));
        assert!(!publish_chunk(tid - 1, chunk()), "the same chunk");
        assert!(!publish_chunk(tid + 1, chunk()) && !publish_chunk(-1, chunk()), "no thread ids");
        let block: &'static ContextBlock = Box::leak(Box::default());
        entry_of(tid).unwrap().own.store(ptr::from_ref(block).cast_mut(), Ordering::Release);
        assert!(entry_of(tid).unwrap().own_block().is_some_and(|own| ptr::eq(own, block)));
        assert!(entry_of(tid - 1).unwrap().own_block().is_none());
        assert_eq!(EMPTY_BLOCK.read(), None);
    }
}
