//! Numbers by pairs of numbers, in a hash table that is read from main memory once for each look-up.
//!
//! The tree of 1,000,000 stacks has nearly as many branches, so most look-ups of a child miss the processor's
//! caches. An entry therefore holds its pair: no other place says whether the entry is the wanted one.

use std::hash::BuildHasher as _;
use std::hint::black_box;

use foldhash::fast::RandomState;

use super::huge_pages;

/// The number of entries of the smallest table.
const FEWEST: usize = 64;

/// An entry: a pair and its number. Free if the number is 0.
type Entry = [u32; 3];

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
    /// The number of pairs.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.taken
    }

    /// The number of this pair. A pair without a number gets the number `new`.
    pub(super) fn find_or_add(&mut self, pair: [u32; 2], new: u32) -> u32 {
        // With a quarter of the entries free, a search ends after few steps.
        if self.taken >= self.entries.len() / 4 * 3 {
            self.grow();
        }
        let place = self.place(pair);
        let [one, other] = pair;
        let entry = &mut self.entries[place];
        if entry[2] == 0 {
            *entry = [one, other, new];
            self.taken += 1;
        }
        entry[2]
    }

    /// Loads the entry of this pair into the processor's cache. The loads of several pairs overlap, whereas
    /// each search waits for the one before.
    pub(super) fn load(&self, pair: [u32; 2]) {
        if !self.entries.is_empty() {
            black_box(self.entries[self.first(pair)][2]);
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
            let [one, other, number] = self.entries[place];
            if number == 0 || [one, other] == pair {
                return place;
            }
            place = (place + 1) & (self.entries.len() - 1);
        }
    }

    fn grow(&mut self) {
        let count = (2 * self.entries.len()).max(FEWEST);
        let mut entries = vec![Entry::default(); count];
        huge_pages::advise(&mut entries);
        let before = std::mem::replace(&mut self.entries, entries);
        for [one, other, number] in before.into_iter().filter(|&[.., number]| number != 0) {
            let place = self.place([one, other]);
            self.entries[place] = [one, other, number];
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
