//! Frames that several threads intern at the same time.
//!
//! The ids depend on the order in which the threads come. So a [`super::frame_table::FrameTable`] numbers the
//! frames again, in the order in which samples have them.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use parking_lot::Mutex;

use super::frame_entry::{FrameEntry, FrameKind};
use super::frame_origin::FrameOrigin;
use super::objects::ObjectId;

/// A frame, by its place in [`KnownFrames`].
pub(super) type KnownId = u32;

/// The number of tables among which the frames are distributed, so that threads seldom wait for each other.
const TABLES: usize = 16;

/// Frames of all messages.
#[derive(Debug, Default)]
pub(super) struct KnownFrames {
    hasher: RandomState,
    tables: [Mutex<Table>; TABLES],
}

#[derive(Debug, Default)]
struct Table {
    /// The name and the file of each entry, one after another, so that a comparison reads one place.
    texts: String,
    entries: Vec<Entry>,
    by_entry: HashTable<Slot>,
}

/// A frame whose texts are in the table.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    name_bytes: u32,
    file_bytes: u32,
    line: i64,
    kind: FrameKind,
    object: ObjectId,
    origin: FrameOrigin,
}

/// An entry's hash and its place.
#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u64,
    place: u32,
}

impl Entry {
    fn of(texts: &mut String, entry: FrameEntry<&str>, origin: FrameOrigin) -> Self {
        let FrameEntry { name, file, line, kind, object } = entry;
        let start = texts.len();
        texts.push_str(name);
        texts.push_str(file);
        // SANITY: texts of frames are cut after some KiB.
        let (name_bytes, file_bytes) = (name.len() as u32, file.len() as u32);
        Self { start, name_bytes, file_bytes, line, kind, object, origin }
    }

    fn with_texts<'t>(&self, texts: &'t str) -> FrameEntry<&'t str> {
        let &Self { start, name_bytes, file_bytes, line, kind, object, .. } = self;
        let (name, rest) = texts[start..].split_at(name_bytes as usize);
        FrameEntry { name, file: &rest[..file_bytes as usize], line, kind, object }
    }
}

impl KnownFrames {
    /// The id of a frame of this origin, which is added if it is new. A frame has one id for each origin.
    pub(super) fn intern(&self, entry: FrameEntry<&str>, origin: FrameOrigin) -> KnownId {
        let hash = self.hasher.hash_one((entry, origin));
        // A hash table uses the lowest and the highest bits.
        let number = (hash >> 32) as usize % TABLES;
        let mut table = self.tables[number].lock();
        let Table { texts, entries, by_entry } = &mut *table;
        let is_entry = |slot: &Slot| {
            let known = &entries[slot.place as usize];
            slot.hash == hash && known.origin == origin && known.with_texts(texts) == entry
        };
        let place = match by_entry.find(hash, is_entry) {
            Some(known) => known.place,
            None => {
                // SANITY: 2^28 frames in one of the tables do not fit into memory.
                let place = entries.len() as u32;
                entries.push(Entry::of(texts, entry, origin));
                by_entry.insert_unique(hash, Slot { hash, place }, |slot| slot.hash);
                place
            }
        };
        place * TABLES as u32 + number as u32
    }

    /// Passes the frame of an id and its origin to `take`.
    pub(super) fn get<T>(&self, id: KnownId, take: impl FnOnce(FrameEntry<&str>, FrameOrigin) -> T) -> T {
        let (place, number) = (id as usize / TABLES, id as usize % TABLES);
        let table = self.tables[number].lock();
        let entry = &table.entries[place];
        take(entry.with_texts(&table.texts), entry.origin)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use super::*;

    #[test]
    fn threads_get_the_same_id_for_the_same_frame() {
        let known = &KnownFrames::default();
        let intern_all = |_| {
            let entries = (0..500).map(|line| {
                let entry = FrameEntry { name: "f", file: "", line, kind: FrameKind::Java, object: 0 };
                known.intern(entry, FrameOrigin::Jvm)
            });
            entries.collect::<Vec<_>>()
        };
        let ids = thread::scope(|scope| {
            let threads = [1, 2, 3].map(|number| scope.spawn(move || intern_all(number)));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!((&ids[0], &ids[1]), (&ids[1], &ids[2]));
        assert_eq!(ids[0].iter().collect::<BTreeSet<_>>().len(), 500);
        assert!((0..).zip(&ids[0]).all(|(line, &id)| known.get(id, |frame, _| frame.line) == line));
    }
}
