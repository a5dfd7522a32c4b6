//! The blocks that were sampled and have not been freed, by their address.
//!
//! A hash table of fixed size. A block's bucket is one cache line, which is searched when a block is freed,
//! sampled or not. No thread waits: a place is taken by a compare-and-swap. A block whose bucket is full is
//! not remembered, but counted.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use otlpprof_core::byte_sampling::mix;

/// The number of blocks in a bucket.
const PLACES: usize = 8;
/// The number of buckets; a power of two.
const BUCKETS: usize = 1 << 15;

/// Stored in place of a block's address: the place is free.
const FREE: u64 = 0;
/// A thread is filling the place. No block has this address.
const BUSY: u64 = 1;

#[repr(align(64))]
struct Bucket([AtomicU64; PLACES]);

/// A table of blocks, each with its sample's number.
pub struct AllocatedBlocks {
    addresses: [Bucket; BUCKETS],
    numbers: [[AtomicU32; PLACES]; BUCKETS],
}

/// The blocks of this process.
pub static BLOCKS: AllocatedBlocks = AllocatedBlocks::new();

impl AllocatedBlocks {
    const fn new() -> Self {
        Self {
            addresses: [const { Bucket([const { AtomicU64::new(FREE) }; PLACES]) }; BUCKETS],
            numbers: [const { [const { AtomicU32::new(0) }; PLACES] }; BUCKETS],
        }
    }

    #[inline]
    fn bucket(&self, block: usize) -> Option<(&[AtomicU64; PLACES], &[AtomicU32; PLACES])> {
        // Blocks lie at regular distances. A multiplicative hash would preserve some of that regularity, and
        // a few buckets would hold most blocks.
        let bucket = mix(block as u64) as usize & BUCKETS.wrapping_sub(1);
        Some((&self.addresses.get(bucket)?.0, self.numbers.get(bucket)?))
    }

    /// Remembers a block that the allocator has just returned. Returns `false` if there is no room. A block
    /// that is already remembered was freed unobserved, and is a new block now.
    pub(super) fn insert(&self, block: usize, number: u32) -> bool {
        self.remove(block);
        let Some((addresses, numbers)) = self.bucket(block) else { return false };
        addresses.iter().zip(numbers).any(|(address, of)| {
            let is_mine = address.compare_exchange(FREE, BUSY, Ordering::Acquire, Ordering::Relaxed).is_ok();
            if is_mine {
                of.store(number, Ordering::Relaxed);
                address.store(block as u64, Ordering::Release);
            }
            is_mine
        })
    }

    /// Forgets a block. Returns its sample's number, if the block was remembered.
    #[inline]
    pub(super) fn remove(&self, block: usize) -> Option<u32> {
        if block <= BUSY as usize {
            return None;
        }
        let (addresses, numbers) = self.bucket(block)?;
        let (address, of) = addresses
            .iter()
            .zip(numbers)
            .find(|(address, _)| address.load(Ordering::Relaxed) == block as u64)?;
        let number = of.load(Ordering::Relaxed);
        address.store(FREE, Ordering::Release);
        Some(number)
    }

    /// Calls `visit` with the number of each remembered block. Ordinary zone.
    pub fn for_each(&self, mut visit: impl FnMut(u32)) {
        for (Bucket(addresses), numbers) in self.addresses.iter().zip(&self.numbers) {
            for (address, number) in addresses.iter().zip(numbers) {
                if address.load(Ordering::Acquire) > BUSY {
                    visit(number.load(Ordering::Relaxed));
                }
            }
        }
    }

    /// Forgets all blocks. No thread inserts meanwhile.
    pub(super) fn clear(&self) {
        for address in self.addresses.iter().flat_map(|Bucket(addresses)| addresses) {
            address.store(FREE, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::disallowed_methods, clippy::disallowed_types)]
mod tests {
    use super::*;

    /// On the heap, since it is too large for a stack.
    fn blocks() -> Box<AllocatedBlocks> {
        // SAFETY: every part is an atomic for which 0 is valid and means a free place.
        unsafe { Box::<AllocatedBlocks>::new_zeroed().assume_init() }
    }

    fn remembered(blocks: &AllocatedBlocks) -> Vec<u32> {
        let mut numbers = Vec::new();
        blocks.for_each(|number| numbers.push(number));
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn freed_blocks_are_forgotten_and_all_others_remembered() {
        let blocks = blocks();
        for number in 1..=1_000 {
            assert!(blocks.insert(0x7f00_0000_0000 + number * 48, number as u32));
        }
        for number in (1..=1_000).filter(|number| number % 2 == 0) {
            assert_eq!(blocks.remove(0x7f00_0000_0000 + number * 48), Some(number as u32));
            assert_eq!(blocks.remove(0x7f00_0000_0000 + number * 48), None);
        }
        assert_eq!(remembered(&blocks), (1..=1_000).filter(|number| number % 2 == 1).collect::<Vec<_>>());
        assert_eq!((blocks.remove(0), blocks.remove(1)), (None, None), "no blocks");
        blocks.clear();
        assert!(remembered(&blocks).is_empty());
    }

    /// Regression: blocks whose frees are not observed, such as by the C library itself, filled their bucket
    /// over time.
    #[test]
    fn a_reallocated_block_replaces_the_earlier_one() {
        let blocks = blocks();
        assert!((1..=100).all(|number| blocks.insert(0x7f00_0000_1000, number)));
        assert_eq!(remembered(&blocks), [100]);
    }

    #[test]
    fn a_full_bucket_takes_no_more_and_has_room_again() {
        let blocks = blocks();
        let first = blocks.bucket(0x1000).unwrap().0.as_ptr();
        let alike: Vec<usize> = (0x1000..)
            .step_by(16)
            .filter(|block| blocks.bucket(*block).unwrap().0.as_ptr() == first)
            .take(PLACES + 1)
            .collect();
        let inserted: Vec<bool> = alike.iter().map(|block| blocks.insert(*block, 7)).collect();
        assert_eq!(inserted, [[true; PLACES].as_slice(), &[false]].concat());
        assert_eq!(blocks.remove(alike[3]), Some(7));
        assert!(blocks.insert(alike[PLACES], 8));
    }

    /// Regression: blocks of equal size fell into few buckets, and 5 % of them found no room while most
    /// places were free.
    #[test]
    fn blocks_at_regular_distances_find_room() {
        for stride in [32, 64, 1_008, 1_024, 4_096, 65_536] {
            let blocks = blocks();
            let refused = (1..=50_000).filter(|number| !blocks.insert(number * stride, 1)).count();
            assert!(refused < 50, "{stride}: {refused}");
        }
    }

    #[test]
    fn threads_do_not_disturb_each_other() {
        let blocks = blocks();
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                let blocks = &blocks;
                scope.spawn(move || {
                    for round in 0..2_000_usize {
                        let block = (thread + 1) << 32 | round << 4;
                        if blocks.insert(block, thread as u32) {
                            assert_eq!(blocks.remove(block), Some(thread as u32));
                        }
                    }
                });
            }
        });
        assert!(remembered(&blocks).is_empty());
    }
}
