//! Interning: every distinct value is stored once and identified by a dense index.
//!
//! Each interner owns its values in a vector, in the order of their insertion. The hash table beside it holds
//! indices, and half of each hash: so a table that grows reads no values, which lie scattered in memory.
//! Equality is always decided by content, never by hash.

use std::fmt::Debug;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// A dense index into one interner, with a type of its own so that the tables cannot be mixed up.
pub trait Id: Copy + Debug + Eq + Hash + Ord {
    /// The id at this position.
    fn from_index(index: u32) -> Self;
    /// The position.
    fn index(self) -> usize;
}

/// The id of the next value.
///
/// # Panics
/// With 2³² values; the smallest kind of value would then take 36 GiB.
fn next_id<I: Id>(len: usize) -> I {
    I::from_index(u32::try_from(len).expect("an interner holds fewer than 2^32 values"))
}

/// The number of values whose entries are fetched together.
const BATCH: usize = 32;

/// A value's entry in a hash table.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The upper half of the value's hash.
    hash: u32,
    index: u32,
}

impl Slot {
    /// Takes the upper half of a hash.
    fn half_of(hash: u64) -> u32 {
        (hash >> 32) as u32
    }

    /// The number by which the hash table places and tags an entry: the table takes low and high bits.
    fn spread(half: u32) -> u64 {
        u64::from(half) << 32 | u64::from(half)
    }

    fn place(&self) -> u64 {
        Self::spread(self.hash)
    }
}

/// Interns values of one type.
#[derive(Clone, Debug)]
pub struct Interner<T, I> {
    values: Vec<T>,
    indices: HashTable<Slot>,
    hasher: RandomState,
    id: PhantomData<I>,
}

impl<T, I> Default for Interner<T, I> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            indices: HashTable::new(),
            hasher: RandomState::default(),
            id: PhantomData,
        }
    }
}

impl<T: Hash + Eq, I: Id> Interner<T, I> {
    /// An interner that does not grow until it holds `capacity` values.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            values: Vec::with_capacity(capacity),
            indices: HashTable::with_capacity(capacity),
            ..Self::default()
        }
    }

    /// Returns the id of `value`, which is stored if it is new.
    pub fn intern(&mut self, value: T) -> I {
        let hash = Slot::half_of(self.hasher.hash_one(&value));
        self.intern_hashed(hash, value)
    }

    fn intern_hashed(&mut self, hash: u32, value: T) -> I {
        let Self { values, indices, .. } = self;
        let is_value = |slot: &Slot| slot.hash == hash && values[slot.index as usize] == value;
        match indices.entry(Slot::spread(hash), is_value, Slot::place) {
            Entry::Occupied(known) => I::from_index(known.get().index),
            Entry::Vacant(place) => {
                let id: I = next_id(values.len());
                place.insert(Slot { hash, index: id.index() as u32 });
                values.push(value);
                id
            }
        }
    }

    /// Interns values, and passes their ids to `ids` in order. Faster than one call of [`Interner::intern`]
    /// for each value if there are many in the table: their entries, which lie scattered in memory, are
    /// fetched at the same time.
    pub fn intern_all(&mut self, all: &[T], mut ids: impl FnMut(I))
    where
        T: Copy,
    {
        for batch in all.chunks(BATCH) {
            let mut found = [(0, None); BATCH];
            for (value, found) in batch.iter().zip(&mut found) {
                found.0 = Slot::half_of(self.hasher.hash_one(value));
            }
            for (value, (hash, known)) in batch.iter().zip(&mut found) {
                *known = self.find(*hash, value);
            }
            for (&value, (hash, known)) in batch.iter().zip(found) {
                ids(known.unwrap_or_else(|| self.intern_hashed(hash, value)));
            }
        }
    }

    fn find(&self, hash: u32, value: &T) -> Option<I> {
        let is_value = |slot: &Slot| slot.hash == hash && self.values[slot.index as usize] == *value;
        self.indices.find(Slot::spread(hash), is_value).map(|known| I::from_index(known.index))
    }

    /// Reserves an id for a value that is not known yet. Until [`Interner::define`] sets the value, the id
    /// has the value `meanwhile`, which [`Interner::intern`] does not find.
    pub fn reserve(&mut self, meanwhile: T) -> I {
        let id = next_id(self.values.len());
        self.values.push(meanwhile);
        id
    }

    /// Sets the value of a reserved id, and returns the value's id. That is another id if the value was
    /// already stored: then the reserved id must no longer be used.
    pub fn define(&mut self, reserved: I, value: T) -> I {
        let hash = Slot::half_of(self.hasher.hash_one(&value));
        if let Some(known) = self.find(hash, &value) {
            return known;
        }
        self.values[reserved.index()] = value;
        let slot = Slot { hash, index: reserved.index() as u32 };
        self.indices.insert_unique(slot.place(), slot, Slot::place);
        reserved
    }

    /// Returns the value of `id`.
    ///
    /// # Panics
    /// If `id` came from another interner and is too large for this one.
    pub fn get(&self, id: I) -> &T {
        &self.values[id.index()]
    }

    /// The values. Ids are their positions.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// The places of sequences that are stored one after another.
