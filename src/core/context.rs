//! The profiling context of a thread: what it is working for, in a block of 64 bytes that the thread itself writes and
//! that a handler on the same thread copies.
//!
//! The first 28 bytes are, in place, a record of OpenTelemetry's thread context (OTEP 4947, "Thread-Local Context
//! Record"): trace id, span id, `valid`, trace flags, size of the attributes. That size is always 0, so that a reader of
//! that format takes no slot for an attribute. Then follow nine slots, each a reference to a string of the dictionary.
//!
//! By OTEP 4947 a record counts while `valid` is 1, and no other byte of it does while `valid` is 0. So a block has three
//! states, in the four bytes from `valid` on:
//!
//! | `valid` | trace flags | |
//! |---|---|---|
//! | 1 | any | trace, span and slots count |
//! | 0 | 1 | no trace is active, whatever the ids say: the slots count ([`LABELS`]) |
//! | 0 | 0 | the slots are being written: nothing counts |
//!
//! A trace is set by a way through the second, which makes clearing one a single store.
//!
//! Only the owner writes, and only a handler on the owner reads: compilers must keep the order of the stores, the
//! processor does by itself.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, compiler_fence, fence};

/// The slots of a block.
pub const SLOTS: usize = 9;

/// A block's bytes.
pub const BLOCK_BYTES: usize = 64;

/// A block's words.
pub const BLOCK_WORDS: usize = BLOCK_BYTES / 8;

/// The word that holds the state in its lower half, `valid` in the lowest byte, on a little-endian machine.
const STATE_WORD: usize = 3;

/// The state of a block in which the slots count and the ids do not.
const LABELS: u32 = 1 << 8;

const fn has_trace(state: u32) -> bool {
    state & 0xff == 1
}

/// A block as it was when it was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ContextRecord {
    /// W3C trace id, big-endian; zeros if no trace is active.
    pub trace_id: [u8; 16],
    /// W3C span id, big-endian; zeros if no trace is active.
    pub span_id: [u8; 8],
    /// 1 if the record says anything, 0 where there is none.
    pub valid: u8,
    /// W3C trace flags.
    pub trace_flags: u8,
    /// Always 0.
    pub attributes_size: u16,
    /// References to the dictionary; 0 is none.
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

    /// Whether a trace is active. Only both ids together are a span.
    pub fn has_span(&self) -> bool {
        self.trace_id != [0; 16] && self.span_id != [0; 8]
    }

    /// Whether it says anything.
    pub fn is_some(&self) -> bool {
        self.valid == 1
    }

    /// What a block with these words says; `None` if it was copied in the middle of a write.
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
        // SAFETY: both are 64 bytes without padding, and every bit pattern is a record.
        unsafe { std::mem::transmute::<[u64; BLOCK_WORDS], Self>(words) }
    }
}

/// Names an entry of the dictionary: its index, and which of the strings it has held. Zero, whose generation no entry
/// has, is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct ValueRef(pub u32);

impl ValueRef {
    /// No value.
    pub const NONE: Self = Self(0);

    /// The entry `index` in its generation `generation`, which is not 0.
    pub const fn new(index: u16, generation: u16) -> Self {
        Self((generation as u32) << 16 | index as u32)
    }

    /// Which entry.
    pub const fn index(self) -> u16 {
        self.0 as u16
    }

