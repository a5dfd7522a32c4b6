//! A chunk's events.

use super::chunk::Chunk;
use super::cursor::Cursor;
use super::error::JfrError;
use super::framing::{CHECKPOINT, Frame, METADATA};
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
}

impl<'c> Iterator for Events<'c> {
    type Item = Result<Event<'c>, JfrError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.cursor.left() == 0 {
                return None;
            }
            let frame = match Frame::read(&mut self.cursor) {
                Ok(frame) => frame,
                Err(error) => {
                    self.cursor.seek(self.cursor.end());
                    return Some(Err(error));
                }
            };
            if matches!(frame.type_id, METADATA | CHECKPOINT) {
                continue;
            }
            if let Some(event) = Event::of_frame(self.chunk, &frame) {
                return Some(Ok(event));
            }
            self.unknown += 1;
        }
    }
}
