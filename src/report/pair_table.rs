//! Numbers by pairs of numbers, in a hash table that is read from main memory once for each look-up.
//!
//! The tree of 1,000,000 stacks has millions of nodes, so most look-ups of a child miss the processor's
//! caches. An entry therefore holds its pair: no other place says whether the entry is the wanted one.

use std::hash::BuildHasher as _;
use std::hint::black_box;

use foldhash::fast::RandomState;

/// The number of entries of the smallest table.
const FEWEST: usize = 64;

/// An entry; free if `number` is 0.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    pair: [u32; 2],
    number: u32,
}

/// Numbers above 0, each with a pair of numbers as its key.
///
/// The upper bits of a pair's hash are the place of the entry. If that place is taken, the next free one is
/// used. Entries are thus nearly in the order of their hashes, and a table that grows is copied from its
/// beginning to its end.
#[derive(Debug, Default)]
pub(super) struct PairTable {
    hasher: RandomState,
    /// None, or a power of two.
    entries: Vec<Entry>,
    taken: usize,
}

impl PairTable {
    /// The number of this pair. A pair without a number gets the number `new`.
    pub(super) fn find_or_add(&mut self, pair: [u32; 2], new: u32) -> u32 {
        // With a quarter of the entries free, a search ends after few steps.
        if self.taken >= self.entries.len() / 4 * 3 {
            self.grow();
        }
        let place = self.place(pair);
        let entry = &mut self.entries[place];
        if entry.number == 0 {
            *entry = Entry { pair, number: new };
            self.taken += 1;
        }
        entry.number
    }

    /// Loads the entry of this pair into the processor's cache. The loads of several pairs overlap, whereas
    /// each search waits for the one before.
    pub(super) fn load(&self, pair: [u32; 2]) {
        if !self.entries.is_empty() {
            black_box(self.entries[self.first(pair)].number);
        }
    }

    /// The place at which the search for a pair begins.
    fn first(&self, [one, other]: [u32; 2]) -> usize {
        let hash = self.hasher.hash_one(u64::from(one) << 32 | u64::from(other));
        (hash >> (u64::BITS - self.entries.len().trailing_zeros())) as usize
    }

    /// The place of a pair, or the free place for it.
    fn place(&self, pair: [u32; 2]) -> usize {
        let mut place = self.first(pair);
        loop {
            let entry = &self.entries[place];
            if entry.number == 0 || entry.pair == pair {
                return place;
            }
            place = (place + 1) & (self.entries.len() - 1);
        }
    }

    fn grow(&mut self) {
        let count = (2 * self.entries.len()).max(FEWEST);
        let before = std::mem::replace(&mut self.entries, vec![Entry::default(); count]);
        for entry in before.into_iter().filter(|entry| entry.number != 0) {
            let place = self.place(entry.pair);
            self.entries[place] = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_keep_their_numbers_while_the_table_grows() {
        let mut table = PairTable::default();
        let pairs = || (0..300).flat_map(|one| (0..30).map(move |other| [one, other]));
        for (new, pair) in (1..).zip(pairs()) {
            table.load(pair);
            assert_eq!(table.find_or_add(pair, new), new);
        }
        for (known, pair) in (1..).zip(pairs()) {
            table.load(pair);
            assert_eq!(table.find_or_add(pair, u32::MAX), known);
        }
        assert_eq!((table.taken, table.entries.len()), (9_000, 1 << 14));
    }
}
