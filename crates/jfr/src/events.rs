//! A chunk's events.

use std::collections::HashMap;

use super::chunk::Chunk;
use super::cursor::ChunkCursor;
use super::error::JfrError;
use super::framing::{CHECKPOINT, EventPlace, METADATA};
use super::header::HEADER_LEN;
use super::metadata::Metadata;
use super::types::{Type, TypeIndex};
use super::values::Struct;

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct Event<'c> {
    values: Struct<'c>,
    start: usize,
}

impl<'c> Event<'c> {
    /// The event's type.
    pub fn type_of(&self) -> &'c Type {
        self.values.type_of()
    }

    /// The position of the event's type.
    #[inline]
    pub fn type_index(&self) -> TypeIndex {
        self.values.of
    }

    /// The event's fields.
    #[inline]
    pub fn values(&self) -> Struct<'c> {
        self.values
    }

    /// The event in this frame; `None` if its type is unknown.
    #[inline]
    pub(super) fn of_frame(chunk: Chunk<'c>, frame: &EventPlace) -> Option<Self> {
        let of = chunk.metadata().find(frame.type_id)?;
        Some(Self { values: Struct { chunk, of, at: frame.payload, end: frame.end }, start: frame.at })
    }

    /// The event's offset in the recording.
    pub fn offset(&self) -> u64 {
        self.values.chunk.offset() + self.start as u64
    }
}

impl<'c> Chunk<'c> {
    /// The chunk's events, in the order in which they were written. This is not the order of their times.
    pub fn events(&self) -> Events<'c> {
        Events::new(*self, HEADER_LEN, self.bytes.len())
    }
}

/// Iterates over events. After an error the iterator ends, since the following events cannot be found.
#[derive(Clone, Debug)]
pub struct Events<'c> {
    chunk: Chunk<'c>,
    cursor: ChunkCursor<'c>,
    unknown: u64,
}

impl<'c> Events<'c> {
    /// The events between two offsets in the chunk.
    pub(super) fn new(chunk: Chunk<'c>, at: usize, end: usize) -> Self {
        Self { chunk, cursor: chunk.cursor(at, end), unknown: 0 }
    }

    /// The number of events so far whose type the metadata does not describe.
    pub fn of_unknown_type(&self) -> u64 {
        self.unknown
    }

    /// The next event whose type is not in `skipped`. Most events of most recordings are of no use to most
    /// readers. Skipped here, such an event costs little more than reading its size.
    #[inline(always)]
    pub fn next_except(&mut self, skipped: &mut SkippedTypes) -> Option<Result<Event<'c>, JfrError>> {
        self.next_where(|type_id| !skipped.skip(type_id))
    }

    #[inline(always)]
    fn next_where(&mut self, mut is_wanted: impl FnMut(i64) -> bool) -> Option<Result<Event<'c>, JfrError>> {
        while self.cursor.left() > 0 {
            let frame = match EventPlace::read(&mut self.cursor) {
                Ok(frame) => frame,
                Err(error) => {
                    self.cursor.seek(self.cursor.end());
                    return Some(Err(error));
                }
            };
            if matches!(frame.type_id, METADATA | CHECKPOINT) || !is_wanted(frame.type_id) {
                continue;
            }
            if let Some(event) = Event::of_frame(self.chunk, &frame) {
                return Some(Ok(event));
            }
            self.unknown += 1;
        }
        None
    }
}

/// Type ids below this number are looked up in a table.
const DIRECT_IDS: usize = 4_096;

/// The types whose events are skipped, and the number of events skipped of each, in one chunk.
#[derive(Clone, Debug, Default)]
pub struct SkippedTypes {
    /// The position of each type, and the number of its events that were skipped.
    counts: Vec<(usize, u64)>,
    /// For each type id: the position in `counts`, plus one; 0 for a type whose events are not skipped.
    direct: Vec<u32>,
    /// The same map as `direct` for larger ids, which no known writer uses.
    others: HashMap<i64, u32>,
}

impl SkippedTypes {
    /// Skips the events of every type but one.
    pub fn all_except(metadata: &Metadata, of: TypeIndex) -> Self {
        let mut skipped = Self::default();
        metadata
            .types()
            .filter(|(other, _)| *other != of)
            .for_each(|(other, _)| skipped.add(metadata, other));
        skipped
    }

    /// Skips the events of a type from now on.
    pub fn add(&mut self, metadata: &Metadata, of: TypeIndex) {
        let type_id = metadata.get(of).id;
        let place = match usize::try_from(type_id).ok().filter(|&id| id < DIRECT_IDS) {
            Some(id) => {
                self.direct.resize(self.direct.len().max(id + 1), 0);
                &mut self.direct[id]
            }
            None => self.others.entry(type_id).or_default(),
        };
        if *place == 0 {
            self.counts.push((of.position(), 0));
            *place = self.counts.len() as u32;
        }
    }

    /// The number of events skipped of each type, by the type's position.
    pub fn counts(&self) -> impl Iterator<Item = (usize, u64)> {
        self.counts.iter().copied()
    }

    /// Whether the events of the type with this id are skipped. If so, counts one.
    #[inline(always)]
    fn skip(&mut self, type_id: i64) -> bool {
        let place = usize::try_from(type_id).ok().and_then(|id| self.direct.get(id));
        let place =
            if place.is_none() && !self.others.is_empty() { self.others.get(&type_id) } else { place };
        match place.and_then(|&place| self.counts.get_mut((place as usize).wrapping_sub(1))) {
            Some((_, count)) => {
                *count += 1;
                true
            }
            None => false,
        }
    }
}

impl<'c> Iterator for Events<'c> {
    type Item = Result<Event<'c>, JfrError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.next_where(|_| true)
    }
}
