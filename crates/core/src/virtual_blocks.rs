//! A table of the context blocks of virtual threads, by `Thread.threadId()`, for handlers.
//!
//! Other threads change the table under locks (`context::virtual_blocks`). A handler looks up the virtual
//! thread that it runs on. That thread does not end meanwhile, and the handler accepts an entry only if the
//! thread is its owner. Ids are never reused. So when a chain changes during a lookup, the worst case is that
//! the handler misses its block. An entry that was removed meanwhile may already be part of another chain; if
//! an entry was removed during the lookup, the handler searches the chain again.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, Ordering};

use super::context::ContextBlock;

const BUCKET_BITS: u32 = 16;

/// The number of buckets in the table.
pub const VIRTUAL_BUCKETS: usize = 1 << BUCKET_BITS;

/// The number of entries that a handler examines in a chain: with a million threads a chain has 16.
const MOST_STEPS: usize = 64;

/// The number of times that a handler searches a chain that changes during the lookup.
const MOST_WALKS: usize = 8;

/// The number of shards. Each shard of the table has its own entries, and its own lock for changes.
pub const SHARDS: usize = 64;

/// A virtual thread's entry in the table. Entries are never freed; an entry without an owner is reused.
#[derive(Debug)]
pub struct VirtualEntry {
    /// `Thread.threadId()` of the owner; 0 for none. Stored last when the entry is claimed, and first when it
    /// is released.
    pub owner: AtomicI64,
    /// The next entry in the bucket.
    pub next: AtomicPtr<VirtualEntry>,
    /// The owner's block.
    pub block: AtomicPtr<ContextBlock>,
    /// Whether the owner has registered itself to be sampled.
    pub is_registered: AtomicBool,
}

impl VirtualEntry {
    /// Returns an entry without an owner.
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

/// Returns the number of an id's bucket. Ids are assigned in sequence, and the ids of threads with a block
/// may lie at any regular distance, if an application starts its threads in a regular order. One
/// multiplication by the golden ratio's fraction of 2^64 spreads most such sequences evenly; mixing the bits
/// and multiplying again spreads all of them.
pub const fn bucket_number(thread_id: i64) -> usize {
    const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
    let once = thread_id.cast_unsigned().wrapping_mul(GOLDEN_RATIO);
    let twice = (once ^ once >> 32).wrapping_mul(GOLDEN_RATIO);
    (twice >> (u64::BITS - BUCKET_BITS)) as usize
}

/// Returns the pointer to the first entry of an id's bucket.
#[inline]
pub fn bucket_of(thread_id: i64) -> Option<&'static AtomicPtr<VirtualEntry>> {
    BUCKETS.get(bucket_number(thread_id))
}

/// Returns the number of an id's shard.
pub const fn shard_number(thread_id: i64) -> usize {
    bucket_number(thread_id) % SHARDS
}

/// The number of entries that were ever removed from each shard's chains.
static REMOVALS: [AtomicU32; SHARDS] = [const { AtomicU32::new(0) }; SHARDS];

/// The number of entries that were ever removed from the chains of an id's shard. Incremented before the
/// `next` of a removed entry is changed.
#[inline]
pub fn removals_of(thread_id: i64) -> Option<&'static AtomicU32> {
    REMOVALS.get(shard_number(thread_id))
}

/// Returns the block of a virtual thread, for a handler that runs on that thread.
#[inline]
pub fn virtual_block_of(thread_id: i64) -> Option<&'static ContextBlock> {
    let entry = virtual_entry_of(thread_id)?;
    // SAFETY: the pointer is null, or leads to a block, whose memory is never unmapped.
    unsafe { entry.block.load(Ordering::Relaxed).as_ref() }
}

/// Returns the entry of a virtual thread, for a handler that runs on that thread. The search is bounded; a
/// thread that holds the bucket's lock can search chains to their ends instead.
#[inline]
pub fn virtual_entry_of(thread_id: i64) -> Option<&'static VirtualEntry> {
    let removals = removals_of(thread_id)?;
    let mut removals_before = removals.load(Ordering::Acquire);
    for _ in 0..MOST_WALKS {
        if let Some(entry) = in_chain(thread_id) {
            return Some(entry);
        }
        let removals_after = removals.load(Ordering::Acquire);
        if removals_after == removals_before {
            return None;
        }
        removals_before = removals_after;
    }
    None
}

fn in_chain(thread_id: i64) -> Option<&'static VirtualEntry> {
    let mut place = bucket_of(thread_id)?;
    for _ in 0..MOST_STEPS {
        // SAFETY: the pointer is null, or leads to an entry, which is never freed.
        let entry = unsafe { place.load(Ordering::Acquire).as_ref() }?;
        if entry.owner.load(Ordering::Acquire) == thread_id {
            return Some(entry);
        }
        place = &entry.next;
    }
    None
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_start_at_even_distances_do_not_crowd_into_buckets() {
        for distance in [1, 2, 10, 64, 1000, 4096, VIRTUAL_BUCKETS as i64, 1 << 20] {
            let mut chains = vec![0_usize; VIRTUAL_BUCKETS];
            for n in 0..1_000_000 {
                chains[bucket_number(12_345 + n * distance)] += 1;
            }
            let longest = chains.into_iter().max();
            assert!(longest <= Some(MOST_STEPS), "{distance} apart: {longest:?} in a bucket");
        }
    }
}
