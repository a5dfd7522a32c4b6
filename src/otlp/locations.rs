//! The location table of one message as it grows.
//!
//! Most locations of a large message are Java frames with a line. Different ones have different locations, so that such a
//! frame needs no hash, and no memory but for its id.

use crate::core::address::ElfVaddr;
use crate::model::{FrameId, Id, Interner};

use super::dictionary::WireIndex;

/// An entry of the location table: at most one line, as inlined calls are frames of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct WireLocation {
    pub(super) mapping: WireIndex,
    pub(super) address: ElfVaddr,
    /// Zero: no line.
    pub(super) function: WireIndex,
    pub(super) line: u32,
    /// `profile.frame.type` and, unless zero, the remote frame's text, or how a Java frame was executed.
    pub(super) attributes: [WireIndex; 2],
}

/// The position of a location among those that are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct StoredId(u32);

impl Id for StoredId {
    fn from_index(index: u32) -> Self {
        Self(index)
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where an entry of the table is.
#[derive(Clone, Copy, Debug)]
enum Entry {
    /// A Java frame, which has a location that no other frame has.
    Distinct(FrameId),
    Stored(StoredId),
}

/// The location table.
#[derive(Debug)]
pub(super) struct Locations {
    entries: Vec<Entry>,
    stored: Interner<WireLocation, StoredId>,
    /// The table's index of each stored location.
    places: Vec<WireIndex>,
}

impl Locations {
    /// A table of the zero value.
    pub(super) fn new() -> Self {
        let mut locations = Self { entries: Vec::new(), stored: Interner::default(), places: Vec::new() };
        locations.intern(WireLocation::default());
        locations
    }

    /// How many locations there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds the location of a frame; no other frame may have an equal one.
    pub(super) fn push_distinct(&mut self, frame: FrameId) -> WireIndex {
        self.push(Entry::Distinct(frame))
    }

    /// The index of a location, which is added if it is new.
    pub(super) fn intern(&mut self, location: WireLocation) -> WireIndex {
        let id = self.stored.intern(location);
        if let Some(&place) = self.places.get(id.index()) {
            return place;
        }
        let place = self.push(Entry::Stored(id));
        self.places.push(place);
        place
    }

    fn push(&mut self, entry: Entry) -> WireIndex {
        let place = WireIndex::from_index(self.entries.len() as u32);
        self.entries.push(entry);
        place
    }

    /// The locations in the order of the table; `of_frame` gives those of the distinct frames.
    pub(super) fn iter(
        &self,
        of_frame: impl Fn(FrameId) -> WireLocation,
    ) -> impl Iterator<Item = WireLocation> {
        self.entries.iter().map(move |&entry| match entry {
            Entry::Distinct(frame) => of_frame(frame),
            Entry::Stored(id) => *self.stored.get(id),
        })
    }
}
