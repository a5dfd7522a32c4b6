//! Which virtual thread has which block, by `Thread.threadId()`: a table that a handler reads.
//!
//! Others change it under locks (`context::virtual_blocks`). A handler asks for the virtual thread that it runs on, which
//! therefore does not end meanwhile, and believes an entry only if that is its owner. Ids are never given out twice. So a
//! chain that changes under a handler makes it miss its block at worst.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, Ordering};

use super::context::ContextBlock;

/// Buckets of the table. Ids are given out in sequence: they are their own best hash.
pub const VIRTUAL_BUCKETS: usize = 1 << 16;

/// How far a handler follows a chain: that of a million threads in sequence has 16 entries.
const MOST_STEPS: usize = 64;

/// A virtual thread's place in the table. Entries are never freed; one without an owner is given another.
#[derive(Debug)]
pub struct VirtualEntry {
    /// `Thread.threadId()`; 0 for none. Stored last when the entry is taken, and first when it is left.
    pub owner: AtomicI64,
    /// The next in the bucket.
    pub next: AtomicPtr<VirtualEntry>,
    /// The owner's block.
    pub block: AtomicPtr<ContextBlock>,
    /// Whether the owner has registered itself to be sampled.
    pub is_registered: AtomicBool,
}

impl VirtualEntry {
    /// An entry without an owner.
    pub const fn new() -> Self {
        Self {
            owner: AtomicI64::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
            block: AtomicPtr::new(ptr::null_mut()),
            is_registered: AtomicBool::new(false),
        }
    }
}

impl Default for VirtualEntry {
    fn default() -> Self {
        Self::new()
    }
}

static BUCKETS: [AtomicPtr<VirtualEntry>; VIRTUAL_BUCKETS] =
    [const { AtomicPtr::new(ptr::null_mut()) }; VIRTUAL_BUCKETS];

/// The number of an id's bucket.
pub const fn bucket_number(thread_id: i64) -> usize {
    thread_id as usize % VIRTUAL_BUCKETS
}

/// The first entry of an id's bucket.
pub fn bucket_of(thread_id: i64) -> Option<&'static AtomicPtr<VirtualEntry>> {
    BUCKETS.get(bucket_number(thread_id))
}

/// The block of a virtual thread, for a handler on it or for who holds the bucket's lock.
pub fn virtual_block_of(thread_id: i64) -> Option<&'static ContextBlock> {
    let entry = virtual_entry_of(thread_id)?;
    // SAFETY: null, or a block, whose memory is never unmapped.
    unsafe { entry.block.load(Ordering::Relaxed).as_ref() }
}

/// The place of a virtual thread in the table, for the same.
pub fn virtual_entry_of(thread_id: i64) -> Option<&'static VirtualEntry> {
    let mut place = bucket_of(thread_id)?;
    for _ in 0..MOST_STEPS {
        // SAFETY: null, or an entry, which is never freed.
        let entry = unsafe { place.load(Ordering::Acquire).as_ref() }?;
        if entry.owner.load(Ordering::Acquire) == thread_id {
            return Some(entry);
        }
        place = &entry.next;
    }
    None
}
