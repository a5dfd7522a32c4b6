//! Maps a key to its position in a table that only grows.
//!
//! Most writers number most constants from 1 upwards. Such keys index a table directly, as long as that table
//! stays small enough. The other keys are hashed. std's map with its own hasher takes three times as long as
//! this one. An unseeded hasher would let a crafted recording make all its keys collide, so this one is
//! seeded.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

const FREE: u32 = u32::MAX;
const FEWEST_SLOTS: usize = 16;

/// The position of each key, in the order in which the keys were added.
#[derive(Clone, Debug)]
pub(super) struct KeyIndex {
    /// The number of keys.
    len: usize,
    /// The position of each key that is less than this vector's length, or [`FREE`].
    direct: Vec<u32>,
    /// The other keys, with their positions.
    hashed: Vec<(i64, u32)>,
    /// An open-addressing hash table: positions in `hashed`, or [`FREE`]. The number of slots is a power of
    /// two, and at most half of them are in use.
    slots: Vec<u32>,
    seed: u64,
}

impl Default for KeyIndex {
    fn default() -> Self {
        let seed = RandomState::new().hash_one(0);
        Self { len: 0, direct: Vec::new(), hashed: Vec::new(), slots: Vec::new(), seed }
    }
}

impl KeyIndex {
    /// The number of keys.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The position of a key.
    #[inline]
    pub(super) fn find(&self, key: i64) -> Option<usize> {
        let position = match usize::try_from(key).ok().and_then(|key| self.direct.get(key)) {
            Some(&position) => position,
            None if self.slots.is_empty() => FREE,
            None => match self.slots[self.slot(key)] {
                FREE => FREE,
                place => self.hashed[place as usize].1,
            },
        };
        (position != FREE).then_some(position as usize)
    }

    /// Adds a key and returns its position, which is the number of keys before it; `None` if the key was
    /// added before. `room` is the most entries, of four bytes each, that the direct table may have.
    #[inline]
    pub(super) fn add(&mut self, key: i64, room: usize) -> Option<usize> {
        if self.hashed.len() >= self.slots.len() / 2 {
            self.grow(room);
        }
        let position = self.len;
        // Each key takes at least one byte of a chunk, so a chunk in memory practically never has 2³² keys.
        // Keys beyond that number are not found.
        let stored = u32::try_from(position).ok().filter(|&position| position != FREE)?;
        match usize::try_from(key).ok().and_then(|key| self.direct.get_mut(key)) {
            Some(place) if *place == FREE => *place = stored,
            Some(_) => return None,
            None => {
                let slot = self.slot(key);
                if self.slots[slot] != FREE {
                    return None;
                }
                self.slots[slot] = self.hashed.len() as u32;
                self.hashed.push((key, stored));
            }
        }
        self.len += 1;
        Some(position)
    }

    /// The key's slot, or the free slot in which it belongs.
    #[inline]
    fn slot(&self, key: i64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.hash(key) & mask;
        loop {
            let place = self.slots[slot];
            if place == FREE || self.hashed[place as usize].0 == key {
                return slot;
            }
            slot = (slot + 1) & mask;
        }
    }

    /// A multiplication whose halves are folded: the high half depends on all bits of the key and of the
    /// seed.
    #[inline]
    fn hash(&self, key: i64) -> usize {
        let product = u128::from(key as u64 ^ self.seed) * u128::from(self.seed | 0x9e37_79b9_7f4a_7c15);
        (product as u64 ^ (product >> 64) as u64) as usize
    }

    /// Moves hashed keys that are small enough to the direct table. Resizes the hash table so that it can
    /// take as many keys again.
    #[cold]
    fn grow(&mut self, room: usize) {
        let Self { direct, hashed, .. } = self;
        let direct_place = |&(key, _): &(i64, u32)| usize::try_from(key).ok();
        // Twice the present range, on the assumption that keys continue to grow.
        let largest = hashed.iter().filter_map(direct_place).filter(|&key| key < room / 2).max();
        let places = largest.map_or(0, |largest| (2 * largest + 2).min(room));
        if places > direct.len() {
            direct.resize(places, FREE);
            hashed.retain(|of| match direct_place(of).and_then(|key| direct.get_mut(key)) {
                Some(place) => {
                    *place = of.1;
                    false
                }
                None => true,
            });
        }
        self.slots.clear();
        self.slots.resize((4 * self.hashed.len()).next_power_of_two().max(FEWEST_SLOTS), FREE);
        for place in 0..self.hashed.len() {
            let slot = self.slot(self.hashed[place].0);
            self.slots[slot] = place as u32;
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
            keys in prop::collection::vec(-60i64..60, 0..200),
            room in prop::sample::select(&[0, 1, 10, 100, 1_000][..]),
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
