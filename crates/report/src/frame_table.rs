//! Functions or lines that occur in stacks, interned.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use otlpprof_otlp::frames::Frame;

use super::frame_entry::cut;
pub use super::frame_entry::{FrameEntry, FrameKind};
pub use super::frame_origin::FrameOrigin;
use super::known_frames::{KnownFrames, KnownId};
use super::objects::ObjectId;

/// A frame, by its number in a [`FrameTable`].
pub type FrameId = u32;

/// The approximate bytes that a frame occupies besides its texts.
const OF_ENTRY: usize = 96;
/// The number of a frame that has none.
const NO_NUMBER: FrameId = FrameId::MAX;

/// Frames, each with a number: those that the samples of a reader have, in the order of their occurrence.
#[derive(Debug, Default)]
pub struct FrameTable {
    hasher: RandomState,
    /// The length of all texts, in bytes.
    text_bytes: usize,
    entries: Vec<FrameEntry>,
    /// By frame: the origin of its code.
    origins: Vec<FrameOrigin>,
    by_entry: HashTable<FrameId>,
    /// The frames that other threads have resolved, also those that no sample has.
    known: Arc<KnownFrames>,
    /// By known frame: its number here, or [`NO_NUMBER`].
    numbers: Vec<FrameId>,
}

impl FrameTable {
    /// The number of frames.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no frame.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The approximate bytes that the table occupies.
    pub fn bytes(&self) -> usize {
        self.text_bytes + self.entries.len() * OF_ENTRY
    }

    /// The frame of this number.
    pub fn get(&self, id: FrameId) -> &FrameEntry {
        &self.entries[id as usize]
    }

    /// The origins of all frames, in the order of their numbers.
    pub fn origins(&self) -> &[FrameOrigin] {
        &self.origins
    }

    /// All frames, in the order of their numbers.
    pub fn all(&self) -> &[FrameEntry] {
        &self.entries
    }

    /// Interns a frame: its line as well if `with_line` is set, otherwise its function. `object` is 0 unless
    /// equal functions of different objects are told apart.
    pub fn intern(
        &mut self,
        frame: &Frame<'_>,
        with_line: bool,
        object: ObjectId,
        origin: FrameOrigin,
    ) -> FrameId {
        self.intern_entry(FrameEntry::of(frame, with_line, object), origin)
    }

    /// Interns a frame that stands for a thread, a label or another group of stacks.
    pub fn intern_group(&mut self, name: &str) -> FrameId {
        let kind = FrameKind::Marker;
        let entry = FrameEntry { name: cut(name), file: "", line: 0, kind, object: 0 };
        self.intern_entry(entry, FrameOrigin::Unknown)
    }

    /// Interns a frame of another table: its line as well if `with_line` is set, otherwise its function.
    pub fn intern_copy(&mut self, of: &Self, frame: FrameId, with_line: bool) -> FrameId {
        let entry = of.get(frame).borrowed();
        let line = if with_line { entry.line } else { 0 };
        self.intern_entry(FrameEntry { line, ..entry }, of.origins[frame as usize])
    }

    fn intern_entry(&mut self, entry: FrameEntry<&str>, origin: FrameOrigin) -> FrameId {
        let Self { hasher, text_bytes, entries, origins, by_entry, .. } = self;
        let hash = hasher.hash_one(entry);
        if let Some(&known) = by_entry.find(hash, |&known| entries[known as usize].borrowed() == entry) {
            let of_known = &mut origins[known as usize];
            *of_known = origin.max(*of_known);
            return known;
        }
        // SANITY: 2^32 frames do not fit into memory.
        let id = entries.len() as FrameId;
        *text_bytes += entry.name.len() + entry.file.len();
        entries.push(entry.owned());
        origins.push(origin);
        by_entry.insert_unique(hash, id, |&id| hasher.hash_one(entries[id as usize].borrowed()));
        id
    }

    /// The known frames, which other threads may add to.
    pub(super) fn known(&self) -> &Arc<KnownFrames> {
        &self.known
    }

    /// The number of a known frame. A frame without a number gets the next one.
    pub(super) fn number(&mut self, known: KnownId) -> FrameId {
        let at = known as usize;
        match self.numbers.get(at) {
            Some(&number) if number != NO_NUMBER => return number,
            Some(_) => {}
            None => self.numbers.resize(at + 1, NO_NUMBER),
        }
        let all_known = Arc::clone(&self.known);
        let number = all_known.get(known, |entry, origin| self.intern_entry(entry, origin));
        self.numbers[at] = number;
        number
    }
}