    /// Which of the strings that the entry has held.
    pub const fn generation(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

/// A block. Its memory is a [`ContextRecord`]'s; Java writes it as a direct buffer.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct ContextBlock {
    words: [AtomicU64; BLOCK_WORDS],
}

const _: () = assert!(size_of::<ContextBlock>() == BLOCK_BYTES);

impl ContextBlock {
    /// What the block says; `None` while its thread is in the middle of a write. For a handler on the block's thread,
    /// or where nobody writes.
    pub fn read(&self) -> Option<ContextRecord> {
        let [.., state, _, _, _, _] = &self.words;
        let state = state.load(Ordering::Relaxed) as u32;
        if !has_trace(state) && state != LABELS {
            return None;
        }
        compiler_fence(Ordering::SeqCst);
        ContextRecord::of_block(self.words.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }

    /// What the block says, for another thread than the block's; `None` if it was being changed. For where no more than one
    /// change can come between: a change is seen by the state, which is not what it was while anything else is stored, or by
    /// what it has stored. (One slot is stored at once.)
    pub fn read_of_another_thread(&self) -> Option<ContextRecord> {
        let read = || {
            // The state first: what it is when all has been stored is not seen before all that.
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

    /// What the slots hold, whether or not a write is under way.
    pub fn slots(&self) -> [ValueRef; SLOTS] {
        ContextRecord::of_words(self.words.each_ref().map(|word| word.load(Ordering::Relaxed))).slots
    }

    /// Empties the block. For one that no handler reads.
    pub fn clear(&self) {
        for (index, word) in self.words.iter().enumerate() {
            word.store(if index == STATE_WORD { u64::from(LABELS) } else { 0 }, Ordering::Relaxed);
        }
    }
}

/// What a kernel thread's samples may be labelled with.
#[derive(Debug)]
pub struct BlockEntry {
    /// The block of the platform thread itself; null if it has none.
    pub own: AtomicPtr<ContextBlock>,
    /// Where the VM's events tell who is mounted: the block of the virtual thread, [`NOBODY`] while there is none, or it has
    /// no block. Null where nothing was told, because no event came or nobody asked for them.
    pub mounted: AtomicPtr<ContextBlock>,
    /// Whether the platform thread has registered itself to be sampled.
    pub is_registered: AtomicBool,
}

impl BlockEntry {
    /// A thread without blocks.
    pub const fn new() -> Self {
        Self {
            own: AtomicPtr::new(ptr::null_mut()),
            mounted: AtomicPtr::new(ptr::null_mut()),
            is_registered: AtomicBool::new(false),
        }
    }

    /// The block of the platform thread itself.
    pub fn own_block(&self) -> Option<&'static ContextBlock> {
        // SAFETY: null, or a block, whose memory is never unmapped.
        unsafe { self.own.load(Ordering::Acquire).as_ref() }
    }

    /// The block of which the VM's events say that it is the mounted thread's.
    pub fn mounted_block(&self) -> Option<&'static ContextBlock> {
        // SAFETY: as above.
        unsafe { self.mounted.load(Ordering::Acquire).as_ref() }
    }
}

impl Default for BlockEntry {
    fn default() -> Self {
        Self::new()
    }
}

/// A block that always reads as none.
pub static NOBODY: ContextBlock = ContextBlock { words: [const { AtomicU64::new(0) }; BLOCK_WORDS] };

/// Threads in a chunk of the map.
pub const THREADS_PER_CHUNK: usize = 1024;
/// The most chunks: thread ids are below 2^22 (`PID_MAX_LIMIT`, include/linux/threads.h).
pub const MAX_THREAD_CHUNKS: usize = 4096;

/// A chunk of the map.
pub type BlockEntryChunk = [BlockEntry; THREADS_PER_CHUNK];

static ENTRIES: [AtomicPtr<BlockEntryChunk>; MAX_THREAD_CHUNKS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MAX_THREAD_CHUNKS];

fn place_of(os_tid: i32) -> Option<(&'static AtomicPtr<BlockEntryChunk>, usize)> {
    let tid = usize::try_from(os_tid).ok()?;
    Some((ENTRIES.get(tid.checked_div(THREADS_PER_CHUNK)?)?, tid.checked_rem(THREADS_PER_CHUNK)?))
}

/// The place in the map of the thread with this kernel id; `None` if its chunk is not there.
pub fn entry_of(os_tid: i32) -> Option<&'static BlockEntry> {
    let (chunk, index) = place_of(os_tid)?;
    // SAFETY: a chunk is published whole, by `publish_chunk`, and never freed.
    unsafe { chunk.load(Ordering::Acquire).as_ref() }?.get(index)
}

/// Makes the chunk of this thread id findable. `false` if there is one, or no place for it.
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
        // SAFETY: both are 64 bytes without padding.
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
        // SAFETY: the block's own bytes.
        let bytes = unsafe { &*(&raw const block).cast::<[u8; 64]>() };
        assert_eq!(bytes[..16], [0xa1; 16]);
        assert_eq!(bytes[16..24], [0xb2; 8]);
        assert_eq!(bytes[24..28], [1, 3, 0, 0]);
        assert_eq!(bytes[28 + 4 * 8..], [8, 0, 1, 0]);
        assert_eq!((&raw const block) as usize % 64, 0);
        assert_eq!(block.read().unwrap().slots, slots);
    }

    #[test]
    fn a_half_written_block_is_none_and_one_without_a_trace_is_not() {
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
        assert_eq!(NOBODY.read(), None);
    }
}
