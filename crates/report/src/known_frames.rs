//! Frames that several threads intern at the same time.
//!
//! The ids depend on the order in which the threads come. So a [`super::frame_table::FrameTable`] numbers the
//! frames again, in the order in which samples have them.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use parking_lot::RwLock;

use super::frame_entry::{FrameEntry, FrameKind};
use super::frame_origin::FrameOrigin;
use super::objects::ObjectId;

/// A frame, by its place in [`KnownFrames`].
pub(super) type KnownId = u32;

/// The number of frames that are searched together.
const BATCH: usize = 32;

/// A frame with the origin of its code.
pub(super) type FrameWithOrigin<'f> = (FrameEntry<&'f str>, FrameOrigin);

/// Frames of all messages. Most frames of a message are known from the messages before, so that threads
/// mostly read.
#[derive(Debug, Default)]
pub(super) struct KnownFrames {
    hasher: RandomState,
    table: RwLock<Table>,
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
    place: KnownId,
}

impl Entry {
    fn of(texts: &mut String, (entry, origin): FrameWithOrigin<'_>) -> Self {
        let FrameEntry { name, file, line, kind, object } = entry;
        let start = texts.len();
        texts.push_str(name);
        texts.push_str(file);
        // SANITY: texts of frames are cut after some KiB.
        let (name_bytes, file_bytes) = (name.len() as u32, file.len() as u32);
        Self { start, name_bytes, file_bytes, line, kind, object, origin }
    }

    fn with_texts<'t>(&self, texts: &'t str) -> FrameWithOrigin<'t> {
        let &Self { start, name_bytes, file_bytes, line, kind, object, origin } = self;
        let (name, rest) = texts[start..].split_at(name_bytes as usize);
        (FrameEntry { name, file: &rest[..file_bytes as usize], line, kind, object }, origin)
    }
}

impl Table {
    fn is(&self, place: KnownId, frame: FrameWithOrigin<'_>) -> bool {
        self.entries[place as usize].with_texts(&self.texts) == frame
    }

    fn find(&self, hash: u64, frame: FrameWithOrigin<'_>) -> Option<KnownId> {
        let found = self.by_entry.find(hash, |slot| slot.hash == hash && self.is(slot.place, frame));
        found.map(|slot| slot.place)
    }

    fn find_or_add(&mut self, hash: u64, frame: FrameWithOrigin<'_>) -> KnownId {
        self.find(hash, frame).unwrap_or_else(|| {
            // SANITY: 2^32 frames do not fit into memory.
            let place = self.entries.len() as KnownId;
            self.entries.push(Entry::of(&mut self.texts, frame));
            self.by_entry.insert_unique(hash, Slot { hash, place }, |slot| slot.hash);
            place
        })
    }
}

impl KnownFrames {
    /// Appends the ids of frames. New frames are added. A frame has one id for each origin.
    pub(super) fn intern_all(&self, frames: &[FrameWithOrigin<'_>], ids: &mut Vec<KnownId>) {
        for batch in frames.chunks(BATCH) {
            let mut hashes = [0; BATCH];
            let mut found = [None; BATCH];
            for (hash, frame) in hashes.iter_mut().zip(batch) {
                *hash = self.hasher.hash_one(frame);
            }
            // Slots, entries and texts lie scattered in memory. A batch loads them at the same time.
            let table = self.table.read();
            for (found, &hash) in found.iter_mut().zip(&hashes[..batch.len()]) {
                let slot = table.by_entry.find(hash, |slot| slot.hash == hash);
                *found = slot.map(|slot| slot.place);
            }
            let mut are_known = true;
            for (found, &frame) in found.iter_mut().zip(batch) {
                *found = found.filter(|&place| table.is(place, frame));
                are_known &= found.is_some();
            }
            drop(table);
            if are_known {
                ids.extend(found[..batch.len()].iter().flatten());
                continue;
            }
            let mut table = self.table.write();
            let of_batch = found.iter().zip(hashes).zip(batch);
            ids.extend(
                of_batch
                    .map(|((found, hash), &frame)| found.unwrap_or_else(|| table.find_or_add(hash, frame))),
            );
        }
    }

    /// Passes the frame of an id and its origin to `take`.
    pub(super) fn get<T>(&self, id: KnownId, take: impl FnOnce(FrameEntry<&str>, FrameOrigin) -> T) -> T {
        let table = self.table.read();
        let (entry, origin) = table.entries[id as usize].with_texts(&table.texts);
        take(entry, origin)
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
            let frames = (0..500).map(|line| {
                let entry = FrameEntry { name: "f", file: "", line, kind: FrameKind::Java, object: 0 };
                (entry, FrameOrigin::Jvm)
            });
            let (frames, mut ids) = (frames.collect::<Vec<_>>(), Vec::new());
            known.intern_all(&frames, &mut ids);
            ids
        };
        let ids = thread::scope(|scope| {
            let threads = [1, 2, 3].map(|number| scope.spawn(move || intern_all(number)));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!((&ids[0], &ids[1]), (&ids[1], &ids[2]));
        assert_eq!(ids[0].iter().collect::<BTreeSet<_>>().len(), 500);
        assert!((0..).zip(&ids[0]).all(|(line, &id)| known.get(id, |frame, _| frame.line) == line));
    }

    #[test]
    fn a_frame_has_an_id_for_each_origin_and_recurs_within_a_batch() {
        let entry = |name| FrameEntry { name, file: "", line: 0, kind: FrameKind::Native, object: 0 };
        let frames = [
            (entry("f"), FrameOrigin::CLibrary),
            (entry("f"), FrameOrigin::Object),
            (entry("g"), FrameOrigin::CLibrary),
            (entry("f"), FrameOrigin::CLibrary),
        ];
        let (known, mut ids) = (KnownFrames::default(), Vec::new());
        known.intern_all(&frames, &mut ids);
        assert_eq!(ids, [0, 1, 2, 0]);
        known.intern_all(&frames[1..3], &mut ids);
        assert_eq!(ids[4..], [1, 2]);
        assert_eq!(known.get(2, |frame, origin| (frame.name.to_owned(), origin)).0, "g");
    }
}
