//! The location table of one message while it grows.
//!
//! Most locations of a large message are Java frames with a line. Different frames of this kind have
//! different locations. So such a location is stored as only its frame's id, without hashing.

use otlpprof_core::address::ElfVaddr;
use otlpprof_model::{FrameId, Id, Interner};

use super::wire_index::WireIndex;

/// An entry of the location table. It has at most one line, since inlined calls are frames of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct WireLocation {
    pub(super) mapping: WireIndex,
    pub(super) address: ElfVaddr,
    /// Zero for a location without a line.
    pub(super) function: WireIndex,
    pub(super) line: u32,
    /// `profile.frame.type`; then, unless zero, the text of a remote frame, how a Java frame was executed, or
    /// the kind of other code.
    pub(super) attributes: [WireIndex; 2],
}

/// The position of a location in [`Locations::stored`].
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

/// How an entry of the table is stored.
#[derive(Clone, Copy, Debug)]
enum Entry {
    /// The location of a Java frame; no other frame has an equal location.
    Distinct(FrameId),
    Stored(StoredId),
}

/// The location table.
#[derive(Debug)]
pub(super) struct Locations {
    entries: Vec<Entry>,
    stored: Interner<WireLocation, StoredId>,
    /// The index in the table of each stored location.
    places: Vec<WireIndex>,
}

impl Locations {
    /// A table that holds only the zero value.
    pub(super) fn new() -> Self {
        let mut locations = Self { entries: Vec::new(), stored: Interner::default(), places: Vec::new() };
        locations.intern(WireLocation::default());
        locations
    }

    /// The number of locations.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds the location of a frame. No other frame may have an equal location.
    pub(super) fn push_distinct(&mut self, frame: FrameId) -> WireIndex {
        self.push(Entry::Distinct(frame))
    }

    /// The index of a location. A new location is added.
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

    /// The locations in the order of the table. `of_frame` returns the location of a distinct frame.
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