#[derive(Clone, Debug, Default)]
struct Places {
    /// The end of each sequence.
    ends: Vec<usize>,
    /// Indices of the first `indices.len()` sequences.
    indices: HashTable<Slot>,
    hasher: RandomState,
}

impl Places {
    fn range(&self, index: usize) -> Range<usize> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        start..self.ends[index]
    }

    fn hash(&self, sequence: &(impl Hash + ?Sized)) -> u32 {
        Slot::half_of(self.hasher.hash_one(sequence))
    }

    /// The id of the sequence with this hash that `is_at` finds in its range.
    fn find<I: Id>(&self, hash: u32, is_at: impl Fn(Range<usize>) -> bool) -> Option<I> {
        let is_found = |slot: &Slot| slot.hash == hash && is_at(self.range(slot.index as usize));
        self.indices.find(Slot::spread(hash), is_found).map(|known| I::from_index(known.index))
    }

    /// Adds a sequence that ends at `end`.
    fn push<I: Id>(&mut self, end: usize) -> I {
        let id = next_id(self.ends.len());
        self.ends.push(end);
        id
    }

    /// Lets [`Places::find`] find the next sequence.
    fn index_next(&mut self, hash: u32) {
        let slot = Slot { hash, index: self.indices.len() as u32 };
        self.indices.insert_unique(slot.place(), slot, Slot::place);
    }
}

/// Interns sequences, stored one after another.
#[derive(Clone, Debug)]
pub struct SliceInterner<T, I> {
    items: Vec<T>,
    places: Places,
    id: PhantomData<I>,
}

impl<T, I> Default for SliceInterner<T, I> {
    fn default() -> Self {
        Self { items: Vec::new(), places: Places::default(), id: PhantomData }
    }
}

impl<T: Copy + Hash + Eq, I: Id> SliceInterner<T, I> {
    /// Returns the id of `slice`, which is copied if it is new.
    pub fn intern(&mut self, slice: &[T]) -> I {
        for index in self.places.indices.len()..self.len() {
            let hash = self.places.hash(&self.items[self.places.range(index)]);
            self.places.index_next(hash);
        }
        let hash = self.places.hash(slice);
        if let Some(known) = self.places.find(hash, |range| self.items[range] == *slice) {
            return known;
        }
        let id = self.push_distinct(slice);
        self.places.index_next(hash);
        id
    }

    /// Stores a sequence that the caller knows to be new. It is hashed only by the next call of
    /// [`SliceInterner::intern`].
    pub fn push_distinct(&mut self, slice: &[T]) -> I {
        self.items.extend_from_slice(slice);
        self.places.push(self.items.len())
    }

    /// Returns the sequence of `id`.
    ///
    /// # Panics
    /// If `id` came from another interner and is too large for this one.
    pub fn get(&self, id: I) -> &[T] {
        &self.items[self.places.range(id.index())]
    }

    /// The sequences in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[T]> {
        (0..self.len()).map(|index| &self.items[self.places.range(index)])
    }

    /// The number of sequences.
    pub fn len(&self) -> usize {
        self.places.ends.len()
    }

    /// Whether there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.places.ends.is_empty()
    }
}

/// Interns strings, stored one after another.
#[derive(Clone, Debug)]
pub struct StringInterner<I> {
    text: String,
    places: Places,
    id: PhantomData<I>,
}

impl<I> Default for StringInterner<I> {
    fn default() -> Self {
        Self { text: String::new(), places: Places::default(), id: PhantomData }
    }
}

impl<I: Id> StringInterner<I> {
    /// Makes room for this many more strings, of so many bytes together.
    pub fn reserve(&mut self, count: usize, bytes: usize) {
        self.text.reserve(bytes);
        self.places.ends.reserve(count);
        self.places.indices.reserve(count, Slot::place);
    }

