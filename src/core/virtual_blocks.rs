//! Which virtual thread has which block, by `Thread.threadId()`: a table that a handler reads.
//!
//! Others change it under locks (`context::virtual_blocks`). A handler asks for the virtual thread that it runs on, which
//! therefore does not end meanwhile, and believes an entry only if that is its owner. Ids are never given out twice. So a
//! chain that changes under a handler makes it miss its block at worst. It follows the chain again where that may have
//! been so: where an entry was taken out meanwhile, which may lead on in another chain by now.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, Ordering};

use super::context::ContextBlock;

const BUCKET_BITS: u32 = 16;

/// Buckets of the table.
pub const VIRTUAL_BUCKETS: usize = 1 << BUCKET_BITS;

/// How far a handler follows a chain: those of a million threads have 16 entries.
const MOST_STEPS: usize = 64;

/// How often a handler follows a chain that changes under it.
const MOST_WALKS: usize = 8;

/// Parts of the table, of which each has entries of its own, and a lock where it is changed.
pub const SHARDS: usize = 64;

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

/// The number of an id's bucket. Ids are given out in sequence, and those that have a block may lie as far apart as an
/// application starts one thread after another. Multiplied by the golden ratio's part of 2^64 most such lie evenly, and a
/// second time, with the bits mixed, all do.
pub const fn bucket_number(thread_id: i64) -> usize {
    const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
    let once = thread_id.cast_unsigned().wrapping_mul(GOLDEN_RATIO);
    let twice = (once ^ once >> 32).wrapping_mul(GOLDEN_RATIO);
    (twice >> (u64::BITS - BUCKET_BITS)) as usize
}

/// The first entry of an id's bucket.
pub fn bucket_of(thread_id: i64) -> Option<&'static AtomicPtr<VirtualEntry>> {
    BUCKETS.get(bucket_number(thread_id))
}

/// The number of an id's shard.
pub const fn shard_number(thread_id: i64) -> usize {
    bucket_number(thread_id) % SHARDS
}

/// How many entries were ever taken out of each shard's chains.
static REMOVALS: [AtomicU32; SHARDS] = [const { AtomicU32::new(0) }; SHARDS];

/// How many entries were ever taken out of an id's shard. Raised before such an entry's `next` is stored again.
pub fn removals_of(thread_id: i64) -> Option<&'static AtomicU32> {
    REMOVALS.get(shard_number(thread_id))
}

/// The block of a virtual thread, for a handler on it.
pub fn virtual_block_of(thread_id: i64) -> Option<&'static ContextBlock> {
    let entry = virtual_entry_of(thread_id)?;
    // SAFETY: null, or a block, whose memory is never unmapped.
    unsafe { entry.block.load(Ordering::Relaxed).as_ref() }
}

/// The place of a virtual thread in the table, for the same. Whoever holds the bucket's lock follows chains to their ends.
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
        // SAFETY: null, or an entry, which is never freed.
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
