//! A chunk's events.

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
    pub fn next_but(&mut self, passed: &mut Passed) -> Option<Result<Event<'c>, JfrError>> {
        let metadata = self.chunk.metadata();
        self.next_where(|type_id| !passed.pass(metadata, type_id))
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

/// Types whose events are to be passed, and how many were, in one chunk.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    /// By the type's position.
    counts: Vec<Option<u64>>,
}

impl Passed {
    /// Every type but one.
    pub fn all_but(metadata: &Metadata, of: TypeIndex) -> Self {
        let is_other = |(other, _): (TypeIndex, &Type)| (other != of).then_some(0);
        Self { counts: metadata.types().map(is_other).collect() }
    }

    /// Has the events of a type passed from now on.
    pub fn add(&mut self, of: TypeIndex) {
        if self.counts.len() <= of.position() {
            self.counts.resize(of.position() + 1, None);
        }
        self.counts[of.position()].get_or_insert(0);
    }

    /// How many events of each type were passed, by the type's position.
    pub fn counts(&self) -> impl Iterator<Item = (usize, u64)> {
        self.counts.iter().enumerate().filter_map(|(position, count)| Some((position, (*count)?)))
    }

    /// Whether this is the id of a type whose events are to be passed; then one more was.
    #[inline(always)]
    fn pass(&mut self, metadata: &Metadata, type_id: i64) -> bool {
        match metadata.find(type_id).and_then(|of| self.counts.get_mut(of.position())) {
            Some(Some(count)) => {
                *count += 1;
                true
            }
            _ => false,
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
