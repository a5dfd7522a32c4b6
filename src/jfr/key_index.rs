//! From a key to its position in a table that only grows.
//!
//! std's map with its own hasher takes three times as long, and a hasher that is always the same would let a recording
//! be made in which all keys collide; this one is seeded.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

const FREE: u32 = u32::MAX;
const FEWEST_SLOTS: usize = 16;

/// Keys in the order in which they were added, and where each is.
#[derive(Clone, Debug)]
pub(super) struct KeyIndex {
    keys: Vec<i64>,
    /// Positions in `keys`, or [`FREE`]; a power of two of them, at most half in use.
    slots: Vec<u32>,
    seed: u64,
}

impl Default for KeyIndex {
    fn default() -> Self {
        Self { keys: Vec::new(), slots: Vec::new(), seed: RandomState::new().hash_one(0) }
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
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut slot = self.hash(key) & mask;
        loop {
            let position = self.slots[slot];
            if position == FREE {
                return None;
            }
            if self.keys[position as usize] == key {
                return Some(position as usize);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Adds a key and gives its position, which is the number of keys before; `None` if it is there already.
    #[inline]
    pub(super) fn add(&mut self, key: i64) -> Option<usize> {
        if self.keys.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut slot = self.hash(key) & mask;
        loop {
            let position = self.slots[slot];
            if position == FREE {
                break;
            }
            if self.keys[position as usize] == key {
                return None;
            }
            slot = (slot + 1) & mask;
        }
        let position = self.keys.len();
        // Each key has at least one byte of a chunk, so 2^32 are out of reach of what is in memory in practice;
        // those behind are not found.
        self.slots[slot] = u32::try_from(position).ok().filter(|&position| position != FREE)?;
        self.keys.push(key);
        Some(position)
    }

    /// A multiplication, folded: the high half depends on all bits of the key and of the seed.
    #[inline]
    fn hash(&self, key: i64) -> usize {
        let product = u128::from(key as u64 ^ self.seed) * u128::from(self.seed | 0x9e37_79b9_7f4a_7c15);
        (product as u64 ^ (product >> 64) as u64) as usize
    }

    #[cold]
    fn grow(&mut self) {
        let len = (self.slots.len() * 2).max(FEWEST_SLOTS);
        self.slots = vec![FREE; len];
        for position in 0..self.keys.len() {
            let mut slot = self.hash(self.keys[position]) & (len - 1);
            while self.slots[slot] != FREE {
                slot = (slot + 1) & (len - 1);
            }
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
        fn keys_keep_their_first_position(keys in prop::collection::vec(-60i64..60, 0..200)) {
            let mut index = KeyIndex::default();
            let mut order: Vec<i64> = Vec::new();
            for &key in &keys {
                let added = index.add(key);
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
