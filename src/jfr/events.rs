//! A chunk's events.

use std::collections::HashMap;

use super::chunk::Chunk;
use super::cursor::Cursor;
use super::error::JfrError;
use super::framing::{CHECKPOINT, Frame, METADATA};
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
    /// Its type.
    pub fn type_of(&self) -> &'c Type {
        self.values.type_of()
    }

    /// The position of its type.
    #[inline]
    pub fn type_index(&self) -> TypeIndex {
        self.values.of
    }

    /// Its fields.
    #[inline]
    pub fn values(&self) -> Struct<'c> {
        self.values
    }

    /// The event that is in this place, if its type is known.
    #[inline]
    pub(super) fn of_frame(chunk: Chunk<'c>, frame: &Frame) -> Option<Self> {
        let of = chunk.metadata().find(frame.type_id)?;
        Some(Self { values: Struct { chunk, of, at: frame.payload, end: frame.end }, start: frame.at })
    }

    /// Its offset in the recording.
    pub fn offset(&self) -> u64 {
        self.values.chunk.offset() + self.start as u64
    }
}

/// Goes through events. An error is the last item: behind it events cannot be told apart.
#[derive(Clone, Debug)]
pub struct Events<'c> {
    chunk: Chunk<'c>,
    cursor: Cursor<'c>,
    unknown: u64,
}

impl<'c> Events<'c> {
    /// The events from one offset in the chunk to another.
    pub(super) fn new(chunk: Chunk<'c>, at: usize, end: usize) -> Self {
        Self { chunk, cursor: chunk.cursor(at, end), unknown: 0 }
    }

    /// How many events there were so far of types that the metadata does not describe.
    pub fn of_unknown_type(&self) -> u64 {
        self.unknown
    }

    /// The next event of a type that is not to be passed. Most events of most recordings are of no use to most readers: this
    /// way each costs little more than to read its size.
    #[inline(always)]
    pub fn next_but(&mut self, passed: &mut Passed) -> Option<Result<Event<'c>, JfrError>> {
        self.next_where(|type_id| !passed.pass(type_id))
    }

    #[inline(always)]
    fn next_where(&mut self, mut is_wanted: impl FnMut(i64) -> bool) -> Option<Result<Event<'c>, JfrError>> {
        while self.cursor.left() > 0 {
            let frame = match Frame::read(&mut self.cursor) {
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

/// Ids below this are looked up in a table.
const DIRECT_IDS: usize = 4_096;

/// Types whose events are to be passed, and how many were, in one chunk.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    /// Each type's position, and how many of its events were passed.
    counts: Vec<(usize, u64)>,
    /// By a type's id: one more than its position in `counts`, 0 for one whose events are not to be passed.
    direct: Vec<u32>,
    /// The same of those with large ids, which no writer gives.
    others: HashMap<i64, u32>,
}

impl Passed {
    /// Every type but one.
    pub fn all_but(metadata: &Metadata, of: TypeIndex) -> Self {
        let mut passed = Self::default();
        metadata.types().filter(|(other, _)| *other != of).for_each(|(other, _)| passed.add(metadata, other));
        passed
    }

    /// Has the events of a type passed from now on.
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

    /// How many events of each type were passed, by the type's position.
    pub fn counts(&self) -> impl Iterator<Item = (usize, u64)> {
        self.counts.iter().copied()
    }

    /// Whether this is the id of a type whose events are to be passed; then one more was.
    #[inline(always)]
    fn pass(&mut self, type_id: i64) -> bool {
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
