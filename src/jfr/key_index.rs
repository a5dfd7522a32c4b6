//! From a key to its position in a table that only grows.
//!
//! Most writers number most of what they write from 1 on: where there is room, such keys are looked up where they say. For
//! the others std's map with its own hasher takes three times as long, and a hasher that is always the same would let a
//! recording be made in which all keys collide; this one is seeded.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

const FREE: u32 = u32::MAX;
const FEWEST_SLOTS: usize = 16;

/// Keys in the order in which they were added, and where each is.
#[derive(Clone, Debug)]
pub(super) struct KeyIndex {
    keys: Vec<i64>,
    /// The positions of the keys below its length, or [`FREE`].
    direct: Vec<u32>,
    /// The positions of the others, or [`FREE`]; a power of two of them, at most half in use.
    slots: Vec<u32>,
    seed: u64,
    /// At so many keys the tables are made anew.
    next_growth: usize,
}

impl Default for KeyIndex {
    fn default() -> Self {
        let seed = RandomState::new().hash_one(0);
        Self { keys: Vec::new(), direct: Vec::new(), slots: Vec::new(), seed, next_growth: 0 }
    }
}

impl KeyIndex {
    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The position of a key.
    #[inline]
    pub(super) fn find(&self, key: i64) -> Option<usize> {
        if let Some(&position) = usize::try_from(key).ok().and_then(|key| self.direct.get(key)) {
            return (position != FREE).then_some(position as usize);
        }
        if self.slots.is_empty() {
            return None;
        }
        let position = self.slots[self.slot(key)];
        (position != FREE).then_some(position as usize)
    }

    /// Adds a key and gives its position, which is the number of keys before; `None` if it is there already. `room` is how
    /// many keys may be looked up directly, whether there are so many or not: four bytes each.
    #[inline]
    pub(super) fn add(&mut self, key: i64, room: usize) -> Option<usize> {
        if self.keys.len() >= self.next_growth {
            self.grow(room);
        }
        let place = match usize::try_from(key).ok().filter(|&key| key < self.direct.len()) {
            Some(key) => &mut self.direct[key],
            None => {
                let slot = self.slot(key);
                &mut self.slots[slot]
            }
        };
        if *place != FREE {
            return None;
        }
        let position = self.keys.len();
        // Each key has at least one byte of a chunk, so 2^32 are out of reach of what is in memory in practice;
        // those behind are not found.
        *place = u32::try_from(position).ok().filter(|&position| position != FREE)?;
        self.keys.push(key);
        Some(position)
    }

    /// Where in the slots a key is, or would be.
    #[inline]
    fn slot(&self, key: i64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.hash(key) & mask;
        loop {
            let position = self.slots[slot];
            if position == FREE || self.keys[position as usize] == key {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }

    /// A multiplication, folded: the high half depends on all bits of the key and of the seed.
    #[inline]
    fn hash(&self, key: i64) -> usize {
        let product = u128::from(key as u64 ^ self.seed) * u128::from(self.seed | 0x9e37_79b9_7f4a_7c15);
        (product as u64 ^ (product >> 64) as u64) as usize
    }

    #[cold]
    fn grow(&mut self, room: usize) {
        let len = (self.slots.len() * 2).max(FEWEST_SLOTS);
        self.next_growth = len / 2;
        self.slots = vec![FREE; len];
        // Twice as many as there are now, if keys go on as they have begun.
        let small =
            self.keys.iter().filter_map(|&key| usize::try_from(key).ok()).filter(|&key| key < room / 2);
        let direct = small.max().map_or(0, |largest| (2 * largest + 2).min(room));
        self.direct.clear();
        self.direct.resize(direct, FREE);
        for position in 0..self.keys.len() {
            let key = self.keys[position];
            if let Some(place) = usize::try_from(key).ok().and_then(|key| self.direct.get_mut(key)) {
                *place = position as u32;
                continue;
            }
            let slot = self.slot(key);
            self.slots[slot] = position as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_keep_their_first_position(
            keys in prop::collection::vec(-60i64..60, 0..200), room in prop::sample::select(&[0, 1, 10, 100, 1_000][..]),
        ) {
            let mut index = KeyIndex::default();
            let mut order: Vec<i64> = Vec::new();
            for &key in &keys {
                let added = index.add(key, room);
                prop_assert_eq!(added, (!order.contains(&key)).then_some(order.len()));
                if added.is_some() {
                    order.push(key);
                }
            }
            prop_assert_eq!(index.len(), order.len());
            for key in -60..60 {
                prop_assert_eq!(index.find(key), order.iter().position(|&other| other == key));
            }
        }
    }
}