    /// Returns the id of `string`, which is copied if it is new.
    pub fn intern(&mut self, string: &str) -> I {
        let hash = self.places.hash(string);
        if let Some(id) = self.find_by(hash, string) {
            return id;
        }
        self.text.push_str(string);
        let id = self.places.push(self.text.len());
        self.places.index_next(hash);
        id
    }

    /// Returns the id of `string`, if it is stored.
    pub fn find(&self, string: &str) -> Option<I> {
        self.find_by(self.places.hash(string), string)
    }

    fn find_by(&self, hash: u32, string: &str) -> Option<I> {
        self.places.find(hash, |range| self.text[range] == *string)
    }

    /// Returns the string of `id`.
    ///
    /// # Panics
    /// If `id` came from another interner and is too large for this one.
    pub fn get(&self, id: I) -> &str {
        &self.text[self.places.range(id.index())]
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.places.ends.len()
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.places.ends.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FrameId, StringId};
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Checks that ids are dense, in order of first appearance, and equal exactly when the values are.
    fn check<V: Clone + Eq + Hash>(input: &[V], mut intern: impl FnMut(&V) -> usize) {
        let mut expected: HashMap<V, usize> = HashMap::new();
        for value in input {
            let next = expected.len();
            let expected = *expected.entry(value.clone()).or_insert(next);
            assert_eq!(intern(value), expected);
        }
    }

    proptest! {
        #[test]
        fn values_get_dense_ids_by_content(input in prop::collection::vec(0u16..50, 0..300)) {
            let mut interner = Interner::<u16, FrameId>::default();
            check(&input, |&value| interner.intern(value).index());
            for value in input {
                let id = interner.intern(value);
                prop_assert_eq!(*interner.get(id), value);
            }
        }

        #[test]
        fn values_get_the_same_ids_together_and_one_by_one(
            known in prop::collection::vec(0u16..50, 0..30),
            input in prop::collection::vec(0u16..100, 0..300)
        ) {
            let mut one_by_one = Interner::<u16, FrameId>::default();
            known.iter().for_each(|&value| { one_by_one.intern(value); });
            let mut together = one_by_one.clone();
            let expected: Vec<_> = input.iter().map(|&value| one_by_one.intern(value)).collect();
            let mut ids = vec![];
            together.intern_all(&input, |id| ids.push(id));
            prop_assert_eq!(ids, expected);
            prop_assert_eq!(together.values(), one_by_one.values());
        }

        #[test]
        fn sequences_get_dense_ids_by_content(
            input in prop::collection::vec(prop::collection::vec(0u8..3, 0..5), 0..300)
        ) {
            let mut interner = SliceInterner::<u8, FrameId>::default();
            check(&input, |slice| interner.intern(slice).index());
            for slice in &input {
                let id = interner.intern(slice);
                prop_assert_eq!(interner.get(id), &slice[..]);
            }
            prop_assert_eq!(interner.iter().len(), interner.len());
        }

        #[test]
        fn strings_get_dense_ids_by_content(input in prop::collection::vec("[aé\u{0}]{0,3}", 0..300)) {
            let mut interner = StringInterner::<StringId>::default();
            check(&input, |string| interner.intern(string).index());
            for string in &input {
                let id = interner.find(string).unwrap();
                prop_assert_eq!(interner.get(id), string);
            }
            prop_assert!(interner.find("absent").is_none());
        }
    }

    #[test]
    fn sequences_pushed_without_hashing_are_found_later() {
        let mut interner = SliceInterner::<u8, FrameId>::default();
        interner.intern(&[]);
        let pushed = [interner.push_distinct(&[1]), interner.push_distinct(&[1, 2])];
        assert_eq!(interner.intern(&[1, 2]), pushed[1]);
        assert_eq!(interner.intern(&[1]), pushed[0]);
        assert_eq!(interner.intern(&[2]).index(), 3);
        assert_eq!(interner.len(), 4);
    }

    #[test]
    fn values_of_one_hash_stay_apart() {
        #[derive(PartialEq, Eq)]
        struct Colliding(u32);
        impl Hash for Colliding {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                state.write_u32(7);
            }
        }
        let mut interner = Interner::<Colliding, FrameId>::default();
        let ids: Vec<_> = (0..100).map(|value| interner.intern(Colliding(value))).collect();
        for (value, &id) in ids.iter().enumerate() {
            assert_eq!(interner.get(id).0, value as u32);
            assert_eq!(interner.intern(Colliding(value as u32)), id);
        }
    }
}
